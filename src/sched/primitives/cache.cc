// cache_read(stage, scope, readers)
//   Arguments: a tensor (placeholder or computed), a memory scope, the stages that shall read the copy.
//   Rewrite: a new stage "NAME.SCOPE" right after the stage copies it, element by element, and the readers
//   read
//     the copy. Numbers of the stages after it grow by one. A reader that is inlined passes the change on to
//     the stages that hold its definition.
//   Checks: one output; not attached or inlined; readers exist, come later, read it, none twice.
//     C[i] = A[i] + A[i + 1]     cache_read A, local, [C]     A.local[i] = A[i]
//                                         =>                  C[i] = A.local[i] + A.local[i + 1]
//
// cache_write(stage, scope)
//   Arguments: a computed stage whose loops no step has touched.
//   Rewrite: a new stage "NAME.SCOPE" right before it takes over the computation, the stage becomes a copy of
//   it
//     and keeps its output buffer, its layout and its readers. The stage's number grows by one.
//   Checks: one output; computed at root; its loops are untouched and nothing is attached to them.
//     C[i] = sum_k A[i, k]       cache_write C, local         C.local[i] = sum_k A[i, k]
//                                         =>                  C[i] = C.local[i]
#include <algorithm>

#include "ir/analysis.h"
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

namespace {

bool reads(const Stage& stage, const ir::Buffer& buffer) {
  return std::any_of(stage.loads->begin(), stage.loads->end(),
                     [&](const ir::Load* load) { return load->buffer == buffer; });
}

void redirect(Stage& stage, const ir::Buffer& from, const ir::Buffer& to) {
  auto op = std::make_shared<ir::Operation>(*stage.op);
  for (ir::Expr& body : op->bodies) {
    body = ir::rewrite(body, [&](const ir::Expr& e) {
      const auto* load = ir::as<ir::Load>(e);
      return load != nullptr && load->buffer == from ? ir::load(to, load->indices) : e;
    });
  }
  stage.set_op(std::move(op));
}

// A stage that copies source element by element into target.
std::shared_ptr<ir::Operation> copy_operation(std::string name, const std::vector<ir::Axis>& axes,
                                              const ir::Buffer& source, ir::Buffer target) {
  auto op = std::make_shared<ir::Operation>();
  op->name = std::move(name);
  op->spatial = fresh_axes(axes);
  op->bodies = {ir::load(source, axis_values(op->spatial))};
  op->outputs = {std::move(target)};
  return op;
}

}  // namespace

Status apply(Schedule& schedule, const CacheRead& step) {
  if (step.stage < 0 || static_cast<size_t>(step.stage) >= schedule.stages.size())
    return invalid("stage " + std::to_string(step.stage) + " does not exist, there are " +
                   std::to_string(schedule.stages.size()));
  const auto s = static_cast<size_t>(step.stage);
  const ir::OperationRef op = schedule.stages[s].op;
  const std::string name = "stage '" + op->name + "'";
  if (schedule.stages[s].attach == AttachKind::kInlined)
    return illegal(name + " is inlined, nothing to cache");
  if (schedule.stages[s].attach == AttachKind::kAt)
    return illegal(name + " is attached to a loop; its copy would be outside. Cache it before compute_at");
  if (op->outputs.size() != 1) return unsupported(name + " has two outputs, it cannot be cached");
  if (step.readers.empty()) return invalid("cache_read needs at least one reader");
  const ir::Buffer source = op->output();
  for (size_t i = 0; i < step.readers.size(); ++i) {
    const int r = step.readers[i];
    if (r <= step.stage || static_cast<size_t>(r) >= schedule.stages.size())
      return invalid("reader " + std::to_string(r) + " is no stage after " + name);
    const Stage& reader = schedule.stages[static_cast<size_t>(r)];
    if (!reads(reader, source)) return illegal("stage '" + reader.op->name + "' does not read " + name);
    if (std::find(step.readers.begin(), step.readers.begin() + static_cast<std::ptrdiff_t>(i), r) !=
        step.readers.begin() + static_cast<std::ptrdiff_t>(i))
      return invalid("reader " + std::to_string(r) + " is named twice");
  }
  const std::string copy_name =
      unique_name(schedule, op->name + "." + std::string(ir::to_string(step.scope)));
  const ir::Buffer target = ir::make_buffer(copy_name, source->dtype, source->shape, step.scope);
  // Definitions of inlined readers live on in the stages that read them.
  std::vector<char> redirected(schedule.stages.size(), 0);
  bool inlined_reader = false;
  for (int r : step.readers) {
    redirected[static_cast<size_t>(r)] = 1;
    inlined_reader |= schedule.stages[static_cast<size_t>(r)].attach == AttachKind::kInlined;
  }
  for (size_t r = s + 1; r < schedule.stages.size(); ++r) {
    Stage& reader = schedule.stages[r];
    if (redirected[r] == 0 && !(inlined_reader && reads(reader, source))) continue;
    redirect(reader, source, target);
  }
  Stage copy = Stage::create(copy_operation(copy_name, op->spatial, source, target));
  insert_stage(schedule, s + 1, std::move(copy));
  return {};
}

Status apply(Schedule& schedule, const CacheWrite& step) {
  TS_RETURN_IF_ERROR(check_stage(schedule, step.stage));
  const auto s = static_cast<size_t>(step.stage);
  const ir::OperationRef op = schedule.stages[s].op;
  const std::string name = "stage '" + op->name + "'";
  if (op->outputs.size() != 1) return unsupported(name + " has two outputs, it cannot be cached");
  if (schedule.stages[s].attach != AttachKind::kRoot)
    return illegal(name + " is attached to a loop; apply cache_write before compute_at");
  TS_RETURN_IF_ERROR(check_loops_untouched(schedule, step.stage));

  const ir::Buffer target = op->output();
  auto compute = std::make_shared<ir::Operation>(*op);
  compute->name = unique_name(schedule, op->name + "." + std::string(ir::to_string(step.scope)));
  compute->outputs = {ir::make_buffer(compute->name, target->dtype, target->shape, step.scope)};
  std::vector<ir::Axis> axes = op->spatial;
  Stage copy = Stage::create(copy_operation(op->name, axes, compute->output(), target));
  copy.layout = std::move(schedule.stages[s].layout);
  copy.auto_unroll_max_step = schedule.stages[s].auto_unroll_max_step;
  schedule.stages[s] = std::move(copy);
  Stage cache = Stage::create(std::move(compute));
  for (Iterator& it : cache.iterators) it.name += ".c";
  insert_stage(schedule, s, std::move(cache));
  return {};
}

}  // namespace tensorsmith::sched::primitives
