// What `tune` and `transfer` have in common: a run of the search with its display and its report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tune_model.h"
#include "tools/options.h"

namespace tensorsmith::tools {

struct TuneRunOptions {
  std::vector<std::string> models;  // files, or networks of the zoo
  ModelOptions import;              // of all of them; its path counts nothing
  DeviceOptions device;
  engine::ScheduleOptions schedules;
  std::string directory;  // of the compiled model; of several, the folder that holds one of each
  const CLI::Option* directory_option = nullptr;  // not on the command line: beside each model
  std::string database = "tensorsmith.db";
  int64_t trials = 0;
  double seconds = 0;
  bool seconds_by_default = false;  // the command line has no limit of any kind
  double until_gain = 0;
  double epsilon = search::TuneOptions().epsilon;
  std::string strategy = search::TuneOptions().strategy;
  int batch = 16;
  uint64_t seed = 0;
  bool flush_cache = false;
  bool skip_end_to_end = false;
  bool fleet = false;
  learn::SearchModelOptions cost_model;
  bool cost_model_given = false;
  // Databases, exports of records, and models whose tasks' records are taken; none: the records that are shipped.
  std::vector<std::string> from;
  // A language model's file, "none", or empty: the strategy lm takes the one that is shipped.
  std::string language_model;
  bool warm_start = true;
  engine::SeedOptions seeds;
  engine::SourceRanking source_ranking = engine::SourceRanking::kGain;
  bool pool_sources = false;
  std::string tensorboard;  // folder for event files; empty: none
  std::string report;       // the page that is written at the end; empty: none
  int serve = -1;           // the port where it is shown meanwhile, 0 = any that is free; -1: nowhere
  std::string version;      // of the program, for the page
  bool force = false;
  bool json = false;
  bool quiet = false;
};

// Names of the models' folders, by model: their files' names, of a file model.onnx its folder's, made different.
std::vector<std::string> folder_names(const std::vector<std::string>& models);

// The options that both commands have.
void add_tune_run_options(CLI::App& command, TuneRunOptions& options);

// tune --no-measure: compiles with what records, a cost model and the estimate know, for any device. Where
// options.cost_model_given is not set, the cost model that is shipped judges.
Status run_unmeasured(const TuneRunOptions& options);

// command: its name, for errors.
Status run_tuning(const TuneRunOptions& options, const std::string& command);

}  // namespace tensorsmith::tools
