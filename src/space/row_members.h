// The stages that plans for rows compute inside the iteration of a row.
#pragma once

#include <vector>

#include "space/plan_context.h"

namespace tensorsmith::space {

struct RowMember {
  StageId stage;
  AxisMap to_output;   // for each own spatial axis, the root stage's axis or none
  bool moved = false;  // some read of the stage is not at the reader's own index
};

// Merges the consumer's reads of the member into the member's map. `consumer_map`: the consumer's axes as
// axes of the root; null for the root itself. `first`: whether no consumer has been merged yet; it is
// updated.
void merge_reads(const PlanContext& context, StageId root, StageId consumer, const AxisMap* consumer_map,
                 RowMember& member, bool& first);

// Sets the maps of all members except the root, which is the first member if it is one. Readers must come
// before the members that they read. Member is derived from RowMember.
template <class Member>
void map_to_root(const PlanContext& context, StageId root, std::vector<Member>& members) {
  const bool has_root = !members.empty() && members.front().stage == root;
  for (size_t k = has_root ? 1 : 0; k < members.size(); ++k) {
    bool first = true;
    if (!has_root) merge_reads(context, root, root, nullptr, members[k], first);
    for (size_t other = 0; other < k; ++other)
      merge_reads(context, root, members[other].stage, &members[other].to_output, members[k], first);
  }
}

// Appends a stage as a member. The map of the root is the identity; other members have none until
// map_to_root().
template <class Member>
void add_row_member(const PlanContext& context, StageId root, StageId stage, std::vector<Member>& members) {
  Member& member = members.emplace_back();
  member.stage = stage;
  member.to_output.resize(context.stage(stage).num_spatial);
  if (stage != root) return;
  for (const AxisId a : context.stage(root).spatial_axes()) member.to_output[a] = a;
}

}  // namespace tensorsmith::space
