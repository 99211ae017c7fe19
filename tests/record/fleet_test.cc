// Jobs and the workers that measure them, in a file and on a server.
#include "record/fleet.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <set>
#include <thread>

#include "postgresql_server.h"
#include "record_testing.h"

namespace tensorsmith::record::fleet_test {
namespace {

using tensorsmith::testing::PostgresqlServer;
using ::testing::HasSubstr;
using testing::make_record;
using testing::TempDir;

void sleep_ms(long ms) {
  const timespec time{ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, nullptr);
}

Job job_of(const Record& record) {
  Job job;
  job.key = record.key();
  job.task_key = record.task_key;
  job.device_key = record.device_key;
  job.settings = record.settings;
  job.trace = record.trace;
  job.candidate = record.candidate;
  job.protocol = "short";
  job.best_seconds = 0.5;
  return job;
}

class FleetTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && PostgresqlServer::get() == nullptr) GTEST_SKIP() << PostgresqlServer::why_not();
    place_ = GetParam() ? PostgresqlServer::get()->new_database() : dir_.file("a.db");
    database_ = std::move(Database::open(place_)).value();
    ASSERT_TRUE(database_->add_task({"task0", "the text", "name", 1}).ok());
    fleet_ = open();
  }
  std::unique_ptr<Fleet> open() const {
    auto fleet = Fleet::open(place_);
    EXPECT_TRUE(fleet.ok()) << fleet.error().message();
    return std::move(fleet).value();
  }
  std::vector<std::string> post(int first, int count) const {
    std::vector<Job> jobs;
    std::vector<std::string> keys;
    for (int i = first; i < first + count; ++i) jobs.push_back(job_of(make_record(i)));
    for (const Job& job : jobs) keys.push_back(job.key);
    EXPECT_TRUE(fleet_->post(jobs).ok());
    return keys;
  }
  std::vector<Job> take(const FleetWorker& worker, size_t count, double lease = 60) const {
    auto jobs = fleet_->take(worker, count, lease);
    EXPECT_TRUE(jobs.ok()) << jobs.error().message();
    return std::move(jobs).value();
  }
  bool finish(const FleetWorker& worker, const Job& job, int number) const {
    const auto kept = fleet_->finish(worker, job, make_record(number), 0);
    EXPECT_TRUE(kept.ok()) << kept.error().message();
    return kept.value();
  }

  const TempDir dir_;
  std::string place_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Fleet> fleet_;
  const FleetWorker a_{"a", "host1", "device0", 2}, b_{"b", "host2", "device0", 2};
};
INSTANTIATE_TEST_SUITE_P(, FleetTest, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "PostgreSQL" : "SQLite"; });

TEST_P(FleetTest, AJobBecomesOneRecord) {
  ASSERT_TRUE(fleet_->join(a_).ok());
  EXPECT_EQ(fleet_->workers("device0", 2, 60).value(), 1);
  EXPECT_EQ(fleet_->workers("device0", 1, 60).value(), 0);
  EXPECT_TRUE(take(a_, 4).empty());
  const auto keys = post(0, 3);
  post(0, 2);  // a job that exists is not duplicated
  const auto jobs = take(a_, 2);
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].key, keys[0]);
  EXPECT_EQ(jobs[0].task_text, "the text");
  EXPECT_EQ(jobs[0].trace, make_record(0).trace);
  EXPECT_EQ(jobs[0].candidate, make_record(0).candidate);
  EXPECT_EQ(jobs[0].protocol, "short");
  EXPECT_EQ(jobs[0].best_seconds, 0.5);
  EXPECT_TRUE(jobs[0].settings == make_record(0).settings);
  EXPECT_EQ(take(b_, 4).size(), 1U);
  EXPECT_TRUE(finish(a_, jobs[0], 0));
  EXPECT_TRUE(finish(a_, jobs[0], 0)) << "whose answer was lost may ask again";
  EXPECT_FALSE(finish(b_, jobs[1], 1)) << "is another worker's";
  int64_t missing = 0;
  const auto answers = fleet_->answers({keys[0], keys[1], "none"}, missing);
  ASSERT_TRUE(answers.ok());
  ASSERT_EQ(answers->size(), 1U);
  EXPECT_EQ(missing, 1);
  EXPECT_TRUE(testing::same(*answers->front().record, make_record(0)));
  EXPECT_EQ(database_->record_count().value(), 1);
  EXPECT_TRUE(testing::same(*database_->find(keys[0]).value(), make_record(0)));
  const auto counts = fleet_->counts().value();
  EXPECT_EQ(counts.done, 1);
  EXPECT_EQ(counts.taken, 2);
  ASSERT_TRUE(fleet_->leave(a_).ok());
  EXPECT_EQ(fleet_->counts()->waiting, 1);
  EXPECT_EQ(fleet_->workers("device0", 2, 60).value(), 0);
}

TEST_P(FleetTest, ADamagedJobIsAnError) {
  if (!GetParam()) GTEST_SKIP() << "the statement runs on a server";
  post(0, 1);
  PostgresqlServer::run(place_, "UPDATE tensorsmith.job SET sketch=-1");
  const auto jobs = fleet_->take(a_, 1, 60);
  ASSERT_FALSE(jobs.ok());
  EXPECT_EQ(jobs.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(jobs.error().message(), HasSubstr("is damaged"));
}

TEST_P(FleetTest, OtherDevicesThreadsAndTasksWait) {
  Job other_device = job_of(make_record(1)), other_threads = job_of(make_record(2)),
      other_task = job_of(make_record(3));
  other_device.device_key = "device1";
  other_threads.settings.threads = 1;
  other_task.task_key = "task1";
  Job unrecorded = job_of(make_record(4));
  unrecorded.recorded = false;
  ASSERT_TRUE(fleet_->post({other_device, other_threads, unrecorded, other_task}).ok());
  auto jobs = take(a_, 9);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].key, unrecorded.key);
  EXPECT_TRUE(finish(a_, jobs[0], 4));
  EXPECT_EQ(database_->record_count().value(), 0);
  int64_t missing = 0;
  EXPECT_TRUE(fleet_->answers({unrecorded.key}, missing)->front().record.has_value());
  jobs = take(a_, 9);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].key, other_task.key);
  ASSERT_TRUE(fleet_->withdraw({other_task.key, other_device.key}).ok());
  EXPECT_EQ(fleet_->counts()->taken, 1);
  EXPECT_EQ(fleet_->counts()->waiting, 1);
}

TEST_P(FleetTest, WhatASilentWorkerHadIsTakenByAnother) {
  post(0, 2);
  const auto lost = take(a_, 2, 0.2);
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_TRUE(take(b_, 2).empty());
  sleep_ms(100);
  ASSERT_TRUE(fleet_->beat(a_, 0.4).ok());
  sleep_ms(200);
  EXPECT_TRUE(take(b_, 2).empty()) << "a sign of life prolongs it";
  sleep_ms(300);
  const auto jobs = take(b_, 2);
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_FALSE(finish(a_, lost[0], 0)) << "too late";
  EXPECT_EQ(database_->record_count().value(), 0);
  EXPECT_TRUE(finish(b_, jobs[0], 0));
  // The result is late, but no other worker took the job.
  post(5, 1);
  const auto late = take(a_, 1, 0.05);
  sleep_ms(100);
  EXPECT_TRUE(finish(a_, late.at(0), 5));
}

TEST_P(FleetTest, AJobThatKillsItsWorkersIsGivenUp) {
  const auto keys = post(0, 2);
  for (int i = 0; i < kMaxJobAttempts; ++i) {
    const auto jobs = take(a_, 2, 0);
    ASSERT_EQ(jobs.size(), 2U) << i;
    EXPECT_EQ(jobs[0].key, keys[0]);
    sleep_ms(5);
  }
  // The job beside it never began.
  const auto jobs = take(b_, 2);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].key, keys[1]);
  int64_t missing = 0;
  const auto answers = fleet_->answers(keys, missing).value();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_FALSE(answers[0].record.has_value());
  EXPECT_THAT(answers[0].reason, HasSubstr("workers failed"));
  EXPECT_EQ(database_->record_count().value(), 0);
  // Posting the job again gets it measured again; a worker that gives a job back does not count as
  // lost.
  ASSERT_TRUE(fleet_->leave(b_).ok());
  ASSERT_TRUE(fleet_->post({job_of(make_record(0))}).ok());
  for (int i = 0; i < 2 * kMaxJobAttempts; ++i) {
    EXPECT_EQ(take(a_, 1).at(0).key, keys[0]);
    ASSERT_TRUE(fleet_->give_back(a_, /*blameless=*/true).ok());
  }
}

TEST_P(FleetTest, AQuarantineKeepsTheDeviceAway) {
  post(0, 1);
  ASSERT_TRUE(fleet_->join(a_).ok());
  ASSERT_EQ(take(a_, 1).size(), 1U);
  ASSERT_TRUE(fleet_->quarantine(a_, "the fan is broken").ok());
  EXPECT_EQ(fleet_->counts()->waiting, 1);
  FleetWorker again = a_;
  again.owner = "a2";
  const Status joined = fleet_->join(again);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, ErrorCode::kMismatch);
  EXPECT_THAT(joined.error().message(), HasSubstr("the fan is broken"));
  EXPECT_TRUE(fleet_->join(b_).ok()) << "another machine of the kind";
  ASSERT_TRUE(fleet_->release(again).ok());
  EXPECT_TRUE(fleet_->join(again).ok());
}

// Four workers that are killed again and again; each accepted result is reported through a pipe.
TEST_P(FleetTest, KilledWorkersLoseNothingAndDoubleNothing) {
  constexpr int kJobs = 120, kWorkers = 4;
  const auto keys = post(0, kJobs);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto start = [&](int number) {
    const pid_t child = fork();
    if (child != 0) return child;
    auto fleet = Fleet::open(place_);
    if (!fleet.ok()) _exit(1);
    const FleetWorker worker{"w" + std::to_string(number), "host", "device0", 2};
    while (true) {
      auto jobs = (*fleet)->take(worker, 3, 0.3);
      if (!jobs.ok()) _exit(2);
      if (jobs->empty() && (*fleet)->counts()->done == kJobs) _exit(0);
      for (size_t i = 0; i < jobs->size(); ++i) {
        sleep_ms(8);
        const auto record =
            std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k == (*jobs)[i].key; });
        const int job = static_cast<int>(record - keys.begin());
        const auto kept = (*fleet)->finish(worker, (*jobs)[i], make_record(job),
                                           i + 1 < jobs->size() ? (*jobs)[i + 1].id : 0);
        if (!kept.ok()) _exit(3);
        if (*kept && write(ends[1], &job, sizeof job) != sizeof job) _exit(4);
      }
      if (jobs->empty()) sleep_ms(20);
    }
  };
  std::vector<pid_t> workers;
  int number = 0;
  for (; number < kWorkers; ++number) workers.push_back(start(number));
  Rng rng(31);
  int kills = 0;
  while (fleet_->counts()->done < kJobs) {
    // All jobs take 240 ms of the four workers, so the first kills follow each other quickly.
    sleep_ms(kills < 8 ? 5 + static_cast<long>(rng.below(20)) : 30 + static_cast<long>(rng.below(60)));
    pid_t& worker = workers[rng.below(kWorkers)];
    kill(worker, SIGKILL);
    int status = 0;
    waitpid(worker, &status, 0);
    if (WIFSIGNALED(status)) {
      ++kills;
    } else {
      EXPECT_EQ(status, 0);
    }
    worker = start(number++);
  }
  for (const pid_t worker : workers) {
    int status = 0;
    waitpid(worker, &status, 0);
    EXPECT_EQ(status, 0);
  }
  close(ends[1]);
  std::set<int> reported;
  int job = 0;
  while (read(ends[0], &job, sizeof job) == sizeof job) EXPECT_TRUE(reported.insert(job).second) << job;
  close(ends[0]);
  EXPECT_GT(kills, 3);
  EXPECT_EQ(database_->record_count().value(), kJobs);
  EXPECT_EQ(fleet_->counts()->done, kJobs);
  EXPECT_EQ(fleet_->counts()->failed, 0);
  EXPECT_TRUE(database_->check_integrity().ok());
}

}  // namespace
}  // namespace tensorsmith::record::fleet_test
