// Measurements that somebody asks for and others make: jobs in the record database, taken by workers for a time that they
// prolong while they live. What a worker that died had taken is taken by another one; of each job one result counts.
//
// The database's clock decides. Errors are those of record/database.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "record/record.h"

namespace tensorsmith::record {

// How often a job may take its worker down before it is given up.
inline constexpr int kMaxJobAttempts = 6;

struct Job {
  int64_t id = 0;   // given by the database
  std::string key;  // names the job: posted twice it is one. Of a job that becomes a record, the record's key
  bool recorded = true;  // its result becomes a record
  std::string task_key, device_key;
  MeasureSettings settings;
  std::string trace;  // sched::print
  Candidate candidate;
  std::string protocol;     // how it is timed, as the asker and the worker understand it
  double best_seconds = 0;  // of the task's fastest program, 0 = not known
  std::string task_text;    // of the task, filled in by take()
};

struct JobAnswer {
  std::string key;
  std::optional<Record> record;  // none: given up
  std::string reason;            // why
};

struct FleetWorker {
  std::string owner;  // a name of its own
  std::string host;
  std::string device_key;
  int threads = 1;
};

struct FleetCounts {
  int64_t waiting = 0, taken = 0, done = 0, failed = 0;
};

class Fleet {
 public:
  // A connection of its own to the database; path as of Database::open().
  static Result<std::unique_ptr<Fleet>> open(const std::string& path);
  virtual ~Fleet() = default;

  // --- who asks

  // Adds those whose key is not there. One that was given up waits again. Forgets jobs that ended more than a day ago.
  virtual Status post(const std::vector<Job>& jobs) = 0;
  // Those of the jobs that ended, in no particular order. missing: how many are not there, as others withdrew them.
  virtual Result<std::vector<JobAnswer>> answers(const std::vector<std::string>& keys, int64_t& missing) = 0;
  // Removes those that nobody has taken.
  virtual Status withdraw(const std::vector<std::string>& keys) = 0;
  // How many workers of the device gave a sign of life in the last so many seconds.
  virtual Result<int64_t> workers(const std::string& device_key, int threads, double seconds) = 0;
  virtual Result<FleetCounts> counts() = 0;

  // --- workers

  // kMismatch: the device of this host is in quarantine, with the reason.
  virtual Status join(const FleetWorker& worker) = 0;
  // Up to `count` jobs of one task for the worker's device and settings, oldest first, for lease_seconds; all that it had
  // taken before is given back.
  virtual Result<std::vector<Job>> take(const FleetWorker& worker, size_t count, double lease_seconds) = 0;
  // The job's result, and if it says so its record. next: the job that the worker begins with now, 0 = none. False: the
  // worker's time was over and another one has the job, or nobody wants it any more; nothing is kept.
  virtual Result<bool> finish(const FleetWorker& worker, const Job& job, const Record& record,
                              int64_t next) = 0;
  // A sign of life: what the worker has taken stays its own for lease_seconds from now on.
  virtual Status beat(const FleetWorker& worker, double lease_seconds) = 0;
  // All that the worker has taken is free again. blameless: none of it is to blame.
  virtual Status give_back(const FleetWorker& worker, bool blameless) = 0;
  virtual Status leave(const FleetWorker& worker) = 0;  // gives back, too
  // Gives back and keeps every worker of the host's device away until release().
  virtual Status quarantine(const FleetWorker& worker, const std::string& reason) = 0;
  virtual Status release(const FleetWorker& worker) = 0;
};

}  // namespace tensorsmith::record
