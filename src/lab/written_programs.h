// Programs that a language model wrote, in a file, so that they can be measured later or on another machine.
// The file has JSON lines: a header, the device, and then each task followed by its programs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/sinks.h"
#include "engine/fleet/fleet_measurer.h"
#include "record/database.h"
#include "search/prepared_task.h"
#include "search/tuner.h"
#include "target/target.h"

namespace tensorsmith::lab {

struct WrittenProgram {
  space::Candidate candidate;
  std::string trace;  // sched::print of the candidate's trace
  double log_likelihood = 0;
};

struct WrittenTask {
  record::TaskInfo task;
  std::vector<WrittenProgram> programs;  // as they were generated
};

struct WrittenPrograms {
  record::DeviceInfo device;  // that they were written for
  std::vector<WrittenTask> tasks;
};

// Adds a task of which a model generated these candidates. Errors: those of DesignSpace::to_trace.
Status add_written(const search::PreparedTask& task, const std::vector<WrittenProgram>& programs,
                   WrittenPrograms& to);

// The file is replaced atomically. Errors: those of record::AtomicFileWriter.
Status save_written(const WrittenPrograms& programs, const std::string& path);
// Errors: those of record::LineReader; kMismatch for a file of another kind or version; kCorrupt for a
// damaged line (place: file and line).
Result<WrittenPrograms> read_written(const std::string& path);

struct MeasuredTask {
  std::string key, name;
  int64_t programs = 0;  // that can be measured, without the untuned one
  int64_t left_out = 0;  // whose trace is not in the task's design space for the device
  int64_t failed = 0;
  // Seconds of one call; +inf: the program did not run.
  double untuned_seconds = std::numeric_limits<double>::infinity();
  double best_seconds = std::numeric_limits<double>::infinity();
};

struct WrittenMeasurements {
  std::vector<MeasuredTask> tasks;
  int64_t trials = 0;  // new measurements; the others were in the database
};

struct WrittenMeasuring {
  engine::Where where;  // its database gets the measurements
  int64_t count = 0;    // most programs of a task, the likeliest first; 0: all
  int threads = 1;      // of the preparation
};

// Measures the untuned program and the written programs of each task on this machine, except for those that
// the database has. Continues after an interruption. kMismatch if no program is of the design spaces for this
// device; kCancelled when `cancel` is set; kUnsupported for a device that is not local.
Result<WrittenMeasurements> measure_written(const WrittenPrograms& written, const target::Device& device,
                                            const WrittenMeasuring& options, const Clock& clock, LogSink& log,
                                            const search::ProgressFn& progress,
                                            const std::atomic<bool>& cancel);

}  // namespace tensorsmith::lab
