#include "lab/next_tasks.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/rng.h"
#include "engine/tune/prepare_tasks.h"
#include "ir/text.h"
#include "learn/dataset/choose_tasks.h"
#include "learn/dataset/import.h"
#include "learn/latency/queries.h"
#include "search/pipeline.h"
#include "space/design_space.h"

namespace tensorsmith::lab {

namespace {

constexpr size_t kPrograms = learn::kMedoidProgramsPerTask;
// Draws per requested program of a design space; some cannot be built, and some are equal.
constexpr int kChoiceDraws = 3;

// Mean uncertainty of the predictions. For a kind of program that the model has not seen, the
// members' disagreement means nothing, so log_sigma counts, too.
double uncertainty_of(std::span<const learn::Prediction> predictions) {
  double sum = 0, sigma = 0;
  for (const learn::Prediction& p : predictions) {
    sum += std::max(p.disagreement, p.unseen.kind ? p.log_sigma : 0);
    sigma += p.log_sigma;
  }
  const double n = std::max<size_t>(predictions.size(), 1);
  return (sum > 0 ? sum : sigma) / n;
}

// Collects tasks and chooses among them.
class Pool {
 public:
  explicit Pool(const learn::CostModel& model) : model_(model) {}

  // Adds a task with its programs, whose leaf features are kept. A measured task is not predicted.
  // calls > 0: the task is of a network, and its first program is the untuned one; its weight is
  // the predicted time of its calls (the number of calls if the model only ranks). calls = 0: the
  // task is of a store; its weight is its number of programs.
  Status add(NextTask task, bool measured, std::span<const learn::ProgramQuery> queries, double calls = 0) {
    learn::CandidateTask& candidate = candidates_.emplace_back();
    for (const auto& query : queries) candidate.programs.push_back(*query.leaves);
    candidate.measured = measured;
    candidate.weight = calls > 0 ? calls : std::min<int64_t>(task.programs, learn::kMostTaskWeight);
    if (!measured && !queries.empty() && !model_.ranks_only()) {
      TS_ASSIGN_OR_RETURN(const auto predictions, model_.predict(queries));
      task.uncertainty = uncertainty_of(predictions);
      const double seconds = predictions.front().seconds;
      if (calls > 0) candidate.weight *= std::isfinite(seconds) ? seconds : 0;  // infinite: it cannot run
    }
    tasks_.push_back(std::move(task));
    return {};
  }

  NextTasks choose(size_t count) {
    NextTasks out;
    // If the model reports no uncertainty for any task, all tasks count alike.
    const bool tells =
        std::any_of(tasks_.begin(), tasks_.end(), [](const auto& t) { return t.uncertainty > 0; });
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (candidates_[i].measured) {
        ++out.measured;
        candidates_[i].weight = 0;
      } else {
        ++out.candidates;
        if (tells) candidates_[i].weight *= tasks_[i].uncertainty;
      }
    }
    for (const size_t place : learn::next_tasks(candidates_, count)) out.chosen.push_back(tasks_[place]);
    return out;
  }

 private:
  const learn::CostModel& model_;
  std::vector<NextTask> tasks_;
  std::vector<learn::CandidateTask> candidates_;
};

// Records of a workload in a store.
struct StoredTask {
  std::vector<int64_t> own, others;  // records on the device, and on others of its kind
  bool measured = false;
};

Error nothing(const std::string& where) {
  return {ErrorCode::kNotFound, where, "has no unmeasured task to choose"};
}

}  // namespace

Result<NextTasks> next_tasks(const engine::ModelData& data, const learn::Split* split,
                             const learn::CostModel& model, const target::Device& device, uint64_t seed,
                             size_t count) {
  const learn::Store& store = data.store();
  target::Device asked = device;
  asked.name = learn::stored_device_name(device);
  std::map<uint32_t, StoredTask> tasks;
  for (int64_t i = 0; i < store.size(); ++i) {
    const learn::Store::Entry entry = store.entry(i);
    const target::Device& on = *data.devices()[entry.device];
    if (entry.leaves == 0 || on.kind() != device.kind()) continue;
    StoredTask& task = tasks[entry.workload];
    const bool own = on.key() == device.key() || on.name == asked.name;
    (own ? task.own : task.others).push_back(i);
    if (!own || entry.failed()) continue;
    const learn::Part part = split == nullptr ? learn::Part::kTrain : split->parts[i];
    task.measured = task.measured || part == learn::Part::kTrain || part == learn::Part::kValidation;
  }
  Pool pool(model);
  learn::QueryBatch batch(store, data.devices(), model.inputs());
  for (const auto& [workload, task] : tasks) {
    const std::vector<int64_t>& known = task.own.empty() ? task.others : task.own;
    Rng rng(Hasher().add(seed).add(store.workloads()[workload].key).digest64());
    std::vector<int64_t> records = known;
    for (size_t i = 0; i < std::min(records.size(), kPrograms); ++i)
      std::swap(records[i], records[i + rng.below(records.size() - i)]);
    records.resize(std::min(records.size(), kPrograms));
    TS_ASSIGN_OR_RETURN(const auto made, batch.make(records));
    std::vector<learn::ProgramQuery> queries(made.begin(), made.end());
    for (auto& query : queries) query.device = &asked;
    const auto& stored = store.workloads()[workload];
    TS_RETURN_IF_ERROR(
        pool.add({stored.key, stored.name, static_cast<int64_t>(known.size()), 0}, task.measured, queries));
  }
  NextTasks out = pool.choose(count);
  if (out.candidates == 0) return nothing("the store");
  return out;
}

Result<NextTasks> next_tasks(const std::vector<engine::ModelSource>& networks,
                             const std::set<std::string>& measured, const learn::CostModel& model,
                             const target::Device& device, uint64_t seed, size_t count) {
  TS_ASSIGN_OR_RETURN(const auto shared, engine::load_tasks(networks));
  learn::ModelInputs wanted = model.inputs();
  wanted.leaves = true;
  wanted.summary = false;  // which would replace the leaves
  Pool pool(model);
  for (const auto& [task, calls, shapes] : shared) {
    TS_ASSIGN_OR_RETURN(const auto prepared, engine::prepare_task(task, device));
    const search::SearchSpace& space = prepared->space();
    const auto features = prepared->make_extractor(wanted);
    Rng rng(Hasher().add(seed).add(task.key).digest64());
    std::set<uint64_t> seen;
    std::vector<std::shared_ptr<const search::ProgramInputs>> inputs;
    for (size_t drawn = 0; drawn < kChoiceDraws * kPrograms && inputs.size() < kPrograms; ++drawn) {
      const space::Candidate candidate = drawn == 0 ? prepared->untuned() : space.sample(rng);
      if (!seen.insert(candidate.hash()).second) continue;
      if (auto made = features->of(candidate); made.ok()) inputs.push_back(std::move(*made));
    }
    double runs = 0;
    for (const auto& [network, count_of_calls] : calls) runs += count_of_calls;
    std::vector<learn::ProgramQuery> queries;
    for (const auto& one : inputs) queries.push_back(one->query(prepared->queried()));
    TS_RETURN_IF_ERROR(pool.add({task.key, task.name, static_cast<int64_t>(inputs.size()), 0},
                                measured.count(task.key) > 0, queries, runs));
  }
  NextTasks out = pool.choose(count);
  if (out.candidates == 0) return nothing("these networks");
  return out;
}

}  // namespace tensorsmith::lab
