#include "sched/primitives/checks.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "sched/relations.h"

namespace tensorsmith::sched::primitives {

namespace {

std::string quoted(const Stage& stage) { return "'" + stage.op->name + "'"; }

// Returns whether one of the stage's first `count` leaves has the annotation.
bool has_annotation(const Stage& stage, Annotation annotation, size_t count) {
  for (const IteratorId leaf : std::span(stage.leaves).first(count)) {
    if (stage.iterators[leaf].annotation == annotation) return true;
  }
  return false;
}

// Returns whether the reader's whole computation is inside the loop at this position of the target
// stage.
bool in_scope(const Schedule& schedule, StageId reader, StageId target, size_t position) {
  StageId at = reader;
  if (at == target) return true;
  while (true) {
    const Stage& stage = schedule.stages[at];
    if (stage.attach != AttachKind::kAt) return false;
    if (stage.attach_stage == target)
      return schedule.stages[target].leaf_position(stage.attach_iterator) >= position;
    at = stage.attach_stage;
  }
}

}  // namespace

Error illegal(std::string reason) { return {ErrorCode::kIllegal, "", std::move(reason)}; }
Error invalid(std::string reason) { return {ErrorCode::kInvalidArgument, "", std::move(reason)}; }
Error unsupported(std::string reason) { return {ErrorCode::kUnsupported, "", std::move(reason)}; }

Result<StageId> find_stage(const Schedule& schedule, int position) {
  if (position < 0 || std::cmp_greater_equal(position, schedule.stages.size()))
    return invalid("stage " + std::to_string(position) + " does not exist, there are " +
                   std::to_string(schedule.stages.size()));
  return StageId(position);
}

Result<StageId> find_computed_stage(const Schedule& schedule, int position) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_stage(schedule, position));
  const Stage& stage = schedule.stages[s];
  if (stage.is_placeholder()) return illegal("stage " + quoted(stage) + " is a placeholder, it has no loops");
  if (stage.attach == AttachKind::kInlined)
    return illegal("stage " + quoted(stage) + " is inlined, it has no loops");
  return s;
}

Result<IteratorId> find_leaf(const Stage& stage, int position) {
  if (position < 0 || std::cmp_greater_equal(position, stage.leaves.size()))
    return invalid("iterator " + std::to_string(position) + " does not exist, stage " + quoted(stage) +
                   " has " + std::to_string(stage.leaves.size()));
  return stage.leaves.begin()[position];
}

Status check_nothing_attached(const Schedule& schedule, StageId stage) {
  for (const Stage& other : schedule.stages) {
    if (other.is_attached_at(stage))
      return illegal("stage " + quoted(other) + " is attached to a loop of stage " +
                     quoted(schedule.stages[stage]) + "; attach it after this step");
  }
  return {};
}

Status check_loops_untouched(const Schedule& schedule, StageId stage) {
  TS_RETURN_IF_ERROR(check_nothing_attached(schedule, stage));
  const Stage& s = schedule.stages[stage];
  const bool annotated = std::any_of(s.iterators.begin(), s.iterators.end(),
                                     [](const Iterator& i) { return i.annotation != Annotation::kNone; });
  if (!s.relations.empty() || annotated || s.init_at.valid() || s.storage_align)
    return illegal("the loops of stage " + quoted(s) + " were changed before; this step must come first");
  return {};
}

Status check_loops(const Stage& stage) {
  IteratorId vectorized;
  IteratorId parallel;
  bool threads = false;
  std::array<int, 16> seen{};
  bool reduce_outside = false;
  for (const IteratorId leaf : stage.leaves) {
    const Iterator& it = stage.iterators[leaf];
    if (leaf == stage.init_at && reduce_outside)
      return illegal("the init of stage " + quoted(stage) + " at loop '" + it.name +
                     "' would be inside a reduce loop");
    if (is_reduce(it)) reduce_outside = true;
    if (vectorized.valid() && it.annotation != Annotation::kUnroll)
      return illegal("loop '" + it.name + "' of stage " + quoted(stage) + " is inside vectorized loop '" +
                     stage.iterators[vectorized].name + "'; only unrolled loops may be inside one");
    switch (it.annotation) {
      case Annotation::kNone:
      case Annotation::kUnroll:
        continue;
      case Annotation::kVectorize:
      case Annotation::kParallel:
      case Annotation::kVThread:
      case Annotation::kBlockX:
      case Annotation::kBlockY:
      case Annotation::kBlockZ:
        if (is_reduce(it))
          return illegal("loop '" + it.name + "' of stage " + quoted(stage) +
                         " is a reduce loop, it cannot be " +
                         (it.annotation == Annotation::kVectorize ? "vectorized"
                          : it.annotation == Annotation::kParallel
                              ? "parallel"
                              : "bound to " + std::string(to_string(it.annotation))));
        break;
      case Annotation::kThreadX:
      case Annotation::kThreadY:
      case Annotation::kThreadZ:
        break;
    }
    if (it.annotation == Annotation::kVectorize) {
      vectorized = leaf;
    } else if (it.annotation == Annotation::kParallel) {
      if (parallel.valid())
        return illegal("stage " + quoted(stage) + " has two parallel loops, '" +
                       stage.iterators[parallel].name + "' and '" + it.name + "'; fuse them instead");
      parallel = leaf;
    } else {
      threads = true;
      if (seen[static_cast<size_t>(it.annotation)]++ > 0)
        return illegal("two loops of stage " + quoted(stage) + " are bound to " +
                       std::string(to_string(it.annotation)) + "; fuse them instead");
    }
  }
  if (threads && parallel.valid())
    return illegal("stage " + quoted(stage) + " has both a parallel loop and loops bound to GPU axes");
  return {};
}

Status check_attachments(const Schedule& schedule) {
  for (const StageId s : schedule.stages.ids()) {
    const Stage& stage = schedule.stages[s];
    if (stage.attach != AttachKind::kAt) continue;
    // Producers precede consumers, so a target that follows the stage cannot be attached below it.
    if (stage.attach_stage <= s)
      return illegal("stage " + quoted(stage) + " is attached to stage " +
                     quoted(schedule.stages[stage.attach_stage]) + ", which does not read what it computes");
    const Stage& target = schedule.stages[stage.attach_stage];
    const auto position = target.leaf_position(stage.attach_iterator);
    if (!position) throw_internal_error(__FILE__, __LINE__, "attached to an iterator that is not a leaf");
    for (const StageId r : schedule.stages.ids_after(s)) {
      const Stage& reader = schedule.stages[r];
      if (reader.attach == AttachKind::kInlined || !reader.reads_from(stage)) continue;
      if (!in_scope(schedule, r, stage.attach_stage, *position))
        return illegal("stage " + quoted(reader) + " reads stage " + quoted(stage) + " outside loop '" +
                       target.iterators[stage.attach_iterator].name + "' of stage " + quoted(target) +
                       " that it is attached to");
    }
    const bool own_parallel = has_annotation(stage, Annotation::kParallel, stage.leaves.size());
    for (const IteratorId leaf : stage.leaves) {
      const Annotation annotation = stage.iterators[leaf].annotation;
      if (is_block(annotation))
        return illegal("stage " + quoted(stage) + " is attached, but a loop of it is bound to " +
                       std::string(to_string(annotation)) + "; bind blocks in root stages");
    }
    if (has_annotation(target, Annotation::kVectorize, *position + 1))
      return illegal("stage " + quoted(stage) + " is attached inside a vectorized loop of stage " +
                     quoted(target));
    if (!own_parallel) continue;
    const Stage* at = &stage;
    while (at->attach == AttachKind::kAt) {
      const Stage& around = schedule.stages[at->attach_stage];
      const auto loop = around.leaf_position(at->attach_iterator);
      if (has_annotation(around, Annotation::kParallel, loop ? *loop + 1 : 0))
        return illegal("the parallel loop of stage " + quoted(stage) +
                       " is inside the parallel loop of stage " + quoted(around));
      at = &around;
    }
  }
  return {};
}

void insert_stage(Schedule& schedule, StageId before, Stage stage) {
  for (Stage& other : schedule.stages) {
    if (other.attach == AttachKind::kAt && other.attach_stage >= before) ++other.attach_stage;
  }
  schedule.stages.insert(before, std::move(stage));
}

void erase_stage(Schedule& schedule, StageId stage) {
  schedule.stages.erase(stage);
  for (Stage& other : schedule.stages) {
    if (other.attach == AttachKind::kAt && other.attach_stage > stage) --other.attach_stage;
  }
}

std::string unique_name(const Schedule& schedule, const std::string& base) {
  std::string name = base;
  for (int i = 1; schedule.stage_named(name); ++i) name = base + "." + std::to_string(i);
  return name;
}

std::vector<ir::Axis> fresh_axes(const std::vector<ir::Axis>& axes) {
  std::vector<ir::Axis> result;
  result.reserve(axes.size());
  for (const ir::Axis& axis : axes) result.push_back({ir::Var(axis.var.name()), axis.extent});
  return result;
}

std::vector<ir::Expr> axis_values(const std::vector<ir::Axis>& axes) {
  std::vector<ir::Expr> result;
  result.reserve(axes.size());
  for (const ir::Axis& axis : axes) result.emplace_back(axis.var);
  return result;
}

}  // namespace tensorsmith::sched::primitives
