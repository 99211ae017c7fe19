#include "space/plan_context.h"

#include <algorithm>

#include "ir/analysis.h"

namespace tensorsmith::space {

std::string PlanContext::axis_name(StageId s, AxisId axis) const {
  const auto& o = op(s);
  const size_t a = axis.place();
  return a < o.spatial.size() ? o.spatial[a].var.name() : o.reduce[a - o.spatial.size()].var.name();
}

namespace {

Read compose(const Read& outer, const Read& inner, size_t axes, const ir::Operation& target) {
  Read result;
  result.producer = inner.producer;
  result.guarded = outer.guarded || inner.guarded;
  result.loads = outer.loads * inner.loads;
  for (const auto& index : inner.indices) {
    ReadIndex composed;
    if (index.affine) {
      composed.affine = true;
      composed.constant = index.constant;
      composed.coefficients.assign(axes, 0);
      for (const AxisId k : outer.indices.ids()) composed.add(outer.indices[k], index.coefficients[k]);
    }
    result.indices.push_back(std::move(composed));
  }
  result.summarize(target.output()->effective_strides(), axes);
  return result;
}

}  // namespace

int64_t written_size(const ir::Workload& workload, StageId stage, const IdVector<StageId, bool>& inlined,
                     const IdVector<StageId, int64_t>& written) {
  int64_t largest = 0;
  for (const ir::Expr& body : workload.operations[stage.place()]->bodies) {
    const int64_t size = ir::written_size(body, [&](const ir::Load& load) -> int64_t {
      const auto producer = workload.producer_of(load.buffer.get());
      return producer && inlined[StageId(*producer)] ? written[StageId(*producer)] : 0;
    });
    largest = std::max(largest, size);
  }
  return largest;
}

bool inlining_fits(const ir::Workload& workload, const IdVector<StageId, bool>& inlined) {
  IdVector<StageId, int64_t> written(inlined.size(), 0);
  for (const StageId s : inlined.ids()) {
    written[s] = written_size(workload, s, inlined, written);
    if (written[s] > kMaxWrittenSize) return false;
  }
  return true;
}

std::vector<Read> effective_reads(const PlanContext& context, StageId stage) {
  std::vector<Read> result;
  const auto& extents = context.stage(stage).extents;
  const auto axes = extents.size();
  for (const auto& read : context.stage(stage).reads) {
    std::vector<Read> pending{read};
    while (!pending.empty()) {
      Read next = std::move(pending.back());
      pending.pop_back();
      if (!context.inlined[next.producer]) {
        const auto equal = std::find_if(result.begin(), result.end(),
                                        [&](const Read& other) { return other.same_element(next, extents); });
        if (equal == result.end()) {
          result.push_back(std::move(next));
        } else {
          equal->guarded = equal->guarded && next.guarded;
          equal->loads += next.loads;
        }
        continue;
      }
      for (const auto& inner : context.stage(next.producer).reads)
        pending.push_back(compose(next, inner, axes, context.op(inner.producer)));
    }
  }
  return result;
}

AxisMap axes_in(const PlanContext& context, StageId reader, StageId stage) {
  AxisMap map(context.stage(stage).num_spatial);
  if (reader == stage) {
    for (const AxisId a : map.ids()) map[a] = a;
    return map;
  }
  for (const auto& read : effective_reads(context, reader))
    if (read.producer == stage) map = context.analysis->axis_map(read);
  return map;
}

}  // namespace tensorsmith::space
