// The fleet on an SQL session. Internal to src/record.
#pragma once

#include <memory>
#include <mutex>

#include "record/fleet.h"
#include "record/sql/session.h"

namespace tensorsmith::record {

class SqlFleet final : public Fleet {
 public:
  explicit SqlFleet(std::unique_ptr<SqlSession> session) : session_(std::move(session)) {}

  Status prepare();  // creates missing tables

  Status post(const std::vector<Job>& jobs) override;
  Result<std::vector<JobAnswer>> answers(const std::vector<std::string>& keys, int64_t& missing) override;
  Status withdraw(const std::vector<std::string>& keys) override;
  Result<int64_t> workers(const std::string& device_key, int threads, double seconds) override;
  Result<FleetCounts> counts() override;
  Status join(const FleetWorker& worker) override;
  Result<std::vector<Job>> take(const FleetWorker& worker, size_t count, double lease_seconds) override;
  Result<bool> finish(const FleetWorker& worker, const Job& job, const Record& record, int64_t next) override;
  Status beat(const FleetWorker& worker, double lease_seconds) override;
  Status give_back(const FleetWorker& worker, bool blameless) override;
  Status leave(const FleetWorker& worker) override;
  Status quarantine(const FleetWorker& worker, const std::string& reason) override;
  Status release(const FleetWorker& worker) override;

 private:
  Status change(const std::string& sql, const SqlValues& values);
  // Runs one statement in a transaction of its own.
  Status change_alone(const std::string& sql, const SqlValues& values);
  Result<bool> any(const std::string& sql, const SqlValues& values);
  Status free_jobs_of(const FleetWorker& worker, bool blameless);

  std::unique_ptr<SqlSession> session_;
  std::mutex mutex_;
};

}  // namespace tensorsmith::record
