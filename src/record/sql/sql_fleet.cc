#include "record/sql/sql_fleet.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "record/jsonl.h"
#include "record/sql/columns.h"

namespace tensorsmith::record {

namespace {

constexpr int64_t kDayMs = 24 * 3600 * 1000;
constexpr size_t kJobsAtOnce = 32;
constexpr size_t kJobColumnCount = 15;
constexpr const char* kJobColumns =
    "key, recorded, task_key, device_key, threads, flush_cache, code_version, trace, note, why, strategy, "
    "sketch, "
    "decisions, protocol, best_seconds";

SqlValues job_values(const Job& job) {
  SqlValues values{job.key,
                   job.recorded,
                   job.task_key,
                   job.device_key,
                   job.settings.threads,
                   job.settings.flush_cache,
                   kCodeVersion,
                   job.trace};
  for (SqlValue& value : candidate_values(job.candidate)) values.push_back(std::move(value));
  values.emplace_back(job.protocol);
  values.emplace_back(std::isfinite(job.best_seconds) ? job.best_seconds : 0.0);
  return values;
}

int64_t milliseconds(double seconds) { return static_cast<int64_t>(seconds * 1000); }

// Appends the keys to the values and returns "($1, $2, $3)".
std::string list(const std::vector<std::string>& keys, SqlValues& values) {
  for (const std::string& key : keys) values.emplace_back(key);
  return placeholders(1, keys.size());
}

}  // namespace

Status SqlFleet::prepare() {
  TS_ASSIGN_OR_RETURN(const bool there, session_->has(SqlTable::kFleet));
  if (there) return {};
  return session_->transaction([&] { return session_->ensure(SqlTable::kFleet); });
}

Status SqlFleet::change(const std::string& sql, const SqlValues& values) {
  TS_ASSIGN_OR_RETURN([[maybe_unused]] const int64_t rows, session_->change(sql, values));
  return {};
}

Status SqlFleet::change_alone(const std::string& sql, const SqlValues& values) {
  const std::lock_guard lock(mutex_);
  return session_->transaction([&] { return change(sql, values); });
}

Result<bool> SqlFleet::any(const std::string& sql, const SqlValues& values) {
  TS_ASSIGN_OR_RETURN(const auto rows, session_->query(sql, values));
  return rows->step();
}

Status SqlFleet::post(const std::vector<Job>& jobs) {
  const std::lock_guard lock(mutex_);
  return session_->transaction([&]() -> Status {
    TS_RETURN_IF_ERROR(change(std::string("DELETE FROM job WHERE state IN ('done', 'failed') AND ended_ms<") +
                                  session_->now_ms() + " - $1",
                              {kDayMs}));
    for (size_t begin = 0; begin < jobs.size(); begin += kJobsAtOnce) {
      const size_t rows = std::min(kJobsAtOnce, jobs.size() - begin);
      SqlValues values;
      for (size_t i = 0; i < rows; ++i)
        for (SqlValue& value : job_values(jobs[begin + i])) values.push_back(std::move(value));
      TS_RETURN_IF_ERROR(change(
          std::string("INSERT INTO job(") + kJobColumns + ") VALUES" + placeholders(rows, kJobColumnCount) +
              " ON CONFLICT (key) DO UPDATE SET state='waiting', attempts=0, owner='' WHERE "
              "job.state='failed'",
          values));
    }
    return {};
  });
}

Result<std::vector<JobAnswer>> SqlFleet::answers(const std::vector<std::string>& keys, int64_t& missing) {
  missing = 0;
  std::vector<JobAnswer> out;
  if (keys.empty()) return out;
  const std::lock_guard lock(mutex_);
  SqlValues values;
  const std::string in = list(keys, values);
  TS_ASSIGN_OR_RETURN(
      const auto rows,
      session_->query("SELECT key, state, CASE WHEN state IN ('done', 'failed') THEN result ELSE "
                      "'' END FROM job WHERE key IN " +
                          in,
                      values));
  std::set<std::string> found;
  while (true) {
    TS_ASSIGN_OR_RETURN(const bool row, rows->step());
    if (!row) break;
    found.insert(rows->text(0));
    const std::string state = rows->text(1);
    if (state == "failed") out.push_back({rows->text(0), std::nullopt, rows->text(2)});
    if (state != "done") continue;
    auto line = parse_json_line(rows->text(2));
    if (!line.ok() || !std::holds_alternative<Record>(*line))
      return Error{ErrorCode::kCorrupt, session_->place(),
                   "the result of job " + rows->text(0) + " is not a record"};
    out.push_back({rows->text(0), std::get<Record>(std::move(line).value()), ""});
  }
  missing = static_cast<int64_t>(std::set<std::string>(keys.begin(), keys.end()).size() - found.size());
  return out;
}

Status SqlFleet::withdraw(const std::vector<std::string>& keys) {
  if (keys.empty()) return {};
  SqlValues values;
  const std::string in = list(keys, values);
  return change_alone("DELETE FROM job WHERE key IN " + in + " AND state='waiting'", values);
}

Result<int64_t> SqlFleet::workers(const std::string& device_key, int threads, double seconds) {
  const std::lock_guard lock(mutex_);
  TS_ASSIGN_OR_RETURN(
      const auto rows,
      session_->query(std::string("SELECT count(*) FROM worker WHERE device_key=$1 AND threads=$2 AND "
                                  "state='active' AND seen_ms>") +
                          session_->now_ms() + " - $3",
                      {device_key, threads, milliseconds(seconds)}));
  TS_ASSIGN_OR_RETURN(const bool row, rows->step());
  return row ? rows->integer(0) : int64_t{0};
}

Result<FleetCounts> SqlFleet::counts() {
  const std::lock_guard lock(mutex_);
  TS_ASSIGN_OR_RETURN(const auto rows, session_->query("SELECT state, count(*) FROM job GROUP BY state", {}));
  FleetCounts counts;
  while (true) {
    TS_ASSIGN_OR_RETURN(const bool row, rows->step());
    if (!row) return counts;
    const std::string state = rows->text(0);
    (state == "waiting" ? counts.waiting
     : state == "taken" ? counts.taken
     : state == "done"  ? counts.done
                        : counts.failed) = rows->integer(1);
  }
}

Status SqlFleet::join(const FleetWorker& worker) {
  const std::lock_guard lock(mutex_);
  TS_ASSIGN_OR_RETURN(
      const auto rows,
      session_->query(
          "SELECT reason FROM worker WHERE host=$1 AND device_key=$2 AND state='quarantined' LIMIT 1",
          {worker.host, worker.device_key}));
  TS_ASSIGN_OR_RETURN(const bool row, rows->step());
  if (row)
    return Error{ErrorCode::kMismatch, session_->place(),
                 "this device of " + worker.host + " is in quarantine (" + rows->text(0) +
                     "); when it is repaired, start the worker with --release"};
  return session_->transaction([&] {
    return change(
        std::string("INSERT INTO worker(owner, host, device_key, threads, started_ms, seen_ms, state, "
                    "reason) VALUES($1, $2, $3, $4, ") +
            session_->now_ms() + ", " + session_->now_ms() + ", 'active', '') ON CONFLICT DO NOTHING",
        {worker.owner, worker.host, worker.device_key, worker.threads});
  });
}

Result<std::vector<Job>> SqlFleet::take(const FleetWorker& worker, size_t count, double lease_seconds) {
  const std::lock_guard lock(mutex_);
  const std::string now = session_->now_ms();
  const std::string mine = "device_key=$1 AND threads=$2 AND code_version=$3";
  const std::string expired = "(state='taken' AND expires_ms<" + now + ")";
  const SqlValues device{worker.device_key, worker.threads, kCodeVersion};
  std::vector<Job> jobs;
  // Checks for jobs without a lock first.
  TS_ASSIGN_OR_RETURN(
      const bool some,
      any("SELECT 1 FROM job WHERE " + mine + " AND (state='waiting' OR " + expired + ") LIMIT 1", device));
  if (!some) return jobs;
  Status taken = session_->transaction([&]() -> Status {
    jobs.clear();
    TS_RETURN_IF_ERROR(
        change("UPDATE job SET state='waiting', owner='' WHERE owner=$1 AND state='taken'", {worker.owner}));
    SqlValues given_up = device;
    given_up.emplace_back(kMaxJobAttempts);
    given_up.emplace_back("given up: " + std::to_string(kMaxJobAttempts) +
                          " workers failed while they measured it");
    TS_RETURN_IF_ERROR(change("UPDATE job SET state='failed', owner='', ended_ms=" + now +
                                  ", result=$5 WHERE " + mine + " AND attempts>=$4 AND (state='waiting' OR " +
                                  expired + ")",
                              given_up));
    TS_RETURN_IF_ERROR(
        change("UPDATE job SET state='waiting', owner='' WHERE " + mine + " AND " + expired, device));
    // Takes jobs of one task and protocol, those of the job that has waited longest.
    TS_ASSIGN_OR_RETURN(const auto first,
                        session_->query("SELECT task_key, protocol, flush_cache FROM job WHERE " + mine +
                                            " AND state='waiting' ORDER BY id LIMIT 1",
                                        device));
    TS_ASSIGN_OR_RETURN(const bool row, first->step());
    if (!row) return {};
    SqlValues values = device;
    values.emplace_back(first->text(0));
    values.emplace_back(first->text(1));
    values.emplace_back(first->integer(2));
    values.emplace_back(static_cast<int64_t>(count));
    TS_ASSIGN_OR_RETURN(
        const auto rows,
        session_->query(
            "SELECT id, key, recorded, trace, best_seconds, note, why, strategy, sketch, decisions, "
            "(SELECT text FROM task WHERE task.key=job.task_key) FROM job WHERE " +
                mine +
                " AND task_key=$4 AND protocol=$5 AND flush_cache=$6 AND state='waiting' ORDER BY id "
                "LIMIT $7",
            values));
    while (true) {
      TS_ASSIGN_OR_RETURN(const bool more, rows->step());
      if (!more) break;
      Job job;
      job.id = rows->integer(0);
      job.key = rows->text(1);
      job.recorded = rows->integer(2) != 0;
      job.task_key = first->text(0);
      job.device_key = worker.device_key;
      job.settings = {worker.threads, first->integer(2) != 0};
      job.trace = rows->text(3);
      job.best_seconds = rows->real(4);
      auto candidate = read_candidate(*rows, 5);
      if (!candidate)
        return Error{ErrorCode::kCorrupt, session_->place(),
                     "job " + job.key + " is damaged (its point of the design space); delete its row"};
      job.candidate = *std::move(candidate);
      job.task_text = rows->text(10);
      job.protocol = first->text(1);
      jobs.push_back(std::move(job));
    }
    for (size_t i = 0; i < jobs.size(); ++i)
      TS_RETURN_IF_ERROR(
          change("UPDATE job SET state='taken', owner=$1, expires_ms=" + now +
                     " + $2, attempts=attempts + $3 WHERE id=$4",
                 {worker.owner, milliseconds(lease_seconds), int64_t{i == 0 ? 1 : 0}, jobs[i].id}));
    return {};
  });
  TS_RETURN_IF_ERROR(std::move(taken));
  return jobs;
}

Result<bool> SqlFleet::finish(const FleetWorker& worker, const Job& job, const Record& record, int64_t next) {
  if (auto status = check_record(record); !status.ok())
    return Error{status.error().code, session_->place(), status.error().reason};
  const std::lock_guard lock(mutex_);
  bool kept = false;
  Status finished = session_->transaction([&]() -> Status {
    TS_ASSIGN_OR_RETURN(
        const int64_t rows,
        session_->change(std::string("UPDATE job SET state='done', ended_ms=") + session_->now_ms() +
                             ", result=$1 WHERE id=$2 AND owner=$3 AND state='taken'",
                         {to_json_line(record), job.id, worker.owner}));
    if (rows == 0) {
      // Stored before, by an attempt whose answer was lost with the connection.
      TS_ASSIGN_OR_RETURN(
          kept, any("SELECT 1 FROM job WHERE id=$1 AND owner=$2 AND state='done'", {job.id, worker.owner}));
      return {};
    }
    kept = true;
    if (job.recorded) TS_RETURN_IF_ERROR(change(insert_records_sql(1), record_values(record)));
    if (next == 0) return {};
    return change("UPDATE job SET attempts=attempts + 1 WHERE id=$1 AND owner=$2", {next, worker.owner});
  });
  TS_RETURN_IF_ERROR(std::move(finished));
  return kept;
}

Status SqlFleet::beat(const FleetWorker& worker, double lease_seconds) {
  const std::lock_guard lock(mutex_);
  return session_->transaction([&]() -> Status {
    TS_RETURN_IF_ERROR(change(
        std::string("UPDATE worker SET seen_ms=") + session_->now_ms() + " WHERE owner=$1", {worker.owner}));
    return change(std::string("UPDATE job SET expires_ms=") + session_->now_ms() +
                      " + $1 WHERE owner=$2 AND state='taken'",
                  {milliseconds(lease_seconds), worker.owner});
  });
}

Status SqlFleet::free_jobs_of(const FleetWorker& worker, bool blameless) {
  // Undoes the attempt that was counted when the worker began a job. The update does not
  // distinguish that job from the other jobs that the worker has taken.
  return change(std::string("UPDATE job SET state='waiting', owner=''") +
                    (blameless ? ", attempts=CASE WHEN attempts>0 THEN attempts - 1 ELSE 0 END" : "") +
                    " WHERE owner=$1 AND state='taken'",
                {worker.owner});
}

Status SqlFleet::give_back(const FleetWorker& worker, bool blameless) {
  const std::lock_guard lock(mutex_);
  return session_->transaction([&] { return free_jobs_of(worker, blameless); });
}

Status SqlFleet::leave(const FleetWorker& worker) {
  const std::lock_guard lock(mutex_);
  return session_->transaction([&]() -> Status {
    TS_RETURN_IF_ERROR(free_jobs_of(worker, /*blameless=*/true));
    return change("UPDATE worker SET state='ended' WHERE owner=$1 AND state='active'", {worker.owner});
  });
}

Status SqlFleet::quarantine(const FleetWorker& worker, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  return session_->transaction([&]() -> Status {
    TS_RETURN_IF_ERROR(free_jobs_of(worker, /*blameless=*/true));
    return change("UPDATE worker SET state='quarantined', reason=$1 WHERE owner=$2", {reason, worker.owner});
  });
}

Status SqlFleet::release(const FleetWorker& worker) {
  return change_alone(
      "UPDATE worker SET state='ended' WHERE host=$1 AND device_key=$2 AND state='quarantined'",
      {worker.host, worker.device_key});
}

}  // namespace tensorsmith::record
