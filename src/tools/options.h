// Options that several commands share, and error reporting.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/model/load_model.h"
#include "engine/tune/tune_options.h"
#include "learn/dataset/import.h"
#include "learn/training.h"
#include "record/database.h"
#include "record/record.h"
#include "target/target.h"
#include "tools/option_groups.h"

namespace tensorsmith::tools {

// Parses "NAME=1x3x48x320" to NAME, {1, 3, 48, 320}.
Result<std::pair<std::string, std::vector<int64_t>>> parse_shape_option(const std::string& text);
// Parses "NAME=1,2" or "NAME=@FILE" to the contents of an input.
Status parse_set_option(const std::string& text, graph::ImportOptions& import);
// Parses "NAME=8" to NAME, 8.
Result<std::pair<std::string, int64_t>> parse_dim_option(const std::string& text);

struct ModelOptions {
  std::string path;
  std::vector<std::string> shapes;
  std::vector<std::string> dims;
  std::vector<std::string> absent;
  std::vector<std::string> fixed;  // NAME=VALUES or NAME=@FILE
  bool bounded = false;
  bool tf32 = false;
  bool routines = true;      // engine::ModelSource
  bool has_options = false;  // the command has import options, which errors may then mention
  void add_to(CLI::App& command);
  std::vector<CLI::Option*> add_import_options(CLI::App& command);  // all but the path
  // kInvalidArgument for a malformed or repeated shape or dimension.
  Result<engine::ModelSource> source() const;
  // Loads the model by engine::load_model(), for `device` if it is not null, and prints the graph's
  // notes.
  Result<engine::LoadedModel> load(const target::Device* device = nullptr) const;
};

// Expands --networks: "zoo" is every network of the zoo; a name without '/' and '.' is one of them.
std::vector<ModelOptions> models_of_networks(const std::vector<std::string>& networks);

// Warns if this process cannot run `threads` threads at once: they would take turns, and everything
// would be slower than with fewer threads. 0 stands for the default, which is never too many.
void warn_of_threads(int threads);

struct DeviceOptions {
  std::string device = "local";
  int threads = 0;  // 0 = all cores
  void add_to(CLI::App& command);
  // Returns the device with the thread count applied; calls warn_of_threads() if it is this
  // machine.
  Result<target::Device> resolve() const;
  // Returns at most one note, if this process may use fewer CPUs than the machine has, unless no
  // more threads than that were requested. `device` must come from resolve().
  std::vector<std::string> notes(const target::Device& device) const;
};

// --threads of commands that process data and run no kernels.
class WorkingThreads {
 public:
  void add_to(CLI::App& command, const std::string& help);
  // Returns the given number, else the number of threads that this process can use well. The first
  // call warns about too many threads.
  int count() const;

 private:
  int given_ = 0;
  mutable bool warned_ = false;
};

// --ranks, --rank and --master: training with several processes.
class ProcessesOptions {
 public:
  void add_to(CLI::App& command);
  // kInvalidArgument if the options contradict each other.
  Result<learn::Processes> get() const;

 private:
  std::string master_;
  int rank_ = 0, ranks_ = 1;
};

// Parses "[DEVICE=]FILE", a file of Ansor's records; the default device is the file's name up to
// its first dot.
learn::ImportFile import_file(const std::string& text);

// Adds the option of a setting of engine/tune/tune_options.h. `value` points to the parsed value.
CLI::Option* add_tune_option(CLI::App& command, std::string_view name, engine::TuneOptionValue value);
// Adds the options of several settings of a run.
void add_tune_options(CLI::App& command, std::initializer_list<std::string_view> names,
                      engine::TuneModelOptions& options);

// The database that schedules and measurements are read from.
struct DatabaseOption {
  std::string path = record::kDefaultDatabase;
  void add_to(CLI::App& command, const std::string& description);
  // False if the command line names no database and the default one does not exist. A named
  // database must be opened, so that a wrong name is an error.
  bool is_there() const;

 private:
  CLI::Option* option_ = nullptr;
};

// Adds --force, for commands whose output may replace a file.
void add_force(CLI::App& command, bool& force);

// Prints "tensorsmith: error: ..." on stderr and returns kExitFailed.
int report_error(const Error& error);
// Runs a command's body and returns the exit code; an error is reported.
template <typename Body>
int run_command(Body&& body) {
  const Status status = body();
  return status.ok() ? 0 : report_error(status.error());
}

}  // namespace tensorsmith::tools
