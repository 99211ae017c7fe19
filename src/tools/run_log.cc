#include "tools/run_log.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/clock.h"
#include "base/input_file.h"
#include "base/json_text.h"
#include "base/processors.h"
#include "engine/device/usable_threads.h"
#include "measure/measurer.h"
#include "tools/console.h"
#include "tools/interrupt.h"

namespace tensorsmith::tools {

namespace {

// A line for 100,000 trials takes some megabytes.
constexpr int64_t kMaxLogBytes = int64_t{1} << 30;

std::vector<double> numbers(const nlohmann::ordered_json& values) {
  std::vector<double> out;
  for (const auto& value : values) out.push_back(value.is_number() ? value.get<double>() : INFINITY);
  return out;
}

}  // namespace

nlohmann::ordered_json numbers_to_json(const std::vector<double>& values) {
  auto out = nlohmann::ordered_json::array();
  for (const double value : values)
    out.push_back(std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json());
  return out;
}

Result<RunLog> RunLog::open(const std::string& path, const lab::CompareOptions& options,
                            const std::vector<std::string>& from) {
  RunLog log(path, options, from);
  if (path.empty()) return log;
  if (!std::ofstream(path, std::ios::app)) return Error{ErrorCode::kIo, path, "cannot be written to"};
  auto text = read_input(path, kMaxLogBytes);
  if (!text.ok() && text.error().code != ErrorCode::kNotFound) return text.error();
  size_t kept = 0;
  for (size_t begin = 0; text.ok() && begin < text->size();) {
    const size_t end = text->find('\n', begin);
    if (end == std::string::npos) break;
    const auto line = parse_json<Json>(text->substr(begin, end - begin));
    if (line.is_discarded() || !line.contains("of") || !line.contains("best") || !line.contains("seconds") ||
        !line.contains("spent") || !line.contains("untuned"))
      return Error{ErrorCode::kMismatch, path, "is not a log of `compare` or `lm eval`; name another file"};
    log.lines_[json_text(line["of"])] = line;
    kept = begin = end + 1;
  }
  if (text.ok() && kept < text->size()) {
    std::error_code failed;
    std::filesystem::resize_file(path, kept, failed);
    if (failed) return Error{ErrorCode::kIo, path, failed.message()};
  }
  return log;
}

bool RunLog::find(lab::SearchRun& run) const {
  const auto at = lines_.find(json_text(key_of(run)));
  if (at == lines_.end()) return false;
  const Json& line = at->second;
  run.best = numbers(line["best"]);
  run.seconds = numbers(line["seconds"]);
  run.untuned = numbers(Json::array({line["untuned"]})).front();
  run.spent = line["spent"].get<std::vector<double>>();
  run.seen = line.value("seen", false);
  for (const Json& winner : line.value("winners", Json::array()))
    run.winners.push_back({winner.value("number", int64_t{0}), winner.value("trace", std::string()),
                           numbers(Json::array({winner.value("again", Json(0))})).front()});
  return true;
}

Status RunLog::keep(const lab::SearchRun& run) const {
  if (path_.empty()) return {};
  Json winners = Json::array();
  for (const auto& winner : run.winners)
    winners.push_back({{"number", winner.number},
                       {"trace", winner.trace},
                       {"again", numbers_to_json({winner.again}).front()}});
  const Json line = {{"of", key_of(run)},
                     {"name", run.name},
                     {"untuned", numbers_to_json({run.untuned}).front()},
                     {"seconds", numbers_to_json(run.seconds)},
                     {"best", numbers_to_json(run.best)},
                     {"spent", run.spent},
                     {"seen", run.seen},
                     {"winners", winners}};
  std::ofstream file(path_, std::ios::app);
  file << json_text(line) << '\n' << std::flush;
  if (!file) return Error{ErrorCode::kIo, path_, "cannot be written to"};
  return {};
}

RunLog::Json RunLog::key_of(const lab::SearchRun& run) const {
  const lab::CompareOptions& o = *options_;
  const lab::SearchMethod& method = o.methods[run.method];
  Json key = {{"device", run.device},
              {"task", run.task},
              {"strategy", method.strategy},
              {"model", method.model},
              {"seed", run.seed},
              {"trials", method.trials > 0 ? method.trials : o.trials},
              {"batch", o.batch},
              {"epsilon", o.epsilon},
              {"frozen", o.frozen},
              {"from", method.seeded ? Json(*from_) : Json()}};
  if (!method.language_model.empty()) key["lm"] = method.language_model;
  return key;
}

Result<std::vector<lab::SearchRun>> measure_searches(const SearchedTasks& tasks,
                                                     const lab::CompareOptions& options, bool leave_out,
                                                     engine::DecodingReport* decoding, LogSink& log,
                                                     const lab::CompareProgressFn& progress) {
  TS_ASSIGN_OR_RETURN(const target::Device device, tasks.device.resolve());
  TS_ASSIGN_OR_RETURN(const RunLog runs, RunLog::open(tasks.log, options, tasks.from));
  std::vector<engine::ModelSource> sources;
  for (const std::string& network : tasks.networks) sources.push_back({.path = network});
  engine::WarmStart known;
  for (const std::string& source : tasks.from) TS_RETURN_IF_ERROR(known.add_file(source));
  lab::MeasuredComparison comparison;
  TS_ASSIGN_OR_RETURN(comparison.tasks,
                      lab::heaviest_tasks(sources, device, static_cast<size_t>(tasks.heaviest)));
  if (leave_out) {
    std::set<std::string> own;
    for (const auto& shared : comparison.tasks) own.insert(shared.task.key);
    known.forget(own);
  }
  if (!tasks.from.empty()) comparison.known = &known;
  comparison.worker = measure::this_program_as_worker();
  comparison.threads = engine::usable_threads(processors().usable, log);
  comparison.find = [&](lab::SearchRun& run) { return runs.find(run); };
  comparison.keep = [&](const lab::SearchRun& run) { return runs.keep(run); };
  comparison.decoding = decoding;
  return lab::measure_searches(device, options, comparison, SystemClock(), log, progress, catch_interrupts());
}

}  // namespace tensorsmith::tools
