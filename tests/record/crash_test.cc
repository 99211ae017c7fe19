// Several writers, writers killed at any moment, and disks that fill up.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <thread>

#include "record_testing.h"

namespace tensorsmith::record::crash_test {
namespace {

using ::testing::HasSubstr;
using testing::make_record;
using testing::TempDir;

// Runs fn in a child process, which exits with the code that fn returns.
template <typename Fn>
pid_t start_child(Fn fn) {
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 99;
  try {
    code = fn();
  } catch (...) {
  }
  _exit(code);
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(CrashTest, TwoProcessesWriteAtOnce) {
  const TempDir dir;
  const std::string path = dir.file("a.db");
  const auto writer = [&path](int first) {
    auto db = Database::open(path);  // both also race to create it
    if (!db.ok()) return 1;
    for (int i = 0; i < 60; ++i) {
      // Every third record is written by both.
      if (!(*db)->add({make_record(i % 3 == 0 ? i : first + i), make_record(first + 1000 + i)}).ok())
        return 2;
      if (!(*db)->add_task({"task" + std::to_string(i), "", "", 1}).ok()) return 3;
    }
    return 0;
  };
  const pid_t a = start_child([&] { return writer(10000); });
  const pid_t b = start_child([&] { return writer(20000); });
  EXPECT_EQ(wait_for(a), 0);
  EXPECT_EQ(wait_for(b), 0);
  auto db = std::move(Database::open(path)).value();
  EXPECT_TRUE(db->check_integrity().ok());
  EXPECT_EQ(db->record_count().value(), 20 + 2 * 40 + 2 * 60);
  EXPECT_EQ(db->tasks()->size(), 60U);
}

TEST(CrashTest, ThreadsShareOneDatabase) {
  const TempDir dir;
  auto db = std::move(Database::open(dir.file("a.db"))).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(db->add({make_record(t * 100 + i)}).ok());
        EXPECT_TRUE(db->best("task0", "device0", {2, true}).ok());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(db->record_count().value(), 80);
}

// Records are written in pairs; the child reports each commit through a pipe. Whenever the child is
// killed, the file opens, is sound, holds only whole pairs, and holds every reported pair.
TEST(CrashTest, KilledWriterLeavesASoundDatabase) {
  const TempDir dir;
  const std::string path = dir.file("a.db");
  Rng rng(17);
  int committed_total = 0;
  // At least 40 kills, and more with longer lives on a slow disk, until enough records were
  // committed for the test to be meaningful.
  for (int round = 0; round < 40 || (committed_total <= 50 && round < 400); ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = start_child([&] {
      auto db = Database::open(path);
      if (!db.ok()) return 1;
      for (int i = 0;; ++i) {
        const int number = 2 * (round * 100000 + i);
        if (!(*db)->add({make_record(number), make_record(number + 1)}).ok()) return 2;
        if (write(ends[1], &number, sizeof(number)) != sizeof(number)) return 3;
      }
    });
    close(ends[1]);
    const auto micros = static_cast<long>((500 + rng.below(30000)) * (1 + static_cast<uint64_t>(round) / 40));
    const timespec delay{micros / 1000000, micros % 1000000 * 1000};
    nanosleep(&delay, nullptr);
    kill(child, SIGKILL);
    const int status = wait_for(child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed with " << WEXITSTATUS(status);
    std::vector<int> reported;
    int number = 0;
    while (read(ends[0], &number, sizeof(number)) == sizeof(number)) reported.push_back(number);
    close(ends[0]);
    committed_total += static_cast<int>(reported.size());

    if (!std::filesystem::exists(path)) continue;  // the child was killed before it created the file
    // In every other round a reader opens the file first and must cope with the journal left
    // behind.
    if (round % 2 == 1) {
      auto reader = Database::open_read_only(path);
      if (!reader.ok()) {
        ASSERT_THAT(reader.error().reason, HasSubstr("empty"));
        ASSERT_TRUE(reported.empty());
      }
    }
    auto db = Database::open(path);
    ASSERT_TRUE(db.ok()) << "round " << round << ": " << db.error().message();
    ASSERT_TRUE((*db)->check_integrity().ok());
    EXPECT_EQ((*db)->record_count().value() % 2, 0);
    for (const int first : reported) {
      EXPECT_TRUE((*db)->find(make_record(first).key())->has_value());
      EXPECT_TRUE((*db)->find(make_record(first + 1).key())->has_value());
    }
  }
  EXPECT_GT(committed_total, 50) << "the machine is too slow for the test to mean anything";
}

// A limit on file sizes simulates a full disk.
TEST(CrashTest, FullDiskIsAnErrorAndKeepsWhatWasThere) {
  const TempDir dir;
  const std::string path = dir.file("a.db");
  ASSERT_TRUE((*Database::open(path))->add({make_record(0)}).ok());
  const std::string export_path = dir.file("out.jsonl");
  testing::write_file(export_path, "old contents\n");
  const pid_t child = start_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{200000, 200000};
    auto db = Database::open(path);
    if (!db.ok() || setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    Record huge = make_record(1);
    huge.trace.assign(400000, 'x');
    auto status = (*db)->add({make_record(2), huge});
    if (status.ok() || status.error().code != ErrorCode::kIo) return 2;
    if (status.error().place != path) return 3;
    if (!(*db)->add({make_record(3)}).ok()) return 4;  // writing works again once there is room
    for (int i = 0; i < 100; ++i) {
      Record large = make_record(100 + i);
      large.result.reason.assign(1500, 'y');
      if (!(*db)->add({large}).ok()) break;
    }
    const rlimit small{20000, 20000};
    if (setrlimit(RLIMIT_FSIZE, &small) != 0) return 5;
    auto exported = (*db)->export_jsonl(export_path);
    if (exported.ok() || exported.error().code != ErrorCode::kIo) return 6;
    return 0;
  });
  const int status = wait_for(child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(testing::read_file(export_path), "old contents\n");
  EXPECT_THAT(dir.names(), ::testing::ElementsAre("a.db", "out.jsonl"));
  auto db = std::move(Database::open(path)).value();
  EXPECT_TRUE(db->check_integrity().ok());
  EXPECT_TRUE(db->find(make_record(0).key())->has_value());
  EXPECT_FALSE(db->find(make_record(2).key())->has_value());
  EXPECT_TRUE(db->find(make_record(3).key())->has_value());
}

}  // namespace
}  // namespace tensorsmith::record::crash_test
