// The primitives. Each checks its arguments, then rewrites the schedule in place; on error the
// schedule is unchanged. Errors have no place; apply.cc adds it. The arguments, the rewrite and the
// checks of each primitive are documented in its .cc file.
#pragma once

#include <span>

#include "sched/rewrites.h"
#include "sched/step.h"

namespace tensorsmith::sched::primitives {

Status apply(Schedule& schedule, const Split& step);
Status apply(Schedule& schedule, const FollowSplit& step, std::span<const Step> earlier);
Status apply(Schedule& schedule, const FollowFusedSplit& step, std::span<const Step> earlier);
Status apply(Schedule& schedule, const Fuse& step);
Status apply(Schedule& schedule, const Reorder& step);
Status apply(Schedule& schedule, const Annotate& step);
Status apply(Schedule& schedule, const Unroll& step);
Status apply(Schedule& schedule, const ComputeAt& step);
Status apply(Schedule& schedule, const ReverseComputeAt& step);
Status apply(Schedule& schedule, const ComputeInline& step, Rewrites& rewrites);
Status apply(Schedule& schedule, const ComputeRoot& step);
Status apply(Schedule& schedule, const CacheRead& step, Rewrites& rewrites);
Status apply(Schedule& schedule, const CacheWrite& step, Rewrites& rewrites);
Status apply(Schedule& schedule, const Rfactor& step);
Status apply(Schedule& schedule, const DecomposeReduction& step);
Status apply(Schedule& schedule, const StorageAlign& step);
Status apply(Schedule& schedule, const PackLayout& step);
Status apply(Schedule& schedule, const Winograd& step);
Status apply(Schedule& schedule, const Dot& step);
Status apply(Schedule& schedule, const Dot16& step);

}  // namespace tensorsmith::sched::primitives
