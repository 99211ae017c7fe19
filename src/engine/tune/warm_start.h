// Fast programs that were measured elsewhere (the same task on other devices, or tasks with the
// same operators), and their translation to the task at hand. `tune` starts from these programs;
// `transfer` uses nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "record/database.h"
#include "search/prepared_task.h"
#include "target/target.h"

namespace tensorsmith::engine {

// Where a program was measured.
struct ProgramSource {
  std::string task;    // by name
  std::string device;  // by name
  std::string file;    // file that contains the record
  double seconds = 0;  // measured there
  bool same_task = false;
  // Speed-up over the untuned schedule on that task and device; 0 = not known.
  double speedup = 0;
  // Distance of shapes and devices: shape_distance, plus 2 for another vector width, plus 1 for
  // another number of cores.
  double distance = 0;
};

// A program from elsewhere, adapted to another task or device.
struct SeededCandidate {
  space::Candidate candidate;
  ProgramSource source;
  uint64_t program = 0;  // hash of the candidate's trace on this task
};

// Limits on the programs to take.
struct SeedOptions {
  size_t same_task = 3;  // most programs of the same task, on whatever device
  // Most programs of tasks of the same kernel class. A search measures fewer, chosen by its scores
  // (TuneOptions::seeds).
  size_t other_tasks = 8;
  // If set, only programs of these tasks, by key.
  std::optional<std::set<std::string>> only_tasks = {};
};

class WarmStart {
 public:
  // Adds a database or an export of records (`db export`), plain or zstd-compressed. Takes the
  // fastest few programs of each task and device, except those that are faster than their device
  // can be and those without a point in a design space. Errors: a file that cannot be read or
  // contains no records (kCorrupt).
  Status add_file(const std::string& path);
  // As add_file(), for an open database; `name` is for display.
  Status add_database(record::Database& database, const std::string& name);

  // Drops the programs of tasks with these keys.
  void forget(const std::set<std::string>& task_keys);

  bool empty() const { return programs_.empty(); }
  // Number of programs of a task, by key; 0: none.
  size_t programs_of(const std::string& task_key) const;
  // Keys of tasks with programs that are of this kernel class.
  std::vector<std::string> tasks_of_class(uint64_t kernel_class) const;
  // The task must have programs.
  const ir::Workload& workload_of(const std::string& task_key) const {
    return *programs_.at(task_key).workload;
  }
  // Returns the untuned time of a task over that of its fastest program for which both were
  // measured on the same device.
  std::optional<double> speedup_of(const std::string& task_key) const;

  // Returns candidates of the task's design space, the most promising first: programs of the same task,
  // most similar device first, then programs of tasks of the same class, nearest shape first. Tiles are
  // adapted to the new shapes (DesignSpace::rescale). A record whose point no longer gives its trace is
  // skipped. Thread-safe.
  std::vector<SeededCandidate> seeds(const search::PreparedTask& task, const SeedOptions& options) const;

 private:
  struct KnownProgram {
    space::Candidate candidate;
    std::string trace;
    std::string device_key;
    double seconds = 0;
    size_t file = 0;
  };
  struct KnownTask {
    std::string name, text;
    double flops = 0;
    uint64_t kernel_class = 0;
    std::optional<ir::Workload> workload;
    std::vector<KnownProgram> programs;             // fastest first, the fastest few of each device
    std::map<std::string, double> default_seconds;  // by device key
  };
  // The design space of a source task; null if it cannot be built.
  std::shared_ptr<const space::DesignSpace> space_of(const std::string& task_key,
                                                     const std::string& device_key) const;
  // Maps a program into `space`; nullopt if the program has no counterpart there.
  std::optional<space::Candidate> adapt(const std::string& task_key, const KnownProgram& program,
                                        const space::DesignSpace& space) const;

  std::vector<std::string> files_;
  std::map<std::string, target::Device> devices_;  // by key
  std::map<std::string, KnownTask> programs_;      // by task key
  struct Spaces {
    std::mutex mutex;
    std::map<std::pair<std::string, std::string>, std::shared_ptr<const space::DesignSpace>> made;
  };
  std::shared_ptr<Spaces> spaces_ = std::make_shared<Spaces>();
};

}  // namespace tensorsmith::engine
