// Schedule steps (primitives), the trace that records them, and apply(), the only function that
// executes them.
//
// Stage and iterator numbers are positions at the moment when the step is applied: stage = index in
// Schedule::stages, iterator = index in Stage::leaves (Ansor's convention, so that foreign records
// replay step by step). Each step is documented as arguments / rewrite / checks with a before =>
// after example in its own file under sched/primitives/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "sched/rewrites.h"
#include "sched/schedule.h"

namespace tensorsmith::sched {

// A field of the step S: its key in text, and the member.
template <class S, class T>
struct Field {
  std::string_view name;
  T S::* member;
};
template <class S, class T>
Field(const char*, T S::*) -> Field<S, T>;

// Each step lists its fields once, in the order in which text, stored codes and models read them.
// The order and the names never change.
struct Split {
  int stage = 0, iterator = 0;
  std::vector<int64_t> lengths;  // inner extents, outer to inner (inner_to_outer = true); > 0
  bool inner_to_outer = true;    // false: lengths are the outer extents, the innermost gets the rest
  TailPolicy tail = TailPolicy::kPredicate;
  static constexpr std::string_view kName = "split";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &Split::stage}, Field{"iter", &Split::iterator},
                      Field{"lengths", &Split::lengths}, Field{"inner", &Split::inner_to_outer},
                      Field{"tail", &Split::tail});
  }
  friend bool operator==(const Split&, const Split&) = default;
};
// A split with lengths of an earlier Split of the same trace: the first n_split - 1 of its lengths,
// then the product of the others.
struct FollowSplit {
  int stage = 0, iterator = 0;
  int source_step = 0;
  int n_split = 1;
  static constexpr std::string_view kName = "follow_split";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &FollowSplit::stage}, Field{"iter", &FollowSplit::iterator},
                      Field{"source", &FollowSplit::source_step}, Field{"n_split", &FollowSplit::n_split});
  }
  friend bool operator==(const FollowSplit&, const FollowSplit&) = default;
};
// A split whose factor (or number of parts) is the product of lengths[level] over the source steps.
struct FollowFusedSplit {
  int stage = 0, iterator = 0;
  std::vector<int> source_steps;
  int level = 0;
  bool factor = true;
  static constexpr std::string_view kName = "follow_fused_split";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &FollowFusedSplit::stage}, Field{"iter", &FollowFusedSplit::iterator},
                      Field{"sources", &FollowFusedSplit::source_steps},
                      Field{"level", &FollowFusedSplit::level}, Field{"factor", &FollowFusedSplit::factor});
  }
  friend bool operator==(const FollowFusedSplit&, const FollowFusedSplit&) = default;
};
struct Fuse {
  int stage = 0;
  std::vector<int> iterators;  // consecutive
  static constexpr std::string_view kName = "fuse";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &Fuse::stage}, Field{"iters", &Fuse::iterators});
  }
  friend bool operator==(const Fuse&, const Fuse&) = default;
};
struct Reorder {
  int stage = 0;
  std::vector<int> order;  // a permutation of all leaf positions
  static constexpr std::string_view kName = "reorder";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &Reorder::stage}, Field{"order", &Reorder::order});
  }
  friend bool operator==(const Reorder&, const Reorder&) = default;
};
struct Annotate {
  int stage = 0, iterator = 0;
  Annotation annotation = Annotation::kNone;
  static constexpr std::string_view kName = "annotate";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &Annotate::stage}, Field{"iter", &Annotate::iterator},
                      Field{"as", &Annotate::annotation});
  }
  friend bool operator==(const Annotate&, const Annotate&) = default;
};
struct Unroll {
  int stage = 0;
  int64_t auto_max_step = 0;  // TVM's pragma auto_unroll_max_step
  static constexpr std::string_view kName = "unroll";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &Unroll::stage}, Field{"max_step", &Unroll::auto_max_step});
  }
  friend bool operator==(const Unroll&, const Unroll&) = default;
};
struct ComputeAt {
  int stage = 0, target_stage = 0, target_iterator = 0;
  static constexpr std::string_view kName = "compute_at";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &ComputeAt::stage}, Field{"target", &ComputeAt::target_stage},
                      Field{"iter", &ComputeAt::target_iterator});
  }
  friend bool operator==(const ComputeAt&, const ComputeAt&) = default;
};
struct ReverseComputeAt {
  int stage = 0, producer_stage = 0, producer_iterator = 0;
  static constexpr std::string_view kName = "reverse_compute_at";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &ReverseComputeAt::stage},
                      Field{"producer", &ReverseComputeAt::producer_stage},
                      Field{"iter", &ReverseComputeAt::producer_iterator});
  }
  friend bool operator==(const ReverseComputeAt&, const ReverseComputeAt&) = default;
};
// Most nodes of a definition after inlining, as printed (ir::written_size).
inline constexpr int64_t kMaxInlinedSize = 20'000;
struct ComputeInline {
  int stage = 0;
  static constexpr std::string_view kName = "compute_inline";
  static constexpr auto fields() { return std::tuple(Field{"stage", &ComputeInline::stage}); }
  friend bool operator==(const ComputeInline&, const ComputeInline&) = default;
};
struct ComputeRoot {
  int stage = 0;
  static constexpr std::string_view kName = "compute_root";
  static constexpr auto fields() { return std::tuple(Field{"stage", &ComputeRoot::stage}); }
  friend bool operator==(const ComputeRoot&, const ComputeRoot&) = default;
};
struct CacheRead {
  int stage = 0;
  ir::MemoryScope scope = ir::MemoryScope::kLocal;
  std::vector<int> readers;
  static constexpr std::string_view kName = "cache_read";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &CacheRead::stage}, Field{"scope", &CacheRead::scope},
                      Field{"readers", &CacheRead::readers});
  }
  friend bool operator==(const CacheRead&, const CacheRead&) = default;
};
struct CacheWrite {
  int stage = 0;
  ir::MemoryScope scope = ir::MemoryScope::kLocal;
  static constexpr std::string_view kName = "cache_write";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &CacheWrite::stage}, Field{"scope", &CacheWrite::scope});
  }
  friend bool operator==(const CacheWrite&, const CacheWrite&) = default;
};
struct Rfactor {
  int stage = 0, iterator = 0;
  int factor_axis = 0;  // position of the new spatial axis
  static constexpr std::string_view kName = "rfactor";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &Rfactor::stage}, Field{"iter", &Rfactor::iterator},
                      Field{"axis", &Rfactor::factor_axis});
  }
  friend bool operator==(const Rfactor&, const Rfactor&) = default;
};
struct DecomposeReduction {
  int stage = 0, iterator = 0;  // iterator: the init is placed right before it
  static constexpr std::string_view kName = "decompose_reduction";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &DecomposeReduction::stage},
                      Field{"iter", &DecomposeReduction::iterator});
  }
  friend bool operator==(const DecomposeReduction&, const DecomposeReduction&) = default;
};
struct StorageAlign {
  int stage = 0, iterator = 0;
  int64_t factor = 1, offset = 0;
  static constexpr std::string_view kName = "storage_align";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &StorageAlign::stage}, Field{"iter", &StorageAlign::iterator},
                      Field{"factor", &StorageAlign::factor}, Field{"offset", &StorageAlign::offset});
  }
  friend bool operator==(const StorageAlign&, const StorageAlign&) = default;
};
struct PackLayout {
  int stage = 0;
  Layout layout;  // for constants and intermediates only
  static constexpr std::string_view kName = "pack_layout";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &PackLayout::stage}, Field{"layout", &PackLayout::layout});
  }
  friend bool operator==(const PackLayout&, const PackLayout&) = default;
};
struct Winograd {
  int stage = 0;
  int64_t m = 4;  // outputs of a tile per dimension
  static constexpr std::string_view kName = "winograd";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &Winograd::stage}, Field{"m", &Winograd::m});
  }
  friend bool operator==(const Winograd&, const Winograd&) = default;
};
struct Dot {
  int stage = 0, iterator = 0;  // iterator: the reduce loop; as many of its steps as have elements that fill
                                // 32 bits become one
  static constexpr std::string_view kName = "dot";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &Dot::stage}, Field{"iter", &Dot::iterator});
  }
  friend bool operator==(const Dot&, const Dot&) = default;
};

struct Dot16 {
  int stage = 0, iterator = 0;  // iterator: the reduce loop, two steps of which become one
  static constexpr std::string_view kName = "dot16";
  static constexpr auto fields() {
    return std::tuple(Field{"stage", &Dot16::stage}, Field{"iter", &Dot16::iterator});
  }
  friend bool operator==(const Dot16&, const Dot16&) = default;
};

// A step's index is its code in stored traces, so new steps are appended.
using Step = std::variant<Split, FollowSplit, FollowFusedSplit, Fuse, Reorder, Annotate, Unroll, ComputeAt,
                          ReverseComputeAt, ComputeInline, ComputeRoot, CacheRead, CacheWrite, Rfactor,
                          DecomposeReduction, StorageAlign, PackLayout, Winograd, Dot, Dot16>;

// Calls f(name, value) for each field of one of the structs above, in order. S may be const.
template <class S, class F>
void for_each_field(S& step, F&& f) {
  std::apply([&](const auto&... field) { (f(field.name, step.*field.member), ...); }, S::fields());
}

struct Trace {
  std::vector<Step> steps;
  friend bool operator==(const Trace&, const Trace&) = default;
};

// Executes a step; no other function does. `earlier` has the steps before it in the trace. On error
// nothing changes; the error's place is "step N (name) stage 'x'".
Status apply(Schedule& schedule, const Step& step, std::span<const Step> earlier, Rewrites& rewrites);

// A schedule together with the steps that made it: apply() executes and records a step. Errors are
// those of the function apply().
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(const ir::Workload& workload);
  // Starts from the result of Schedule::create, which a search makes once and copies; the trace
  // starts empty.
  explicit ScheduleBuilder(Schedule fresh);
  Status apply(const Step& step);
  const Schedule& schedule() const { return schedule_; }
  Schedule take() && { return std::move(schedule_); }
  const Trace& trace() const { return trace_; }

 private:
  Schedule schedule_;
  Trace trace_;
};

Result<Schedule> replay(const ir::Workload& workload, const Trace& trace);
// Replays the trace on the result of Schedule::create.
Result<Schedule> replay(Schedule fresh, const Trace& trace);
// Returns, for example, "split" or "compute_at".
std::string_view step_name(const Step& step);

// One line per step: "split stage=3 iter=0 lengths=[4,8] tail=peel". parse_trace(print(t)) == t;
// the parser never crashes.
std::string print(const Step& step);
std::string print(const Trace& trace);
Result<Trace> parse_trace(std::string_view text);

}  // namespace tensorsmith::sched
