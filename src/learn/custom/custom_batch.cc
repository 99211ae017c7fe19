#include "learn/custom/custom_batch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "feature/schema.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "sched/schedule.h"

namespace tensorsmith::learn {

namespace {

constexpr std::array<CustomInput, 5> kCustomInputs = {{{"features", &CustomInputs::features},
                                                       {"stores", &CustomInputs::stores},
                                                       {"decisions", &CustomInputs::decisions},
                                                       {"traces", &CustomInputs::traces},
                                                       {"programs", &CustomInputs::programs}}};

std::vector<feature::ProgramKind> kinds_of(target::DeviceKind device, bool recorded) {
  using enum feature::ProgramKind;
  if (device == target::DeviceKind::kGpu) return {kGpuTiled, kGpuFlat};
  if (recorded) return {kCpuNests, kCpuTiled, kCpuOther};
  return {kCpuNests};
}

}  // namespace

std::span<const CustomInput> custom_inputs() { return kCustomInputs; }

Result<CustomInputs> parse_custom_inputs(std::span<const std::string> names) {
  CustomInputs out;
  std::string known;
  for (const CustomInput& input : kCustomInputs)
    known += (known.empty() ? "" : ", ") + std::string(input.name);
  if (names.empty()) return Error{ErrorCode::kInvalidArgument, "", "reads no input; there are " + known};
  for (const std::string& name : names) {
    const auto at = std::find_if(kCustomInputs.begin(), kCustomInputs.end(),
                                 [&](const auto& i) { return i.name == name; });
    if (at == kCustomInputs.end())
      return Error{ErrorCode::kInvalidArgument, "",
                   "reads the unknown input '" + name + "'; there are " + known};
    out.*(at->member) = true;
  }
  return out;
}

ModelInputs model_inputs(const CustomInputs& inputs) {
  ModelInputs out{.rows = inputs.stores};
  if (inputs.features) out.leaves = out.trace = out.summary = true;
  if (inputs.traces || inputs.programs) out.trace = out.trace_beside_summary = true;
  out.point = inputs.decisions;
  return out;
}

CustomFeatures::CustomFeatures(target::DeviceKind device, bool recorded) {
  const auto kinds = kinds_of(device, recorded);
  for (const feature::ProgramKind kind : kinds) {
    begins_[kind] = names_.size();
    const std::string prefix = kinds.size() > 1 ? std::string(to_string(kind)) + "." : "";
    const feature::SummarySchema& schema = feature::summary_schema(kind);
    for (const std::string& name : schema.resources.names()) names_.push_back(prefix + "seconds." + name);
    for (const std::string& name : schema.columns.names()) names_.push_back(prefix + name);
  }
}

void CustomFeatures::append_row(const feature::ProgramSummary& summary, std::vector<float>& out) const {
  const size_t begin = out.size();
  out.resize(begin + names_.size(), 0.0F);
  const auto at = begins_.find(summary.kind);
  if (at == begins_.end()) return;
  auto next = out.begin() + static_cast<std::ptrdiff_t>(begin + at->second);
  next = std::transform(summary.resources.begin(), summary.resources.end(), next,
                        [](double seconds) { return static_cast<float>(seconds); });
  std::copy(summary.columns.begin(), summary.columns.end(), next);
}

int32_t CustomBatches::task_of(const StoredWorkload& workload) {
  const auto known = numbers_.find(workload.key);
  if (known != numbers_.end()) return known->second;
  const auto number = static_cast<int32_t>(tasks_.size());
  tasks_.push_back({workload.name, workload.key, workload.text, workload.flops});
  numbers_.emplace(workload.key, number);
  return number;
}

std::string CustomBatches::program_text(int32_t task, const sched::Trace& trace) {
  const auto [at, added] = workloads_.try_emplace(task);
  if (added) {
    if (auto parsed = ir::parse_workload(tasks_[static_cast<size_t>(task)].workload); parsed.ok())
      at->second = std::make_shared<const ir::Workload>(std::move(parsed).value());
  }
  if (at->second == nullptr) return "";
  const auto schedule = sched::replay(*at->second, trace);
  if (!schedule.ok()) return "";
  const auto lowered = lower::lower(*schedule);
  return lowered.ok() ? ir::print(lowered->program) : "";
}

Status CustomBatches::append(const ProgramQuery& query, CustomBatch& batch) {
  const auto lacks = [](const char* what) {
    return Error{ErrorCode::kInvalidArgument, "", std::string("the program has no ") + what};
  };
  if (inputs_.features && query.summary != nullptr) {
    features_.append_row(*query.summary, batch.features);
  } else if (inputs_.features) {
    if (query.leaves == nullptr || query.trace == nullptr) return lacks("features");
    features_.append_row(summarizer_.summarize(query), batch.features);
  }
  if (inputs_.stores) {
    if (query.rows == nullptr) return lacks("rows of features");
    batch.store_counts.push_back(query.rows->rows);
    batch.stores.insert(batch.stores.end(), query.rows->values.begin(), query.rows->values.end());
  }
  if (inputs_.decisions) {
    batch.decisions.emplace_back();
    if (query.point != nullptr) {
      batch.decisions.back() = {query.point->sketch};
      batch.decisions.back().insert(batch.decisions.back().end(), query.point->decisions.begin(),
                                    query.point->decisions.end());
    }
  }
  if ((inputs_.traces || inputs_.programs) && query.trace == nullptr) return lacks("trace");
  if (inputs_.traces) batch.traces.push_back(sched::print(*query.trace));
  if (inputs_.programs) batch.programs.push_back(program_text(batch.tasks.back(), *query.trace));
  return {};
}

Result<CustomBatch> CustomBatches::make(std::span<const ProgramQuery> queries) {
  CustomBatch batch;
  batch.size = queries.size();
  batch.tasks.reserve(queries.size());
  if (inputs_.features) batch.features.reserve(queries.size() * features_.names().size());
  const StoredWorkload* workload = nullptr;
  for (const ProgramQuery& query : queries) {
    // Neighbours in a batch mostly belong to one task.
    batch.tasks.push_back(query.workload == workload ? batch.tasks.back() : task_of(*query.workload));
    workload = query.workload;
    TS_RETURN_IF_ERROR(append(query, batch));
  }
  return batch;
}

}  // namespace tensorsmith::learn
