// What tiles on a GPU cost.
#include <cmath>

#include "space/estimate/gpu_access.h"
#include "space/estimate/gpu_constants.h"
#include "space/plans/gpu_tiled/gpu_tiled_plan.h"

namespace tensorsmith::space {

namespace {

double as_double(int64_t n) { return static_cast<double>(n); }

int64_t power_of_two_in(int64_t n, int64_t most) { return std::min(n & -n, most); }

}  // namespace

// By lane of a warp: elements that the operand's address moves, as the threads lie on the axes.
WarpAddresses GpuTiledPlan::lanes(const Choice& c, const Operand& operand, const Copy& copy) const {
  // Strides by spatial axis: in the tile's rows, or in the tensor's.
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
  WarpAddresses out;
  out.count = static_cast<size_t>(
      std::min<int64_t>({threads(c), context_.machine.gpu.warp, WarpAddresses::kMaxLanes}));
  for (size_t lane = 0; lane < out.count; ++lane) {
    auto rest = static_cast<int64_t>(lane);
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

// Elements side by side in the rows of a tile that a thread can load at once.
int64_t GpuTiledPlan::loaded_together(const Choice& c, const Operand& operand, const Copy& copy) const {
  const auto& producer = context_.stage(operand.read.producer);
  const AxisId last = producer.contiguous_axis;
  if (!last.valid() || !operand.read.indices[last].affine) return 1;
  const AxisId axis = operand.read.indices[last].single_axis();
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

double GpuTiledPlan::estimate(Decisions d) const {
  const Choice c = decode(d);
  const auto& m = context_.machine.gpu;
  const GpuConstants& k = gpu_constants();
  GpuKernel kernel;
  kernel.block = block(d, c);
  double products = 1, tile = 1, all_points = 1, chunks = 1, chunk = 1;
  for (const AxisId a : live_) {
    products *= as_double(c.thread_tile(a));
    tile *= as_double(c.tile(a));
    kernel.blocks *= std::ceil(as_double(extent(a)) / as_double(c.tile(a)));
    all_points *= as_double(extent(a));
  }
  for (const AxisId r : live_reduce_) {
    const double length = as_double(c.chunk[r] * c.step[r]);
    chunk *= length;
    chunks *= std::ceil(as_double(extent(r)) / length);
  }
  const double warps = std::ceil(as_double(kernel.block.threads) / as_double(m.warp));
  const double steps = chunks * chunk;
  kernel.independent = products;
  kernel.fma_instructions = warps * products * steps * std::max(1.0, info_.flops_per_point / 2);
  kernel.waits = 1;
  double loads = 0;
  for (const auto& operand : operands_) {
    const auto& producer = context_.stage(operand.read.producer);
    const Copy copy = copy_of(d, c, operand);
    const double bytes = producer.element_bytes;
    const double together = as_double(loaded_together(c, operand, copy));
    const double reads = values(c, operand, true) / together;
    const WarpAddresses at = lanes(c, operand, copy);
    loads += reads * steps;
    if (!copy.made) {
      const double sectors = distinct_sectors(at, static_cast<int64_t>(together), producer.element_bytes);
      kernel.global_accesses += warps * reads * steps;
      // Neighbouring steps find their sectors in L1.
      kernel.l2_bytes += warps * reads * steps * sectors * kSectorBytes * k.l1_misses;
      kernel.waits += steps / 4;
      continue;
    }
    kernel.shared_cycles +=
        warps * reads * steps * bank_cycles(at, static_cast<int64_t>(together), producer.element_bytes);
    double elements = 1;
    for (const int64_t e : copy.extents) elements *= as_double(e);
    const AxisId last = producer.contiguous_axis;
    const double row = last.valid() ? as_double(copy.extents[last]) * bytes : bytes;
    const double sectors = std::ceil(row / kSectorBytes) * (elements * bytes / row);
    const double accesses =
        std::ceil(elements / as_double(copy.vector) / as_double(kernel.block.threads)) * warps;
    kernel.l2_bytes += chunks * sectors * kSectorBytes;
    kernel.global_accesses += chunks * accesses;
    kernel.shared_cycles += chunks * accesses * as_double(copy.vector) * bytes / 4;
    // Each has an address of several divisions, and the guard of a pad.
    kernel.other_instructions +=
        chunks * accesses *
        (k.copy_instructions + (operand.pad == kNone ? 0 : k.pad_instructions * as_double(copy.vector)));
    kernel.waits += chunks / std::max<size_t>(1, operands_.size());
  }
  kernel.other_instructions += warps * loads + warps * steps / as_double(c.unroll) * 4;
  kernel.dram_bytes = dram_bytes(d, c, kernel.blocks);
  const double stores = products / as_double(store_vector(c));
  kernel.global_accesses += warps * stores;
  kernel.l2_bytes += tile * context_.stage(output_).element_bytes;
  kernel.dram_bytes += all_points * context_.stage(output_).element_bytes;
  return gpu_seconds(m, kernel);
}

// Bytes of the operands that come from device memory: what the blocks that run together read, once a wave
// where L2 does not hold the operand from one wave to the next.
double GpuTiledPlan::dram_bytes(Decisions d, const Choice& c, double blocks) const {
  const auto& m = context_.machine.gpu;
  const double together = std::max(1.0, resident_blocks(m, block(d, c)) * m.cores);
  AxisRanges wave(info_.num_axes(), 1);
  double left = std::min(together, blocks);
  for (size_t i = c.block_order.size(); i-- > 0;) {
    const AxisId a = c.block_order[i];
    const double tiles = std::ceil(as_double(extent(a)) / as_double(c.tile(a)));
    const double own = std::min(tiles, std::max(1.0, std::ceil(left)));
    left /= tiles;
    wave[a] = std::min(as_double(extent(a)), own * as_double(c.tile(a)));
  }
  for (const AxisId r : info_.reduce_axes()) wave[r] = as_double(extent(r));
  const double waves = std::ceil(blocks / together);
  double bytes = 0, all = 0;
  for (const auto& operand : operands_) {
    const auto& producer = context_.stage(operand.read.producer);
    const double whole = producer.spatial_points() * producer.element_bytes;
    double touched = producer.element_bytes;
    for (const double n : footprint(operand.read, wave)) touched *= n;
    bytes += std::max(whole, touched * waves);
    all += whole;
  }
  return all <= gpu_constants().l2_share * m.l2_bytes ? all : bytes;
}

}  // namespace tensorsmith::space
