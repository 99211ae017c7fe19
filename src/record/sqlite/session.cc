#include "record/sqlite/session.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "record/sqlite/connection.h"
#include "record/sqlite/schema.h"
#include "record/sqlite/statement.h"

namespace tensorsmith::record {

namespace {

// SQLite numbers parameters as ?1, ?2; a leading dollar sign would make them named parameters.
std::string numbered(std::string sql) {
  std::replace(sql.begin(), sql.end(), '$', '?');
  return sql;
}

class SqliteRows final : public SqlRows {
 public:
  SqliteRows(Connection& connection, std::string sql, const SqlValues& values)
      : statement_(connection.statement(numbered(std::move(sql)))) {
    for (const SqlValue& value : values) statement_.bind_value(value);
  }
  Result<bool> step() override { return statement_.step(); }
  std::string text(int column) const override { return statement_.text(column); }
  std::string blob(int column) const override { return std::string(statement_.blob(column)); }
  bool is_null(int column) const override { return statement_.is_null(column); }
  int64_t integer(int column) const override { return statement_.integer(column); }
  double real(int column) const override { return statement_.real(column); }

 private:
  Statement statement_;
};

const char* name_of(SqlTable table) {
  switch (table) {
    case SqlTable::kDevice:
      return "device";
    case SqlTable::kProfile:
      return "profile";
    case SqlTable::kFleet:
      return "job";
  }
  return "";
}

class SqliteSession final : public SqlSession {
 public:
  SqliteSession(sqlite3* db, std::string path) : connection_(db, path), path_(std::move(path)) {}

  Status prepare(bool writable) { return connection_.prepare(writable); }
  const std::string& place() const override { return path_; }

  Result<std::unique_ptr<SqlRows>> query(const std::string& sql, const SqlValues& values) override {
    return std::unique_ptr<SqlRows>(std::make_unique<SqliteRows>(connection_, sql, values));
  }
  Result<std::unique_ptr<SqlRows>> stream(const std::string& sql, const SqlValues& values) override {
    return query(sql, values);
  }
  Result<int64_t> change(const std::string& sql, const SqlValues& values) override {
    SqliteRows rows(connection_, sql, values);
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool row, rows.step());
    return connection_.changes();
  }
  Status transaction(const std::function<Status()>& body) override { return connection_.transaction(body); }
  Status snapshot(const std::function<Status()>& body) override {
    TS_RETURN_IF_ERROR(connection_.execute("BEGIN"));
    Status status = body();
    if (auto end = connection_.execute("COMMIT"); status.ok() && !end.ok()) status = std::move(end);
    return status;
  }

  Status ensure(SqlTable table) override {
    switch (table) {
      case SqlTable::kDevice:
        return connection_.execute(kDeviceSchema);
      case SqlTable::kProfile:
        return connection_.execute(kProfileSchema);
      case SqlTable::kFleet: {
        TS_ASSIGN_OR_RETURN(const bool there, has(table));
        if (there) return {};
        return connection_.execute(kFleetSchema);
      }
    }
    return {};
  }
  Result<bool> has(SqlTable table) override {
    TS_ASSIGN_OR_RETURN(
        const int64_t tables,
        connection_.scalar("SELECT count(*) FROM sqlite_master WHERE type='table' AND name='" +
                           std::string(name_of(table)) + "'"));
    return tables > 0;
  }
  Result<bool> has_disturbance() override {
    TS_ASSIGN_OR_RETURN(
        const int64_t columns,
        connection_.scalar("SELECT count(*) FROM pragma_table_info('record') WHERE name='disturbance'"));
    return columns > 0;
  }
  Status check_structure() override { return connection_.check("PRAGMA integrity_check(1)"); }
  const char* row_number() const override { return "rowid"; }
  // julianday('now') is in days with millisecond resolution; 2440587.5 is 1970.
  const char* now_ms() const override {
    return "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)";
  }

 private:
  Connection connection_;
  std::string path_;
};

Result<sqlite3*> open_handle(const std::string& path, int flags) {
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &db, flags | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (code == SQLITE_OK) return db;
  Error error = sqlite_error(db, code, path);
  sqlite3_close_v2(db);
  return error;
}

Status recover(const std::string& path) {
  TS_ASSIGN_OR_RETURN(sqlite3 * db, open_handle(path, SQLITE_OPEN_READWRITE));
  return Connection(db, path).recover();
}

Result<std::unique_ptr<SqlSession>> open_with(const std::string& path, int flags) {
  struct stat info = {};
  const bool existed = stat(path.c_str(), &info) == 0;
  if (existed && !S_ISREG(info.st_mode))
    return Error{ErrorCode::kInvalidArgument, path, "is not a regular file; name a database file"};
  TS_ASSIGN_OR_RETURN(sqlite3 * db, open_handle(path, flags));
  auto session = std::make_unique<SqliteSession>(db, path);
  if (Status prepared = session->prepare((flags & SQLITE_OPEN_READWRITE) != 0); !prepared.ok()) {
    session.reset();
    // Removes a file that this call created but could not fill (disk full).
    struct stat after = {};
    if (!existed && stat(path.c_str(), &after) == 0 && after.st_size == 0) unlink(path.c_str());
    return prepared.error();
  }
  return std::unique_ptr<SqlSession>(std::move(session));
}

}  // namespace

Result<std::unique_ptr<SqlSession>> open_sqlite(const std::string& path, OpenMode mode) {
  if (mode == OpenMode::kCreate) return open_with(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    const int code = errno;
    return Error{code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path,
                 std::string("cannot be opened: ") + std::strerror(code)};
  }
  // A killed writer leaves a journal that a writer can roll back but a reader cannot, so this opens
  // the file for writing for a moment if that is permitted.
  struct stat journal = {};
  if (stat((path + "-journal").c_str(), &journal) == 0) {
    [[maybe_unused]] const Status recovered = recover(path);
  }
  return open_with(path, SQLITE_OPEN_READONLY);
}

}  // namespace tensorsmith::record
