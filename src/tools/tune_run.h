// Code shared by `tune` and `transfer`: a search with its display and its report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tune/tune_model.h"
#include "tools/options.h"

namespace tensorsmith::tools {

struct TuneRunOptions {
  std::vector<std::string> models;  // files, or networks of the zoo
  ModelOptions import;              // for all models; its path is unused
  DeviceOptions device;
  engine::ScheduleOptions schedules;
  // For the compiled model; with several models, the directory that contains one for each.
  std::string directory;
  // If not on the command line, the output goes beside each model.
  const CLI::Option* directory_option = nullptr;
  std::string database = "tensorsmith.db";
  int64_t trials = 0;
  double seconds = 0;
  bool seconds_by_default = false;  // the command line sets no limit of any kind
  double until_gain = 0;
  double epsilon = search::TuneOptions().epsilon;
  const search::StrategyKind* strategy = search::TuneOptions().strategy;
  int batch = 16;
  uint64_t seed = 0;
  bool flush_cache = false;
  bool skip_end_to_end = false;
  bool fleet = false;
  learn::SearchModelOptions cost_model;
  bool cost_model_given = false;
  // Databases, exports of records, and models whose tasks' records are used; empty: the shipped
  // records.
  std::vector<std::string> from;
  // A language model's file, "shipped", "none" or empty (engine::language_model_for).
  std::string language_model;
  bool warm_start = true;
  engine::SeedOptions seeds;
  engine::SourceRanking source_ranking = engine::SourceRanking::kGain;
  bool pool_sources = false;
  std::string tensorboard;  // directory for event files; empty: none
  std::string report;       // path of the page written at the end; empty: none
  int serve = -1;           // port that shows the report during the run, 0 = any free one; -1: none
  std::string version;      // of the program, for the page
  bool force = false;
  bool json = false;
  bool quiet = false;
};

// Returns a distinct directory name for each model: its file name, or for a file model.onnx the
// name of its directory.
std::vector<std::string> folder_names(const std::vector<std::string>& models);

// Adds the options that both commands share.
void add_tune_run_options(CLI::App& command, TuneRunOptions& options);

// tune --no-measure: compiles for any device with schedules chosen by records, a cost model and the
// estimate. Uses the shipped cost model unless options.cost_model_given is set.
Status run_unmeasured(const TuneRunOptions& options);

// command: name of the command, for error messages.
Status run_tuning(const TuneRunOptions& options, const std::string& command);

}  // namespace tensorsmith::tools
