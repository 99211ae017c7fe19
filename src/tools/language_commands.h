// The subcommands of `lm` that have files of their own, and what they share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "engine/language_records.h"
#include "learn/lm/language_model.h"
#include "tools/output_files.h"

namespace tensorsmith::tools {

void add_language_eval(CLI::App& lm, int& exit_code);
void add_language_loop(CLI::App& lm, int& exit_code);
void add_language_rank(CLI::App& lm, int& exit_code);

// --records and --workloads: files of Ansor's records.
struct RecordOptions {
  std::vector<std::string> files;
  std::string workloads;

  // Returns the option of the files.
  CLI::Option* add_to(CLI::App& command);
  bool given() const { return !files.empty(); }
  std::vector<InputPath> inputs() const;
  Result<record::AnsorWorkloads> load_workloads() const;
  // wanted: by the key of a task's structure. A warning says how many records cannot be used.
  Result<engine::RecordedTasks> read(const record::AnsorWorkloads& known,
                                     const std::function<bool(const std::string&)>& wanted) const;
};

// `lm generate --records`: new records of the workloads of others.
struct RecordGeneration {
  RecordOptions records;
  std::string output;
  bool seen = false;  // also of workloads that the model was trained on
  bool force = false;
};
Status generate_records(const RecordGeneration& command, const learn::lm::LanguageModel& model,
                        const engine::RecordWriting& options, bool json);

}  // namespace tensorsmith::tools
