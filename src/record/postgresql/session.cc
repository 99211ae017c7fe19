#include "record/postgresql/session.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "record/postgresql/connection.h"

namespace tensorsmith::record {

namespace {

// How long a lost connection is retried, and the pauses between attempts.
constexpr double kRetrySeconds = 120;
constexpr double kFirstPause = 0.05, kLongestPause = 5;
// How long opening a database waits for a server that is starting.
constexpr double kStartSeconds = 20;
constexpr int kRowsOfFetch = 256;

// Begins a transaction with a lock ("records") that admits one writer at a time. So rows become
// visible in the order of their numbers, and a reader that continues after the last number misses
// none; and two writers of the same keys cannot deadlock. The server ends a writer that is idle
// inside its transaction, so that others can continue.
constexpr const char* kBeginWriting =
    "BEGIN; SET LOCAL lock_timeout='60s'; SET LOCAL idle_in_transaction_session_timeout='30s'; "
    "SELECT pg_advisory_xact_lock(32199693894251635)";

int hex_digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

class PostgresqlRows : public SqlRows {
 public:
  explicit PostgresqlRows(Answer answer) : answer_(std::move(answer)) {}
  Result<bool> step() override { return ++row_ < PQntuples(answer_.get()); }
  std::string text(int column) const override {
    return std::string(PQgetvalue(answer_.get(), row_, column), PQgetlength(answer_.get(), row_, column));
  }
  std::string blob(int column) const override {
    const std::string hex = text(column);  // for example "\x0a1b"
    std::string out;
    for (size_t i = 2; i + 1 < hex.size(); i += 2)
      out.push_back(static_cast<char>(16 * hex_digit(hex[i]) + hex_digit(hex[i + 1])));
    return out;
  }
  bool is_null(int column) const override { return PQgetisnull(answer_.get(), row_, column) == 1; }
  int64_t integer(int column) const override {
    return std::strtoll(PQgetvalue(answer_.get(), row_, column), nullptr, 10);
  }
  double real(int column) const override {
    return std::strtod(PQgetvalue(answer_.get(), row_, column), nullptr);
  }

 protected:
  Answer answer_;
  int row_ = -1;
};

// Fetches rows from a cursor in small batches.
class CursorRows final : public PostgresqlRows {
 public:
  CursorRows(PostgresqlConnection& connection, std::string cursor)
      : PostgresqlRows(Answer(nullptr, &PQclear)), connection_(connection), cursor_(std::move(cursor)) {}
  ~CursorRows() override {
    if (open_) [[maybe_unused]]
      const Status closed = connection_.execute("CLOSE " + cursor_);
  }
  CursorRows(const CursorRows&) = delete;
  CursorRows& operator=(const CursorRows&) = delete;

  Result<bool> step() override {
    if (answer_ != nullptr && row_ + 1 < PQntuples(answer_.get())) return ++row_, true;
    if (!open_) return false;
    auto next = connection_.ask("FETCH " + std::to_string(kRowsOfFetch) + " FROM " + cursor_, {});
    if (!next.ok()) {
      open_ = false;  // closed with its transaction
      return std::move(next).error();
    }
    answer_ = std::move(next).value();
    row_ = 0;
    if (PQntuples(answer_.get()) > 0) return true;
    open_ = false;
    return false;
  }

 private:
  PostgresqlConnection& connection_;
  std::string cursor_;
  bool open_ = true;
};

class PostgresqlSession final : public SqlSession {
 public:
  PostgresqlSession(const std::string& address, bool read_only)
      : connection_(address, read_only), read_only_(read_only) {}

  Status open() {
    const double start = clock_.monotonic_seconds();
    for (double pause = kFirstPause;; pause = std::min(2 * pause, 1.0)) {
      Status status = connection_.connect();
      bool starting = !status.ok() && is_about_to_be_there(status.error().reason);
      if (status.ok()) {
        status = prepare_schema(connection_, read_only_);
        starting = !status.ok() && connection_.is_transient();  // the connection was lost meanwhile
      }
      if (status.ok() || !starting || clock_.monotonic_seconds() - start > kStartSeconds) return status;
      sleep(pause);
    }
  }

  const std::string& place() const override { return connection_.place(); }

  Result<std::unique_ptr<SqlRows>> query(const std::string& sql, const SqlValues& values) override {
    std::unique_ptr<SqlRows> rows;
    const auto attempt = [&]() -> Status {
      TS_ASSIGN_OR_RETURN(Answer answer, connection_.ask(sql, values));
      rows = std::make_unique<PostgresqlRows>(std::move(answer));
      return {};
    };
    TS_RETURN_IF_ERROR(in_transaction_ ? attempt() : retrying(attempt));
    return rows;
  }

  Result<std::unique_ptr<SqlRows>> stream(const std::string& sql, const SqlValues& values) override {
    TS_CHECK(in_transaction_, "rows are streamed within a snapshot");
    std::string cursor = "walk" + std::to_string(++cursors_);
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const Answer declared,
                        connection_.ask("DECLARE " + cursor + " NO SCROLL CURSOR FOR " + sql, values));
    return std::unique_ptr<SqlRows>(std::make_unique<CursorRows>(connection_, std::move(cursor)));
  }

  Result<int64_t> change(const std::string& sql, const SqlValues& values) override {
    TS_ASSIGN_OR_RETURN(const Answer answer, connection_.ask(sql, values));
    return std::strtoll(PQcmdTuples(answer.get()), nullptr, 10);
  }

  Status transaction(const std::function<Status()>& body) override {
    return retrying([&] { return within(kBeginWriting, body); });
  }
  Status snapshot(const std::function<Status()>& body) override {
    return retrying([&] { return within("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", body); });
  }

  Status ensure(SqlTable /*table*/) override { return {}; }
  Result<bool> has(SqlTable /*table*/) override { return true; }
  Result<bool> has_disturbance() override {
    TS_ASSIGN_OR_RETURN(const auto rows,
                        query("SELECT 1 FROM information_schema.columns WHERE table_schema='tensorsmith' "
                              "AND table_name='record' AND column_name='disturbance'",
                              {}));
    return rows->step();
  }
  Status check_structure() override { return {}; }  // pages are checked by the server
  const char* row_number() const override { return "id"; }
  const char* now_ms() const override {
    return "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
  }

 private:
  static void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

  Status within(const char* begin, const std::function<Status()>& body) {
    TS_RETURN_IF_ERROR(connection_.execute(begin));
    in_transaction_ = true;
    Status status = body();
    in_transaction_ = false;
    if (status.ok()) return connection_.execute("COMMIT");
    if (!connection_.is_transient()) {
      [[maybe_unused]] const Status rolled_back = connection_.execute("ROLLBACK");
    }
    return status;
  }

  // Repeats the attempt on a new connection if the connection was lost.
  Status retrying(const std::function<Status()>& attempt) {
    const double start = clock_.monotonic_seconds();
    for (double pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
      Status status = attempt();
      if (status.ok() || !connection_.is_transient()) return status;
      if (clock_.monotonic_seconds() - start > kRetrySeconds) return gave_up(status);
      Status connected = connection_.connect();
      while (!connected.ok() && connection_.is_transient()) {
        if (clock_.monotonic_seconds() - start > kRetrySeconds) return gave_up(connected);
        sleep(pause);
        pause = std::min(2 * pause, kLongestPause);
        connected = connection_.connect();
      }
      TS_RETURN_IF_ERROR(std::move(connected));
    }
  }
  static Error gave_up(const Status& last) {
    return {
        last.error().code, last.error().place,
        "tried again for " + std::to_string(static_cast<int>(kRetrySeconds)) + " s: " + last.error().reason};
  }

  SystemClock clock_;
  PostgresqlConnection connection_;
  bool read_only_;
  bool in_transaction_ = false;
  int64_t cursors_ = 0;
};

}  // namespace

Result<std::unique_ptr<SqlSession>> open_postgresql(const std::string& address, bool read_only) {
  auto session = std::make_unique<PostgresqlSession>(address, read_only);
  TS_RETURN_IF_ERROR(session->open());
  return std::unique_ptr<SqlSession>(std::move(session));
}

}  // namespace tensorsmith::record
