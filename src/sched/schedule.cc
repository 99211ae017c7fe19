#include "sched/schedule.h"

#include <algorithm>

namespace tensorsmith::sched {

std::string_view to_string(Annotation annotation) {
  switch (annotation) {
    case Annotation::kNone:
      return "none";
    case Annotation::kUnroll:
      return "unroll";
    case Annotation::kVectorize:
      return "vectorize";
    case Annotation::kParallel:
      return "parallel";
    case Annotation::kVThread:
      return "vthread";
    case Annotation::kBlockX:
      return "blockIdx.x";
    case Annotation::kThreadX:
      return "threadIdx.x";
    case Annotation::kBlockY:
      return "blockIdx.y";
    case Annotation::kThreadY:
      return "threadIdx.y";
    case Annotation::kBlockZ:
      return "blockIdx.z";
    case Annotation::kThreadZ:
      return "threadIdx.z";
  }
  return "?";
}

ir::ForKind loop_kind(Annotation annotation) {
  switch (annotation) {
    case Annotation::kNone:
      return ir::ForKind::kSerial;
    case Annotation::kUnroll:
      return ir::ForKind::kUnrolled;
    case Annotation::kVectorize:
      return ir::ForKind::kVectorized;
    case Annotation::kParallel:
      return ir::ForKind::kParallel;
    case Annotation::kVThread:
    case Annotation::kBlockX:
    case Annotation::kBlockY:
    case Annotation::kBlockZ:
    case Annotation::kThreadX:
    case Annotation::kThreadY:
    case Annotation::kThreadZ:
      return ir::ForKind::kThread;
  }
  return ir::ForKind::kSerial;
}

ir::ThreadAxis thread_axis(Annotation annotation) {
  switch (annotation) {
    case Annotation::kVThread:
      return ir::ThreadAxis::kVirtual;
    case Annotation::kBlockX:
      return ir::ThreadAxis::kBlockX;
    case Annotation::kBlockY:
      return ir::ThreadAxis::kBlockY;
    case Annotation::kBlockZ:
      return ir::ThreadAxis::kBlockZ;
    case Annotation::kThreadX:
      return ir::ThreadAxis::kThreadX;
    case Annotation::kThreadY:
      return ir::ThreadAxis::kThreadY;
    case Annotation::kThreadZ:
      return ir::ThreadAxis::kThreadZ;
    case Annotation::kNone:
    case Annotation::kUnroll:
    case Annotation::kVectorize:
    case Annotation::kParallel:
      break;
  }
  return ir::ThreadAxis::kNone;
}

void Stage::set_op(ir::OperationRef new_op) {
  op = std::move(new_op);
  reads = std::make_shared<const Reads>(*op);
}

Stage Stage::create(ir::OperationRef op) {
  Stage stage;
  stage.set_op(std::move(op));
  stage.scope = stage.op->output()->scope;
  if (stage.is_placeholder()) return stage;
  const size_t n = stage.num_roots();
  stage.iterators.reserve(n * 4);
  stage.leaves.reserve(n * 4);
  for (const ir::Axis& axis : stage.op->spatial)
    stage.iterators.push_back({axis.var.name(), IterKind::kSpatial, Annotation::kNone});
  for (const ir::Axis& axis : stage.op->reduce)
    stage.iterators.push_back({axis.var.name(), IterKind::kReduce, Annotation::kNone});
  for (const IteratorId axis : stage.iterators.ids()) stage.leaves.push_back(axis);
  return stage;
}

bool Stage::reads_from(const Stage& producer) const {
  return std::any_of(producer.op->outputs.begin(), producer.op->outputs.end(),
                     [&](const ir::Buffer& out) { return reads->has(out.get()); });
}

std::optional<size_t> Stage::leaf_position(IteratorId iterator) const {
  for (size_t p = 0; p < leaves.size(); ++p) {
    if (leaves[p] == iterator) return p;
  }
  return std::nullopt;
}

Schedule Schedule::create(const ir::Workload& workload) {
  Schedule schedule;
  schedule.stages.reserve(workload.operations.size() + 3);
  for (const ir::OperationRef& op : workload.operations) schedule.stages.push_back(Stage::create(op));
  schedule.outputs = workload.outputs;
  return schedule;
}

std::optional<StageId> Schedule::stage_named(std::string_view name) const {
  for (const StageId s : stages.ids()) {
    if (stages[s].op->name == name) return s;
  }
  return std::nullopt;
}

std::vector<StageId> Schedule::consumers_of(StageId s) const {
  std::vector<StageId> result;
  for (const StageId r : stages.ids_after(s)) {
    const Stage& reader = stages[r];
    if (reader.attach == AttachKind::kInlined) continue;
    if (reader.reads_from(stages[s])) result.push_back(r);
  }
  return result;
}

StageId Schedule::producer_of(const ir::BufferNode* buffer) const {
  for (const StageId s : stages.ids()) {
    for (const ir::Buffer& out : stages[s].op->outputs) {
      if (out.get() == buffer) return s;
    }
  }
  return {};
}

bool Schedule::is_output(StageId s) const {
  const auto& outs = stages[s].op->outputs;
  return std::any_of(outs.begin(), outs.end(), [&](const ir::Buffer& buffer) {
    return std::find(outputs.begin(), outputs.end(), buffer) != outputs.end();
  });
}

}  // namespace tensorsmith::sched
