// Finds tile sizes in a trace without replaying it. Ansor's multi-level tiling splits the axes of a
// product in order: the spatial axes into five levels on GPUs and four on CPUs, the reduce axes
// into three and two.
#include <algorithm>
#include <cmath>

#include "feature/program_summary.h"

namespace tensorsmith::feature {

namespace {

double product(const std::vector<int64_t>& lengths) {
  double out = 1;
  for (const int64_t length : lengths) out *= length;
  return out;
}

// Returns the lengths by level; the outermost one is the number of rounds that the inner levels
// need.
template <size_t N>
std::array<double, N> levels(int64_t extent, const std::vector<int64_t>& lengths) {
  std::array<double, N> out;
  out.fill(1);
  out[0] = std::ceil(extent / std::max(product(lengths), 1.0));
  for (size_t i = 0; i < std::min(lengths.size(), N - 1); ++i) out[i + 1] = lengths[i];
  return out;
}

// Assigns the splits of the stage to the axes in order; none if the stage is not tiled like that.
std::optional<Tiles> tiles_of(const std::vector<const sched::Split*>& splits, int stage, size_t spatial_parts,
                              const WorkloadAccess& access) {
  Tiles tiles;
  for (const sched::Split* split : splits) {
    if (split->stage != stage) continue;
    if (split->lengths.size() == spatial_parts) {
      if (tiles.spatial.size() == access.spatial.size()) return std::nullopt;
      tiles.spatial.push_back(levels<5>(access.spatial[tiles.spatial.size()], split->lengths));
    } else {
      if (tiles.reduce.size() == access.reduce.size() || split->lengths.size() > 2) return std::nullopt;
      tiles.reduce.push_back(levels<3>(access.reduce[tiles.reduce.size()], split->lengths));
    }
  }
  if (tiles.spatial.size() != access.spatial.size() || tiles.reduce.size() != access.reduce.size())
    return std::nullopt;
  return tiles;
}

}  // namespace

TraceSummary summarize_trace(const sched::Trace& trace, const WorkloadAccess& access, bool gpu) {
  TraceSummary out;
  std::vector<const sched::Split*> splits;
  splits.reserve(trace.steps.size());
  bool thread_bound = false, block_bound = false;
  for (const sched::Step& step : trace.steps) {
    if (const auto* split = std::get_if<sched::Split>(&step)) {
      splits.push_back(split);
    } else if (const auto* unroll = std::get_if<sched::Unroll>(&step)) {
      out.unroll = std::max<double>(out.unroll, unroll->auto_max_step);
    } else if (std::get_if<sched::ComputeInline>(&step) != nullptr) {
      ++out.inlined;
    } else if (std::get_if<sched::ComputeAt>(&step) != nullptr) {
      ++out.attached;
    } else if (const auto* note = std::get_if<sched::Annotate>(&step)) {
      if (note->annotation == sched::Annotation::kVectorize) ++out.vectorized;
      if (note->annotation == sched::Annotation::kBlockX) ++out.kernels;
      // In a reduction across threads, the threads are bound before the blocks.
      if (note->annotation == sched::Annotation::kThreadX && !block_bound) thread_bound = true;
      if (note->annotation == sched::Annotation::kBlockX) block_bound = true;
      if (thread_bound && !block_bound) out.cross_thread_reduction = true;
    }
  }
  const size_t parts = gpu ? 4 : 3;
  const auto main = std::find_if(splits.begin(), splits.end(),
                                 [&](const sched::Split* split) { return split->lengths.size() == parts; });
  const auto fits = [](const auto& list) { return list.size() <= kMaxAxes; };
  if (main != splits.end() && access.has_product() && fits(access.spatial) && fits(access.reduce) &&
      fits(access.reads[0].dims) && fits(access.reads[1].dims))
    out.tiles = tiles_of(splits, (*main)->stage, parts, access);
  // The stages that have one split each: the fetches (that of the second operand comes first), or
  // flat kernels.
  std::array<int, 2> stages{};
  size_t others = 0;
  for (const sched::Split* split : splits) {
    if (others == stages.size()) break;
    if ((out.tiles && split->stage == (*main)->stage) || split->lengths.empty() ||
        (others > 0 && split->stage == stages[0]))
      continue;
    stages[others] = split->stage;
    out.flat_threads[others] = out.fetch_vector[1 - others] = split->lengths.front();
    ++others;
  }
  return out;
}

}  // namespace tensorsmith::feature
