// cache_read(stage, scope, readers)
//   Arguments: a tensor (placeholder or computed), a memory scope, the stages that will read the copy.
//   Rewrite: a new stage "NAME.SCOPE" right after the stage copies it, element by element, and the readers
//     read the copy. The numbers of later stages grow by one. If a reader is inlined, the stages that contain
//     its definition are changed.
//   Checks: one output; not attached or inlined; readers exist, come later, read it, and occur only once.
//
//     C[i] = A[i] + A[i + 1]     cache_read A, local, [C]     A.local[i] = A[i]
//                                         =>                  C[i] = A.local[i] + A.local[i + 1]
//
// cache_write(stage, scope)
//   Arguments: a computed stage whose loops have not been changed by any step.
//   Rewrite: a new stage "NAME.SCOPE" right before it does the computation; the stage becomes a copy
//     of it and keeps its output buffer, its layout and its readers. The stage's number grows by one.
//   Checks: one output; computed at root; its loops are untouched and nothing is attached to them.
//
//     C[i] = sum_k A[i, k]       cache_write C, local         C.local[i] = sum_k A[i, k]
//                                         =>                  C[i] = C.local[i]
#include "ir/analysis.h"
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

namespace {

// Returns the operation's stage, reading `to` instead of `from`.
Stage redirected_stage(const ir::Operation& reader, const ir::Buffer& from, const ir::Buffer& to) {
  auto op = std::make_shared<ir::Operation>(reader);
  for (ir::Expr& body : op->bodies) {
    body = ir::rewrite(body, [&](const ir::Expr& e) {
      const auto* load = ir::as<ir::Load>(e);
      return load != nullptr && load->buffer == from ? ir::load(to, load->indices) : e;
    });
  }
  return Stage::create(std::move(op));
}

// Returns an operation that copies `source` element by element to `target`.
std::shared_ptr<ir::Operation> copy_operation(std::string name, const std::vector<ir::Axis>& axes,
                                              const ir::Buffer& source, ir::Buffer target) {
  auto op = std::make_shared<ir::Operation>();
  op->name = std::move(name);
  op->spatial = fresh_axes(axes);
  op->bodies = {ir::load(source, axis_values(op->spatial))};
  op->outputs = {std::move(target)};
  return op;
}

// Returns the copy, which keeps the operation's name and output, and the new stage that computes
// the values.
std::vector<Stage> cache_write_stages(const ir::Operation& op, const std::string& name,
                                      ir::MemoryScope scope) {
  const ir::Buffer& target = op.output();
  auto compute = std::make_shared<ir::Operation>(op);
  compute->name = name;
  compute->outputs = {ir::make_buffer(name, target->dtype, target->shape, scope)};
  std::vector<Stage> made;
  made.push_back(Stage::create(copy_operation(op.name, op.spatial, compute->output(), target)));
  made.push_back(Stage::create(std::move(compute)));
  for (Iterator& it : made.back().iterators) it.name += ".c";
  return made;
}

}  // namespace

Status apply(Schedule& schedule, const CacheRead& step, Rewrites& rewrites) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_stage(schedule, step.stage));
  const ir::OperationRef op = schedule.stages[s].op;
  const std::string name = "stage '" + op->name + "'";
  if (schedule.stages[s].attach == AttachKind::kInlined)
    return illegal(name + " is inlined, so there is nothing to cache");
  if (schedule.stages[s].attach == AttachKind::kAt)
    return illegal(name + " is attached to a loop; its copy would be outside. Cache it before compute_at");
  if (op->outputs.size() != 1) return unsupported(name + " has two outputs, it cannot be cached");
  if (step.readers.empty()) return invalid("cache_read needs at least one reader");
  const ir::Buffer source = op->output();
  IdVector<StageId, char> redirected(schedule.stages.size(), 0);
  // The definitions of inlined readers are parts of the stages that read them.
  bool inlined_reader = false;
  for (const int position : step.readers) {
    const auto r = find_stage(schedule, position);
    if (!r.ok() || *r <= s)
      return invalid("reader " + std::to_string(position) + " is not a stage after " + name);
    const Stage& reader = schedule.stages[*r];
    if (!reader.reads->has(source.get()))
      return illegal("stage '" + reader.op->name + "' does not read " + name);
    if (redirected[*r] != 0) return invalid("reader " + std::to_string(position) + " is named twice");
    redirected[*r] = 1;
    inlined_reader |= reader.attach == AttachKind::kInlined;
  }
  const std::string copy_name =
      unique_name(schedule, op->name + "." + std::string(ir::to_string(step.scope)));
  const Stage& copy =
      rewrites.get({Rewrites::Kind::kCacheRead, op, nullptr, nullptr, copy_name, step.scope}, [&] {
        ir::Buffer made = ir::make_buffer(copy_name, source->dtype, source->shape, step.scope);
        return std::vector{Stage::create(copy_operation(copy_name, op->spatial, source, std::move(made)))};
      })[0];
  const ir::Buffer& target = copy.op->output();
  for (const StageId r : schedule.stages.ids_after(s)) {
    Stage& reader = schedule.stages[r];
    if (redirected[r] == 0 && !(inlined_reader && reader.reads->has(source.get()))) continue;
    const Stage& redirected_reader =
        rewrites.get({Rewrites::Kind::kRedirect, reader.op, copy.op, nullptr, {}, {}},
                     [&] { return std::vector{redirected_stage(*reader.op, source, target)}; })[0];
    reader.op = redirected_reader.op;
    reader.reads = redirected_reader.reads;
  }
  StageId after = s;
  insert_stage(schedule, ++after, copy);
  return {};
}

Status apply(Schedule& schedule, const CacheWrite& step, Rewrites& rewrites) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  const ir::OperationRef op = schedule.stages[s].op;
  const std::string name = "stage '" + op->name + "'";
  if (op->outputs.size() != 1) return unsupported(name + " has two outputs, it cannot be cached");
  if (schedule.stages[s].attach != AttachKind::kRoot)
    return illegal(name + " is attached to a loop; apply cache_write before compute_at");
  TS_RETURN_IF_ERROR(check_loops_untouched(schedule, s));

  std::string made_name = unique_name(schedule, op->name + "." + std::string(ir::to_string(step.scope)));
  const std::vector<Stage>& made =
      rewrites.get({Rewrites::Kind::kCacheWrite, op, nullptr, nullptr, made_name, step.scope},
                   [&] { return cache_write_stages(*op, made_name, step.scope); });
  Stage copy = made[0];
  copy.layout = std::move(schedule.stages[s].layout);
  copy.auto_unroll_max_step = schedule.stages[s].auto_unroll_max_step;
  schedule.stages[s] = std::move(copy);
  insert_stage(schedule, s, made[1]);
  return {};
}

}  // namespace tensorsmith::sched::primitives
