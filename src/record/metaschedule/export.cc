#include "record/metaschedule/export.h"

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/hash.h"
#include "ir/text.h"
#include "record/metaschedule/write_instructions.h"
#include "record/metaschedule/write_module.h"
#include "target/machine.h"

namespace tensorsmith::record {

namespace {

using Json = nlohmann::json;

constexpr double kSecondsOfFailure = 1e10;

// Returns TVM's target of a device.
Json target_json(const target::Device& d) {
  if (d.kind() != target::DeviceKind::kGpu) {
    Json out = {{"kind", "llvm"}, {"keys", {"cpu"}}, {"num-cores", d.cpu().cores}, {"tag", ""}};
    if (!d.processor.empty()) out["mcpu"] = d.processor;
    return out;
  }
  Json out = {{"max_num_threads", d.gpu().max_threads_per_block},
              {"max_threads_per_block", d.gpu().max_threads_per_block},
              {"max_shared_memory_per_block", d.gpu().shared_memory_per_block},
              {"thread_warp_size", d.gpu().warp_size},
              {"tag", ""}};
  const bool cuda = target::compute_capability(d) > 0;
  out["kind"] = cuda ? "cuda" : "opencl";
  out["keys"] = {cuda ? "cuda" : "opencl", "gpu"};
  if (cuda) out["arch"] = d.processor;
  return out;
}

Json json_of(const MetaScheduleValue& value) {
  if (const auto* list = value.list()) {
    Json out = Json::array();
    for (const MetaScheduleValue& element : *list) out.push_back(json_of(element));
    return out;
  }
  if (const auto* text = value.text()) return *text;
  if (const auto* integer = value.integer()) return *integer;
  return std::get<double>(value.value);
}

Json json_of(const std::vector<MetaScheduleValue>& values) { return json_of(MetaScheduleValue{values}); }

// Returns the bytes of the number, the lowest first.
std::string eight_bytes(uint64_t number) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(number >> 8 * i & 255);
  return out;
}

Json argument(const ir::Buffer& buffer) { return {"TENSOR", row_of(buffer->dtype).name, buffer->shape}; }

}  // namespace

Status MetaScheduleExporter::add(const TaskInfo& info) {
  if (tasks_.contains(info.key)) return {};
  TS_ASSIGN_OR_RETURN(const ir::Workload workload, ir::parse_workload(info.text));
  auto module = write_tir_module(workload);
  if (!module.ok()) {
    refused_.insert_or_assign(info.key, module.error().reason);
    return module.error();
  }
  Json arguments = Json::array();
  for (const ir::Buffer& input : workload.inputs()) arguments.push_back(argument(input));
  for (const ir::Buffer& output : workload.outputs) arguments.push_back(argument(output));
  tasks_.emplace(info.key, Task{workloads_.size(), arguments.dump(), sched::Schedule::create(workload)});
  workloads_.push_back(
      Json{std::to_string(Hasher().add(*module).digest64()), to_base64(eight_bytes(module->size()) + *module)}
          .dump());
  return {};
}

Result<std::string> MetaScheduleExporter::line(const Record& record, const target::Device& device) const {
  const auto found = tasks_.find(record.task_key);
  if (const auto refused = refused_.find(record.task_key); refused != refused_.end())
    return Error{ErrorCode::kUnsupported, "task " + record.task_key, refused->second};
  if (found == tasks_.end())
    return Error{ErrorCode::kNotFound, "task " + record.task_key, "was not exported"};
  TS_ASSIGN_OR_RETURN(const sched::Trace trace, sched::parse_trace(record.trace));
  TS_ASSIGN_OR_RETURN(const auto instructions, to_instructions(found->second.fresh, trace, device.kind()));
  Json list = Json::array();
  for (const MetaScheduleInstruction& i : instructions)
    list.push_back({i.kind, json_of(i.inputs), json_of(i.attributes), i.outputs});
  const std::vector<double> seconds =
      record.result.ok() ? record.result.seconds : std::vector<double>{kSecondsOfFailure};
  return "[" + std::to_string(found->second.workload) + ",[" + Json{list, Json::array()}.dump() + "," +
         Json(seconds).dump() + "," + target_json(device).dump() + "," + found->second.arguments + "]]";
}

std::string MetaScheduleExporter::workloads() const {
  std::string out;
  for (const std::string& line : workloads_) out += (out.empty() ? "" : "\n") + line;
  return out;
}

}  // namespace tensorsmith::record
