#include "search/tuning_run.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "record/energy.h"
#include "sched/trace_traits.h"
#include "search/confirmation.h"

namespace tensorsmith::search {

namespace {

constexpr int kMaxLostWorkers = 8;
// Tasks below this share of the model's time get no first round.
constexpr double kWarmUpShare = 0.004;
// Factor on the estimate of the program that the estimate ranks first; hardly any program is faster
// than the product.
constexpr double kBoundOfEstimate = 0.5;
// Most proposals of a round that are other tasks' best programs.
constexpr size_t kMaxTransferred = 2;
// Forecasts for shorter times than this are not used (--until-gain).
constexpr double kLeastHorizonSeconds = 3;
// No forecast before this many full batches were measured.
constexpr int64_t kForecastBatches = 3;
constexpr size_t kReported = 4;  // programs of each task in the report
// A survey writes its records at this interval, because a transaction can take as long as one of
// its short measurements. A killed survey loses this much.
constexpr double kSurveyFlushSeconds = 1;

}  // namespace

TuningRun::TuningRun(const std::vector<TuneTask>& tasks, const target::Device& device,
                     const TuneOptions& options, const TuneServices& services)
    : tasks_(tasks),
      device_(device),
      options_(options),
      services_(services),
      settings_{device.compute_units(), options.flush_cache},
      limits_(options, services.clock, services.cancel, services.measurer),
      pace_(tasks.size(), options, limits_),
      model_(options_.strategy->uses_scores ? services.model : nullptr, services.clock, services.log),
      pool_(std::max(options.threads, 1)),
      rng_(options.seed),
      confirmed_(tasks.size()),
      rounds_(tasks.size()) {}

bool TuningRun::complete(record::Record& record) const {
  if (!options_.objective.uses_energy() || !record.result.ok()) return true;
  const auto at = energies_.find(record.key());
  if (at == energies_.end()) return false;
  record.result.joules = at->second;
  return true;
}

Status TuningRun::prepare() {
  if (options_.objective.uses_energy()) {
    TS_ASSIGN_OR_RETURN(energies_, record::energies(services_.database));
  }
  const TaskOptions task_options{*options_.strategy, options_.seed, model_.inputs(), options_.objective};
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const PreparedTask& task = task_of(i);
    if (const double left_out = task.has_design() ? task.design().sketches_left_out() : 0; left_out > 0)
      services_.log.log(LogLevel::kInfo, "task '" + task.name() + "': its design space leaves out " +
                                             std::to_string(static_cast<int64_t>(left_out)) +
                                             " unusual combinations of plans, to keep the space small");
    states_.push_back(std::make_unique<TaskState>(tasks_[i], task_options));
    doubts_.add_task(task.name(), task.least_seconds());
    TS_RETURN_IF_ERROR(services_.database.add_task({task.key(), task.text(), task.name(), task.flops()}));
    TS_RETURN_IF_ERROR(take_records(i));
  }
  if (resumed_ > 0)
    services_.log.log(LogLevel::kInfo, "continuing from " + std::to_string(resumed_) + " records");
  return {};
}

Status TuningRun::take_records(size_t task) {
  if (options_.replay) return {};
  TaskState& state = *states_[task];
  TS_ASSIGN_OR_RETURN(auto records,
                      services_.database.records_of(task_of(task).key(), device_.key(), settings_));
  for (auto& record : records) {
    if (record.code_version != record::kCodeVersion || !complete(record)) continue;
    if (!doubts_.is_believed(task, record.result)) continue;
    if (auto trace = sched::parse_trace(record.trace); trace.ok()) {
      if (!task_of(task).winograd() && sched::uses_winograd(*trace)) continue;
      // A default that failed is measured again, since without it there is no model.
      if (!record.result.ok() && state.programs().is_default(sched::hash(*trace))) continue;
      state.take_record(record, std::move(*trace));
    }
    ++resumed_;
  }
  if (state.programs().history().empty() && !state.programs().rows().empty()) state.programs().finish_round();
  return {};
}

TaskStatus TuningRun::status_of(size_t task) const {
  TaskStatus status;
  const MeasuredPrograms& programs = programs_of(task);
  status.weight = tasks_[task].weight;
  status.flops = task_of(task).flops();
  status.best_seconds = programs.judged_seconds();
  status.expected_seconds = tasks_[task].hint_seconds;
  status.bound_seconds = kBoundOfEstimate * task_of(task).untuned_estimate();
  // Rounds grow, and the gains in the history are those of rounds of the size so far.
  const double rounds = programs.history().size(), trials = pace_.trials(task);
  const double round_size = rounds > 0 && trials > 0 ? std::max(trials / rounds, 1.0) : options_.batch;
  status.round_cost = round_size * pace_.trial_cost(task);
  status.history = programs.history();
  status.group = task_of(task).kernel_class();
  status.exhausted = states_[task]->exhausted();
  return status;
}

std::vector<TaskStatus> TuningRun::statuses() const {
  std::vector<TaskStatus> all;
  for (size_t i = 0; i < states_.size(); ++i) all.push_back(status_of(i));
  return all;
}

Result<std::vector<Proposal>> TuningRun::not_in_database(size_t task, std::vector<Proposal> proposals) {
  if (options_.replay) return proposals;
  auto& state = *states_[task];
  record::Record record;  // used only to compute keys
  record.task_key = task_of(task).key();
  record.device_key = device_.key();
  record.settings = settings_;
  std::vector<Proposal> fresh;
  for (auto& proposal : proposals) {
    record.trace = sched::print(proposal.trace);
    // Another process may have measured it since this run began.
    TS_ASSIGN_OR_RETURN(auto known, services_.database.find(record.key()));
    if (known && complete(*known) && doubts_.is_believed(task, known->result) &&
        (known->result.ok() || !state.programs().is_default(proposal.hash))) {
      state.take(proposal, known->result, /*from_database=*/true);
      ++resumed_;
      continue;
    }
    fresh.push_back(std::move(proposal));
  }
  return fresh;
}

Status TuningRun::measure(size_t task, std::vector<Proposal> proposals, Counts counts) {
  auto& state = *states_[task];
  const Clock& clock = services_.clock;
  TS_ASSIGN_OR_RETURN(const auto fresh, not_in_database(task, std::move(proposals)));
  if (fresh.empty()) return {};
  std::vector<measure::MeasureRequest> candidates;
  for (const auto& proposal : fresh) candidates.push_back({proposal.trace, recorded(proposal)});
  Status stored;
  const double before = clock.monotonic_seconds(), waited = services_.measurer.waited_seconds();
  std::vector<record::Record> pending;
  std::vector<record::Profile> pending_energies;
  double flushed = before;
  const auto flush = [&] {
    if (auto status = services_.database.add(pending); !status.ok() && stored.ok()) stored = status;
    if (!pending_energies.empty() && stored.ok()) stored = services_.database.add(pending_energies);
    pending.clear();
    pending_energies.clear();
    flushed = clock.monotonic_seconds();
  };
  const auto done = [&](size_t i, const record::MeasureResult& result) {
    if (result.outcome == record::Outcome::kWorkerLost) {
      // A lost worker says nothing about the candidate, so nothing is recorded and a later run may
      // try again.
      ++lost_workers_;
      services_.log.log(LogLevel::kWarning, task_of(task).name() + ": " + result.reason);
      return !limits_.finished();
    }
    lost_workers_ = 0;
    record::Record record;
    record.task_key = task_of(task).key();
    record.device_key = device_.key();
    record.settings = settings_;
    record.trace = sched::print(fresh[i].trace);
    record.result = result;
    record.candidate = candidates[i].what;
    record.unix_ms = clock.unix_milliseconds();
    if (result.joules) pending_energies.push_back(record::energy_profile(record.key(), *result.joules));
    pending.push_back(std::move(record));
    if (!options_.survey || clock.monotonic_seconds() - flushed >= kSurveyFlushSeconds) flush();
    state.take(fresh[i], result, /*from_database=*/false);
    if (counts == Counts::kYes) {
      limits_.count_trial();
      failures_ += result.ok() ? 0 : 1;
    }
    pace_.count_trial(task);
    if (!result.ok())
      services_.log.log(LogLevel::kDebug, task_of(task).name() + ", " +
                                              std::string(to_string(fresh[i].reason)) + ": " +
                                              std::string(to_string(result.outcome)) + ": " + result.reason);
    send_progress(task);
    return !limits_.finished() && clock.monotonic_seconds() < turn_end_;
  };
  const auto measured = services_.measurer.measure(task_of(task).workload(), candidates,
                                                   programs_of(task).best_seconds(), done);
  if (!pending.empty()) flush();
  if (!measured.ok()) return named(task, measured.error());
  pace_.measured(task, clock.monotonic_seconds() - before - (services_.measurer.waited_seconds() - waited));
  TS_RETURN_IF_ERROR(stored);
  if (lost_workers_ >= kMaxLostWorkers)
    return Error{
        ErrorCode::kIo, "measuring",
        "the last " + std::to_string(lost_workers_) +
            " candidates failed because no worker process could be started; see the log for the reason"};
  return {};
}

Status TuningRun::measure_defaults() {
  // Tasks that seem to matter most come first, in case the time ends before all are measured.
  std::vector<size_t> order(tasks_.size());
  std::vector<double> seconds(tasks_.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    const double hint = tasks_[i].hint_seconds;
    seconds[i] = tasks_[i].weight * (hint > 0 ? hint : task_of(i).untuned_estimate());
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return seconds[a] > seconds[b]; });
  const std::vector<bool> worth = worth_tuning(statuses(), SchedulerOptions());
  for (size_t i : order) {
    if (limits_.finished()) break;
    if (worth[i]) TS_RETURN_IF_ERROR(measure_default(i));
  }
  return {};
}

Status TuningRun::measure_default(size_t task, Counts counts) {
  TaskState& state = *states_[task];
  MeasuredPrograms& programs = state.programs();
  if (programs.default_known()) return {};
  TS_RETURN_IF_ERROR(measure(task, {state.default_proposal()}, counts));
  if (programs.default_known() && !std::isfinite(programs.best_seconds()) &&
      (counts == Counts::kNo || !limits_.finished())) {
    auto plain = state.plain_proposal();
    if (!state.is_known(plain.hash)) TS_RETURN_IF_ERROR(measure(task, {std::move(plain)}, counts));
  }
  if (programs.default_known() && programs.history().empty()) programs.finish_round();
  return {};
}

size_t TuningRun::seeds_due(size_t task) const {
  const size_t seeds = tasks_[task].seeds.size();
  if (options_.strategy->only_seeds) return seeds;
  // Only the default was measured, or also the plain loops.
  return programs_of(task).trials() <= 2 ? std::min(seeds, options_.seeds) : 0;
}

std::vector<ProposedCandidate> TuningRun::chosen_seeds(size_t task, const ProposalRequest& request) {
  std::vector<ProposedCandidate> seeds;
  for (const auto& seed : tasks_[task].seeds)
    if (task_of(task).space().check(seed.candidate).ok()) seeds.push_back({seed.candidate, seed.reason});
  if (options_.strategy->only_seeds || seeds.size() <= options_.seeds) return seeds;
  std::vector<space::Candidate> candidates;
  for (const auto& seed : seeds) candidates.push_back(seed.candidate);
  const std::vector<float> scores = states_[task]->score(candidates, request.scoring, pool_);
  std::vector<size_t> order(seeds.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin() + 1, order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<ProposedCandidate> chosen;
  for (size_t i = 0; i < options_.seeds; ++i) chosen.push_back(std::move(seeds[order[i]]));
  return chosen;
}

std::vector<ProposedCandidate> TuningRun::transferred(size_t task, const ProposalRequest& request) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < states_.size(); ++i)
    if (i != task && task_of(i).kernel_class() == task_of(task).kernel_class() &&
        programs_of(i).best_candidate() != nullptr && task_of(i).flops() > 0 && task_of(task).flops() > 0)
      order.emplace_back(std::abs(std::log(task_of(i).flops() / task_of(task).flops())), i);
  std::sort(order.begin(), order.end());
  std::vector<ProposedCandidate> result;
  if (seeds_due(task) > 0) result = chosen_seeds(task, request);
  if (options_.strategy->only_seeds) return result;
  const size_t most = result.size() + kMaxTransferred;
  for (const auto& [distance, i] : order) {
    if (result.size() == most) break;
    auto candidate =
        task_of(task).space().rescale(task_of(i).space(), programs_of(i).best_candidate()->candidate);
    if (candidate.ok()) result.push_back({std::move(*candidate), record::Reason::kTransferred});
  }
  return result;
}

Status TuningRun::one_round(size_t task, size_t count) {
  if (!programs_of(task).default_known()) return measure_default(task);
  TS_RETURN_IF_ERROR(model_.update(states_, limits_));
  const double before = services_.clock.monotonic_seconds();
  const double until = before + pace_.proposal_seconds();
  ProposalRequest request{count, {}, {model_.ready(), {}}, pace_.score_budget(task), limits_.progress()};
  request.epsilon = options_.epsilon;
  request.scoring.out_of_time = [&] {
    return limits_.cancelled() || services_.clock.monotonic_seconds() >= until;
  };
  const auto wanted = transferred(task, request);
  request.wanted = wanted;
  auto proposals = states_[task]->propose(request, pool_);
  if (const auto& error = states_[task]->model_error()) TS_RETURN_IF_ERROR(model_.take_failure(*error));
  if (const auto& error = states_[task]->writer_error()) return *error;
  const size_t judged = states_[task]->judged();
  pace_.proposed(task, judged > 0 ? judged : request.score_budget,
                 services_.clock.monotonic_seconds() - before);
  if (!proposals.empty()) TS_RETURN_IF_ERROR(measure(task, std::move(proposals)));
  states_[task]->programs().finish_round();
  return {};
}

Status TuningRun::tuning_round(size_t task, RoundReason reason) {
  ++rounds_[task][static_cast<size_t>(reason)];
  const size_t count = pace_.batch_size(task, seeds_due(task));
  // The forecast is not used.
  if (!services_.progress && options_.until_gain == 0) return one_round(task, count);
  const SchedulerOptions scheduler;
  const double seconds = count * pace_.trial_cost(task);
  const double expected = seconds * expected_gain(statuses(), task, scheduler);
  const double before = programs_of(task).judged_seconds();
  TS_RETURN_IF_ERROR(one_round(task, count));
  forecast_.add_round(expected, tasks_[task].weight * (before - programs_of(task).judged_seconds()));
  const auto share = forecast_.share_come_true();
  if (!share || !options_.objective.is_latency()) return {};
  const double decrease = expected_decrease(statuses(), pace_.measuring_seconds_left(), scheduler);
  expected_model_seconds_ = progress_report().model_best_seconds() - *share * decrease;
  return {};
}

std::vector<size_t> TuningRun::warm_up_order() const {
  std::vector<std::pair<double, size_t>> cost;
  double total = 0;
  for (size_t i = 0; i < states_.size(); ++i) {
    double seconds = programs_of(i).best_seconds();
    if (!std::isfinite(seconds)) seconds = tasks_[i].hint_seconds;
    // No program has run, so the estimate is used and the task gets its turn.
    if (seconds <= 0) seconds = task_of(i).untuned_estimate();
    cost.emplace_back(-tasks_[i].weight * seconds, i);
    total += tasks_[i].weight * seconds;
  }
  std::sort(cost.begin(), cost.end());
  std::vector<size_t> order;
  for (const auto& [negative, task] : cost) {
    // A task that cannot gain a measurable part of the model's time waits for the scheduler.
    if (-negative < kWarmUpShare * total &&
        (programs_of(task).default_known() || tasks_[task].hint_seconds > 0))
      continue;
    order.push_back(task);
  }
  return order;
}

Status TuningRun::search() {
  for (size_t task : warm_up_order()) {
    if (limits_.finished()) return {};
    // A resumed task had its first round in an earlier run.
    if (programs_of(task).history().size() > 1 || programs_of(task).rows().size() > 1) continue;
    TS_RETURN_IF_ERROR(tuning_round(task, RoundReason::kFirst));
  }
  while (!limits_.finished()) {
    if (const auto gain = gain_of_as_long_again(); gain && *gain < options_.until_gain) {
      services_.log.log(LogLevel::kInfo, "the search ends: little further gain is expected");
      end_ = SearchEnd::kGain;
      last_gain_ = *gain;
      return {};
    }
    const ChosenTask chosen = choose_task(statuses(), SchedulerOptions(), rng_);
    if (chosen.task == tasks_.size()) {
      services_.log.log(LogLevel::kInfo, "the search ends: every candidate of every task has been measured");
      end_ = SearchEnd::kExhausted;
      return {};
    }
    TS_RETURN_IF_ERROR(tuning_round(chosen.task, chosen.reason));
  }
  return {};
}

double TuningRun::judged_model_seconds() const {
  TuneProgress progress = progress_report();
  for (size_t i = 0; i < states_.size(); ++i)
    progress.tasks[i].best_seconds = programs_of(i).judged_seconds();
  return progress.model_best_seconds();
}

std::optional<double> TuningRun::gain_of_as_long_again() const {
  if (options_.until_gain == 0) return std::nullopt;
  // The first rounds are too small for a forecast.
  if (limits_.trials() < kForecastBatches * options_.batch) return std::nullopt;
  const auto share = forecast_.share_come_true();
  const double now = judged_model_seconds();
  if (!share || !std::isfinite(now) || now <= 0) return std::nullopt;
  const double seconds = std::max(pace_.measuring_seconds(), kLeastHorizonSeconds);
  return *share * expected_decrease(statuses(), seconds, SchedulerOptions()) / now;
}

Status TuningRun::confirm() {
  if (!options_.confirm) return {};
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < states_.size(); ++i)
    if (programs_of(i).trials() > 1 && std::isfinite(programs_of(i).best_seconds()))
      order.emplace_back(-tasks_[i].weight * programs_of(i).best_seconds(), i);
  std::sort(order.begin(), order.end());
  for (const auto& [negative, task] : order) {
    if (limits_.cancelled() || limits_.out_of_time()) break;
    TS_ASSIGN_OR_RETURN(confirmed_[task], confirm_winner(*states_[task], services_.measurer));
  }
  return {};
}

TuneProgress TuningRun::progress_report() const {
  TuneProgress p;
  p.elapsed_seconds = limits_.elapsed();
  p.trials = limits_.trials();
  p.failures = failures_;
  p.resumed = resumed_;
  for (size_t i = 0; i < states_.size(); ++i) {
    const MeasuredPrograms& programs = programs_of(i);
    p.tasks.push_back({task_of(i).name(), tasks_[i].weight, programs.trials(), programs.failures(),
                       programs.default_seconds(), programs.best_seconds(), tasks_[i].hint_seconds,
                       task_of(i).key(), programs.default_cost(), programs.best_cost()});
  }
  const double expected = std::min(expected_model_seconds_, p.model_best_seconds());
  if (std::isfinite(expected)) p.expected_model_seconds = std::max(expected, 0.0);
  return p;
}

std::vector<TaskAllocation> TuningRun::allocation() const {
  const SchedulerOptions scheduler;
  const std::vector<TaskStatus> all = statuses();
  const std::vector<bool> worth = worth_tuning(all, scheduler);
  std::vector<TaskAllocation> out;
  for (size_t i = 0; i < all.size(); ++i) {
    const TaskEnd end = all[i].exhausted ? TaskEnd::kExhausted : worth[i] ? TaskEnd::kOpen : TaskEnd::kSmall;
    out.push_back({pace_.trials(i), pace_.seconds(i), rounds_[i],
                   end == TaskEnd::kExhausted ? 0 : expected_gain(all, i, scheduler), end});
  }
  return out;
}

void TuningRun::send_progress(size_t task) {
  if (!services_.progress) return;
  TuneProgress progress = progress_report();
  progress.current_task = task;
  services_.progress(progress);
}

Result<TuneReport> TuningRun::run() {
  TS_RETURN_IF_ERROR(prepare());
  if (options_.survey) {
    doubts_.warn(services_.log);
    TS_RETURN_IF_ERROR(survey());
  } else {
    TS_RETURN_IF_ERROR(verify_all_records());
    TS_RETURN_IF_ERROR(measure_defaults());
    TS_RETURN_IF_ERROR(check_untuned());
    TS_RETURN_IF_ERROR(search());
    expected_model_seconds_ = 0;
    TS_RETURN_IF_ERROR(verify_all_records());  // records that other processes have added meanwhile
    TS_RETURN_IF_ERROR(check_all_have_programs());
    TS_RETURN_IF_ERROR(confirm());
  }
  TuneReport result;
  result.final = progress_report();
  result.end = end_;
  result.objective = options_.objective.text();
  result.expected_gain = last_gain_;
  result.allocation = allocation();
  for (size_t i = 0; i < states_.size(); ++i) {
    const auto& untuned = programs_of(i).default_result();
    result.untuned_works.push_back(!untuned || untuned->ok());
    const auto top = programs_of(i).best(kReported);
    auto& ranked = result.fastest.emplace_back();
    for (const auto& r : top) ranked.push_back({r.trace, r.seconds});
    if (confirmed_[i]) {
      result.best_traces.push_back(*confirmed_[i]);
    } else if (!top.empty()) {
      result.best_traces.push_back(top.front().trace);
    } else {
      result.best_traces.push_back(task_of(i).untuned_trace());
    }
  }
  return result;
}

}  // namespace tensorsmith::search
