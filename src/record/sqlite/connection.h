// A connection to a record database in an SQLite file: checks and set-up when it is opened, and
// transactions. Internal to src/record.
#pragma once

#include <sqlite3.h>

#include <string>

#include "base/result.h"
#include "record/sqlite/statement.h"

namespace tensorsmith::record {

class Connection {
 public:
  // Takes ownership of the open handle.
  Connection(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Checks that the file is ours and sound; creates the schema in an empty file, and upgrades an
  // older one to the present version.
  Status prepare(bool writable);

  // Rolls back the journal of a killed writer; changes nothing else.
  Status recover();

  Statement statement(const std::string& sql) const { return {db_, path_, sql}; }
  Status execute(const std::string& sql);
  // Returns the first column of the first row; 0 if there is no row.
  Result<int64_t> scalar(const std::string& sql);
  // Runs PRAGMA integrity_check or quick_check, which return one row "ok" or rows of problems.
  Status check(const std::string& pragma);
  int changes() const { return sqlite3_changes(db_); }

  template <typename Fn>
  Status transaction(Fn fn) {
    // IMMEDIATE takes the write lock at once, because upgrading a read lock could fail against
    // another writer.
    TS_RETURN_IF_ERROR(execute("BEGIN IMMEDIATE"));
    Status status = fn();
    if (status.ok()) status = execute("COMMIT");
    // Fails harmlessly if SQLite has already rolled back (disk full, I/O error).
    if (!status.ok() && sqlite3_get_autocommit(db_) == 0) {
      [[maybe_unused]] const Status rolled_back = execute("ROLLBACK");
    }
    return status;
  }

 private:
  Status configure();
  Status upgrade(bool writable);
  Status check_schema();
  Result<bool> is_empty();

  sqlite3* db_;
  std::string path_;
};

}  // namespace tensorsmith::record
