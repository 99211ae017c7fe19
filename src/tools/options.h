// Options that several commands share, and how they are reported.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/load_model.h"
#include "engine/schedules.h"
#include "learn/dataset/import.h"
#include "learn/search_model.h"
#include "learn/training.h"
#include "record/record.h"
#include "target/target.h"
#include "tools/option_groups.h"

namespace tensorsmith::tools {

// "NAME=1x3x48x320" -> NAME, {1, 3, 48, 320}.
Result<std::pair<std::string, std::vector<int64_t>>> parse_shape_option(const std::string& text);
// "NAME=8" -> NAME, 8.
Result<std::pair<std::string, int64_t>> parse_dim_option(const std::string& text);

struct ModelOptions {
  std::string path;
  std::vector<std::string> shapes;
  std::vector<std::string> dims;
  std::vector<std::string> absent;
  bool bounded = false;
  bool tf32 = false;
  bool has_options = false;  // the command has those of an import, which errors may name
  void add_to(CLI::App& command);
  std::vector<CLI::Option*> add_import_options(CLI::App& command);  // all but the path
  // kInvalidArgument for a shape or a dimension that is none or is given twice.
  Result<engine::ModelSource> source() const;
  // engine::load_model() of it, for the device if there is one; the graph's notes are printed.
  Result<engine::LoadedModel> load(const target::Device* device = nullptr) const;
};

// Of --networks: "zoo" is every network of it; a name without '/' and '.' is one of the zoo.
std::vector<ModelOptions> models_of_networks(const std::vector<std::string>& networks);

// A warning where this process cannot run so many threads at once: they take turns, and everything is slower than with
// fewer. 0 = by default, of which there are never too many.
void warn_of_threads(int threads);

struct DeviceOptions {
  std::string device = "local";
  int threads = 0;  // 0 = all cores
  void add_to(CLI::App& command);
  // The device with the thread count applied; warn_of_threads() of it where it is this machine.
  Result<target::Device> resolve() const;
  // A note where this machine gives less than it shows, unless no more than that was asked for; at most one.
  // device: that of resolve().
  std::vector<std::string> notes(const target::Device& device) const;
  // Threads that kernels run on.
  static int kernel_threads(const target::Device& device) { return device.cores; }
};

// --threads of commands that work on data and run no kernels.
class WorkingThreads {
 public:
  void add_to(CLI::App& command, const std::string& help);
  // As given, else as many as this process may use well. The first call warns of too many.
  int count() const;

 private:
  int given_ = 0;
  mutable bool warned_ = false;
};

// --ranks, --rank and --master: a training by several processes.
class ProcessesOptions {
 public:
  void add_to(CLI::App& command);
  // kInvalidArgument where they do not fit together.
  Result<learn::Processes> get() const;

 private:
  std::string master_;
  int rank_ = 0, ranks_ = 1;
};

// "[DEVICE=]FILE", records of Ansor; without a device it is the file's name up to its first dot.
learn::ImportFile import_file(const std::string& text);

// --cost-model and --frozen.
void add_cost_model_options(CLI::App& command, learn::SearchModelOptions& model);

// Of --fleet.
inline constexpr const char* kFleetHelp =
    "Let workers on other machines of this kind do the measuring (see `tensorsmith worker`); they take their "
    "work "
    "from the database of --db";

// --no-winograd.
void add_schedule_options(CLI::App& command, engine::ScheduleOptions& schedules);

// Where schedules and measurements are read from.
struct DatabaseOption {
  std::string path = "tensorsmith.db";
  void add_to(CLI::App& command, const std::string& description);
  // False where nobody named a database and the default one is not there. One that was named is opened, so
  // that a wrong name is an error.
  bool is_there() const;

 private:
  CLI::Option* option_ = nullptr;
};

// --force, for commands whose output may take the place of a file.
void add_force(CLI::App& command, bool& force);

// Prints "tensorsmith: error: ..." on stderr and returns kExitFailed.
int report_error(const Error& error);
// Runs a command body; a failed Status is reported, success is exit code 0.
template <typename Body>
int run_command(Body&& body) {
  const Status status = body();
  return status.ok() ? 0 : report_error(status.error());
}

}  // namespace tensorsmith::tools
