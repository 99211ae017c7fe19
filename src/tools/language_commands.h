// The subcommands of `lm` that are implemented in files of their own, and their shared options.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/language_records.h"
#include "learn/lm/language_model.h"
#include "tools/output_files.h"

namespace tensorsmith::tools {

void add_language_eval(CLI::App& lm, int& exit_code);
void add_language_measure(CLI::App& lm, int& exit_code);
void add_language_loop(CLI::App& lm, int& exit_code);
void add_language_rank(CLI::App& lm, int& exit_code);

// Recorded programs. Ansor's records refer to workloads of another file.
struct RecordsRead {
  std::optional<record::AnsorWorkloads> ansor;  // none: the records are of MetaSchedule
  lab::RecordedTasks tasks;
};

// The options --records and --workloads: files of Ansor's records, or databases of MetaSchedule.
struct RecordOptions {
  std::vector<std::string> files;
  std::string workloads;

  // Returns the option --records.
  CLI::Option* add_to(CLI::App& command);
  bool given() const { return !files.empty(); }
  std::vector<InputPath> inputs() const;
  // `wanted` selects tasks by structural key. Warns about the number of unusable records.
  Result<RecordsRead> read(const std::function<bool(const std::string&)>& wanted) const;
};

// `lm generate --records`: writes new records for the workloads of existing ones.
struct RecordGeneration {
  RecordOptions records;
  std::string output;
  bool seen = false;  // includes workloads that the model was trained on
  bool force = false;
};
Status generate_records(const RecordGeneration& command, const learn::lm::LanguageModel& model,
                        const lab::RecordWriting& options, bool json);

}  // namespace tensorsmith::tools
