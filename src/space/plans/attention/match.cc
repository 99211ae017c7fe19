// Finds the stages of a workload that are an attention whose division comes last.
#include <algorithm>

#include "space/plans/attention/attention_plan.h"

namespace tensorsmith::space {

namespace {

class Finder {
 public:
  explicit Finder(const WorkloadAnalysis& analysis) : analysis_(analysis) {}

  std::unique_ptr<AttentionStages> with_product(StageId s) const {
    const auto& product = stage(s);
    if (!product.reduction || product.arg_reduction || !product.data_reuse) return nullptr;
    for (const auto& read : product.reads) {
      const auto& made = stage(read.producer);
      if (made.placeholder || made.reduction || made.consumers.size() != 2) continue;
      auto found = std::make_unique<AttentionStages>();
      found->product = s;
      found->exponential = read.producer;
      if (complete(*found, read)) return found;
    }
    return nullptr;
  }

 private:
  const StageInfo& stage(StageId s) const { return analysis_.stages[s]; }

  bool complete(AttentionStages& found, const Read& by_product) const {
    const auto& exponential = stage(found.exponential);
    for (const StageId c : exponential.consumers)
      if (c != found.product) found.sum = c;
    if (!found.sum.valid() || exponential.reads.size() != 2) return false;
    const Read* of_row = &exponential.reads.front();
    const Read* of_element = &exponential.reads.back();
    if (reads(of_element->producer, of_row->producer)) std::swap(of_row, of_element);
    found.maximum = of_row->producer;
    found.masked = of_element->producer;
    if (stage(found.masked).placeholder || stage(found.masked).output) return false;
    const AxisId column = column_of(by_product, found.product, 1);
    if (!column.valid() || stage(found.maximum).consumers != std::vector{found.exponential}) return false;
    if (stage(found.masked).consumers != std::vector{found.maximum, found.exponential}) return false;
    if (!same_axes(*of_element, found.exponential)) return false;
    if (!reduces_rows(found.sum, found.exponential, column)) return false;
    if (!reduces_rows(found.maximum, found.masked, column)) return false;
    const auto scores = scores_of(found.masked);
    if (!scores) return false;
    found.scores = *scores;
    return has_rows(by_product, column);
  }

  bool reads(StageId reader, StageId producer) const {
    const auto& list = stage(producer).consumers;
    return std::find(list.begin(), list.end(), reader) != list.end();
  }

  // Returns the only axis (of extent > 1) of the producer that the reader reduces over, which must
  // be the reader's only reduction. All other axes must be spatial axes of the reader, which has
  // `own` more.
  AxisId column_of(const Read& read, StageId reader, int own) const {
    const auto& info = stage(reader);
    const auto& made = stage(read.producer);
    const auto map = analysis_.axis_map(read);
    AxisId column;
    int others = 0;
    for (const AxisId x : map.ids()) {
      if (made.extent(x) <= 1) continue;
      if (!map[x].valid() || info.extent(map[x]) != made.extent(x)) return {};
      if (!info.is_reduce(map[x])) {
        ++others;
      } else if (column.valid()) {
        return {};
      } else {
        column = x;
      }
    }
    const bool found = live_axes(info, info.spatial_axes()) == others + own && reduces_one_axis(info);
    return found ? column : AxisId();
  }

  static int live_axes(const StageInfo& info, IdRange<AxisId> axes) {
    int live = 0;
    for (const AxisId a : axes) live += info.extent(a) > 1 ? 1 : 0;
    return live;
  }

  static bool reduces_one_axis(const StageInfo& info) { return live_axes(info, info.reduce_axes()) == 1; }

  // Returns whether there is another axis of extent > 1: rows that are computed together.
  bool has_rows(const Read& read, AxisId column) const {
    const auto& made = stage(read.producer);
    for (const AxisId x : made.axes())
      if (x != column && made.extent(x) > 1) return true;
    return false;
  }

  bool same_axes(const Read& read, StageId reader) const {
    const auto& info = stage(reader);
    const auto& made = stage(read.producer);
    if (info.num_spatial != made.num_spatial) return false;
    const auto map = analysis_.axis_map(read);
    for (const AxisId x : made.spatial_axes())
      if (info.extent(x) != made.extent(x) || (made.extent(x) > 1 && map[x] != x)) return false;
    return true;
  }

  bool reduces_rows(StageId s, StageId producer, AxisId column) const {
    const auto& info = stage(s);
    if (!info.reduction || info.arg_reduction || info.output || info.reads.size() != 1) return false;
    const auto& read = info.reads.front();
    return read.producer == producer && !read.guarded && column_of(read, s, 0) == column;
  }

  // Finds the scores behind elementwise stages, each of which only the next one reads.
  std::optional<StageId> scores_of(StageId s) const {
    const auto& info = stage(s);
    if (info.reduction) {
      const bool contraction = info.data_reuse && !info.arg_reduction && reduces_one_axis(info);
      return contraction ? std::optional(s) : std::nullopt;
    }
    for (const auto& read : info.reads) {
      const auto& made = stage(read.producer);
      if (made.placeholder || made.output || made.consumers.size() != 1 || !same_axes(read, s)) continue;
      if (const auto found = scores_of(read.producer)) return found;
    }
    return std::nullopt;
  }

  const WorkloadAnalysis& analysis_;
};

void match_attention(const PlanContext& context, Patterns& patterns) {
  const Finder finder(*context.analysis);
  for (const StageId s : context.analysis->stages.ids()) {
    auto found = finder.with_product(s);
    if (found == nullptr) continue;
    found->anchor = found->product;
    found->inside = {found->sum, found->exponential, found->maximum, found->masked};
    if (found->scores != found->masked) found->inside.push_back(found->scores);
    // It is read twice, and computed in the register tile that sums up the scores.
    found->never_inlined = {found->masked};
    patterns.push_back(std::move(found));
  }
}

void make_attention(const PlanContext& context, const Group& group, Plans& plans) {
  if (const auto* stages = dynamic_cast<const AttentionStages*>(group.pattern))
    plans.push_back(std::make_shared<AttentionPlan>(context, group.root, *stages));
}

}  // namespace

extern const PlanKind attention_kind{"attention", make_attention, match_attention};

}  // namespace tensorsmith::space
