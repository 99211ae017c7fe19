#include "record/ansor/workloads.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/input_file.h"
#include "base/json_text.h"
#include "ir/structural.h"

namespace tensorsmith::record {

namespace {

using Json = nlohmann::json;

// TenSet's file has 20 MiB.
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

// Returns the DAG operation that a stage was made from, or -1; the names of cache stages are the
// operation's name with a suffix.
int operation_of(const DagSyntax& dag, const sched::Stage& stage) {
  const std::string& name = stage.op->name;
  int best = -1;
  for (size_t o = 0; o < dag.size(); ++o) {
    const std::string& base = dag[o].name;
    if (name.compare(0, base.size(), base) != 0 || (name.size() > base.size() && name[base.size()] != '.'))
      continue;
    if (best < 0 || base.size() > dag[best].name.size()) best = o;
  }
  return best;
}

// Adds the extents that the splits of a record state. Steps do not depend on extents, so they can
// be replayed with arbitrary ones.
DagExtents extents_of_steps(const DagSyntax& dag, DagExtents known, const AnsorRecord& record) {
  DagExtents made_up(dag.size());
  for (size_t o = 0; o < dag.size(); ++o) {
    made_up[o] = dag[o].shape;
    if (!dag[o].is_placeholder) made_up[o].assign(dag[o].axes.size(), 1);
  }
  const auto workload = build_workload(dag, made_up);
  if (!workload.ok()) return known;
  sched::ScheduleBuilder builder(*workload);
  for (size_t i = 0; i < record.trace.steps.size(); ++i) {
    const auto* split = std::get_if<sched::Split>(&record.trace.steps[i]);
    const auto& stages = builder.schedule().stages;
    if (split != nullptr && record.split_extents[i] > 0 && split->stage >= 0 &&
        static_cast<size_t>(split->stage) < stages.size() && split->iterator >= 0) {
      const sched::Stage& stage = stages.begin()[split->stage];
      const int o = operation_of(dag, stage);
      const auto position = split->iterator;
      if (o >= 0 && stage.attach == sched::AttachKind::kRoot && position < std::ssize(stage.leaves)) {
        const DagOperation& op = dag[o];
        const size_t root = stage.leaves[position].place();
        // The copy behind a cache stage has only the spatial axes, and an rfactor stage has
        // different ones.
        const bool same = stage.op->spatial.size() == op.rank &&
                          (stage.op->reduce.empty() || stage.num_roots() == op.axes.size());
        if (same && root < stage.num_roots()) {
          auto& extents = known[o];
          extents.resize(op.axes.size(), 0);
          extents[root] = record.split_extents[i];
        }
      }
    }
    if (!builder.apply(record.trace.steps[i]).ok()) break;
  }
  return known;
}

// Returns the function named in the key ("conv2d_layer"), else the name of the operation with the
// most work.
std::string workload_name(const std::string& key, const ir::Workload& workload) {
  const Json json = parse_json<Json>(key);
  if (json.is_array() && !json.empty() && json[0].is_string()) {
    const auto& first = json[0].get_ref<const std::string&>();
    const bool hash = first.size() == 32 && first.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!hash) return first;
  }
  for (const auto& op : workload.operations) {
    if (op->has_reduction()) return op->name;
  }
  return workload.operations.back()->name;
}

}  // namespace

Result<std::shared_ptr<const AnsorWorkloads::Task>> AnsorWorkloads::make_task(const std::string& key,
                                                                              const Entry& entry,
                                                                              const AnsorRecord* example) {
  TS_ASSIGN_OR_RETURN(const DagSyntax dag, parse_dag_syntax(entry.text));
  DagExtents known = extents_of_key(dag, key);
  if (example != nullptr) known = extents_of_steps(dag, std::move(known), *example);
  TS_ASSIGN_OR_RETURN(const DagExtents extents, infer_extents(dag, known));
  auto task = std::make_shared<Task>();
  TS_ASSIGN_OR_RETURN(task->workload, build_workload(dag, extents));
  task->key = key;
  task->name = workload_name(key, task->workload);
  task->structural_key = ir::structural_key(task->workload);
  task->flops = entry.flops > 0 ? entry.flops : ir::flop_count(task->workload);
  task->fresh = sched::Schedule::create(task->workload);
  return std::shared_ptr<const Task>(std::move(task));
}

Result<AnsorWorkloads> AnsorWorkloads::from_json(std::string_view text) {
  const Json json = parse_json<Json>(text);
  if (!json.is_object()) return Error{ErrorCode::kCorrupt, "", "not a JSON object of workloads"};
  AnsorWorkloads out;
  for (const auto& [key, value] : json.items()) {
    auto entry = std::make_unique<Entry>();
    if (value.is_string()) {
      entry->text = value.get<std::string>();
    } else if (value.is_object() && value.contains("compute_dag") && value["compute_dag"].is_string()) {
      entry->text = value["compute_dag"].get<std::string>();
      if (value.contains("flops") && value["flops"].is_number()) entry->flops = value["flops"].get<double>();
    } else {
      return Error{ErrorCode::kCorrupt, "workload " + key, "has no \"compute_dag\""};
    }
    auto task = make_task(key, *entry, nullptr);
    if (task.ok()) {
      entry->task = std::move(*task);
    } else {
      entry->error = std::move(task).error();
      entry->error.place = "compute DAG of " + key + " at " + entry->error.place;
    }
    out.entries_.emplace(key, std::move(entry));
  }
  return out;
}

Result<AnsorWorkloads> AnsorWorkloads::load(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string text, read_input(path, kMaxFileBytes));
  auto out = from_json(text);
  if (out.ok()) return out;
  Error error = std::move(out).error();
  error.place = error.place.empty() ? path : path + ": " + error.place;
  return error;
}

std::shared_ptr<const AnsorWorkloads::Task> AnsorWorkloads::find(std::string_view key) const {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return nullptr;
  const std::scoped_lock lock(it->second->mutex);
  return it->second->task;
}

Result<AnsorWorkloads::Replayed> AnsorWorkloads::replay(const AnsorRecord& record) const {
  const auto it = entries_.find(record.workload_key);
  if (it == entries_.end())
    return Error{ErrorCode::kNotFound, "", "workload " + record.workload_key + " is not among the workloads"};
  Entry& entry = *it->second;
  std::unique_lock lock(entry.mutex);
  std::shared_ptr<const Task> task = entry.task;
  const bool confirmed = entry.confirmed;
  if (confirmed) lock.unlock();  // the entry is final
  Error error = entry.error;
  if (task) {
    auto schedule = record::replay(task->fresh, record);
    if (schedule.ok()) {
      if (lock.owns_lock()) entry.confirmed = true;
      return Replayed{std::move(task), std::move(*schedule)};
    }
    error = std::move(schedule).error();
  }
  if (confirmed || (error.code != ErrorCode::kMismatch && error.code != ErrorCode::kNotFound)) return error;
  const auto other = make_task(it->first, entry, &record);
  if (!other.ok()) return error;
  auto schedule = record::replay((*other)->fresh, record);
  if (!schedule.ok()) return error;
  entry.task = *other;
  entry.confirmed = true;
  return Replayed{*other, std::move(*schedule)};
}

}  // namespace tensorsmith::record
