// Fast programs that were measured elsewhere (the same task on other devices, tasks with the same operators), and what
// they become on the task at hand: the knowledge that tune begins with, and all that transfer has.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/tasks.h"
#include "record/database.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith::engine {

// Where a program was measured.
struct ProgramSource {
  std::string task;    // by name
  std::string device;  // by name
  std::string file;    // that holds the record
  double seconds = 0;  // there
  bool same_task = false;
  // How much faster than the untuned schedule it was there; 0 = not known.
  double speedup = 0;
  // Of shapes and devices: shape_distance, and 2 for other vectors, 1 for another number of cores.
  double distance = 0;
};

// What such a program became on another task or device.
struct SeededCandidate {
  space::Candidate candidate;
  ProgramSource source;
  std::string trace;  // of the candidate on this task, as text
};

// Which programs may be taken.
struct SeedOptions {
  size_t same_task = 3;  // at most: of the same task, on whatever device
  // At most: of tasks of the same kernel class. A search measures fewer, which its scores choose (TuneOptions::seeds).
  size_t other_tasks = 8;
  // Where given, only of these tasks, by key.
  std::optional<std::set<std::string>> only_tasks = {};
};

class WarmStart {
 public:
  // A database or an export of records (`db export`), plain or zstd. Takes the fastest few programs of each task and
  // device, without those that are faster than their device can be and those that say nothing of their place in a
  // design space. Errors: a file that cannot be read or holds no records (kCorrupt).
  Status add_file(const std::string& path);
  // The same of an open database; name: for people.
  Status add_database(record::Database& database, const std::string& name);

  // Drops the programs of these tasks, by key.
  void forget(const std::set<std::string>& task_keys);

  bool empty() const { return programs_.empty(); }
  // Of a task, by key: how many programs there are. 0: none.
  size_t programs_of(const std::string& task_key) const;
  // Tasks with programs, of the kernel class of the workload.
  std::vector<std::string> tasks_of_class(uint64_t kernel_class) const;
  // Of a task with programs.
  const ir::Workload& workload_of(const std::string& task_key) const {
    return *programs_.at(task_key).workload;
  }
  // Of a task: seconds of the untuned program over those of the fastest one, where both were measured on one device.
  std::optional<double> speedup_of(const std::string& task_key) const;

  // Candidates of the space, those that promise most first: programs of the same task, most similar device first; then
  // of tasks of the same class, nearest in shape first. Tiles are made to fit the new shapes (DesignSpace::rescale). A
  // record whose place in its design space no longer gives its trace is skipped. Thread-safe.
  std::vector<SeededCandidate> seeds(const graph::Task& task, const space::DesignSpace& space,
                                     const target::Device& device, const SeedOptions& options) const;

 private:
  struct Program {
    space::Candidate candidate;
    std::string trace;
    std::string device_key;
    double seconds = 0;
    size_t file = 0;
  };
  struct Task {
    std::string name, text;
    double flops = 0;
    uint64_t kernel_class = 0;
    std::optional<ir::Workload> workload;
    std::vector<Program> programs;                  // fastest first, the fastest few of each device
    std::map<std::string, double> default_seconds;  // by device key
  };
  // The space of a source: null where it cannot be built.
  std::shared_ptr<const space::DesignSpace> space_of(const std::string& task_key,
                                                     const std::string& device_key) const;
  // What a program becomes; nothing where it has no place there.
  std::optional<space::Candidate> adapt(const std::string& task_key, const Program& program,
                                        const space::DesignSpace& space) const;

  std::vector<std::string> files_;
  std::map<std::string, target::Device> devices_;  // by key
  std::map<std::string, Task> programs_;           // by task key
  struct Spaces {
    std::mutex mutex;
    std::map<std::pair<std::string, std::string>, std::shared_ptr<const space::DesignSpace>> made;
  };
  std::shared_ptr<Spaces> spaces_ = std::make_shared<Spaces>();
};

}  // namespace tensorsmith::engine
