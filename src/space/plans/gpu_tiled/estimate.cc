// The estimate of tiles on a GPU.
#include <bit>
#include <cmath>

#include "sched/register_pairs.h"
#include "space/estimate/gpu_access.h"
#include "space/estimate/gpu_constants.h"
#include "space/plans/gpu_tiled/gpu_tiled_plan.h"

namespace tensorsmith::space {

namespace {

using sched::kPairSteps;
constexpr int kF32Bytes = 4;

int64_t power_of_two_in(int64_t n, int64_t most) { return std::min(n & -n, most); }

}  // namespace

// Returns by how many elements each lane of a warp moves the operand's address.
WarpAddresses GpuTiledPlan::lanes(const Choice& c, const Operand& operand, const Copy& copy) const {
  // Strides by spatial axis, in the tile's rows or in the tensor's.
  Lengths strides(info_.num_spatial, 0);
  if (copy.made) {
    int64_t stride = 1;
    const AxisId last = context_.stage(operand.read.producer).contiguous_axis;
    for (size_t i = copy.extents.size(); i-- > 0;) {
      const AxisId dim(i);
      if (last.valid() && dim < last && stride < copy.row_stride) stride = copy.row_stride;
      const auto& index = operand.read.indices[dim];
      for (const AxisId a : strides.ids())
        if (!index.blocked || index.blocks[a] == 1) strides[a] += stride * index.coefficients[a];
      stride *= copy.extents[dim];
    }
  } else if (!operand.read.strides.empty()) {
    for (const AxisId a : strides.ids()) strides[a] = operand.read.strides[a];
  }
  return lanes_with(c, strides);
}

WarpAddresses GpuTiledPlan::output_lanes(const Choice& c) const {
  const auto strides = context_.op(output_).output()->effective_strides();
  Lengths own(info_.num_spatial, 0);
  for (const AxisId a : live_) own[a] = strides[output_axis_[a].place()];
  return lanes_with(c, own);
}

WarpAddresses GpuTiledPlan::lanes_with(const Choice& c, const Lengths& strides) const {
  WarpAddresses out;
  out.count = std::min({threads(c), context_.machine.gpu.warp, target::GpuMachine::kMostLanes});
  for (size_t lane = 0; lane < out.count; ++lane) {
    int64_t rest = lane;
    int64_t at = 0;
    for (size_t i = live_.size(); i-- > 0 && rest > 0;) {
      const AxisId a = live_[i];
      at += rest % c.threads[a] * c.registers(a) * strides[a];
      rest /= c.threads[a];
    }
    out.at[lane] = at;
  }
  return out;
}

// Returns how many adjacent elements of a tile's rows a thread can load at once.
int64_t GpuTiledPlan::loaded_together(const Choice& c, const Operand& operand, const Copy& copy) const {
  const auto& producer = context_.stage(operand.read.producer);
  const AxisId last = producer.contiguous_axis;
  if (!last.valid() || !operand.read.indices[last].affine) return 1;
  AxisId axis;
  for (const AxisId a : info_.axes()) {
    if (operand.read.indices[last].coefficients[a] != 1) continue;
    if (axis.valid()) return 1;
    axis = a;
  }
  if (!axis.valid()) return 1;
  int64_t length = 1;
  if (!info_.is_reduce(axis))
    length = c.inner[axis];
  else if (c.step[axis] <= c.unroll)
    length = c.step[axis];
  const int64_t most = kMaxVectorBytes / producer.element_bytes;
  int64_t together = power_of_two_in(length, most);
  if (copy.made) together = std::min(together, power_of_two_in(copy.row_stride, most));
  return together;
}

// Returns how many elements of a tile are contiguous in the tensor.
double GpuTiledPlan::run(const Operand& operand, const Copy& copy) const {
  const auto& producer = context_.stage(operand.read.producer);
  double run = 1;
  for (size_t i = copy.extents.size(); i-- > 0;) {
    run *= copy.extents[AxisId(i)];
    if (copy.extents[AxisId(i)] < producer.extent(AxisId(i))) break;
  }
  return run;
}

// Returns the operations of an element that is computed where it is read.
double GpuTiledPlan::computed_by(const Operand& operand) const {
  return operand.pad == kNone ? 0 : context_.stage(pads_[operand.pad]).flops_per_point;
}

// Adds an operand that is read in place, in each step.
void GpuTiledPlan::add_reads(const Operand& operand, const WarpAddresses& at, int64_t together, double reads,
                             GpuKernel& kernel) const {
  const GpuConstants& k = gpu_constants();
  const double sectors = distinct_sectors(at, together, context_.stage(operand.read.producer).element_bytes);
  kernel.memory.add({1, sectors, sectors * kSectorBytes / kLineBytes * k.misses}, reads);
  kernel.products += reads * together * computed_by(operand);
}

// Adds the copies of an operand's tile into shared memory, one per chunk.
void GpuTiledPlan::add_copy(const Operand& operand, const Copy& copy, const Choice& c,
                            GpuKernel& kernel) const {
  const auto& m = context_.machine.gpu;
  const GpuConstants& k = gpu_constants();
  const double chunks = this->chunks(c);
  const auto& producer = context_.stage(operand.read.producer);
  double elements = 1;
  for (const int64_t e : copy.extents) elements *= e;
  const GpuAccess access =
      copy_access(m, kernel.block.threads, elements, run(operand, copy), copy.vector, producer.element_bytes);
  double rounds = chunks * elements / kAccessLanes;
  if (c.stages > 1) {
    // Copies that run ahead take cycles but are not waited for, and they hold no registers.
    double cycles = k.access * access.instructions + k.sector * access.sectors;
    if (copy.aligned.valid()) cycles += k.padded_copy * access.instructions;
    if (!std::has_single_bit(static_cast<uint64_t>(kernel.block.threads)))
      cycles += k.odd_copy * access.instructions;
    kernel.values += chunks * cycles / k.value;
    rounds /= copy.vector;
  } else {
    kernel.memory.add(access, chunks);
  }
  kernel.moved += rounds;
  if (operand.pad != kNone && context_.stage(pads_[operand.pad]).has_select) kernel.guarded += rounds;
  kernel.products += rounds * computed_by(operand);
}

// Returns how often a block waits for device memory: for each chunk or, if copies run ahead, for
// the part that the products of the chunks before do not hide.
double GpuTiledPlan::waits(const Choice& c, const GpuKernel& kernel) const {
  const auto& m = context_.machine.gpu;
  const GpuConstants& k = gpu_constants();
  const double chunks = this->chunks(c);
  if (c.stages == 1) return chunks;
  const double resident = std::min(resident_blocks(m, kernel.block), std::ceil(kernel.blocks / m.cores));
  const double chunk_cycles = resident * k.product_ahead * kernel.products / chunks * m.warp / m.lanes;
  const double ahead = (c.stages - 1) * chunk_cycles / k.wait;
  return 1 + chunks * (std::max(0.0, 1 - ahead) + k.meeting_ahead / resident);
}

// Returns how many adjacent steps of the reduction a thread can load at once if its sums are in
// pairs of registers.
int64_t GpuTiledPlan::steps_together(const Choice& c, const Operand& operand) const {
  const AxisId last = context_.stage(operand.read.producer).contiguous_axis;
  for (const AxisId r : live_reduce_)
    if (last.valid() && operand.read.indices[last].affine && operand.read.indices[last].coefficients[r] == 1)
      return power_of_two_in(c.step[r], kPairSteps);
  return 1;
}

int64_t GpuTiledPlan::pair_columns(const Choice& c, const std::vector<Copy>& copies) const {
  int64_t steps = 1, columns = 0;
  for (const AxisId r : live_reduce_) steps *= c.chunk[r] * c.step[r];
  if (c.stages == 1 || operands_.size() != 2 || info_.element_bytes != kF32Bytes ||
      unrolled_points(c) >= steps)
    return 0;
  for (size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    const auto& producer = context_.stage(operand.read.producer);
    if (!copies[i].made || producer.element_bytes != kF32Bytes) return 0;
    const AxisId last = producer.contiguous_axis;
    const bool spatial =
        last.valid() && std::any_of(live_.begin(), live_.end(), [&](AxisId a) {
          return operand.read.indices[last].affine && operand.read.indices[last].coefficients[a] == 1;
        });
    if (spatial && loaded_together(c, operand, copies[i]) > 1)
      columns = std::max(columns, static_cast<int64_t>(values(c, operand, true)));
  }
  return columns >= sched::kFewestPairColumns ? columns : 0;
}

double GpuTiledPlan::estimate(Decisions d, EstimateParts*) const {
  const Choice c = decode(d);
  const auto& m = context_.machine.gpu;
  GpuKernel kernel;
  kernel.block = block(d, c);
  double products = 1, points = 1, steps = 1;
  for (const AxisId a : live_) {
    products *= c.thread_tile(a);
    kernel.blocks *= std::ceil(as_double(extent(a)) / as_double(c.tile(a)));
    points *= extent(a);
  }
  for (const AxisId r : live_reduce_) {
    const double length = c.chunk[r] * c.step[r];
    steps *= std::ceil(extent(r) / length) * length;
  }
  const double warps = m.warps(kernel.block.threads);
  // A multiplication and an addition are one instruction.
  kernel.products = warps * products * steps * std::max(1.0, info_.flops_per_point / 2);
  kernel.steps = warps * steps;
  kernel.ahead.used = c.stages > 1;
  kernel.ahead.thread_products = products;
  std::vector<Copy> copies;
  for (const auto& operand : operands_) copies.push_back(copy_of(d, c, operand));
  const int64_t columns = pair_columns(c, copies);
  kernel.ahead.pair_columns = columns;
  // The columns of all steps of a group are loaded before its first product.
  kernel.live_values = live_values(c) + (kPairSteps - 1) * columns;
  // The compiler also unrolls short loops by itself.
  const double few =
      columns > 0 ? kPairSteps : std::max(1.0, std::floor(gpu_constants().compilers_body / products));
  const double body = std::max(as_double(unrolled_points(c)), few);
  kernel.ahead.iterations = kernel.steps / body;
  kernel.ahead.body_products = products * body;
  kernel.waits = waits(c, kernel);
  for (size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    const Copy& copy = copies[i];
    int64_t together = loaded_together(c, operand, copy);
    if (columns > 0 && together == 1) together = steps_together(c, operand);
    const WarpAddresses at = lanes(c, operand, copy);
    const double needed = warps * steps * values(c, operand, true), reads = needed / together;
    if (!copy.made) {
      add_reads(operand, at, together, reads, kernel);
      continue;
    }
    add_copy(operand, copy, c, kernel);
    kernel.values += c.stages > 1 ? 0 : needed;
    const double cycles = bank_cycles(at, together, context_.stage(operand.read.producer).element_bytes);
    kernel.ahead.loads += reads;
    kernel.ahead.load_cycles += reads * cycles;
    kernel.bank_waits += reads * std::max(0.0, cycles - together);
  }
  const int64_t vector = store_vector(c);
  const int bytes = context_.stage(output_).element_bytes;
  kernel.store_sectors = warps * products / vector * distinct_sectors(output_lanes(c), vector, bytes);
  kernel.bytes_once = points * bytes;
  add_bytes(c, kernel);
  return gpu_seconds(m, kernel);
}

// Adds the bytes of the operands that come from device memory: the whole operands once, and again
// what the waves (the blocks that run together) read beyond that.
void GpuTiledPlan::add_bytes(const Choice& c, GpuKernel& kernel) const {
  const auto& m = context_.machine.gpu;
  const double together = std::max(1.0, resident_blocks(m, kernel.block) * m.cores);
  AxisRanges wave(info_.num_axes(), 1);
  double left = std::min(together, kernel.blocks);
  for (size_t i = c.block_order.size(); i-- > 0;) {
    const AxisId a = c.block_order[i];
    const double tiles = std::ceil(as_double(extent(a)) / as_double(c.tile(a)));
    const double own = std::min(tiles, std::max(1.0, std::ceil(left)));
    left /= tiles;
    wave[a] = std::min(as_double(extent(a)), own * as_double(c.tile(a)));
  }
  for (const AxisId r : info_.reduce_axes()) wave[r] = extent(r);
  const double waves = std::ceil(kernel.blocks / together);
  for (const auto& operand : operands_) {
    const auto& producer = context_.stage(operand.read.producer);
    const double whole = producer.spatial_points() * producer.element_bytes;
    double touched = producer.element_bytes;
    for (const double n : footprint(operand.read, wave)) touched *= n;
    kernel.bytes_once += whole;
    kernel.bytes_again += std::max(0.0, touched * waves - whole);
  }
}

}  // namespace tensorsmith::space
