// Sketch rules, output to input:
//   always inline   injective stages that are cheap to recompute where they are read
//   group           a root stage with what can be computed inside its loops: a reduction before its
//                   elementwise consumer, the padding before a tiled reduction, the reductions of one row
//   attention       groups of a softmax between two contractions: all of it for some rows at a time
//   winograd        groups of a convolution that the algorithm has rewritten
//   tile            groups with data reuse: multi-level tiling (SRS, SSRSRS)
//   window          groups with a small sliding window (depthwise convolution, pooling)
//   rows            groups of row-wise reductions
//   spatial         everything else
#include <algorithm>
#include <cmath>

#include "space/sketch.h"

namespace tensorsmith::space {

namespace {

struct Group {
  int root = 0;
  int anchor = -1;            // reduction computed in tiles; may be the root
  std::vector<int> pads;      // injective stages read by the anchor only
  std::vector<int> attached;  // stages of a row, consumers before producers
  const AttentionStages* attention = nullptr;
};

// The stages of the convolution whose result this stage is, if sched::Winograd has rewritten it.
const WinogradStages* winograd_of(const PlanContext& context, int s) {
  for (const auto& stages : context.winograd)
    if (stages.result == s) return &stages;
  return nullptr;
}

const AttentionStages* attention_of(const PlanContext& context, int product) {
  for (const auto& stages : context.attention)
    if (stages.product == product) return &stages;
  return nullptr;
}

class Grouping {
 public:
  // fuse_rows: compute the stages of a row inside its root's loops.
  Grouping(const PlanContext& context, bool fuse_rows) : context_(context) {
    const size_t n = context.analysis->stages.size();
    group_.assign(n, -1);
    readers_.resize(n);
    for (size_t s = 0; s < n; ++s) {
      if (context.stage(static_cast<int>(s)).placeholder || context.inlined[s]) continue;
      for (const auto& read : effective_reads(context, static_cast<int>(s))) {
        auto& list = readers_[static_cast<size_t>(read.producer)];
        if (list.empty() || list.back() != static_cast<int>(s)) list.push_back(static_cast<int>(s));
      }
    }
    for (size_t s = n; s-- > 0;) {
      if (context.stage(static_cast<int>(s)).placeholder || context.inlined[s]) continue;
      place(static_cast<int>(s), fuse_rows);
    }
    // Producers first.
    std::reverse(groups_.begin(), groups_.end());
  }

  const std::vector<Group>& groups() const { return groups_; }

 private:
  void start(int s) {
    Group group;
    group.root = s;
    const auto& info = context_.stage(s);
    if ((info.reduction && !info.arg_reduction) || winograd_of(context_, s) != nullptr) group.anchor = s;
    group_[static_cast<size_t>(s)] = static_cast<int>(groups_.size());
    groups_.push_back(std::move(group));
  }

  void place(int s, bool fuse_rows) {
    const auto& info = context_.stage(s);
    const auto& readers = readers_[static_cast<size_t>(s)];
    if (info.output || readers.empty() || info.arg_reduction) return start(s);
    const int g = group_[static_cast<size_t>(readers.front())];
    for (int reader : readers)
      if (group_[static_cast<size_t>(reader)] != g) return start(s);
    auto& group = groups_[static_cast<size_t>(g)];
    const auto join = [&] { group_[static_cast<size_t>(s)] = g; };
    if (group.anchor >= 0) {
      if (const auto* stages = winograd_of(context_, group.anchor)) {
        const auto inner = {stages->data, stages->rows, stages->input, stages->product, stages->columns};
        return std::find(inner.begin(), inner.end(), s) != inner.end() ? join() : start(s);
      }
    }
    if (fuse_rows && joins_attention(group, s)) return join();
    if (!info.reduction && winograd_of(context_, s) == nullptr) {
      if (readers.size() == 1 && readers.front() == group.anchor && group.attached.empty() &&
          context_.stage(group.anchor).data_reuse) {
        group.pads.push_back(s);
        return join();
      }
    } else if (group.anchor < 0 && group.attached.empty() && readers.size() == 1 &&
               elementwise(group.root, s)) {
      group.anchor = s;
      return join();
    }
    if (!fuse_rows || info.data_reuse || !group.pads.empty() || winograd_of(context_, s) != nullptr)
      return start(s);
    if (group.anchor >= 0 && context_.stage(group.anchor).data_reuse) return start(s);
    // A row of several stages.
    if (context_.stage(group.root).arg_reduction || !shares_rows(group, s)) return start(s);
    if (group.anchor >= 0 && group.anchor != group.root) group.attached.push_back(group.anchor);
    group.anchor = -1;
    group.attached.push_back(s);
    join();
  }

  // Producers come after their readers, so the sums come first: then the group's root has them and the
  // product, its anchor.
  bool joins_attention(Group& group, int s) const {
    if (group.attention == nullptr) {
      if (group.anchor < 0 || group.anchor == group.root || !group.pads.empty()) return false;
      const auto* stages = attention_of(context_, group.anchor);
      if (stages == nullptr || stages->sum != s) return false;
      // Nothing between the scores and the masked ones, and no other reader.
      const auto& readers = readers_[static_cast<size_t>(stages->scores)];
      if (stages->scores != stages->masked && readers != std::vector<int>{stages->masked}) return false;
      group.attention = stages;
      return true;
    }
    const auto& a = *group.attention;
    return s == a.exponential || s == a.maximum || s == a.masked || s == a.scores;
  }

  // The root reads the reduction element by element, through inlined stages.
  bool elementwise(int root, int s) const {
    const auto& out = context_.stage(root);
    const auto& produced = context_.stage(s);
    if (out.reduction) return false;
    int reads = 0;
    for (const auto& read : effective_reads(context_, root)) {
      if (read.producer != s) continue;
      if (++reads > 1 || read.guarded || !read.affine) return false;
      const auto map = context_.analysis->axis_map(read);
      std::vector<bool> used(out.extents.size(), false);
      for (size_t d = 0; d < map.size(); ++d) {
        if (map[d] < 0) {
          // The loops of a Winograd plan follow all axes but the batch.
          if (produced.extents[d] > 1 || (d > 0 && winograd_of(context_, s) != nullptr)) return false;
          continue;
        }
        const auto to = static_cast<size_t>(map[d]);
        if (used[to] || out.extents[to] != produced.extents[d]) return false;
        used[to] = true;
      }
      for (size_t a = 0; a < used.size(); ++a)
        if (!used[a] && out.extents[a] > 1) return false;
    }
    return reads == 1;
  }

  // Whether some axis of extent > 1 of the root indexes the stage directly; else nothing is gained by a
  // common row loop, or the stage would be computed again for every row.
  bool shares_rows(const Group& group, int s) const {
    const auto& root = context_.stage(group.root);
    const auto& info = context_.stage(s);
    double rows = 1;
    for (int a = 0; a < root.num_spatial; ++a) {
      const int64_t extent = root.extents[static_cast<size_t>(a)];
      if (extent > 1 && std::find(info.extents.begin(), info.extents.begin() + info.num_spatial, extent) !=
                            info.extents.begin() + info.num_spatial)
        rows *= static_cast<double>(extent);
    }
    return rows > 1;
  }

  const PlanContext& context_;
  std::vector<int> group_;                 // by stage: index into groups_
  std::vector<std::vector<int>> readers_;  // by stage, through inlined stages
  std::vector<Group> groups_;
};

using Plans = std::vector<std::shared_ptr<const Plan>>;

// The reads of a reduction run along a reduce axis in memory, so that lanes over its output axes would
// gather.
bool reduces_contiguously(const PlanContext& context, int s) {
  const auto& info = context.stage(s);
  for (const auto& read : effective_reads(context, s)) {
    if (!read.affine) continue;
    for (int a = info.num_spatial; a < info.num_axes(); ++a)
      if (info.extents[static_cast<size_t>(a)] > 1 && std::abs(read.strides[static_cast<size_t>(a)]) == 1)
        return true;
  }
  return false;
}

Plans alternatives(const PlanContext& context, const Group& group) {
  Plans plans;
  if (!group.attached.empty()) {
    std::vector<int> attached(group.attached.rbegin(), group.attached.rend());
    std::sort(attached.begin(), attached.end());
    plans.push_back(make_rows_plan(context, group.root, std::move(attached)));
    return plans;
  }
  if (group.attention != nullptr) {
    plans.push_back(make_attention_plan(context, group.root, *group.attention));
    return plans;
  }
  if (group.anchor >= 0) {
    if (const auto* stages = winograd_of(context, group.anchor)) {
      plans.push_back(make_winograd_plan(context, group.root, *stages));
      return plans;
    }
    std::vector<int> pads = group.pads;
    std::sort(pads.begin(), pads.end());
    plans.push_back(make_tiled_plan(context, group.root, group.anchor, pads, false));
    if (context.stage(group.anchor).data_reuse)
      plans.push_back(make_tiled_plan(context, group.root, group.anchor, pads, true));
    // A window plan computes what its anchor reads in place: for words that is many times.
    if (!context.stage(group.anchor).dot) {
      if (auto window = make_window_plan(context, group.root, group.anchor, pads))
        plans.push_back(std::move(window));
    }
    if (pads.empty() && reduces_contiguously(context, group.anchor))
      plans.push_back(
          make_rows_plan(context, group.root,
                         group.anchor == group.root ? std::vector<int>{} : std::vector<int>{group.anchor}));
    return plans;
  }
  plans.push_back(make_spatial_plan(context, group.root, false));
  if (!context.stage(group.root).reduction) {
    int live = 0;
    for (int64_t extent : context.stage(group.root).extents) live += extent > 1 ? 1 : 0;
    if (live > 1) plans.push_back(make_spatial_plan(context, group.root, true));
  }
  return plans;
}

Sketch assemble(Plans plans, bool inlines) {
  Sketch sketch;
  sketch.plans = std::move(plans);
  sketch.inlines = inlines;
  sketch.offsets.push_back(0);
  for (size_t p = 0; p < sketch.plans.size(); ++p) {
    const Plan& plan = *sketch.plans[p];
    for (size_t s = 0; s < plan.slots().size(); ++s) {
      sketch.slots.push_back(plan.slots()[s].decision);
      sketch.owner.emplace_back(p, s);
    }
    sketch.offsets.push_back(sketch.offsets.back() + plan.width());
    if (!sketch.description.empty()) sketch.description += "; ";
    sketch.description += plan.describe();
  }
  return sketch;
}

// Every choice of one plan a group, at most `limit` of them (the first plan of a group is its usual one).
void combine(const PlanContext& context, const std::vector<Group>& groups, size_t limit,
             std::vector<Sketch>& sketches) {
  std::vector<Plans> choices;
  for (const auto& group : groups) choices.push_back(alternatives(context, group));
  std::vector<size_t> at(choices.size(), 0);
  for (size_t made = 0; made < limit; ++made) {
    Plans plans;
    for (size_t g = 0; g < choices.size(); ++g) plans.push_back(choices[g][at[g]]);
    sketches.push_back(assemble(std::move(plans), true));
    size_t g = 0;
    while (g < at.size() && ++at[g] == choices[g].size()) at[g++] = 0;
    if (g == at.size()) break;
  }
}

}  // namespace

std::vector<Sketch> make_sketches(const Algorithm& algorithm) {
  const PlanContext& context = algorithm.context;
  std::vector<Sketch> sketches;
  const Grouping fused(context, true);
  combine(context, fused.groups(), 16, sketches);
  const Grouping separate(context, false);
  if (separate.groups().size() != fused.groups().size()) combine(context, separate.groups(), 2, sketches);
  for (auto& sketch : sketches) sketch.algorithm = &algorithm;
  return sketches;
}

Sketch make_plain_sketch(const Algorithm& algorithm) {
  const PlanContext& context = algorithm.plain;
  Plans plans;
  for (size_t s = 0; s < context.analysis->stages.size(); ++s)
    if (!context.stage(static_cast<int>(s)).placeholder)
      plans.push_back(make_plain_plan(context, static_cast<int>(s)));
  Sketch sketch = assemble(std::move(plans), false);
  sketch.algorithm = &algorithm;
  return sketch;
}

}  // namespace tensorsmith::space
