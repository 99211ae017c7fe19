#include "record/ansor/export.h"

#include <nlohmann/json.hpp>

#include "ir/text.h"
#include "record/ansor/write_dag.h"
#include "target/machine.h"

namespace tensorsmith::record {

namespace {

using Json = nlohmann::json;

constexpr double kTvmFailed = 1e10;  // seconds
constexpr int64_t kNoLimit = 2147483647;

// Returns TVM's MeasureErrorNo.
int error_number(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return 0;
    case Outcome::kInvalidSchedule:
      return 1;  // INSTANTIATION_ERROR
    case Outcome::kBuildError:
      return 2;  // COMPILE_HOST
    case Outcome::kWrongOutput:
      return 5;  // WRONG_ANSWER
    case Outcome::kBuildTimeout:
      return 6;  // BUILD_TIMEOUT
    case Outcome::kRunTimeout:
      return 7;  // RUN_TIMEOUT
    default:
      return 4;  // RUNTIME_DEVICE
  }
}

// Returns TVM's HardwareParams: cores, bytes of a vector and of a cache line, then limits of GPUs.
Json hardware(const target::Device& d) {
  if (d.kind() == target::DeviceKind::kGpu)
    return {-1,
            16,
            64,
            d.gpu().shared_memory_per_block,
            kNoLimit,
            d.gpu().max_threads_per_block,
            d.gpu().max_vthread_extent,
            d.gpu().warp_size};
  return {d.cpu().cores, d.cpu().vector_bytes, d.cacheline_bytes, 0, 0, 0, 0, 0};
}

}  // namespace

std::string tvm_target(const target::Device& d) {
  if (d.kind() != target::DeviceKind::kGpu) return "llvm -keys=cpu -mcpu=" + d.processor;
  const std::string limits = " -max_num_threads=" + std::to_string(d.gpu().max_threads_per_block) +
                             " -thread_warp_size=" + std::to_string(d.gpu().warp_size);
  if (target::compute_capability(d) > 0) return "cuda -keys=cuda,gpu -arch=" + d.processor + limits;
  return "opencl -keys=opencl,gpu" + limits;
}

Status AnsorExporter::add(const TaskInfo& info) {
  TS_ASSIGN_OR_RETURN(const ir::Workload workload, ir::parse_workload(info.text));
  Task task;
  auto dag = to_dag_text(workload);
  if (!dag.ok()) {
    refused_.insert_or_assign(info.key, dag.error().reason);
    return dag.error();
  }
  task.dag = *std::move(dag);
  task.fresh = sched::Schedule::create(workload);
  // The format of the keys of TVM's networks: a hash, then the shapes of inputs and the output.
  Json key = {info.key};
  for (const ir::Buffer& input : workload.inputs()) key.push_back(input->shape);
  key.push_back(workload.outputs.back()->shape);
  task.workload_key = key.dump();
  task.flops = info.flops;
  tasks_.insert_or_assign(info.key, std::move(task));
  return {};
}

Result<std::string> AnsorExporter::line(const Record& record, const target::Device& device) const {
  const auto found = tasks_.find(record.task_key);
  if (const auto refused = refused_.find(record.task_key); refused != refused_.end())
    return Error{ErrorCode::kUnsupported, "task " + record.task_key, refused->second};
  if (found == tasks_.end())
    return Error{ErrorCode::kNotFound, "task " + record.task_key, "was not exported"};
  AnsorRecord out;
  out.task =
      Json{found->second.workload_key, tvm_target(device), hardware(device), "", 0, Json::array()}.dump();
  TS_ASSIGN_OR_RETURN(const sched::Trace trace, sched::parse_trace(record.trace));
  TS_ASSIGN_OR_RETURN(auto steps, steps_for_ansor(found->second.fresh, trace));
  out.trace = std::move(steps.trace);
  out.split_extents = std::move(steps.split_extents);
  out.error_no = error_number(record.result.outcome);
  out.seconds = record.result.ok() ? record.result.seconds : std::vector<double>{kTvmFailed};
  out.unix_seconds = record.unix_ms / 1000;
  return to_ansor_line(out);
}

std::string AnsorExporter::workloads() const {
  Json all = Json::object();
  for (const auto& [key, task] : tasks_)
    all[task.workload_key] = {{"compute_dag", task.dag}, {"flops", task.flops}};
  return all.dump();
}

}  // namespace tensorsmith::record
