#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/clock.h"
#include "base/input_file.h"
#include "base/json_text.h"
#include "engine/predict/model_data.h"
#include "lab/kinds/kinds.h"
#include "learn/latency/parameters.h"
#include "learn/latency/tpe.h"
#include "record/jsonl.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

using Json = nlohmann::json;

// Room for 100,000 trials of a kilobyte.
constexpr int64_t kMaxTrialLogBytes = int64_t{128} << 20;

struct SearchCommand {
  std::string kind, store, split, log, method = "tpe", metric = "mape_median";
  std::vector<std::string> devices, space, parameters;
  int trials = 30;
  uint64_t seed = 0;
  WorkingThreads threads;
  bool quiet = false, json = false;
};

// Whether a larger value of the metric is better.
bool is_gain(const std::string& metric) {
  return metric == "top1" || metric == "top5" || metric == "pairwise";
}

// The log has one line that identifies the search, then one line per trial. Lines are appended and
// flushed; the unfinished last line of a killed search is dropped.
class TrialLog {
 public:
  static Result<TrialLog> open(const std::string& path, const Json& header, bool gain) {
    TrialLog log;
    log.path_ = path;
    const std::string first = json_text(header);
    const Error other{ErrorCode::kMismatch, path,
                      "is not the log of this search (another model, store, split, range or seed, or a file "
                      "of another kind); name another file"};
    auto text = read_input(path, kMaxTrialLogBytes);
    if (!text.ok() && text.error().code != ErrorCode::kNotFound) return std::move(text).error();
    std::istringstream in(text.ok() ? std::move(text).value() : std::string());
    std::string kept;
    for (std::string line; in && std::getline(in, line);) {
      if (in.eof()) {  // without its newline: an unfinished line, if it is one of ours
        if (kept.empty() && !first.starts_with(line)) return other;
        break;
      }
      const Json json = parse_json<Json>(line);
      // Invalid JSON compares as neither equal nor unequal to anything.
      if (kept.empty() && !(json == parse_json<Json>(first))) return other;
      if (!kept.empty()) {
        if (!json.is_object() || !json.contains("parameters") || !json.contains("value"))
          return Error{ErrorCode::kCorrupt, path, "contains a line that is not a trial"};
        const double value = json["value"].is_number() ? json["value"].get<double>() : NAN;
        log.trials_.push_back({json["parameters"], std::isfinite(value)
                                                       ? (gain ? -value : value)
                                                       : std::numeric_limits<double>::infinity()});
      }
      kept += line + "\n";
    }
    if (in.bad()) return Error{ErrorCode::kIo, path, "cannot be read"};
    if (kept.empty()) kept = first + "\n";
    TS_ASSIGN_OR_RETURN(const auto writer, record::AtomicFileWriter::open(path));
    TS_RETURN_IF_ERROR(writer->write(kept));
    TS_RETURN_IF_ERROR(writer->commit());
    return log;
  }
  const std::vector<learn::Trial>& trials() const { return trials_; }
  Status add(const learn::Trial& trial, const Json& line) {
    trials_.push_back(trial);
    std::ofstream out(path_, std::ios::binary | std::ios::app);
    out << json_text(line) << "\n" << std::flush;
    if (!out) return Error{ErrorCode::kIo, path_, "cannot be written to"};
    return {};
  }

 private:
  std::string path_;
  std::vector<learn::Trial> trials_;
};

const learn::Trial* best_of(const std::vector<learn::Trial>& trials) {
  const learn::Trial* best = nullptr;
  for (const learn::Trial& trial : trials) {
    if (std::isfinite(trial.loss) && (best == nullptr || trial.loss < best->loss)) best = &trial;
  }
  return best;
}

std::string as_options(const Json& parameters) {
  std::string out;
  for (const auto& [name, value] : parameters.items())
    out += " --param " + name + "=" + (value.is_string() ? value.get<std::string>() : json_text(value));
  return out;
}

// Rejects names and values that no trial can have before the log is begun, because such a log would
// not match the corrected command.
Status check_space(const SearchCommand& command, const Json& fixed,
                   const std::vector<learn::Dimension>& space) {
  for (const learn::Dimension& dimension : space) {
    std::vector<Json> values = dimension.choices;
    if (values.empty()) {
      for (const double end : {dimension.low, dimension.high})
        values.push_back(dimension.whole ? Json(static_cast<int64_t>(end)) : Json(end));
    }
    for (const Json& value : values) {
      Json parameters = fixed;
      parameters[dimension.name] = value;
      const auto trainer = lab::cost_model_kinds().make_trainer(command.kind, parameters);
      if (!trainer.ok())
        return Error{trainer.error().code, "--tune " + dimension.name, trainer.error().message()};
    }
  }
  return {};
}

Status search(const SearchCommand& command) {
  TS_RETURN_IF_ERROR(check_outputs({{"--log", command.log, OutputKind::kTrialLog}},
                                   {{"--store", command.store}, {"--split", command.split}}));
  std::vector<learn::Dimension> space;
  for (const std::string& text : command.space) {
    TS_ASSIGN_OR_RETURN(learn::Dimension dimension, learn::parse_dimension(text));
    space.push_back(std::move(dimension));
  }
  TS_ASSIGN_OR_RETURN(const Json fixed, learn::parse_parameters(command.parameters));
  TS_RETURN_IF_ERROR(check_space(command, fixed, space));
  TS_ASSIGN_OR_RETURN(const engine::ModelData data, engine::ModelData::open(command.store));
  TS_ASSIGN_OR_RETURN(const learn::Split split, data.load_split(command.split));
  TS_ASSIGN_OR_RETURN(const learn::TrainingData records, data.training_data(split, command.devices, false));
  if (records.validation.empty())
    return Error{ErrorCode::kInvalidArgument, command.split,
                 "has no validation part, which is needed to compare the trials"};
  const auto method = command.method == "tpe" ? learn::SearchMethod::kTpe : learn::SearchMethod::kRandom;
  const Json header = {{"type", "hyperparameter search"},
                       {"v", 1},
                       {"model", command.kind},
                       {"store", data.store().content_hash()},
                       {"split", split.content_hash()},
                       {"devices", command.devices},
                       {"space", command.space},
                       {"fixed", fixed},
                       {"method", command.method},
                       {"metric", command.metric},
                       {"seed", command.seed}};
  const bool gain = is_gain(command.metric);
  TS_ASSIGN_OR_RETURN(TrialLog log, TrialLog::open(command.log, header, gain));
  const auto& interrupted = catch_interrupts();
  const SystemClock clock;
  while (static_cast<int>(log.trials().size()) < command.trials) {
    const Json proposed = learn::propose(space, log.trials(), method, command.seed);
    Json parameters = fixed;
    parameters.update(proposed);
    TS_ASSIGN_OR_RETURN(const auto trainer, lab::cost_model_kinds().make_trainer(command.kind, parameters));
    learn::TrainingControl control;
    control.seed = command.seed;
    control.threads = command.threads.count();
    control.stop = [&] { return interrupted.load(); };
    const double start = clock.monotonic_seconds();
    const auto model = trainer->train(records, control);
    Json line = {{"trial", log.trials().size()}, {"parameters", proposed}, {"value", nullptr}};
    line["seconds"] = clock.monotonic_seconds() - start;
    learn::Trial trial{proposed, std::numeric_limits<double>::infinity()};
    if (model.ok()) {
      const Json metrics = parse_json<Json>((*model)->card().metrics);
      if (!metrics.contains(command.metric) || !metrics[command.metric].is_number())
        return Error{ErrorCode::kInvalidArgument, "--metric",
                     "this kind of model has no score '" + command.metric + "' on the validation part"};
      const double value = metrics[command.metric];
      trial.loss = gain ? -value : value;
      line["value"] = value;
      line["metrics"] = metrics;
    } else if (model.error().code == ErrorCode::kCancelled) {
      return Error{ErrorCode::kCancelled, "",
                   fmt::format("interrupted after {} trials; the same command continues from {}",
                               log.trials().size(), command.log)};
    } else {
      line["error"] = model.error().message();
    }
    TS_RETURN_IF_ERROR(log.add(trial, line));
    if (!command.quiet) {
      const learn::Trial* best = best_of(log.trials());
      print_error("{:>4}/{}  {} {}  best {}  {}{}\n", log.trials().size(), command.trials, command.metric,
                  model.ok() ? fmt::format("{:.5f}", std::abs(trial.loss)) : "failed",
                  best != nullptr ? fmt::format("{:.5f}", std::abs(best->loss)) : "-",
                  format_duration(line["seconds"]), as_options(proposed));
    }
  }
  const learn::Trial* best = best_of(log.trials());
  if (best == nullptr)
    return Error{ErrorCode::kInvalidArgument, command.log, "all trials failed; the log contains the reasons"};
  Json parameters = fixed;
  parameters.update(best->parameters);
  if (command.json) {
    print_json(Json{{"trials", log.trials().size()},
                    {"metric", command.metric},
                    {"value", gain ? -best->loss : best->loss},
                    {"parameters", parameters}});
    return {};
  }
  print_out("best of {} trials: {} {:.5f} on the validation part, with{}\n", log.trials().size(),
            command.metric, gain ? -best->loss : best->loss, as_options(parameters));
  return {};
}

}  // namespace

void add_search_hyperparameters_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<SearchCommand>();
  CLI::App* sub = app.add_subcommand("search-hyperparameters",
                                     "Find good hyperparameters of a cost model by training many models");
  sub->add_option("--model", o->kind, "Kind of model (see `tensorsmith train`)")->required();
  sub->add_option("--store", o->store, "Store of measured programs")->required();
  sub->add_option("--split", o->split,
                  "File of a split of the store; models are trained on its training part and compared on its "
                  "validation part")
      ->required();
  sub->add_option("--tune", o->space,
                  "Hyperparameter to search (repeatable): NAME=LOW..HIGH (whole numbers if both ends are), "
                  "NAME=LOW..HIGH:log (logarithmic scale) or NAME=A|B|C")
      ->required()
      ->allow_extra_args(false);
  sub->add_option("--param", o->parameters,
                  "Hyperparameter with a fixed value in all trials, NAME=VALUE (repeatable)")
      ->allow_extra_args(false);
  sub->add_option("--devices", o->devices, "Use only the records of these devices (comma-separated)")
      ->delimiter(',');
  sub->add_option("--log", o->log,
                  "File that keeps the trials, as JSON lines; the same command continues an interrupted "
                  "search from it")
      ->required();
  add_whole(*sub, "--trials", o->trials, 1, 100000, "Total number of trials, including those in the log");
  sub->add_option("--method", o->method, "Search method: random, or tpe (tree-structured Parzen estimators)")
      ->check(CLI::IsMember({"random", "tpe"}))
      ->capture_default_str();
  sub->add_option("--metric", o->metric, "Score to optimize, on the validation part (see `tensorsmith eval`)")
      ->check(CLI::IsMember({"mape", "mape_median", "rmse", "rmse_log", "top1", "top5", "pairwise"}))
      ->capture_default_str();
  add_seed(*sub, o->seed, "Seed of the search and of each training");
  o->threads.add_to(*sub, "Number of threads for training");
  sub->add_flag("--quiet", o->quiet, "Show no progress");
  sub->add_flag("--json", o->json, "Print the result as JSON on standard output");
  sub->callback([o, &exit_code] { exit_code = run_command([&] { return search(*o); }); });
}

}  // namespace tensorsmith::tools
