#include "lab/language_loop.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <future>
#include <map>
#include <nlohmann/json.hpp>

#include "base/input_file.h"
#include "base/json_text.h"
#include "base/thread_pool.h"
#include "engine/device/measured_device.h"
#include "engine/language/language_writer.h"
#include "engine/tune/prepare_tasks.h"
#include "lab/language_corpus.h"
#include "lab/strategies/strategies.h"
#include "record/jsonl.h"

namespace tensorsmith::lab {

namespace {

namespace fs = std::filesystem;
using learn::lm::LanguageModel;

constexpr int64_t kMaxStateBytes = 1 << 20;

// Persistent state of a loop. The file is replaced atomically.
struct LoopState {
  int round = 1;               // the round that measures
  int64_t records_before = 0;  // records in the database when the round began

  static Result<LoopState> read(const std::string& path) {
    LoopState state;
    if (!fs::exists(path)) return state;
    TS_ASSIGN_OR_RETURN(const std::string text, read_input(path, kMaxStateBytes));
    const auto json = parse_json<nlohmann::json>(text);
    if (!json.is_object() || !json.contains("round") || !json.contains("records_before"))
      return Error{ErrorCode::kMismatch, path, "is not a state file of `lm loop`; name another output"};
    state.round = json.value("round", 1);
    state.records_before = json.value("records_before", int64_t{0});
    return state;
  }
  Status write(const std::string& path) const {
    TS_ASSIGN_OR_RETURN(const auto file, record::AtomicFileWriter::open(path));
    const nlohmann::json json{{"round", round}, {"records_before", records_before}};
    TS_RETURN_IF_ERROR(file->write(json.dump() + "\n"));
    return file->commit();
  }
};

class LanguageLoop {
 public:
  LanguageLoop(const target::Device& device, const LanguageLoopOptions& options, const Clock& clock,
               LogSink& log, const LanguageLoopEvents& events, const std::atomic<bool>& cancel)
      : device_(device), options_(options), clock_(clock), log_(log), events_(events), cancel_(cancel) {}

  Result<LanguageModel> run(const std::vector<engine::ModelSource>& models) {
    TS_ASSIGN_OR_RETURN(tasks_, engine::load_tasks(models));
    std::erase_if(tasks_,
                  [&](const engine::SharedTask& t) { return options_.held_out.count(t.task.key) > 0; });
    if (tasks_.empty())
      return Error{ErrorCode::kInvalidArgument, "loop",
                   "all tasks are held out, so there is nothing to train on"};
    std::error_code failed;
    fs::create_directories(options_.directory, failed);
    if (failed) return Error{ErrorCode::kIo, options_.directory, failed.message()};
    TS_ASSIGN_OR_RETURN(base_, learn::lm::read_language_model(options_.base));
    TS_ASSIGN_OR_RETURN(database_, record::Database::open(options_.where.database));
    TS_RETURN_IF_ERROR(engine::register_device(device_, *database_));
    TS_ASSIGN_OR_RETURN(state_, LoopState::read(state_file()));
    while (state_.round <= options_.rounds) {
      TS_RETURN_IF_ERROR(one_round(state_.round));
      TS_ASSIGN_OR_RETURN(const int64_t records, database_->record_count());
      state_ = {state_.round + 1, records};
      TS_RETURN_IF_ERROR(state_.write(state_file()));
    }
    TS_RETURN_IF_ERROR(train(options_.rounds, false));
    return learn::lm::read_language_model(model_file(options_.rounds));
  }

 private:
  std::string state_file() const { return (fs::path(options_.directory) / "state.json").string(); }
  std::string model_file(int round) const {
    return (fs::path(options_.directory) / fmt::format("round{:03}.lm", round)).string();
  }
  // Returns the model that a round writes with: the newest one trained when the round begins.
  std::string writer_file(int round) const {
    for (int r = round - 2; r >= 1; --r)
      if (fs::exists(model_file(r))) return model_file(r);
    return options_.base;
  }

  // Trains on the measurements of the previous round while this round measures.
  Status one_round(int round) {
    std::future<Status> training;
    if (round > 1)
      training = std::async(std::launch::async, [this, round] { return train(round - 1, true); });
    const Status measured = measure(round);
    measuring_failed_ = !measured.ok();
    if (training.valid()) {
      const Status trained = training.get();
      if (measured.ok()) TS_RETURN_IF_ERROR(trained);
    }
    return measured;
  }

  // `overlapped`: the training runs while the next round measures, and must not delay it.
  Status train(int round, bool overlapped) {
    const std::string file = model_file(round);
    if (fs::exists(file)) return {};
    CorpusOptions corpus_options;
    corpus_options.devices = {device_};
    corpus_options.databases = options_.more_databases;
    corpus_options.databases.push_back(options_.where.database);
    corpus_options.measured = options_.measured;
    corpus_options.held_out = options_.held_out;
    corpus_options.seed = options_.seed;
    corpus_options.threads = overlapped ? options_.training_threads : options_.threads;
    TS_ASSIGN_OR_RETURN(auto corpus, make_corpus({}, corpus_options, {}, cancel_));
    ThreadPool pool(corpus_options.threads);
    TS_ASSIGN_OR_RETURN(const auto sentences,
                        CorpusSentences::create(std::move(corpus), base_.prompting, pool));
    learn::TrainingControl control;
    control.seed = options_.seed;
    control.threads = corpus_options.threads;
    control.command = fmt::format("tensorsmith lm loop, round {}", round);
    control.stop = [this] { return cancel_.load() || measuring_failed_; };
    if (events_.trained)
      control.progress = [this, round](const learn::TrainingProgress& p) { events_.trained(round, p); };
    TS_ASSIGN_OR_RETURN(const LanguageModel model,
                        learn::lm::train_language_model(*sentences, options_.training, &base_, control));
    return learn::lm::write_language_model(model, file);
  }

  Status measure(int round) {
    TS_ASSIGN_OR_RETURN(const int64_t records, database_->record_count());
    const int64_t done = records - state_.records_before;
    const int64_t left = options_.trials - std::max<int64_t>(done, 0);
    if (left <= 0) return {};
    TS_ASSIGN_OR_RETURN(const LanguageModel model, learn::lm::read_language_model(writer_file(round)));
    TS_ASSIGN_OR_RETURN(const auto writer, engine::LanguageWriter::create(model, options_.threads));
    engine::WarmStart similar;
    TS_RETURN_IF_ERROR(similar.add_database(*database_, record::shown_database(options_.where.database)));
    for (const std::string& path : options_.more_databases) TS_RETURN_IF_ERROR(similar.add_file(path));
    std::vector<const graph::Task*> wanted;
    for (const engine::SharedTask& shared : tasks_) wanted.push_back(&shared.task);
    TS_ASSIGN_OR_RETURN(const engine::PreparedTasks prepared,
                        engine::prepare_tasks(wanted, device_, {}, options_.threads));
    std::vector<search::TuneTask> tasks;
    for (size_t t = 0; t < prepared.size(); ++t) {
      search::TuneTask& task = tasks.emplace_back();
      task.task = prepared[t];
      task.weight = 0;
      for (const auto& [name, calls] : tasks_[t].calls) task.weight += calls;
      task.writer = writer->of_task(task.task, similar);
    }
    measure::MeasureOptions measuring;
    TS_ASSIGN_OR_RETURN(const auto measurer, engine::make_run_measurer(options_.where, *database_, device_,
                                                                       measuring, clock_, log_, cancel_));
    learn::SearchModelOptions model_options = options_.cost_model;
    model_options.seed = options_.seed;
    model_options.threads = 1;
    TS_ASSIGN_OR_RETURN(const auto cost_model, learn::make_search_model(model_options, device_));
    search::TuneOptions tuning;
    tuning.trials = left;
    tuning.strategy = &kWrittenStrategy;
    tuning.seed = options_.seed + round;
    tuning.threads = options_.threads;
    tuning.confirm = false;
    const double start = clock_.monotonic_seconds();
    TS_ASSIGN_OR_RETURN(const auto before, best_times());
    TS_ASSIGN_OR_RETURN(const search::TuneReport report,
                        search::tune(tasks, device_, tuning,
                                     {*database_, *measurer, cost_model.get(), clock_, log_, cancel_,
                                      [&](const search::TuneProgress& p) {
                                        if (events_.measured) events_.measured(round, p);
                                      }}));
    if (cancel_)
      return Error{ErrorCode::kCancelled, "loop",
                   fmt::format("interrupted in round {}; run the same command again to continue", round)};
    if (events_.round) events_.round(summary(round, report, before, clock_.monotonic_seconds() - start));
    return {};
  }

  // Returns the least measured seconds of each task in the database.
  Result<std::map<std::string, double>> best_times() const {
    std::map<std::string, double> best;
    const std::string key = device_.key();
    TS_RETURN_IF_ERROR(database_->for_each([&](const record::Record& record) {
      if (record.device_key != key || !record.result.ok()) return Status();
      const auto [at, fresh] = best.emplace(record.task_key, record.result.best_estimate());
      if (!fresh) at->second = std::min(at->second, record.result.best_estimate());
      return Status();
    }));
    return best;
  }

  LanguageLoopRound summary(int round, const search::TuneReport& report,
                            const std::map<std::string, double>& before, double seconds) const {
    LanguageLoopRound out;
    out.round = round;
    out.trials = report.final.trials;
    out.seconds = seconds;
    double logs = 0;
    for (size_t t = 0; t < tasks_.size(); ++t) {
      const auto& task = report.final.tasks[t];
      if (!std::isfinite(task.default_seconds) || !std::isfinite(task.best_seconds)) continue;
      ++out.tasks;
      logs += std::log(task.default_seconds / task.best_seconds);
      const auto known = before.find(tasks_[t].task.key);
      const double best = known != before.end() ? known->second : task.default_seconds;
      if (task.best_seconds < best) ++out.improved;
    }
    out.gain = out.tasks > 0 ? std::exp(logs / out.tasks) : 1;
    return out;
  }

  const target::Device& device_;
  const LanguageLoopOptions& options_;
  const Clock& clock_;
  LogSink& log_;
  const LanguageLoopEvents& events_;
  const std::atomic<bool>& cancel_;
  std::vector<engine::SharedTask> tasks_;
  LanguageModel base_;
  std::unique_ptr<record::Database> database_;
  LoopState state_;
  std::atomic<bool> measuring_failed_{false};
};

}  // namespace

Result<LanguageModel> language_loop(const std::vector<engine::ModelSource>& models,
                                    const target::Device& device, const LanguageLoopOptions& options,
                                    const Clock& clock, LogSink& log, const LanguageLoopEvents& events,
                                    const std::atomic<bool>& cancel) {
  TS_RETURN_IF_ERROR(engine::check_measurable(device, "a loop"));
  return LanguageLoop(device, options, clock, log, events, cancel).run(models);
}

}  // namespace tensorsmith::lab
