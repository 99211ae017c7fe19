// What `tune` and `transfer` have in common: a run of the search with its display and its report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tune_model.h"
#include "tools/options.h"

namespace tensorsmith::tools {

struct TuneRunOptions {
  ModelOptions model;
  DeviceOptions device;
  engine::ScheduleOptions schedules;
  std::string directory;
  std::string database = "tensorsmith.db";
  int64_t trials = 0;
  double seconds = 0;
  std::string strategy = search::TuneOptions().strategy;
  int batch = 16;
  uint64_t seed = 0;
  bool flush_cache = false;
  bool skip_end_to_end = false;
  learn::SearchModelOptions cost_model;
  // Databases, exports of records, and models whose tasks' records are taken; none: the records that are shipped.
  std::vector<std::string> from;
  bool warm_start = true;
  engine::SeedOptions seeds;
  engine::SourceRanking source_ranking = engine::SourceRanking::kGain;
  bool pool_sources = false;
  bool json = false;
  bool quiet = false;
};

// The options that both commands have.
void add_tune_run_options(CLI::App& command, TuneRunOptions& options);

// command: its name, for errors.
Status run_tuning(const TuneRunOptions& options, const std::string& command);

}  // namespace tensorsmith::tools
