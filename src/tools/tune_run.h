// Code shared by `tune` and `transfer`: a search with its display and its report.
#pragma once

#include <string>
#include <vector>

#include "engine/tune/tune_model.h"
#include "record/database.h"
#include "tools/options.h"

namespace tensorsmith::tools {

struct TuneRunOptions {
  std::vector<std::string> models;  // files, or networks of the zoo
  ModelOptions import;              // for all models; its path is unused
  DeviceOptions device;
  // The database is that of --db, and the sources are the entries of --from.
  engine::TuneModelOptions tuning{.where = {.database = record::kDefaultDatabase}};
  // For the compiled model; with several models, the directory that contains one for each.
  std::string directory;
  // If not on the command line, the output goes beside each model.
  const CLI::Option* directory_option = nullptr;
  bool seconds_by_default = false;  // the command line sets no limit of any kind
  std::string tensorboard;          // directory for event files; empty: none
  std::string report;               // path of the page written at the end; empty: none
  int serve = -1;                   // port that shows the report during the run, 0 = any free one; -1: none
  std::string version;              // of the program, for the page
  bool force = false;
  bool json = false;
  bool quiet = false;
};

// Returns a distinct directory name for each model: its file name, or for a file model.onnx the
// name of its directory.
std::vector<std::string> folder_names(const std::vector<std::string>& models);

// Adds the options that both commands share, before those of the search.
void add_tune_run_options(CLI::App& command, TuneRunOptions& options);

// Runs `tune --no-measure`: engine::compile_unmeasured().
Status run_unmeasured(const TuneRunOptions& options);

// command: name of the command, for error messages.
Status run_tuning(const TuneRunOptions& options, const std::string& command);

}  // namespace tensorsmith::tools
