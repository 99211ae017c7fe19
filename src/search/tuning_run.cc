#include "search/tuning_run.h"

#include <algorithm>
#include <cmath>

#include "ir/text.h"
#include "sched/trace_traits.h"
#include "search/plausible.h"

namespace tensorsmith::search {

namespace {

// Without this many measured programs over all tasks a model knows less than the draft.
constexpr size_t kMinTrainingRows = 24;
// Retraining waits until the data grew by this share, or while it takes more than its share of the time.
constexpr double kRetrainGrowth = 0.12;
constexpr double kTrainingTimeShare = 0.12;
// Of the measuring time, what proposals may take.
constexpr double kProposalTimeShare = 0.25;
// In a limited time, the end that is kept for confirming winners.
constexpr double kConfirmTimeShare = 0.06;
constexpr int kMaxLostWorkers = 8;
// Tasks with less of the model's time than this get no first round.
constexpr double kWarmUpShare = 0.004;
// Of the estimate of the program that the estimate thinks the fastest, what hardly any program beats.
constexpr double kBoundOfEstimate = 0.5;
// Proposals of a round that are other tasks' best programs.
constexpr size_t kMaxTransferred = 2;
// Winners whose measured gain over the default is below this are compared with it again.
constexpr double kDoubtfulGain = 1.10;
constexpr double kDoubtfulTie = 1.03;
constexpr int kConfirmRounds = 3;
constexpr size_t kReported = 4;  // of each task, in the report
// A transaction for each of a survey's short measurements can take as long as these. A killed survey loses
// this much.
constexpr double kSurveyFlushSeconds = 1;

}  // namespace

TuningRun::TuningRun(const std::vector<TuneTask>& tasks, const target::Device& device,
                     const TuneOptions& options, record::Database& database, measure::Measurer& measurer,
                     learn::Trainer& trainer, const Clock& clock, LogSink& log, const ProgressFn& progress,
                     const std::atomic<bool>& cancel)
    : tasks_(tasks),
      device_(device),
      options_(options),
      database_(database),
      measurer_(measurer),
      trainer_(trainer),
      clock_(clock),
      log_(log),
      progress_(progress),
      cancel_(cancel),
      pool_(std::max(options.threads, 1)),
      rng_(options.seed),
      start_(clock.monotonic_seconds()),
      task_seconds_(tasks.size(), 0),
      task_trials_(tasks.size(), 0),
      confirmed_(tasks.size()),
      is_confirmed_(tasks.size(), 0) {}

bool TuningRun::finished() const {
  if (cancel_.load()) return true;
  if (options_.trials > 0 && trials_ >= options_.trials) return true;
  return options_.seconds > 0 && elapsed() >= options_.seconds * (1 - kConfirmTimeShare);
}

double TuningRun::progress() const {
  double share = 0;
  if (options_.trials > 0) share = static_cast<double>(trials_) / static_cast<double>(options_.trials);
  if (options_.seconds > 0) share = std::max(share, elapsed() / (options_.seconds * (1 - kConfirmTimeShare)));
  return std::min(share, 1.0);
}

Status TuningRun::prepare() {
  TS_ASSIGN_OR_RETURN(strategy_, find_strategy(options_.strategy));
  std::vector<std::optional<space::DesignSpace>> spaces(tasks_.size());
  std::vector<std::optional<Error>> errors(tasks_.size());
  pool_.parallel_for(static_cast<int64_t>(tasks_.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto k = static_cast<size_t>(i);
      auto built = space::DesignSpace::build(
          tasks_[k].workload, device_, {.threads = options_.settings.threads, .winograd = options_.winograd});
      if (built.ok()) {
        spaces[k] = std::move(*built);
      } else {
        errors[k] = built.error();
      }
    }
  });
  const auto features = feature_options(device_);
  const std::string device_key = device_.key();
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (errors[i]) return Error{errors[i]->code, "task '" + tasks_[i].name + "'", errors[i]->message()};
    if (const double left_out = spaces[i]->sketches_left_out(); left_out > 0)
      log_.log(LogLevel::kInfo, "task '" + tasks_[i].name + "': its design space leaves out " +
                                    std::to_string(static_cast<int64_t>(left_out)) +
                                    " combinations of plans for its parts");
    states_.push_back(
        std::make_unique<TaskState>(tasks_[i], std::move(*spaces[i]), *strategy_, options_.seed, features));
    flops_.push_back(ir::flop_count(tasks_[i].workload));
    least_seconds_.push_back(least_seconds(tasks_[i].workload, device_));
    groups_.push_back(similarity_group(tasks_[i].workload));
    const auto& space = states_.back()->space();
    bounds_.push_back(kBoundOfEstimate * space.estimate(space.default_candidate()));
    TS_RETURN_IF_ERROR(
        database_.add_task({tasks_[i].key, ir::print(tasks_[i].workload), tasks_[i].name, flops_.back()}));
    TS_ASSIGN_OR_RETURN(const auto records,
                        database_.records_of(tasks_[i].key, device_key, options_.settings));
    for (const auto& record : records) {
      if (record.code_version != record::kCodeVersion) continue;
      if (!options_.winograd && sched::uses_winograd(record.trace)) continue;
      if (!is_believed(i, record.result)) continue;
      // A default that failed gets another chance, since without it there is no model.
      if (!record.result.ok() && states_[i]->is_default(record.trace)) continue;
      states_[i]->take_record(record);
      ++resumed_;
    }
    if (!states_[i]->history().empty() || states_[i]->rows().empty()) continue;
    states_[i]->finish_round();
  }
  if (resumed_ > 0) log_.log(LogLevel::kInfo, "continuing from " + std::to_string(resumed_) + " records");
  return {};
}

TaskStatus TuningRun::status_of(size_t task) const {
  TaskStatus status;
  const auto& state = *states_[task];
  status.weight = tasks_[task].weight;
  status.flops = flops_[task];
  status.best_seconds = state.best_seconds();
  status.expected_seconds = tasks_[task].hint_seconds;
  status.bound_seconds = bounds_[task];
  status.round_cost = options_.batch * trial_cost(task);
  status.history = state.history();
  status.group = groups_[task];
  status.exhausted = state.exhausted();
  return status;
}

Status TuningRun::measure(size_t task, std::vector<Proposal> proposals, Counts counts) {
  auto& state = *states_[task];
  record::Record record;  // for its key
  record.task_key = tasks_[task].key;
  record.device_key = device_.key();
  record.settings = options_.settings;
  std::vector<Proposal> fresh;
  for (auto& proposal : proposals) {
    record.trace = proposal.text;
    // Another process may have measured it since this run began.
    TS_ASSIGN_OR_RETURN(auto known, database_.find(record.key()));
    if (known && is_believed(task, known->result) &&
        (known->result.ok() || !state.is_default(proposal.text))) {
      state.take(proposal, known->result, /*from_database=*/true);
      ++resumed_;
      continue;
    }
    fresh.push_back(std::move(proposal));
  }
  if (fresh.empty()) return {};
  std::vector<measure::Candidate> candidates;
  for (const auto& proposal : fresh) candidates.push_back({proposal.trace, recorded(proposal)});
  Status stored;
  const double before = clock_.monotonic_seconds();
  std::vector<record::Record> pending;
  double flushed = before;
  const auto flush = [&] {
    if (auto status = database_.add(pending); !status.ok() && stored.ok()) stored = status;
    pending.clear();
    flushed = clock_.monotonic_seconds();
  };
  const auto done = [&](size_t i, const record::MeasureResult& result) {
    if (result.outcome == record::Outcome::kWorkerLost) {
      // Says nothing about the candidate, so nothing is kept and a later run may try again.
      ++lost_workers_;
      log_.log(LogLevel::kWarning, tasks_[task].name + ": " + result.reason);
      return !finished();
    }
    lost_workers_ = 0;
    record.trace = fresh[i].text;
    record.result = result;
    record.candidate = candidates[i].what;
    record.unix_ms = clock_.unix_milliseconds();
    pending.push_back(record);
    if (!options_.survey || clock_.monotonic_seconds() - flushed >= kSurveyFlushSeconds) flush();
    state.take(fresh[i], result, /*from_database=*/false);
    if (counts == Counts::kYes) ++trials_;
    ++task_trials_[task];
    if (!result.ok())
      log_.log(LogLevel::kDebug, tasks_[task].name + ", " + std::string(to_string(fresh[i].reason)) + ": " +
                                     std::string(to_string(result.outcome)) + ": " + result.reason);
    send_progress(task);
    return !finished() && clock_.monotonic_seconds() < turn_end_;
  };
  const auto measured = measurer_.measure(tasks_[task].workload, candidates, state.best_seconds(), done);
  if (!pending.empty()) flush();
  if (!measured.ok()) return named(task, measured.error());
  const double spent = clock_.monotonic_seconds() - before;
  measuring_seconds_ += spent;
  task_seconds_[task] += spent;
  TS_RETURN_IF_ERROR(stored);
  if (lost_workers_ >= kMaxLostWorkers)
    return Error{ErrorCode::kIo, "measuring",
                 "the last " + std::to_string(lost_workers_) +
                     " candidates got no worker process; see the log for the reason"};
  return {};
}

Status TuningRun::measure_defaults() {
  // Tasks that seem to matter most come first, in case the time ends before all are measured.
  std::vector<size_t> order(tasks_.size());
  std::vector<double> seconds(tasks_.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    const auto& space = states_[i]->space();
    seconds[i] = tasks_[i].weight * (tasks_[i].hint_seconds > 0 ? tasks_[i].hint_seconds
                                                                : space.estimate(space.default_candidate()));
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return seconds[a] > seconds[b]; });
  std::vector<TaskStatus> statuses;
  for (size_t i = 0; i < states_.size(); ++i) statuses.push_back(status_of(i));
  const std::vector<bool> worth = worth_tuning(statuses, SchedulerOptions());
  for (size_t i : order) {
    if (finished()) break;
    if (worth[i]) TS_RETURN_IF_ERROR(measure_default(i));
  }
  return {};
}

Status TuningRun::measure_default(size_t task, Counts counts) {
  auto& state = *states_[task];
  if (state.default_known()) return {};
  TS_RETURN_IF_ERROR(measure(task, {state.default_proposal()}, counts));
  if (state.default_known() && !std::isfinite(state.best_seconds()) &&
      (counts == Counts::kNo || !finished())) {
    auto plain = state.plain_proposal();
    if (!state.known_trace(plain.text)) TS_RETURN_IF_ERROR(measure(task, {std::move(plain)}, counts));
  }
  if (state.default_known() && state.history().empty()) state.finish_round();
  return {};
}

// Tasks differ in what a trial costs: big kernels are slow to build and to run.
double TuningRun::trial_cost(size_t task) const {
  constexpr double kLeast = 1e-4;
  if (task_trials_[task] > 1)
    return std::max(task_seconds_[task] / static_cast<double>(task_trials_[task]), kLeast);
  return trials_ > 0 ? std::max(measuring_seconds_ / static_cast<double>(trials_), kLeast) : 1;
}

size_t TuningRun::batch_size(size_t task) const {
  auto batch = static_cast<size_t>(std::max(options_.batch, 1));
  if (options_.trials > 0) {
    const auto left = static_cast<size_t>(std::max<int64_t>(options_.trials - trials_, 0));
    // Every task that matters should get a few rounds.
    if (left / batch < 3 * tasks_.size()) batch = std::min(batch, std::max<size_t>(4, batch / 2));
    batch = std::min(batch, left);
  }
  if (options_.seconds > 0 && trials_ > 0 && measuring_seconds_ > 0) {
    const double left = options_.seconds * (1 - kConfirmTimeShare) - elapsed();
    const double per_trial = measuring_seconds_ / static_cast<double>(trials_);
    const double affordable = left / per_trial;
    if (affordable < static_cast<double>(batch * 3 * tasks_.size()))
      batch = std::min(batch, std::max<size_t>(4, batch / 2));
    batch = std::min(batch, static_cast<size_t>(std::max(left / std::max(trial_cost(task), per_trial), 1.0)));
  }
  return std::max<size_t>(batch, 1);
}

size_t TuningRun::score_budget() const {
  // So that proposing keeps to its share of the time: from the rates seen so far.
  if (proposals_ == 0 || proposing_seconds_ <= 0 || measuring_seconds_ <= 0) return 256;
  const double share = proposing_seconds_ / (kProposalTimeShare * measuring_seconds_);
  const double budget = 512 / std::max(share, 0.25);
  return static_cast<size_t>(std::clamp(budget, 96.0, 2048.0));
}

void TuningRun::retrain() {
  size_t rows = 0;
  for (const auto& state : states_) rows += state->rows().size();
  if (!strategy_->uses_scores || rows < kMinTrainingRows) return;
  if (model_ && static_cast<double>(rows) < static_cast<double>(rows_at_training_) * (1 + kRetrainGrowth))
    return;
  if (model_ && training_seconds_ > kTrainingTimeShare * elapsed()) return;
  std::vector<learn::TrainingProgram> programs;
  for (size_t i = 0; i < states_.size(); ++i)
    for (const auto& row : states_[i]->rows())
      if (row.features->rows > 0) programs.push_back({row.features.get(), static_cast<int>(i), row.seconds});
  if (programs.empty()) return;
  const double before = clock_.monotonic_seconds();
  auto trained = trainer_.train(programs);
  training_seconds_ += clock_.monotonic_seconds() - before;
  rows_at_training_ = rows;
  if (trained.ok()) {
    model_ = std::move(*trained);
  } else {
    log_.log(LogLevel::kWarning, "cost model: " + trained.error().message());
  }
}

std::vector<ProposedCandidate> TuningRun::transferred(size_t task) const {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < states_.size(); ++i)
    if (i != task && groups_[i] == groups_[task] && states_[i]->best_candidate() != nullptr &&
        flops_[i] > 0 && flops_[task] > 0)
      order.emplace_back(std::abs(std::log(flops_[i] / flops_[task])), i);
  std::sort(order.begin(), order.end());
  std::vector<ProposedCandidate> result;
  if (states_[task]->trials() <= 2) {  // the default, or that and plain loops
    for (const auto& starter : tasks_[task].starters) {
      if (result.size() == options_.starters) break;
      if (states_[task]->space().check(starter).ok()) result.push_back({starter, record::Reason::kSeeded});
    }
  }
  const size_t most = result.size() + kMaxTransferred;
  for (const auto& [distance, i] : order) {
    if (result.size() == most) break;
    auto candidate =
        states_[task]->space().rescale(states_[i]->space(), states_[i]->best_candidate()->candidate);
    if (candidate.ok()) result.push_back({std::move(*candidate), record::Reason::kTransferred});
  }
  return result;
}

Status TuningRun::one_round(size_t task, size_t count) {
  if (!states_[task]->default_known()) return measure_default(task);
  retrain();
  const double before = clock_.monotonic_seconds();
  auto proposals =
      states_[task]->propose(count, transferred(task), model_.get(), score_budget(), progress(), pool_);
  proposing_seconds_ += clock_.monotonic_seconds() - before;
  ++proposals_;
  if (!proposals.empty()) TS_RETURN_IF_ERROR(measure(task, std::move(proposals)));
  states_[task]->finish_round();
  return {};
}

std::vector<size_t> TuningRun::warm_up_order() const {
  std::vector<std::pair<double, size_t>> cost;
  double total = 0;
  for (size_t i = 0; i < states_.size(); ++i) {
    double seconds = states_[i]->best_seconds();
    if (!std::isfinite(seconds)) seconds = tasks_[i].hint_seconds;
    // Never ran: its share is unknown, so it gets its turn.
    if (seconds <= 0) seconds = states_[i]->space().estimate(states_[i]->space().default_candidate());
    cost.emplace_back(-tasks_[i].weight * seconds, i);
    total += tasks_[i].weight * seconds;
  }
  std::sort(cost.begin(), cost.end());
  std::vector<size_t> order;
  for (const auto& [negative, task] : cost) {
    // What cannot gain a measurable part of the model's time waits for the scheduler.
    if (-negative < kWarmUpShare * total && (states_[task]->default_known() || tasks_[task].hint_seconds > 0))
      continue;
    order.push_back(task);
  }
  return order;
}

Status TuningRun::search() {
  for (size_t task : warm_up_order()) {
    if (finished()) return {};
    // A resumed task had its warm-up in the earlier run.
    if (states_[task]->history().size() > 1 || states_[task]->rows().size() > 1) continue;
    TS_RETURN_IF_ERROR(one_round(task, batch_size(task)));
  }
  const SchedulerOptions scheduler;
  while (!finished()) {
    std::vector<TaskStatus> statuses;
    for (size_t i = 0; i < states_.size(); ++i) statuses.push_back(status_of(i));
    const size_t task = choose_task(statuses, scheduler, rng_);
    if (task == statuses.size()) {
      log_.log(LogLevel::kInfo, "every candidate of every task is measured");
      return {};
    }
    TS_RETURN_IF_ERROR(one_round(task, batch_size(task)));
  }
  return {};
}

// Noise can make a program look best. Where the winner is close to the default or to its followers, these are
// measured again, interleaved, and the sums decide. Results of this are no records: the candidates have
// theirs.
Status TuningRun::confirm() {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < states_.size(); ++i)
    if (states_[i]->trials() > 1 && std::isfinite(states_[i]->best_seconds()))
      order.emplace_back(-tasks_[i].weight * states_[i]->best_seconds(), i);
  std::sort(order.begin(), order.end());
  for (const auto& [negative, task] : order) {
    if (cancel_.load() || !options_.confirm) break;
    if (options_.seconds > 0 && elapsed() >= options_.seconds) break;
    const auto& state = *states_[task];
    auto top = state.fastest(3);
    while (top.size() > 1 && top.back().seconds > kDoubtfulTie * top.front().seconds) top.pop_back();
    const bool has_default = std::any_of(top.begin(), top.end(), [](const auto& r) { return r.is_default; });
    if (!has_default && std::isfinite(state.default_seconds()) &&
        state.default_seconds() < kDoubtfulGain * top.front().seconds) {
      const auto fallback = state.default_proposal();
      top.push_back({fallback.text, fallback.trace, state.default_seconds(), true});
    }
    if (top.size() < 2) continue;
    std::vector<measure::Candidate> candidates;
    for (int round = 0; round < kConfirmRounds; ++round)
      for (const auto& r : top) candidates.push_back({r.trace, {}});
    TS_ASSIGN_OR_RETURN(const auto results,
                        measurer_.measure(tasks_[task].workload, candidates, state.best_seconds(),
                                          [](size_t, const record::MeasureResult&) { return true; }));
    size_t best = top.size();
    double best_seconds = std::numeric_limits<double>::infinity();
    for (size_t k = 0; k < top.size(); ++k) {
      // The median of all rounds and the first measurement.
      std::vector<double> times{top[k].seconds};
      for (int round = 0; round < kConfirmRounds; ++round)
        times.push_back(results[static_cast<size_t>(round) * top.size() + k].best_estimate());
      std::sort(times.begin(), times.end());
      double seconds = 0.5 * (times[(times.size() - 1) / 2] + times[times.size() / 2]);
      // In doubt for the default.
      if (top[k].is_default) seconds *= 0.995;
      if (seconds < best_seconds) {
        best_seconds = seconds;
        best = k;
      }
    }
    if (best == top.size()) continue;
    confirmed_[task] = top[best].trace;
    is_confirmed_[task] = 1;
  }
  return {};
}

void TuningRun::send_progress(size_t task) {
  if (!progress_) return;
  TuneProgress progress = report().final;
  progress.current_task = task;
  progress_(progress);
}

TuneReport TuningRun::report() {
  TuneReport report;
  auto& p = report.final;
  p.elapsed_seconds = elapsed();
  p.trials = trials_;
  p.resumed = resumed_;
  for (size_t i = 0; i < states_.size(); ++i) {
    const auto& state = *states_[i];
    p.tasks.push_back({tasks_[i].name, tasks_[i].weight, state.trials(), state.failures(),
                       state.default_seconds(), state.best_seconds()});
  }
  return report;
}

Result<TuneReport> TuningRun::run() {
  TS_RETURN_IF_ERROR(prepare());
  if (options_.survey) {
    warn_of_records();
    TS_RETURN_IF_ERROR(survey());
  } else {
    TS_RETURN_IF_ERROR(verify_all_records());
    TS_RETURN_IF_ERROR(measure_defaults());
    TS_RETURN_IF_ERROR(check_untuned());
    TS_RETURN_IF_ERROR(search());
    TS_RETURN_IF_ERROR(verify_all_records());  // of other processes, meanwhile
    TS_RETURN_IF_ERROR(check_all_have_programs());
    TS_RETURN_IF_ERROR(confirm());
  }
  TuneReport result = report();
  for (size_t i = 0; i < states_.size(); ++i) {
    const auto& untuned = states_[i]->default_result();
    result.untuned_works.push_back(!untuned || untuned->ok());
    const auto top = states_[i]->fastest(kReported);
    auto& ranked = result.fastest.emplace_back();
    for (const auto& r : top) ranked.push_back({r.trace, r.seconds});
    if (is_confirmed_[i]) {
      result.best_traces.push_back(confirmed_[i]);
    } else if (!top.empty()) {
      result.best_traces.push_back(top.front().trace);
    } else {
      result.best_traces.push_back(states_[i]->default_proposal().trace);
    }
  }
  return result;
}

}  // namespace tensorsmith::search
