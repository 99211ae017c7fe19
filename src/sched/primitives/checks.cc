#include "sched/primitives/checks.h"

#include <algorithm>
#include <array>

namespace tensorsmith::sched::primitives {

namespace {

std::string quoted(const Stage& stage) { return "'" + stage.op->name + "'"; }

bool is_block(Annotation a) {
  return a == Annotation::kBlockX || a == Annotation::kBlockY || a == Annotation::kBlockZ;
}

bool has_annotation(const Stage& stage, Annotation annotation, int last_position) {
  for (int i = 0; i <= last_position; ++i) {
    if (stage.iterators[static_cast<size_t>(stage.leaves[static_cast<size_t>(i)])].annotation == annotation)
      return true;
  }
  return false;
}

// Whether reader's whole computation is inside the loop at this position of the target stage.
bool in_scope(const Schedule& schedule, size_t reader, int target, int position) {
  int at = static_cast<int>(reader);
  if (at == target) return true;
  while (true) {
    const Stage& stage = schedule.stages[static_cast<size_t>(at)];
    if (stage.attach != AttachKind::kAt) return false;
    if (stage.attach_stage == target)
      return schedule.stages[static_cast<size_t>(target)].leaf_position(stage.attach_iterator) >= position;
    at = stage.attach_stage;
  }
}

}  // namespace

Error illegal(std::string reason) { return {ErrorCode::kIllegal, "", std::move(reason)}; }
Error invalid(std::string reason) { return {ErrorCode::kInvalidArgument, "", std::move(reason)}; }
Error unsupported(std::string reason) { return {ErrorCode::kUnsupported, "", std::move(reason)}; }

Status check_stage(const Schedule& schedule, int stage) {
  if (stage < 0 || static_cast<size_t>(stage) >= schedule.stages.size())
    return invalid("stage " + std::to_string(stage) + " does not exist, there are " +
                   std::to_string(schedule.stages.size()));
  const Stage& s = schedule.stages[static_cast<size_t>(stage)];
  if (s.is_placeholder()) return illegal("stage " + quoted(s) + " is a placeholder, it has no loops");
  if (s.attach == AttachKind::kInlined) return illegal("stage " + quoted(s) + " is inlined, it has no loops");
  return {};
}

Status check_leaf(const Stage& stage, int position) {
  if (position < 0 || static_cast<size_t>(position) >= stage.leaves.size())
    return invalid("iterator " + std::to_string(position) + " does not exist, stage " + quoted(stage) +
                   " has " + std::to_string(stage.leaves.size()));
  return {};
}

Status check_nothing_attached(const Schedule& schedule, int stage) {
  for (const Stage& other : schedule.stages) {
    if (other.attach == AttachKind::kAt && other.attach_stage == stage)
      return illegal("stage " + quoted(other) + " is attached to a loop of stage " +
                     quoted(schedule.stages[static_cast<size_t>(stage)]) + "; attach it after this step");
  }
  return {};
}

Status check_loops_untouched(const Schedule& schedule, int stage) {
  TS_RETURN_IF_ERROR(check_nothing_attached(schedule, stage));
  const Stage& s = schedule.stages[static_cast<size_t>(stage)];
  const bool annotated = std::any_of(s.iterators.begin(), s.iterators.end(),
                                     [](const Iterator& i) { return i.annotation != Annotation::kNone; });
  if (!s.relations.empty() || annotated || s.init_at >= 0 || s.storage_align)
    return illegal("the loops of stage " + quoted(s) + " were changed before; this step must come first");
  return {};
}

Status check_loops(const Stage& stage) {
  int vectorized = -1;
  int parallel = -1;
  bool threads = false;
  std::array<int, 16> seen{};
  bool reduce_outside = false;
  for (size_t i = 0; i < stage.leaves.size(); ++i) {
    const int leaf = stage.leaves[i];
    const Iterator& it = stage.iterators[static_cast<size_t>(leaf)];
    if (leaf == stage.init_at && reduce_outside)
      return illegal("the init of stage " + quoted(stage) + " at loop '" + it.name +
                     "' would be inside a reduce loop");
    if (is_reduce(it)) reduce_outside = true;
    if (vectorized >= 0 && it.annotation != Annotation::kUnroll)
      return illegal("loop '" + it.name + "' of stage " + quoted(stage) + " is inside vectorized loop '" +
                     stage.iterators[static_cast<size_t>(vectorized)].name +
                     "'; only unrolled loops may be inside one");
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
      if (parallel >= 0)
        return illegal("stage " + quoted(stage) + " has two parallel loops, '" +
                       stage.iterators[static_cast<size_t>(parallel)].name + "' and '" + it.name +
                       "'; fuse them instead");
      parallel = leaf;
    } else {
      threads = true;
      if (seen[static_cast<size_t>(it.annotation)]++ > 0)
        return illegal("two loops of stage " + quoted(stage) + " are bound to " +
                       std::string(to_string(it.annotation)) + "; fuse them instead");
    }
  }
  if (threads && parallel >= 0)
    return illegal("stage " + quoted(stage) + " has both a parallel loop and loops bound to GPU axes");
  return {};
}

Status check_attachments(const Schedule& schedule) {
  const size_t n = schedule.stages.size();
  for (size_t s = 0; s < n; ++s) {
    const Stage& stage = schedule.stages[s];
    if (stage.attach != AttachKind::kAt) continue;
    // Producers stand before consumers, so a target after the stage cannot be attached below it.
    if (stage.attach_stage <= static_cast<int>(s))
      return illegal("stage " + quoted(stage) + " is attached to stage " +
                     quoted(schedule.stages[static_cast<size_t>(stage.attach_stage)]) +
                     ", which does not read what it computes");
    const Stage& target = schedule.stages[static_cast<size_t>(stage.attach_stage)];
    const int position = target.leaf_position(stage.attach_iterator);
    if (position < 0) throw_internal_error(__FILE__, __LINE__, "attached to an iterator that is no leaf");
    for (size_t r = s + 1; r < n; ++r) {
      const Stage& reader = schedule.stages[r];
      if (reader.attach == AttachKind::kInlined || !reader.reads_from(stage)) continue;
      if (!in_scope(schedule, r, stage.attach_stage, position))
        return illegal("stage " + quoted(reader) + " reads stage " + quoted(stage) + " outside loop '" +
                       target.iterators[static_cast<size_t>(stage.attach_iterator)].name + "' of stage " +
                       quoted(target) + " that it is attached to");
    }
    const int own_leaves = static_cast<int>(stage.leaves.size()) - 1;
    const bool own_parallel = has_annotation(stage, Annotation::kParallel, own_leaves);
    for (int leaf : stage.leaves) {
      if (is_block(stage.iterators[static_cast<size_t>(leaf)].annotation))
        return illegal("stage " + quoted(stage) + " is attached, but a loop of it is bound to " +
                       std::string(to_string(stage.iterators[static_cast<size_t>(leaf)].annotation)) +
                       "; bind blocks in root stages");
    }
    if (has_annotation(target, Annotation::kVectorize, position))
      return illegal("stage " + quoted(stage) + " is attached inside a vectorized loop of stage " +
                     quoted(target));
    if (!own_parallel) continue;
    const Stage* at = &stage;
    while (at->attach == AttachKind::kAt) {
      const Stage& around = schedule.stages[static_cast<size_t>(at->attach_stage)];
      if (has_annotation(around, Annotation::kParallel, around.leaf_position(at->attach_iterator)))
        return illegal("the parallel loop of stage " + quoted(stage) +
                       " is inside the parallel loop of stage " + quoted(around));
      at = &around;
    }
  }
  return {};
}

void insert_stage(Schedule& schedule, size_t position, Stage stage) {
  for (Stage& other : schedule.stages) {
    if (other.attach == AttachKind::kAt && other.attach_stage >= static_cast<int>(position))
      ++other.attach_stage;
  }
  schedule.stages.insert(schedule.stages.begin() + static_cast<std::ptrdiff_t>(position), std::move(stage));
}

void erase_stage(Schedule& schedule, size_t position) {
  schedule.stages.erase(schedule.stages.begin() + static_cast<std::ptrdiff_t>(position));
  for (Stage& other : schedule.stages) {
    if (other.attach == AttachKind::kAt && other.attach_stage > static_cast<int>(position))
      --other.attach_stage;
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
