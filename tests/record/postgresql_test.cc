// A team's database: killed clients, a server that goes away meanwhile, its error messages, and
// copies.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "postgresql_server.h"
#include "record/postgresql/address.h"
#include "record/postgresql/schema.h"
#include "record_testing.h"

namespace tensorsmith::record::postgresql_test {
namespace {

using tensorsmith::testing::PostgresqlServer;
using ::testing::HasSubstr;
using testing::make_record;
using ::testing::Not;
using testing::random_record;
using testing::same;
using testing::TempDir;

void sleep_ms(long ms) {
  const timespec time{ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, nullptr);
}

// For child processes: returns whether the result is a success, else prints the error.
template <typename T>
bool fine(const Result<T>& result) {
  if (!result.ok()) fprintf(stderr, "child: %s\n", result.error().message().c_str());
  return result.ok();
}

template <typename Fn>
pid_t start_child(Fn fn) {
  const pid_t child = fork();
  if (child != 0) return child;
  _exit(fn());
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

std::vector<Database::Item> items_of(Database& database) {
  std::vector<Database::Item> items;
  const Status read = database.for_each_item({}, [&](const Database::Item& item) -> Status {
    items.push_back(item);
    return {};
  });
  EXPECT_TRUE(read.ok()) << read.error().message();
  return items;
}

class PostgresqlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = PostgresqlServer::get();
    if (server_ == nullptr) GTEST_SKIP() << PostgresqlServer::why_not();
    address_ = server_->new_database();
  }
  std::unique_ptr<Database> open() const {
    auto opened = Database::open(address_);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return opened.ok() ? std::move(opened).value() : nullptr;
  }
  Error error_of(const std::string& address, bool read_only = false) const {
    const auto opened = read_only ? Database::open_read_only(address) : Database::open(address);
    EXPECT_FALSE(opened.ok()) << address;
    return opened.ok() ? Error{} : opened.error();
  }
  PostgresqlServer* server_ = nullptr;
  std::string address_;
};

TEST_F(PostgresqlTest, ClientsRaceToMakeTheTables) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i)
    children.push_back(start_child([&] {
      const auto database = Database::open(address_);
      return fine(database) && fine((*database)->add({make_record(i)})) ? 0 : 1;
    }));
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(open()->record_count().value(), 8);
  EXPECT_EQ(PostgresqlServer::run(address_, "SELECT count(*) FROM tensorsmith.meta"), "1");
}

TEST_F(PostgresqlTest, MigratesADatabaseOfVersion1) {
  PostgresqlServer::run(address_,
                        std::string("CREATE SCHEMA tensorsmith; SET search_path=tensorsmith; CREATE "
                                    "TABLE meta(schema_version INTEGER NOT NULL); INSERT INTO meta "
                                    "VALUES(1);") +
                            kMigrations[0] +
                            "INSERT INTO task(key, text, name, flops) VALUES('k', 'text', 'name', 3)");
  // A reader changes nothing.
  const auto reader = Database::open_read_only(address_);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE((*reader)->records_of("k", "d", {}).ok());  // its records have no disturbance
  EXPECT_EQ(PostgresqlServer::run(address_, "SELECT schema_version FROM tensorsmith.meta"), "1");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(start_child([&] { return fine(Database::open(address_)) ? 0 : 1; }));
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(PostgresqlServer::run(address_, "SELECT schema_version FROM tensorsmith.meta"),
            std::to_string(kPostgresqlVersion));
  EXPECT_EQ(open()->tasks().value().at(0).flops, 3);
}

TEST_F(PostgresqlTest, RefusesOtherVersions) {
  EXPECT_EQ(error_of(address_, /*read_only=*/true).code, ErrorCode::kMismatch);  // the database is empty
  open();
  PostgresqlServer::run(address_, "UPDATE tensorsmith.meta SET schema_version=99");
  for (const bool read_only : {false, true}) {
    const Error error = error_of(address_, read_only);
    EXPECT_EQ(error.code, ErrorCode::kMismatch);
    EXPECT_EQ(error.place, address_);
    EXPECT_THAT(error.reason, HasSubstr("schema version 99"));
    EXPECT_THAT(error.reason, HasSubstr("newer Tensorsmith"));
  }
}

TEST_F(PostgresqlTest, ErrorsSayWhatToDoAndNeverThePassword) {
  const std::string secret = "s3cret%2Fword";
  PostgresqlServer::run(address_,
                        "DROP ROLE IF EXISTS member; CREATE ROLE member LOGIN PASSWORD 's3cret/word'");
  const auto expect = [&](const std::string& address, ErrorCode code, const std::string& what) {
    const Error error = error_of(address);
    EXPECT_EQ(error.code, code) << error.message();
    EXPECT_THAT(error.message(), HasSubstr(what));
    EXPECT_THAT(error.message(), Not(HasSubstr("s3cret")));
    EXPECT_THAT(error.message(), Not(HasSubstr("wrong!")));
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
  };
  const std::string right = server_->by_tcp(address_, "member", secret);
  expect(right, ErrorCode::kIo, "docs/fleets.md");  // no right to create the schema
  expect(server_->by_tcp(address_, "member", "wrong!"), ErrorCode::kIo, "PGPASSWORD");
  expect(server_->by_tcp(address_, "nobody", secret), ErrorCode::kIo, "check the user, the password");
  expect(right.substr(0, right.rfind('/')) + "/none", ErrorCode::kNotFound, "createdb");
  expect("postgresql://member:" + secret + "@127.0.0.1:1/x", ErrorCode::kIo, "check that the server runs");
  expect("postgresql://member:" + secret + "@127.0.0.1:port/x", ErrorCode::kInvalidArgument, "write it as");
  expect("postgresql://member:" + secret + "@host/x?nonsense=1", ErrorCode::kInvalidArgument, "write it as");
  expect(right + "?sslmode=require", ErrorCode::kIo, "sslmode");

  // A user with the right to read, but not to write.
  open();
  PostgresqlServer::run(address_,
                        "GRANT USAGE ON SCHEMA tensorsmith TO member; GRANT SELECT ON ALL TABLES IN SCHEMA "
                        "tensorsmith TO member");
  const auto database = Database::open(right);
  ASSERT_TRUE(database.ok()) << database.error().message();
  EXPECT_EQ((*database)->record_count().value(), 0);
  const Status refused = (*database)->add({make_record(1)});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_THAT(refused.error().message(), HasSubstr("permission denied"));
  EXPECT_THAT(refused.error().place, HasSubstr("member@127.0.0.1"));
  EXPECT_THAT(refused.error().message(), Not(HasSubstr("s3cret")));
  PostgresqlServer::run(address_,
                        "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tensorsmith TO member");
  const Status added = (*database)->add({make_record(1)});
  EXPECT_TRUE(added.ok()) << added.error().message();
}

// A connection cut during the TLS handshake is retried; a server that then has no TLS is reported
// at once.
TEST(PostgresqlTls, ACutHandshakeIsTriedAgain) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  constexpr int kCut = 2;
  std::thread server([&] {
    for (int connection = 0; connection <= kCut; ++connection) {
      const int client = accept(listener, nullptr, nullptr);
      std::array<char, 8> request{};  // SSLRequest
      EXPECT_EQ(recv(client, request.data(), request.size(), MSG_WAITALL), 8);
      EXPECT_EQ(send(client, connection < kCut ? "S" : "N", 1, MSG_NOSIGNAL), 1);
      close(client);
    }
  });
  const auto opened =
      Database::open("postgresql://somebody@127.0.0.1:" + std::to_string(ntohs(address.sin_port)) +
                     "/records?sslmode=require&gssencmode=disable");
  server.join();
  close(listener);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message(), HasSubstr("server does not support SSL"));
  EXPECT_THAT(opened.error().message(), HasSubstr("check sslmode"));
}

TEST(PostgresqlAddress, ShowsNoPassword) {
  const std::pair<const char*, const char*> cases[] = {
      {"postgresql://u:pw@h:5/d", "postgresql://u@h:5/d"},
      {"postgresql://h/d?user=u&password=pw&sslmode=require", "postgresql://h/d?user=u&sslmode=require"},
      {"postgresql://h/d?p%61ssword=pw", "postgresql://h/d"},
      {"postgresql://u:p@w@h/d", "postgresql://u@h/d"},
      {"postgresql://u:pa/pw@h/d?x=y", "postgresql://u@h/d?x=y"},
      {"postgresql://u:pw?pw@h/d", "postgresql://u@h/d"},
      {"postgres://u@h", "postgres://u@h"},
      {"postgresql:///d?host=/tmp", "postgresql:///d?host=/tmp"}};
  for (const auto& [address, shown] : cases) {
    EXPECT_EQ(without_password(address), shown);
    EXPECT_EQ(shown_database(address), shown);
  }
  EXPECT_EQ(shown_database("file.db"), "file.db");
  EXPECT_EQ(without_passwords_of("postgresql://u:a%2Fb@h/d", "no a/b in postgresql://u:a%2Fb@h/d, a%2Fb"),
            "no *** in postgresql://u@h/d, ***");
}

TEST_F(PostgresqlTest, TextThatAServerDoesNotTake) {
  Record record = make_record(1);
  record.result.reason = std::string("a\0b\xff\xc3(\xc3\xa9\xed\xa0\x80", 11);
  record.candidate.note = "\xf0\x9f\x98\x80";
  const auto database = open();
  ASSERT_TRUE(database->add({record}).ok());
  const auto found = database->find(record.key()).value();
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(found->result.reason, "a" + bad + "b" + bad + bad + "(\xc3\xa9" + bad + bad + bad);
  EXPECT_EQ(found->candidate.note, "\xf0\x9f\x98\x80");
}

// A client that continues from the last number it saw misses nothing, whatever the order in which
// writers end.
TEST_F(PostgresqlTest, RowsBecomeVisibleInTheOrderOfTheirNumbers) {
  open();
  std::vector<pid_t> writers;
  constexpr int kWriters = 4, kBatches = 40;
  for (int w = 0; w < kWriters; ++w)
    writers.push_back(start_child([&] {
      auto database = Database::open(address_);
      if (!fine(database)) return 1;
      for (int i = 0; i < kBatches; ++i) {
        // The batches hold the same keys in different orders, so that writers could deadlock.
        std::vector<Record> batch{make_record(1000 * w + 2 * i), make_record(1000 * w + 2 * i + 1),
                                  make_record(90000 + i), make_record(90000 + (i * 7) % kBatches)};
        if (w % 2 == 0) std::reverse(batch.begin(), batch.end());
        if (!fine((*database)->add(batch))) return 2;
      }
      return 0;
    }));
  // Reads only what is beyond the last number seen.
  int64_t last = 0, seen = 0;
  int running = kWriters;
  while (true) {
    while (running > 0 && waitpid(-1, nullptr, WNOHANG) > 0) --running;
    const bool finished = running == 0;
    const std::string rows = PostgresqlServer::run(
        address_, "SELECT count(*) || ' ' || coalesce(max(id), 0) FROM tensorsmith.record WHERE id>" +
                      std::to_string(last));
    const size_t space = rows.find(' ');
    seen += std::stoll(rows.substr(0, space));
    last = std::max<int64_t>(last, std::stoll(rows.substr(space)));
    if (finished) break;
  }
  EXPECT_EQ(seen, kWriters * kBatches * 2 + kBatches);
  EXPECT_EQ(open()->record_count().value(), seen);
}

// Records are written in pairs, and the child reports each commit through a pipe.
TEST_F(PostgresqlTest, KilledClientsLeaveWholePairs) {
  Rng rng(23);
  int committed = 0;
  for (int round = 0; round < 25; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = start_child([&] {
      auto database = Database::open(address_);
      if (!fine(database)) return 1;
      for (int i = 0;; ++i) {
        const int number = 2 * (round * 100000 + i);
        if (!fine((*database)->add({make_record(number), make_record(number + 1)}))) return 2;
        if (write(ends[1], &number, sizeof number) != sizeof number) return 3;
      }
    });
    close(ends[1]);
    sleep_ms(20 + static_cast<long>(rng.below(80)));
    kill(child, SIGKILL);
    ASSERT_TRUE(WIFSIGNALED(wait_for(child)));
    const auto database = open();
    int number = 0;
    while (read(ends[0], &number, sizeof number) == sizeof number) {
      ++committed;
      EXPECT_TRUE(database->find(make_record(number).key())->has_value());
      EXPECT_TRUE(database->find(make_record(number + 1).key())->has_value());
    }
    close(ends[0]);
    EXPECT_EQ(database->record_count().value() % 2, 0);
  }
  EXPECT_GT(committed, 25);
  EXPECT_TRUE(open()->check_integrity().ok());
}

// The server crashes and comes back while clients write and read: no client sees an error, and all
// added records are present.
TEST_F(PostgresqlTest, AServerThatComesBackLosesNothing) {
  constexpr int kPairs = 150;
  std::vector<pid_t> writers;
  for (int w = 0; w < 3; ++w)
    writers.push_back(start_child([&] {
      auto database = Database::open(address_);
      if (!fine(database)) return 1;
      for (int i = 0; i < kPairs; ++i) {
        const int number = 10000 * w + 2 * i;
        if (!fine((*database)->add({make_record(number), make_record(number + 1)}))) return 2;
        if (!(*database)->find(make_record(number).key()).value().has_value()) return 3;
        sleep_ms(5);
      }
      return 0;
    }));
  for (const int signal : {SIGINT, SIGQUIT, SIGINT}) {
    sleep_ms(250);
    server_->stop(signal);
    sleep_ms(100);
    server_->start();
  }
  for (const pid_t writer : writers) EXPECT_EQ(wait_for(writer), 0);
  const auto database = open();
  EXPECT_EQ(database->record_count().value(), 3 * 2 * kPairs);
  EXPECT_TRUE(database->check_integrity().ok());
}

TEST_F(PostgresqlTest, AWalkGoesOnWhereTheConnectionWasLost) {
  const auto database = open();
  std::vector<Record> records;
  for (int i = 0; i < 2000; ++i) records.push_back(make_record(i));
  ASSERT_TRUE(database->add(records).ok());
  size_t next = 0;
  const Status walked = database->for_each([&](const Record& record) -> Status {
    EXPECT_EQ(record.trace, records[next].trace);
    if (++next == 700)
      PostgresqlServer::run(address_,
                            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                            "application_name='tensorsmith' AND datname=current_database()");
    return {};
  });
  EXPECT_TRUE(walked.ok()) << walked.error().message();
  EXPECT_EQ(next, records.size());
}

// Copies in both directions hold the same: all kinds of items, the order, and after a killed copy.
TEST_F(PostgresqlTest, CopiesHoldTheSame) {
  const TempDir dir;
  const std::string file = dir.file("a.db"), back = dir.file("back.db");
  Rng rng(5);
  auto first = std::move(Database::open(file)).value();
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(first->add_task({"task" + std::to_string(i), "text", "name", 1.5 * i}).ok());
  ASSERT_TRUE(first->add_device({"device0", target::registry().front()}).ok());
  std::vector<Record> records;
  for (int i = 0; i < 3000; ++i) records.push_back(random_record(rng));
  ASSERT_TRUE(first->add(records).ok());
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(
        first->add(std::vector<Profile>{{records[static_cast<size_t>(7 * i)].key(), "p", {{"x", 0.1 * i}}}})
            .ok());
  const auto expected = items_of(*first);

  int kills = 0;
  for (int round = 0; round < 4; ++round) {
    const pid_t child = start_child([&] {
      auto from = Database::open_read_only(file);
      auto to = Database::open(address_);
      return from.ok() && to.ok() && (*to)->copy_from(**from).ok() ? 0 : 1;
    });
    sleep_ms(60 + 50 * round);
    kill(child, SIGKILL);
    kills += WIFSIGNALED(wait_for(child)) ? 1 : 0;
  }
  EXPECT_GT(kills, 0);
  auto server = open();
  const int64_t there = static_cast<int64_t>(items_of(*server).size());
  auto report = server->copy_from(*first);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->duplicates, there);
  EXPECT_EQ(report->tasks + report->devices + report->records + report->profiles + there,
            static_cast<int64_t>(expected.size()));
  report = server->copy_from(*first);
  EXPECT_EQ(report->duplicates, static_cast<int64_t>(expected.size()));

  auto third = std::move(Database::open(back)).value();
  report = third->copy_from(*server);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->tasks, 4);
  EXPECT_EQ(report->devices, 1);
  EXPECT_EQ(report->profiles, 10);
  ASSERT_TRUE(first->export_jsonl(dir.file("a.jsonl")).ok());
  ASSERT_TRUE(server->export_jsonl(dir.file("server.jsonl")).ok());
  ASSERT_TRUE(third->export_jsonl(dir.file("back.jsonl")).ok());
  EXPECT_EQ(testing::read_file(dir.file("a.jsonl")), testing::read_file(dir.file("server.jsonl")));
  EXPECT_EQ(testing::read_file(dir.file("a.jsonl")), testing::read_file(dir.file("back.jsonl")));
}

TEST_F(PostgresqlTest, ProfilesAreReplaced) {
  const auto database = open();
  const std::string key = make_record(1).key();
  EXPECT_FALSE(database->add(std::vector<Profile>{{key, "p", {{"x", 1}}}}).ok());
  ASSERT_TRUE(database->add({make_record(1)}).ok());
  for (const double value : {1.0, 2.5, 2.5}) {
    const auto report = database->add_items({Profile{key, "p", {{"x", value}}}});
    ASSERT_TRUE(report.ok());
  }
  std::vector<double> values;
  ASSERT_TRUE(database
                  ->for_each_profile("p",
                                     [&](const Profile& p) -> Status {
                                       values.push_back(p.counters.at("x"));
                                       return {};
                                     })
                  .ok());
  EXPECT_EQ(values, std::vector<double>{2.5});
}

}  // namespace
}  // namespace tensorsmith::record::postgresql_test
