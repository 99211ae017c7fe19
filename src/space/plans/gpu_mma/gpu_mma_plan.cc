#include "space/plans/gpu_mma/gpu_mma_plan.h"

#include <algorithm>
#include <utility>

#include "base/floor_div.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::space {

namespace {

constexpr int64_t kTiles[] = {16, 32, 64, 128};  // rows and columns of a warp's tile
constexpr int64_t kMmaWarps[] = {1, 2, 4, 8};
constexpr int64_t kMmaChunkBytes[] = {32, 64, 128};
constexpr int64_t kVectors[] = {16, 8, 4};  // bytes
constexpr int64_t kMmaGroups[] = {1, 2, 4, 8};
// Registers of a thread besides its sums and fragments, for addresses and counters.
constexpr double kMmaOtherRegisters = 56;
constexpr int64_t kMostSums = sched::kMostMmaPairs * sched::kMmaPairs;  // of a thread

bool depends_on(const ReadIndex& index, AxisId a, AxisId b) {
  return index.coefficients[a] != 0 || index.coefficients[b] != 0;
}

// Returns the dimension that is contiguous in a tile: the last one along which the tile has more
// than one element.
AxisId line_of(const Read& read, AxisId own, AxisId sum) {
  AxisId line;
  for (const AxisId d : read.indices.ids())
    if (depends_on(read.indices[d], own, sum)) line = d;
  return line;
}

int64_t step_of(const Read& read, AxisId axis) {
  for (const ReadIndex& index : read.indices)
    if (index.coefficients[axis] != 0) return index.coefficients[axis];
  return 1;
}

}  // namespace

GpuMmaPlan::GpuMmaPlan(const PlanContext& context, StageId output, StageId anchor, MmaProduct product,
                       std::vector<StageId> pads)
    : AnchoredPlan(context, output, anchor, std::move(pads)), product_(std::move(product)) {
  const std::string name = context_.op(anchor_).name + ".mma.";
  warp_rows_ = add_category(name + "warp_rows", DecisionRole::kTile, {0.3, 1, 2, 0.5});
  warp_columns_ = add_category(name + "warp_columns", DecisionRole::kTile, {0.3, 1, 2, 0.5});
  warps_down_ = add_category(name + "warps_down", DecisionRole::kTile, {1, 2, 1, 0.3});
  warps_across_ = add_category(name + "warps_across", DecisionRole::kTile, {1, 2, 1, 0.3});
  chunk_ = add_category(name + "chunk", DecisionRole::kTile, {0.5, 1, 1});
  const bool ahead = sched::copies_asynchronously(context_.machine.gpu.capability);
  stages_ = add_category(name + "stages", DecisionRole::kUnroll,
                         ahead ? std::vector<double>{0.3, 1, 2, 1, 0.5} : std::vector<double>{1});
  layout_ = add_category(name + "padded", DecisionRole::kLayout, {1, 0.5});
  order_ = add_category(name + "order", DecisionRole::kLocation, {1, 1});
  group_ = add_category(name + "group", DecisionRole::kLocation, {1, 0.5, 1, 1});
  vector_ = add_category(name + "vectorize", DecisionRole::kVectorize, {1, 0.1, 0.1});
}

GpuMmaPlan::Choice GpuMmaPlan::decode(Decisions d) const {
  Choice c;
  c.warp_rows = kTiles[category(d, warp_rows_)];
  c.warp_columns = kTiles[category(d, warp_columns_)];
  c.warps_down = kMmaWarps[category(d, warps_down_)];
  c.warps_across = kMmaWarps[category(d, warps_across_)];
  c.chunk = kMmaChunkBytes[category(d, chunk_)] / product_.element_bytes;
  c.stages = static_cast<int64_t>(category(d, stages_)) + 1;
  c.padded = category(d, layout_) == 1;
  c.columns_outside = category(d, order_) == 1;
  c.group = kMmaGroups[category(d, group_)];
  c.vector_bytes = kVectors[category(d, vector_)];
  return c;
}

// Returns whether vectors along the dimension begin at multiples of their length, in a tensor with
// lines of `line` elements. Places in a window that shift them by less than a vector prevent that.
bool GpuMmaPlan::is_aligned(const ReadIndex& index, AxisId own, int64_t line, int64_t vector) const {
  for (const AxisId a : info_.axes())
    if (a != own && a != product_.sum && extent(a) > 1 && index.coefficients[a] % vector != 0) return false;
  return index.constant % vector == 0 && line % vector == 0;
}

// `own`: the axis of the rows or of the columns.
GpuMmaPlan::Copy GpuMmaPlan::copy_of(const Choice& c, const Read& read, AxisId own) const {
  const StageInfo& producer = context_.stage(read.producer);
  const AxisId last = producer.contiguous_axis, line = line_of(read, own, product_.sum);
  const ReadIndex& index = read.indices[line];
  const int64_t tile = own == product_.rows ? c.rows() : c.columns();
  Copy copy;
  const bool along_sum = index.coefficients[product_.sum] != 0;
  // With strided windows, the elements between the points are copied, too.
  const int64_t lines = along_sum ? (tile - 1) * step_of(read, own) + 1 : c.chunk;
  copy.row = along_sum ? c.chunk : tile;
  copy.rows = lines;
  copy.contiguous = line == last;
  copy.run = !along_sum && folded(own).valid() ? kFoldedPoints : copy.row;
  copy.vector = c.vector_bytes / product_.element_bytes;
  if (!copy.contiguous) copy.vector = 1;
  while (copy.vector > 1 && !is_aligned(index, own, producer.extent(last), copy.vector)) copy.vector /= 2;
  copy.row_stride = copy.row;
  if (c.padded) {
    // Rows begin an odd multiple of 16 bytes apart, so that eight of them are in different banks.
    // If lanes read single elements, the distance of rows is 32 bytes more than a multiple of 128
    // bytes, so that four rows of 32 bytes each are in different banks.
    const bool single_elements = !along_sum && product_.element_bytes == 4;
    copy.offset = (single_elements ? 32 : 16) / product_.element_bytes;
    copy.factor = (single_elements ? kBanks * kBankBytes : 32) / product_.element_bytes;
    copy.row_stride += (copy.offset - copy.row % copy.factor + copy.factor) % copy.factor;
    for (const AxisId d : read.indices.ids())
      if (d < line && depends_on(read.indices[d], own, product_.sum)) copy.aligned = d;
    if (!copy.aligned.valid()) copy.row_stride = copy.row;
  }
  return copy;
}

int64_t GpuMmaPlan::tiles_along(AxisId own, int64_t tile) const {
  const AxisId outer = folded(own);
  return outer.valid() ? ceil_div(extent(outer), tile / kFoldedPoints) : ceil_div(extent(own), tile);
}

int64_t GpuMmaPlan::points(AxisId own) const {
  return extent(own) * (folded(own).valid() ? extent(folded(own)) : 1);
}

int64_t GpuMmaPlan::covered(AxisId own, int64_t tile) const {
  const int64_t strips = folded(own).valid() ? ceil_div(extent(own), kFoldedPoints) : 1;
  return strips * tiles_along(own, tile) * tile;
}

// Returns whether the operand is at least as long as the tile, which would otherwise be cut short.
bool GpuMmaPlan::fits(const Read& read, AxisId own, int64_t tile) const {
  const AxisId outer = folded(own);
  if (!outer.valid()) return tile <= extent(own);
  for (const AxisId d : read.indices.ids())
    if (read.indices[d].coefficients[outer] != 0)
      return tile / kFoldedPoints <= context_.stage(read.producer).extent(d);
  return false;
}

int64_t GpuMmaPlan::outer_tiles(const Choice& c) const {
  return c.columns_outside ? tiles_along(product_.columns, c.columns())
                           : tiles_along(product_.rows, c.rows());
}

GpuBlock GpuMmaPlan::block(const Choice& c) const {
  GpuBlock block;
  block.threads = c.warps() * 32;
  const Copy a = copy_of(c, product_.a, product_.rows), b = copy_of(c, product_.b, product_.columns);
  block.shared_bytes = c.stages * (a.rows * a.row_stride + b.rows * b.row_stride) * product_.element_bytes;
  const double sums = c.warp_rows * c.warp_columns / 32;
  const double fragments = c.warp_rows / 16 * 4 + c.warp_columns / 8 * 2;
  block.registers = kMmaOtherRegisters + sums + fragments;
  return block;
}

int64_t GpuMmaPlan::chunks(const Choice& c) const {
  int64_t chunks = extent(product_.sum) / c.chunk;
  for (const AxisId r : product_.window) chunks *= extent(r);
  return chunks;
}

Status GpuMmaPlan::check(Decisions d) const {
  const Choice c = decode(d);
  const int64_t sum = extent(product_.sum);
  // Tails of rows and columns are zeros in shared memory. The reduction must have no tail.
  if (sum % c.chunk != 0) return refuse(anchor_, "the reduction is not a whole number of chunks");
  if (!fits(product_.a, product_.rows, c.rows()) || !fits(product_.b, product_.columns, c.columns()))
    return refuse(anchor_, "a tile is larger than the output");
  if (c.warp_rows * c.warp_columns / 32 > kMostSums)
    return refuse(anchor_, "a thread has more sums than registers");
  if (c.stages > 1 && c.stages > chunks(c)) return refuse(anchor_, "more stages than chunks");
  if (outer_tiles(c) % c.group != 0)
    return refuse(anchor_, "the tiles are not a whole number of groups of blocks");
  if (covered(product_.rows, c.rows()) * covered(product_.columns, c.columns()) >
      2 * points(product_.rows) * points(product_.columns))
    return refuse(anchor_, "more than half of the tiles would be tail");
  for (const auto& [read, own] : {std::pair(&product_.a, product_.rows), {&product_.b, product_.columns}}) {
    const Copy copy = copy_of(c, *read, own);
    if (copy.vector * product_.element_bytes < 4 && c.stages > 1)
      return refuse(anchor_, "copies that run ahead need vectors of at least 4 bytes");
    if (copy.vector * product_.element_bytes < c.vector_bytes && c.vector_bytes > 4)
      return refuse(anchor_, "rows of an operand are not a whole number of vectors");
  }
  return check_block(context_.machine.gpu, block(c), context_.op(anchor_).name, info_.spatial_points());
}

// Draws the decisions that must fit the shapes among those that do, since few of all combinations
// would fit.
void GpuMmaPlan::sample(Rng& rng, std::span<int64_t> d) const {
  Plan::sample(rng, d);
  const auto sample_where = [&](size_t slot, const auto& allowed) {
    sample_allowed(rng, slot, d, [&] { return allowed(decode(d)); });
  };
  for (const size_t slot : {warps_down_, warps_across_}) d[slots()[slot].offset] = 0;
  const int64_t sum = extent(product_.sum);
  const auto rows_fit = [&](const Choice& c) { return fits(product_.a, product_.rows, c.rows()); };
  const auto both_fit = [&](const Choice& c) {
    return rows_fit(c) && fits(product_.b, product_.columns, c.columns());
  };
  sample_where(warp_rows_, rows_fit);
  sample_where(warp_columns_, [&](const Choice& c) {
    return both_fit(c) && c.warp_rows * c.warp_columns / 32 <= kMostSums;
  });
  sample_where(warps_down_, both_fit);
  sample_where(warps_across_, both_fit);
  sample_where(group_, [&](const Choice& c) { return outer_tiles(c) % c.group == 0; });
  sample_where(chunk_, [&](const Choice& c) { return sum % c.chunk == 0; });
  sample_where(stages_, [&](const Choice& c) { return c.stages <= std::max<int64_t>(1, chunks(c)); });
  sample_where(vector_, [&](const Choice& c) {
    const int64_t a = copy_of(c, product_.a, product_.rows).vector,
                  b = copy_of(c, product_.b, product_.columns).vector;
    return c.vector_bytes == 4 || std::min(a, b) * product_.element_bytes == c.vector_bytes;
  });
}

std::string GpuMmaPlan::describe() const {
  std::string text = "tensor cores " + context_.op(anchor_).name;
  if (!self_) text += " into " + context_.op(output_).name;
  for (const AxisId own : {product_.rows, product_.columns})
    if (folded(own).valid()) text += ", tiles along two axes";
  return text;
}

}  // namespace tensorsmith::space
