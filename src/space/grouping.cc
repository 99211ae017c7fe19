#include "space/grouping.h"

#include <algorithm>
#include <iterator>
#include <ranges>

namespace tensorsmith::space {

namespace {

class Grouping {
 public:
  Grouping(const PlanContext& context, bool fuse_rows) : context_(context), fuse_rows_(fuse_rows) {
    const size_t n = context.analysis->stages.size();
    group_.resize(n);
    readers_.resize(n);
    root_axes_.resize(n);
    for (const StageId s : context.analysis->stages.ids()) {
      if (context.stage(s).placeholder || context.inlined[s]) continue;
      for (const auto& read : effective_reads(context, s)) {
        auto& list = readers_[read.producer];
        if (list.empty() || list.back() != s) list.push_back(s);
      }
    }
    for (const StageId s : std::views::reverse(context.analysis->stages.ids())) {
      if (context.stage(s).placeholder || context.inlined[s]) continue;
      place(s);
    }
    std::reverse(groups_.begin(), groups_.end());
    for (auto& group : groups_) {
      std::sort(group.pads.begin(), group.pads.end());
      std::sort(group.attached.begin(), group.attached.end());
    }
  }

  std::vector<Group> take() && {
    return {std::make_move_iterator(groups_.begin()), std::make_move_iterator(groups_.end())};
  }

 private:
  const Pattern* pattern_of(StageId anchor) const {
    for (const auto& pattern : context_.patterns)
      if (pattern->anchor == anchor) return pattern.get();
    return nullptr;
  }
  // Returns the pattern of this anchor if no other kind of plan can compute it.
  const Pattern* required_pattern_of(StageId anchor) const {
    const Pattern* pattern = pattern_of(anchor);
    return pattern != nullptr && pattern->required ? pattern : nullptr;
  }

  void set_anchor(Group& group, StageId s) const {
    group.anchor = s;
    group.pattern = required_pattern_of(s);
  }

  void start(StageId s) {
    Group group;
    group.root = s;
    const auto& info = context_.stage(s);
    if ((info.reduction && !info.arg_reduction) || required_pattern_of(s) != nullptr) set_anchor(group, s);
    group_[s] = groups_.push_back(std::move(group));
  }

  void place(StageId s) {
    const auto& info = context_.stage(s);
    const auto& readers = readers_[s];
    if (info.output || readers.empty() || info.arg_reduction) return start(s);
    const GroupId g = group_[readers.front()];
    for (const StageId reader : readers)
      if (group_[reader] != g) return start(s);
    auto& group = groups_[g];
    root_axes_[s] = root_axes(group, s);
    const auto join = [&] { group_[s] = g; };
    if (group.pattern != nullptr && group.pattern->required)
      return contains(group.pattern->inside, s) ? join() : start(s);
    if (fuse_rows_ && joins_pattern(group, s)) return join();
    const bool whole = required_pattern_of(s) != nullptr;
    if (!info.reduction && !whole) {
      if (readers.size() == 1 && readers.front() == group.anchor && group.attached.empty() &&
          context_.stage(group.anchor).data_reuse) {
        group.pads.push_back(s);
        return join();
      }
    } else if (!group.anchor.valid() && group.attached.empty() && readers.size() == 1 &&
               elementwise(group.root, s)) {
      set_anchor(group, s);
      return join();
    }
    if (!fuse_rows_ || info.data_reuse || !group.pads.empty() || whole) return start(s);
    if (group.anchor.valid() && context_.stage(group.anchor).data_reuse) return start(s);
    // The stage may join a row of several stages.
    if (context_.stage(group.root).arg_reduction || !shares_rows(group, s)) return start(s);
    if (group.anchor.valid() && group.anchor != group.root) group.attached.push_back(group.anchor);
    group.anchor = {};
    group.attached.push_back(s);
    join();
  }

  // Returns whether the stage belongs to a pattern whose anchor is the group's anchor, but not its
  // root. The pattern's first stage inside is placed first, because only the root reads it besides
  // the pattern.
  bool joins_pattern(Group& group, StageId s) const {
    if (group.pattern != nullptr) return contains(group.pattern->inside, s);
    if (!group.anchor.valid() || group.anchor == group.root || !group.pads.empty()) return false;
    const Pattern* pattern = pattern_of(group.anchor);
    if (pattern == nullptr || pattern->inside.front() != s || !is_closed(*pattern)) return false;
    group.pattern = pattern;
    return true;
  }

  // Returns whether nothing is computed between the stages of a pattern, and nothing else reads its
  // stages inside, except for the first one.
  bool is_closed(const Pattern& pattern) const {
    for (size_t i = 1; i < pattern.inside.size(); ++i)
      for (const StageId reader : readers_[pattern.inside[i]])
        if (reader != pattern.anchor && !contains(pattern.inside, reader)) return false;
    return true;
  }

  // Returns whether the root reads the stage element by element, through inlined stages.
  bool elementwise(StageId root, StageId s) const {
    const auto& out = context_.stage(root);
    const auto& produced = context_.stage(s);
    const Pattern* whole = required_pattern_of(s);
    if (out.reduction) return false;
    int reads = 0;
    for (const auto& read : effective_reads(context_, root)) {
      if (read.producer != s) continue;
      if (++reads > 1 || read.guarded || !read.affine) return false;
      const auto map = context_.analysis->axis_map(read);
      IdVector<AxisId, bool> used(out.num_axes(), false);
      for (const AxisId d : map.ids()) {
        const AxisId to = map[d];
        if (!to.valid()) {
          if (produced.extent(d) > 1) return false;
          if (whole != nullptr && contains(whole->needed_axes, d)) return false;
          continue;
        }
        if (used[to] || out.extent(to) != produced.extent(d)) return false;
        used[to] = true;
      }
      for (const AxisId a : used.ids())
        if (!used[a] && out.extent(a) > 1) return false;
    }
    return reads == 1;
  }

  // Returns, for each spatial axis of a stage, the axis of the group's root that indexes it in all
  // reads inside the group, or none. The stage's readers must have been placed.
  AxisMap root_axes(const Group& group, StageId s) const {
    const auto& info = context_.stage(s);
    AxisMap result(info.num_spatial);
    bool first = true;
    for (const StageId reader : readers_[s]) {
      const auto& by = context_.stage(reader);
      for (const auto& read : effective_reads(context_, reader)) {
        if (read.producer != s) continue;
        const auto map = context_.analysis->axis_map(read);
        for (const AxisId x : map.ids()) {
          AxisId to = map[x].valid() && !by.is_reduce(map[x]) ? map[x] : AxisId();
          if (to.valid() && reader != group.root) to = root_axes_[reader][to];
          if (to.valid() && context_.stage(group.root).extent(to) != info.extent(x)) to = {};
          result[x] = first || result[x] == to ? to : AxisId();
        }
        first = false;
      }
    }
    return result;
  }

  // Returns whether some axis of extent > 1 of the root indexes this stage and all attached ones.
  // Otherwise nothing is gained by a common loop over rows, or the stage would be computed again
  // for every row.
  bool shares_rows(const Group& group, StageId s) const {
    std::vector<StageId> stages = group.attached;
    if (group.anchor.valid() && group.anchor != group.root) stages.push_back(group.anchor);
    stages.push_back(s);
    const auto& root = context_.stage(group.root);
    for (const AxisId a : root.spatial_axes()) {
      if (root.extent(a) <= 1) continue;
      if (std::all_of(stages.begin(), stages.end(),
                      [&](StageId stage) { return contains(root_axes_[stage], a); }))
        return true;
    }
    return false;
  }

  const PlanContext& context_;
  bool fuse_rows_;
  using GroupId = Id<Group>;
  IdVector<StageId, GroupId> group_;
  IdVector<StageId, std::vector<StageId>> readers_;  // of each stage, through inlined stages
  IdVector<StageId, AxisMap> root_axes_;             // of stages that joined a group or are about to
  IdVector<GroupId, Group> groups_;
};

}  // namespace

std::vector<Group> make_groups(const PlanContext& context, bool fuse_rows) {
  return Grouping(context, fuse_rows).take();
}

}  // namespace tensorsmith::space
