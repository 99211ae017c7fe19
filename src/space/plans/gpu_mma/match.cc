// Matches products of two matrices that tensor cores can compute.
#include <optional>
#include <utility>

#include "ir/expr.h"
#include "sched/tensor_cores.h"
#include "space/plan_kind.h"
#include "space/plans/gpu_mma/gpu_mma_plan.h"

namespace tensorsmith::space {

namespace {

bool is_product(const ir::Operation& op, int capability) {
  if (op.combiner != ir::Combiner::kSum || op.bodies.size() != 1) return false;
  const auto* product = ir::as<ir::Binary>(op.bodies.front());
  if (product == nullptr || product->op != ir::BinaryOp::kMul) return false;
  const ir::DType sum = op.output()->dtype;
  const ir::Load *a = sched::mma_factor(product->a, sum), *b = sched::mma_factor(product->b, sum);
  if (a == nullptr || b == nullptr || a->buffer == b->buffer) return false;
  const ir::DType x = a->buffer->dtype;
  const ir::DType wanted = ir::is_float(x) ? ir::DType::kF32 : ir::DType::kI32;
  return sum == wanted && sched::has_mma(capability, x, b->buffer->dtype);
}

// Returns whether the read is affine and each axis occurs in one dimension only.
bool plain(const Read& read, const StageInfo& info) {
  if (!read.affine || read.indices.empty()) return false;
  for (const AxisId a : info.axes()) {
    int dimensions = 0;
    for (const ReadIndex& index : read.indices) dimensions += index.coefficients[a] != 0 ? 1 : 0;
    if (info.extent(a) > 1 && dimensions > 1) return false;
  }
  return true;
}

// Returns whether steps of the reduction are steps along one dimension. In a part of a reduction
// that was cut ("split-K"), the index of the part may determine where they begin.
bool steps_along(const Read& read, const StageInfo& info, AxisId sum) {
  for (const ReadIndex& index : read.indices) {
    if (index.coefficients[sum] != 1) continue;
    for (const AxisId a : info.axes())
      if (a != sum && index.coefficients[a] != 0 && index.coefficients[a] != info.extent(sum)) return false;
    return index.constant == 0;
  }
  return false;
}

// Returns whether the elements of a tile that an instruction takes together are adjacent: the
// tile's own axis and the sum have one dimension each, and the last of these moves in steps of one.
bool has_lines(const Read& read, AxisId own, AxisId sum) {
  int64_t step = 0;
  for (const ReadIndex& index : read.indices) {
    const int64_t o = index.coefficients[own], s = index.coefficients[sum];
    if (o < 0 || s < 0 || (o != 0 && s != 0)) return false;
    if (o + s != 0) step = o + s;
  }
  return step == 1;
}

}  // namespace

std::optional<MmaProduct> match_mma(const PlanContext& context, StageId output, StageId anchor) {
  const StageInfo& info = context.stage(anchor);
  if (!is_product(context.op(anchor), context.machine.gpu.capability)) return std::nullopt;
  auto reads = effective_reads(context, anchor);
  if (reads.size() != 2 || reads[0].producer == reads[1].producer) return std::nullopt;
  // The results of an inlined producer are not in memory.
  for (const Read& read : info.reads)
    if (context.inlined[read.producer]) return std::nullopt;
  for (const Read& read : reads)
    if (!plain(read, info)) return std::nullopt;
  MmaProduct product;
  for (const AxisId r : info.reduce_axes()) {
    if (info.extent(r) == 1 || !steps_along(reads[0], info, r) || !steps_along(reads[1], info, r)) continue;
    if (!product.sum.valid() || info.extent(r) > info.extent(product.sum)) product.sum = r;
  }
  if (!product.sum.valid()) return std::nullopt;
  for (const AxisId r : info.reduce_axes())
    if (info.extent(r) > 1 && r != product.sum) product.window.push_back(r);
  // Columns are contiguous in the output. Rows are the longest axis that only the other factor has.
  const AxisMap output_axis = axes_in(context, output, anchor);
  for (const AxisId a : info.spatial_axes()) {
    if (info.extent(a) == 1) continue;
    if (!output_axis[a].valid()) return std::nullopt;
    if (output_axis[a] == context.stage(output).contiguous_axis) product.columns = a;
  }
  if (!product.columns.valid()) return std::nullopt;
  if (reads[0].depends_on(product.columns)) std::swap(reads[0], reads[1]);
  if (reads[0].depends_on(product.columns)) return std::nullopt;
  for (const AxisId a : info.spatial_axes()) {
    const bool rows = reads[0].depends_on(a) && !reads[1].depends_on(a);
    if (rows && info.extent(a) > 1 && (!product.rows.valid() || info.extent(a) > info.extent(product.rows)))
      product.rows = a;
  }
  for (const AxisId a : info.spatial_axes())
    if (info.extent(a) > 1 && a != product.rows && a != product.columns) product.batch.push_back(a);
  if (!product.rows.valid() || !product.columns.valid()) return std::nullopt;
  product.a = std::move(reads[0]);
  product.b = std::move(reads[1]);
  if (!product.a.depends_on(product.rows) || !product.b.depends_on(product.columns) ||
      !product.a.depends_on(product.sum) || !product.b.depends_on(product.sum))
    return std::nullopt;
  product.element_bytes = context.stage(product.a.producer).element_bytes;
  for (const auto& [read, own] : {std::pair(&product.a, product.rows), {&product.b, product.columns}}) {
    if (!context.stage(read->producer).contiguous_axis.valid()) return std::nullopt;
    if (!has_lines(*read, own, product.sum)) return std::nullopt;
    AxisId last;
    for (const ReadIndex& index : read->indices) {
      if (index.coefficients[own] != 0) last = own;
      if (index.coefficients[product.sum] != 0) last = product.sum;
    }
    // Bytes cannot be transposed on their way to the registers.
    if (last != product.sum && product.element_bytes == 1) return std::nullopt;
  }
  return product;
}

namespace {

// Returns the dimension of the operand that the axis indexes in steps of one, alone except for the
// places in a window; none if there is no such dimension.
AxisId dimension_of(const Read& read, const StageInfo& info, AxisId axis) {
  for (const AxisId d : read.indices.ids()) {
    if (read.indices[d].coefficients[axis] != 1) continue;
    for (const AxisId other : info.spatial_axes())
      if (other != axis && info.extent(other) > 1 && read.indices[d].coefficients[other] != 0) return {};
    return d;
  }
  return {};
}

}  // namespace

std::optional<MmaProduct> fold_tiles(const PlanContext& context, StageId anchor, const MmaProduct& product) {
  if (product.window.empty()) return std::nullopt;
  const StageInfo& info = context.stage(anchor);
  for (const bool columns : {false, true}) {
    const Read &read = columns ? product.b : product.a, &other = columns ? product.a : product.b;
    // The last two dimensions of the operand that belong to the tile.
    AxisId own, outer, own_dimension, outer_dimension;
    for (const AxisId a : info.spatial_axes()) {
      if (info.extent(a) == 1 || other.depends_on(a)) continue;
      const AxisId d = dimension_of(read, info, a);
      if (!d.valid()) continue;
      if (!own_dimension.valid() || own_dimension < d) {
        outer = std::exchange(own, a);
        outer_dimension = std::exchange(own_dimension, d);
      } else if (!outer_dimension.valid() || outer_dimension < d) {
        outer = a;
        outer_dimension = d;
      }
    }
    if (!own.valid() || !outer.valid() || (columns && own != product.columns)) continue;
    // The inner dimension must not be shorter than a line, and no steps of the reduction may be
    // between the two dimensions.
    if (context.stage(read.producer).extent(own_dimension) < kFoldedPoints) continue;
    bool between = false;
    for (const AxisId d : read.indices.ids())
      between = between ||
                (outer_dimension < d && d < own_dimension && read.indices[d].coefficients[product.sum] != 0);
    if (between || !has_lines(read, own, product.sum)) continue;
    MmaProduct folded = product;
    (columns ? folded.folded_columns : folded.folded_rows) = outer;
    if (!columns) folded.rows = own;
    folded.batch.clear();
    for (const AxisId a : info.spatial_axes())
      if (info.extent(a) > 1 && a != folded.rows && a != folded.columns && a != outer)
        folded.batch.push_back(a);
    return folded;
  }
  return std::nullopt;
}

bool multiplies_matrices(const PlanContext& context, const MmaProduct& product) {
  if (!product.window.empty()) return false;
  for (const auto& [read, own] : {std::pair(&product.a, product.rows), {&product.b, product.columns}}) {
    const StageInfo& producer = context.stage(read->producer);
    for (const AxisId d : read->indices.ids()) {
      const ReadIndex& index = read->indices[d];
      if (producer.extent(d) > 1 && (!index.single_axis().valid() || index.constant != 0)) return false;
    }
    const AxisId along = read->indices[producer.contiguous_axis].single_axis();
    if (along != own && along != product.sum) return false;
  }
  return true;
}

namespace {

void make_gpu_mma(const PlanContext& context, const Group& group, Plans& plans) {
  if (!group.anchor.valid() || group.pattern != nullptr || !group.attached.empty()) return;
  if (context.machine.gpu.warp != 32) return;
  const auto product = match_mma(context, group.root, group.anchor);
  if (!product) return;
  for (auto& made : {product, fold_tiles(context, group.anchor, *product)}) {
    if (!made) continue;
    auto plan = std::make_shared<GpuMmaPlan>(context, group.root, group.anchor, *made, group.pads);
    // The smallest tile, copied in the widest vectors that the rows allow; the last decision is
    // their width.
    std::vector<int64_t> d(plan->width(), 0);
    bool fits = plan->check(d).ok();
    while (!fits && ++d.back() < plan->slots().back().decision.categories) fits = plan->check(d).ok();
    if (fits) plans.push_back(std::move(plan));
  }
}

}  // namespace

extern const PlanKind gpu_mma_kind{"gpu_mma", make_gpu_mma, nullptr, target::DeviceKind::kGpu};

}  // namespace tensorsmith::space
