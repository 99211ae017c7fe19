// Groups records of Ansor and of MetaSchedule by task and device, for language models.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "learn/dataset/import.h"
#include "record/ansor/ansor_parts.h"
#include "record/ansor/workloads.h"
#include "target/target.h"

namespace tensorsmith::lab {

// A sketch of a task with its recorded programs.
struct RecordedSketch {
  sched::Trace sketch;
  std::vector<sched::Trace> placements;
  std::string like;  // the JSON text of a record's task (AnsorRecord::task); empty for MetaSchedule's
  struct Program {
    size_t placement = 0;
    std::vector<int32_t> numbers;
    double seconds = 0;
  };
  std::vector<Program> programs;  // only measured programs

  record::AnsorParts parts_of(const Program& program) const;
};

struct RecordedTask {
  std::shared_ptr<const record::ForeignTask> task;
  size_t device = 0;  // index into RecordedTasks::devices
  std::vector<RecordedSketch> sketches;

  double best_seconds() const;
  // Returns its programs as (sketch, program) indices, the fastest first.
  std::vector<std::pair<size_t, size_t>> fastest_first() const;
};

struct RecordedTasks {
  std::vector<target::Device> devices;
  std::vector<RecordedTask> tasks;  // in the order of their first records
  int64_t records = 0, failed = 0, unusable = 0;
};

// `wanted` tells by a task's structural key whether to read the task. An unmeasured program
// contributes only its sketch. The first record of each placement is replayed; if it does not
// replay, all records of the placement are unusable. Errors: those of the files; kNotFound for an
// unknown device.
Result<RecordedTasks> read_recorded_tasks(const std::vector<learn::ImportFile>& files,
                                          const record::AnsorWorkloads& workloads,
                                          const std::function<bool(const std::string& key)>& wanted);
// The same for databases of MetaSchedule. Each record is replayed, and the steps that this gives are split
// like those of Ansor's records. A record that does not replay is unusable.
Result<RecordedTasks> read_recorded_tasks(const std::vector<learn::MetaScheduleDatabase>& databases,
                                          const std::function<bool(const std::string& key)>& wanted);

// Whether a task belongs to a share of all tasks, chosen by a hash of the task's structural key.
bool in_share(const std::string& key, double share);

}  // namespace tensorsmith::lab
