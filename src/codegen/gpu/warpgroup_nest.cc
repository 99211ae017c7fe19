#include "codegen/gpu/warpgroup_nest.h"

#include <algorithm>

#include "codegen/c/expr.h"
#include "codegen/gpu/block_cluster.h"
#include "codegen/gpu/tensor_box.h"
#include "ir/analysis.h"
#include "ir/simplify.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::codegen {

using ir::Expr;
using ir::For;

namespace {

constexpr int64_t kLongestPanel = 128, kShortestPanel = 32;  // bytes
constexpr int64_t kMostColumns = 256;
constexpr int64_t kLinesOfPattern = 8;  // number of lines after which the swizzle repeats

class PipelineMatcher {
 public:
  PipelineMatcher(const GpuKernel& kernel, const MmaNest& nest) : kernel_(kernel), nest_(nest) {
    for (const size_t axis : {kThreadX, kThreadY, kThreadZ})
      bounds_[kernel.index[axis].get()] = {0, kernel.extents[axis] - 1};
  }

  std::optional<WarpgroupPipeline> match(const CopyPipeline& loop) {
    const int64_t bytes = ir::bytes_of(nest_.a.buffer->dtype);
    out_.loop = loop;
    out_.sums = nest_.sums;
    out_.columns = nest_.columns * sched::kMmaColumns;
    out_.steps = nest_.steps * bytes / sched::kMmaStepBytes;
    if (nest_.a.buffer->dtype == ir::DType::kF32) return refuse("factors are rounded in registers");
    if (kernel_.extents[kThreadY] % sched::kWarpgroupWarps != 0 || kernel_.extents[kThreadZ] != 1)
      return refuse("warps do not form warpgroups");
    if (nest_.rows != 1) return refuse("a warp has several fragments of rows");
    if (out_.columns > kMostColumns) return refuse("a warp has more columns than an instruction");
    if (!sums_in_order()) return refuse("the order of the sums is not that of the instruction");
    if (!find_tile(nest_.a, sched::kWarpgroupRows, sched::kMmaRows, out_.a) ||
        !find_tile(nest_.b, out_.columns, 0, out_.b))
      return std::nullopt;
    const std::string a(row_of(nest_.a.buffer->dtype).mma), b(row_of(nest_.b.buffer->dtype).mma);
    out_.type = ir::is_float(nest_.a.buffer->dtype) ? a : a + "_" + b;
    return std::move(out_);
  }
  const std::string& why() const { return why_; }

 private:
  std::nullopt_t refuse(std::string reason) {
    why_ = std::move(reason);
    return std::nullopt;
  }

  // Returns whether the sums are in the instruction's order: by columns of fragments, then halves
  // of rows, then pairs.
  bool sums_in_order() const {
    if (nest_.pair != 1) return false;
    for (int64_t half = 0; half < sched::kMmaHalves; ++half) {
      for (int64_t column = 0; column < nest_.columns; ++column) {
        const int64_t at = (column * sched::kMmaHalves + half) * sched::kMmaPairs;
        if (nest_.at[half * nest_.columns + column] != at) return false;
      }
    }
    return true;
  }

  std::optional<int64_t> first_of_warp(const MmaTile& tile, int64_t warp) const {
    return ir::as_int(
        ir::simplify(ir::substitute(tile.first, {{kernel_.index[kThreadY].get(), Expr(warp)}}), bounds_));
  }

  // `own` is the number of rows or columns of a warpgroup; `apart` is the number of them between
  // its warps.
  bool find_tile(const MmaTile& tile, int64_t own, int64_t apart, WarpgroupTile& out) {
    const int64_t bytes = ir::bytes_of(tile.buffer->dtype), all = tile.buffer->allocation_elements();
    out.buffer = tile.buffer;
    out.steps_contiguous = tile.steps_contiguous;
    out.line = tile.line;
    if (all % tile.line != 0) return refuse("a tile is not a whole number of lines"), false;
    out.lines = all / tile.line;
    const int64_t along = tile.steps_contiguous ? tile.line : own;
    out.panel = kLongestPanel / bytes;
    while (out.panel * bytes > kShortestPanel && (along % out.panel != 0 || tile.line % out.panel != 0))
      out.panel /= 2;
    if (along % out.panel != 0 || tile.line % out.panel != 0 || out.lines % kLinesOfPattern != 0)
      return refuse("lines of a tile do not fill panels"), false;
    if (!tile.steps_contiguous && bytes != 2)
      return refuse("8-bit elements are not contiguous along the reduction"), false;
    const int64_t unit = tile.steps_contiguous ? tile.line : 1;
    for (int64_t warp = 0; warp < kernel_.extents[kThreadY]; ++warp) {
      const auto here = first_of_warp(tile, warp),
                 begin = first_of_warp(tile, warp - warp % sched::kWarpgroupWarps);
      if (!here || !begin || *here - *begin != warp % sched::kWarpgroupWarps * apart * unit ||
          *begin % (own * unit) != 0)
        return refuse("warps do not have the rows of a warpgroup"), false;
    }
    const Expr y = kernel_.index[kThreadY];
    out.first = ir::simplify(ir::substitute(tile.first, {{kernel_.index[kThreadY].get(),
                                                          ir::floordiv(y, Expr(sched::kWarpgroupWarps)) *
                                                              Expr(sched::kWarpgroupWarps)}}),
                             bounds_);
    return true;
  }

  const GpuKernel& kernel_;
  const MmaNest& nest_;
  ir::VarBounds bounds_;
  WarpgroupPipeline out_;
  std::string why_;
};

// Values of `unroll` (auto_unroll_max_step) of a copy that is a box: copied by a separate warp, and
// by two blocks together.
constexpr int64_t kByOwnWarp = 1, kByCluster = 2;

int64_t unroll_of(const ir::Stmt& copy) {
  const auto* loop = ir::as<For>(copy);
  return loop == nullptr ? 0 : loop->auto_unroll_max_step;
}

// Turns the copies of both tiles into boxes if nothing else is in shared memory.
void find_boxes(const GpuKernel& kernel, const ir::StmtNode* chunks, WarpgroupPipeline& pipeline,
                WarpgroupKernel& out) {
  if (kernel.shared.size() != 2 || pipeline.loop.copies.size() != 2) return;
  out.own_producer = true;
  for (const ir::Stmt& copy : pipeline.loop.copies) {
    out.own_producer = out.own_producer && unroll_of(copy) >= kByOwnWarp;
    for (const WarpgroupTile* tile : {&pipeline.a, &pipeline.b}) {
      auto box = match_box(kernel, copy, *tile);
      if (!box) continue;
      box->for_cluster = unroll_of(copy) == kByCluster && box->lines_at &&
                         tile->lines % (sched::kClusterBlocks * kLinesOfPattern) == 0 &&
                         neighbours_share(kernel, chunks, *box);
      (tile == &pipeline.a ? pipeline.box_a : pipeline.box_b) = std::move(box);
    }
  }
  out.uses_boxes = pipeline.box_a && pipeline.box_b;
  out.own_producer = out.own_producer && out.uses_boxes;
  if (!out.uses_boxes) pipeline.box_a = pipeline.box_b = std::nullopt;
  for (auto* box : {&pipeline.box_a, &pipeline.box_b}) {
    if (!*box) continue;
    (*box)->for_cluster = (*box)->for_cluster && out.own_producer;
    if (!(*box)->for_cluster) continue;
    (*box)->map.box[*(*box)->lines_at] /= sched::kClusterBlocks;
    out.in_clusters = true;
  }
}

}  // namespace

WarpgroupKernel find_warpgroups(const GpuKernel& kernel, const MmaKernel& mma, int capability) {
  WarpgroupKernel out;
  if (capability != target::kHopper || mma.pipelines.size() != 1) return out;
  const auto& [statement, loop] = *mma.pipelines.begin();
  const auto nest = mma.nests.find(loop.nest.get());
  if (nest == mma.nests.end()) return out;
  PipelineMatcher matcher(kernel, nest->second);
  auto pipeline = matcher.match(loop);
  if (!pipeline) {
    out.refused.push_back(matcher.why());
    return out;
  }
  find_boxes(kernel, statement, *pipeline, out);
  const WarpgroupPipeline& kept = out.pipelines.emplace(statement, std::move(*pipeline)).first->second;
  for (const WarpgroupTile* tile : {&kept.a, &kept.b}) out.tiles[tile->buffer.get()] = tile;
  return out;
}

}  // namespace tensorsmith::codegen
