#include "space/row_members.h"

namespace tensorsmith::space {

void merge_reads(const PlanContext& context, StageId root, StageId consumer, const AxisMap* consumer_map,
                 RowMember& member, bool& first) {
  const auto& produced = context.stage(member.stage);
  for (const auto& read : effective_reads(context, consumer)) {
    if (read.producer != member.stage) continue;
    const auto map = context.analysis->axis_map(read);
    for (const AxisId x : map.ids()) {
      member.moved = member.moved || (!map[x].valid() && produced.extent(x) > 1);
      AxisId to;
      const bool spatial = map[x].valid() && !context.stage(consumer).is_reduce(map[x]);
      if (spatial) to = consumer_map == nullptr ? map[x] : (*consumer_map)[map[x]];
      if (to.valid() && context.stage(root).extent(to) != produced.extent(x)) to = {};
      member.to_output[x] = first || member.to_output[x] == to ? to : AxisId();
    }
    first = false;
  }
}

}  // namespace tensorsmith::space
