#include "record/sqlite/connection.h"

#include <sys/stat.h>

#include <utility>

#include "record/database.h"
#include "record/sqlite/migrate.h"
#include "record/sqlite/schema.h"

namespace tensorsmith::record {

namespace {

constexpr int kApplicationId = 0x54534d74;  // "TSmt"
// Up to this file size, a full structural check at each opening is cheap; larger files are checked
// by check_integrity().
constexpr int64_t kQuickCheckBytes = int64_t{256} << 20;
// Limit of a text or blob: twice the longest line of an export.
constexpr int kMaxValueBytes = 2 * static_cast<int>(Database::kMaxJsonLine);

}  // namespace

Connection::~Connection() { sqlite3_close_v2(db_); }

Status Connection::prepare(bool writable) {
  TS_RETURN_IF_ERROR(configure());
  TS_RETURN_IF_ERROR(execute("PRAGMA synchronous=FULL"));
  TS_ASSIGN_OR_RETURN(const bool empty, is_empty());
  if (empty) {
    if (!writable) return Error{ErrorCode::kMismatch, path_, "is an empty file, not a Tensorsmith database"};
    // Another process may be creating the database now, so this checks again under the write lock.
    Status created = transaction([&]() -> Status {
      TS_ASSIGN_OR_RETURN(const bool still_empty, is_empty());
      if (!still_empty) return {};
      TS_RETURN_IF_ERROR(execute(kSchema));
      TS_RETURN_IF_ERROR(execute("PRAGMA application_id=" + std::to_string(kApplicationId)));
      return execute("PRAGMA user_version=" + std::to_string(kSchemaVersion));
    });
    TS_RETURN_IF_ERROR(std::move(created));
  }
  TS_ASSIGN_OR_RETURN(const int64_t application, scalar("PRAGMA application_id"));
  if (application != kApplicationId)
    return Error{ErrorCode::kMismatch, path_,
                 "is an SQLite database of another program (application id " + std::to_string(application) +
                     "), not of Tensorsmith; name another file"};
  TS_ASSIGN_OR_RETURN(const int64_t version, scalar("PRAGMA user_version"));
  if (version > kSchemaVersion)
    return Error{ErrorCode::kMismatch, path_,
                 "has schema version " + std::to_string(version) +
                     ", but this program supports versions up to " + std::to_string(kSchemaVersion) +
                     "; use a newer Tensorsmith, or another file"};
  if (version < 1)
    return Error{ErrorCode::kCorrupt, path_,
                 "has schema version " + std::to_string(version) +
                     ", which never existed; restore a copy of the database"};
  struct stat info = {};
  // SQLite would read the missing end of the last page as zeros.
  TS_ASSIGN_OR_RETURN(const int64_t pages, scalar("PRAGMA page_count"));
  TS_ASSIGN_OR_RETURN(const int64_t page_bytes, scalar("PRAGMA page_size"));
  if (stat(path_.c_str(), &info) == 0 && info.st_size < pages * page_bytes)
    return Error{ErrorCode::kCorrupt, path_,
                 "the database is damaged (" + std::to_string(pages * page_bytes - info.st_size) +
                     " bytes are missing at its end); restore a copy, or save the readable part with "
                     "\"sqlite3 FILE .recover\""};
  TS_RETURN_IF_ERROR(check_schema());
  if (info.st_size <= kQuickCheckBytes) TS_RETURN_IF_ERROR(check("PRAGMA quick_check(1)"));
  return version < (writable ? kSchemaVersion : kReadableSchemaVersion) ? upgrade(writable) : Status();
}

Status Connection::recover() {
  TS_RETURN_IF_ERROR(configure());
  // SQLite rolls the journal back before the first read.
  TS_ASSIGN_OR_RETURN([[maybe_unused]] const int64_t objects, scalar("SELECT count(*) FROM sqlite_master"));
  return {};
}

Status Connection::configure() {
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, kBusyTimeoutMs);
  // The file may come from an untrusted source (https://www.sqlite.org/security.html).
  sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  return execute("PRAGMA cell_size_check=ON");
}

// A file that was opened read-only is not changed; a copy in memory replaces it.
Status Connection::upgrade(bool writable) {
  if (!writable) {
    TS_ASSIGN_OR_RETURN(sqlite3 * copy, copy_to_memory(db_, path_));
    sqlite3_close_v2(std::exchange(db_, copy));
    TS_RETURN_IF_ERROR(configure());
  }
  Status upgraded = transaction([&]() -> Status {
    // Another process may have upgraded it meanwhile.
    TS_ASSIGN_OR_RETURN(const int64_t version, scalar("PRAGMA user_version"));
    if (version >= kSchemaVersion) return {};
    if (version < 2) TS_RETURN_IF_ERROR(migrate_from_1(db_, path_));
    TS_RETURN_IF_ERROR(execute(kFrom4To5));
    return execute("PRAGMA user_version=" + std::to_string(kSchemaVersion));
  });
  if (!upgraded.ok() || writable) return upgraded;
  return execute("PRAGMA query_only=ON");
}

Status Connection::execute(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return sqlite_error(db_, code, path_);
  return {};
}

// Rejects other objects: a view, a trigger or a generated column in place of ours would run code of
// the file's author.
Status Connection::check_schema() {
  for (const char* sql :
       {"SELECT type || ' ' || name FROM sqlite_schema WHERE NOT (type='table' AND name "
        "IN ('task', 'record', "
        "'device', 'profile', 'job', 'worker')) AND NOT (type='index' AND (name IN ('record_by_task', "
        "'job_by_device') OR name LIKE "
        "'sqlite_autoindex_%')) AND NOT "
        "(type='table' AND name LIKE 'sqlite_stat%') LIMIT 1",
        "SELECT 'computed column ' || x.name FROM sqlite_schema AS s, "
        "pragma_table_xinfo(s.name) AS x WHERE "
        "s.type='table' AND x.hidden<>0 LIMIT 1"}) {
    Statement select(db_, path_, sql);
    TS_ASSIGN_OR_RETURN(const bool row, select.step());
    if (row)
      return Error{ErrorCode::kCorrupt, path_,
                   "contains the " + select.text(0).substr(0, 100) +
                       ", which Tensorsmith did not create; restore a copy of the database"};
  }
  return {};
}

Result<int64_t> Connection::scalar(const std::string& sql) {
  Statement select(db_, path_, sql);
  TS_ASSIGN_OR_RETURN(const bool row, select.step());
  return row ? select.integer(0) : int64_t{0};
}

Result<bool> Connection::is_empty() {
  TS_ASSIGN_OR_RETURN(const int64_t objects, scalar("SELECT count(*) FROM sqlite_master"));
  TS_ASSIGN_OR_RETURN(const int64_t application, scalar("PRAGMA application_id"));
  TS_ASSIGN_OR_RETURN(const int64_t version, scalar("PRAGMA user_version"));
  return objects == 0 && application == 0 && version == 0;
}

Status Connection::check(const std::string& pragma) {
  Statement select(db_, path_, pragma);
  TS_ASSIGN_OR_RETURN(const bool row, select.step());
  std::string answer = row ? select.text(0) : std::string("no answer");
  if (answer == "ok") return {};
  // The problem follows a headline "*** in database main ***".
  if (answer.rfind("***", 0) == 0 && answer.find('\n') != std::string::npos)
    answer.erase(0, answer.find('\n') + 1);
  return Error{ErrorCode::kCorrupt, path_,
               "the database is damaged (" + answer.substr(0, answer.find('\n')) +
                   "); restore a copy, or save the readable part with \"sqlite3 FILE .recover\""};
}

}  // namespace tensorsmith::record
