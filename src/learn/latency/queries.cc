#include "learn/latency/queries.h"

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "ir/text.h"

namespace tensorsmith::learn {

namespace {
constexpr size_t kQueriesAtOnce = 1024;
}

Result<std::vector<target::Device>> devices_of(const Store& store) {
  std::vector<target::Device> out;
  for (size_t d = 0; d < store.devices().size(); ++d) {
    if (const auto& attributes = store.device_attributes()[d]) {
      out.push_back(*attributes);
      continue;
    }
    TS_ASSIGN_OR_RETURN(target::Device device, target::find_device(store.devices()[d]));
    out.push_back(std::move(device));
  }
  return out;
}

std::vector<const target::Device*> pointers_to(const std::vector<target::Device>& devices) {
  std::vector<const target::Device*> out;
  for (const target::Device& device : devices) out.push_back(&device);
  return out;
}

Result<std::optional<space::EstimateParts>> RecordedEstimates::of(int64_t record) {
  const auto point = store_.point(record);
  if (!point) return std::optional<space::EstimateParts>();
  const Store::Entry entry = store_.entry(record);
  const auto [known, added] = spaces_.try_emplace({entry.workload, entry.device});
  std::optional<space::DesignSpace>& space = known->second;
  if (added) {
    const auto workload = ir::parse_workload(store_.workloads()[entry.workload].text);
    if (workload.ok()) {
      auto built = space::DesignSpace::build(*workload, *devices_[entry.device], {});
      if (built.ok()) space = std::move(*built);
    }
  }
  if (!space) return std::optional<space::EstimateParts>();
  const space::Candidate candidate{point->sketch, point->decisions};
  const auto trace = space->to_trace(candidate);
  if (!trace.ok()) return std::optional<space::EstimateParts>();
  TS_ASSIGN_OR_RETURN(const sched::Trace recorded, store_.trace(record));
  if (sched::print(*trace) != sched::print(recorded)) return std::optional<space::EstimateParts>();
  std::optional<space::EstimateParts> out(std::in_place);
  space->estimate_parts(candidate, *out);
  return out;
}

Result<std::span<const ProgramQuery>> QueryBatch::make(std::span<const int64_t> records) {
  if (leaves_.size() < records.size()) leaves_.resize(records.size());
  if (inputs_.rows && rows_.size() < records.size()) rows_.resize(records.size());
  if (inputs_.trace && steps_.size() < records.size()) steps_.resize(records.size());
  if (inputs_.parts && parts_.size() < records.size()) parts_.resize(records.size());
  queries_.clear();
  for (size_t i = 0; i < records.size(); ++i) {
    const Store::Entry entry = store_.entry(records[i]);
    if (entry.leaves == 0)
      return Error{ErrorCode::kInvalidArgument, "record " + std::to_string(records[i]),
                   "has no features, because the program could not be built"};
    store_.leaves(records[i], leaves_[i]);
    ProgramQuery query;
    query.workload = &store_.workloads()[entry.workload];
    query.leaves = &leaves_[i];
    query.device = devices_[entry.device];
    if (inputs_.rows) {
      rows_[i] = leaves_[i].per_store();
      query.rows = &rows_[i];
    }
    if (inputs_.trace) {
      TS_ASSIGN_OR_RETURN(steps_[i], store_.trace(records[i]));
      query.trace = &steps_[i];
    }
    if (inputs_.parts) {
      TS_ASSIGN_OR_RETURN(parts_[i], estimates_.of(records[i]));
      query.parts = parts_[i] ? &*parts_[i] : nullptr;
    }
    queries_.push_back(query);
  }
  return std::span<const ProgramQuery>(queries_);
}

feature::ProgramSummary QuerySummarizer::summarize(const ProgramQuery& query) {
  const StoredWorkload& workload = *query.workload;
  const auto [known, added] = known_.try_emplace(&workload);
  feature::WorkloadAccess& access = known->second;
  if (added) {
    access.flops = workload.flops;
    if (auto parsed = ir::parse_workload(workload.text); parsed.ok()) {
      access = feature::analyze_accesses(*parsed, workload.flops);
      if (workload.foreign_keys.empty())
        access.workload = std::make_shared<const ir::Workload>(std::move(parsed).value());
    }
  }
  return feature::summarize_program(access, *query.leaves, *query.trace, *query.device);
}

Result<std::vector<Prediction>> predict_records(const CostModel& model, const Store& store,
                                                std::span<const target::Device* const> devices,
                                                std::span<const int64_t> records) {
  QueryBatch batch(store, devices, model.inputs());
  std::vector<Prediction> out;
  out.reserve(records.size());
  for (size_t begin = 0; begin < records.size(); begin += kQueriesAtOnce) {
    TS_ASSIGN_OR_RETURN(const auto queries,
                        batch.make(records.subspan(begin, std::min(kQueriesAtOnce, records.size() - begin))));
    TS_ASSIGN_OR_RETURN(const auto predicted, model.predict(queries));
    out.insert(out.end(), predicted.begin(), predicted.end());
  }
  return out;
}

std::vector<int64_t> records_of_devices(const Store& store, std::span<const int64_t> records,
                                        const std::vector<std::string>& names) {
  std::vector<char> wanted;
  for (const std::string& device : store.devices())
    wanted.push_back(std::find(names.begin(), names.end(), device) != names.end() ? 1 : 0);
  std::vector<int64_t> out;
  for (const int64_t i : records) {
    if (wanted[store.entry(i).device] != 0) out.push_back(i);
  }
  return out;
}

std::vector<int64_t> some_records(const Store& store, std::span<const int64_t> records, int max_workloads,
                                  int max_programs, uint64_t seed) {
  const auto place = [&](uint64_t key) { return Hasher().add(seed).add(key).digest64(); };
  std::map<uint64_t, uint32_t> workloads;  // ordered by the draw
  for (const int64_t i : records) {
    const uint32_t w = store.entry(i).workload;
    workloads.emplace(place(Hasher().add(store.workloads()[w].key).digest64()), w);
  }
  std::vector<char> kept(store.workloads().size(), 0);
  int count = 0;
  for (const auto& [draw, w] : workloads) {
    if (max_workloads == 0 || count++ < max_workloads) kept[w] = 1;
  }
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::pair<uint64_t, int64_t>>> tasks;
  for (const int64_t i : records) {
    const Store::Entry entry = store.entry(i);
    if (kept[entry.workload] != 0)
      tasks[{entry.workload, entry.device}].emplace_back(place(entry.program), i);
  }
  std::vector<int64_t> out;
  for (auto& [task, programs] : tasks) {
    std::sort(programs.begin(), programs.end());
    if (max_programs > 0 && std::ssize(programs) > max_programs) programs.resize(max_programs);
    for (const auto& [draw, i] : programs) out.push_back(i);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace tensorsmith::learn
