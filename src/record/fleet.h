// Distributed measurements: clients post jobs in the record database, and workers take them with a
// lease that they renew while they live. Jobs of a worker that died are taken over by another one;
// one result of each job counts.
//
// All times are those of the database's clock. Errors are those of record/database.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "record/record.h"

namespace tensorsmith::record {

// Number of times that a job may end its worker before it is given up.
inline constexpr int kMaxJobAttempts = 6;

struct Job {
  int64_t id = 0;  // assigned by the database
  // Identifies the job, so posting it twice makes one; the record's key if it becomes a record.
  std::string key;
  bool recorded = true;  // its result becomes a record
  std::string task_key, device_key;
  MeasureSettings settings;
  std::string trace;  // sched::print
  CandidateOrigin candidate;
  std::string protocol;     // how it is timed, in a format that client and worker share
  double best_seconds = 0;  // of the task's fastest program, 0 = not known
  std::string task_text;    // printed task, filled in by take()
};

struct JobAnswer {
  std::string key;
  std::optional<Record> record;  // nullopt: the job was given up
  std::string reason;            // why it was given up
};

struct FleetWorker {
  std::string owner;  // unique name
  std::string host;
  std::string device_key;
  int threads = 1;
};

struct FleetCounts {
  int64_t waiting = 0, taken = 0, done = 0, failed = 0;
};

class Fleet {
 public:
  // Opens a connection of its own to the database; `path` as for Database::open().
  static Result<std::unique_ptr<Fleet>> open(const std::string& path);
  virtual ~Fleet() = default;

  // --- clients

  // Adds jobs whose key is missing. A job that was given up waits again. Removes jobs that ended
  // more than a day ago.
  virtual Status post(const std::vector<Job>& jobs) = 0;
  // Returns the answers of those jobs that ended, in no particular order. `missing` is the number
  // of jobs that do not exist, because others withdrew them.
  virtual Result<std::vector<JobAnswer>> answers(const std::vector<std::string>& keys, int64_t& missing) = 0;
  // Removes those jobs that no worker has taken.
  virtual Status withdraw(const std::vector<std::string>& keys) = 0;
  // Number of the device's workers that sent a heartbeat in the last `seconds`.
  virtual Result<int64_t> workers(const std::string& device_key, int threads, double seconds) = 0;
  virtual Result<FleetCounts> counts() = 0;

  // --- workers

  // kMismatch with the reason: this host's device is in quarantine.
  virtual Status join(const FleetWorker& worker) = 0;
  // Takes up to `count` jobs of one task for the worker's device and settings, oldest first, for
  // lease_seconds. Jobs that the worker had taken before are given back.
  virtual Result<std::vector<Job>> take(const FleetWorker& worker, size_t count, double lease_seconds) = 0;
  // Stores the job's result, and its record if job.recorded. next: the id of the job that the
  // worker begins now, 0 = none. False: the lease had expired and another worker has the job, or
  // the job was withdrawn; nothing is stored.
  virtual Result<bool> finish(const FleetWorker& worker, const Job& job, const Record& record,
                              int64_t next) = 0;
  // Heartbeat: extends the worker's leases to lease_seconds from now.
  virtual Status beat(const FleetWorker& worker, double lease_seconds) = 0;
  // Releases all jobs that the worker has taken. blameless: their attempts do not count against
  // them.
  virtual Status give_back(const FleetWorker& worker, bool blameless) = 0;
  virtual Status leave(const FleetWorker& worker) = 0;  // gives back its jobs first
  // Gives back the worker's jobs and rejects all workers of the host's device until release().
  virtual Status quarantine(const FleetWorker& worker, const std::string& reason) = 0;
  virtual Status release(const FleetWorker& worker) = 0;
};

}  // namespace tensorsmith::record
