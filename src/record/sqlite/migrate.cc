#include "record/sqlite/migrate.h"

#include <limits>

#include "record/candidate.h"
#include "record/sql/columns.h"
#include "record/sqlite/schema.h"
#include "record/sqlite/statement.h"

namespace tensorsmith::record {

Status migrate_from_1(sqlite3* db, const std::string& path) {
  const auto execute = [&](const char* sql) -> Status {
    if (const int code = sqlite3_exec(db, sql, nullptr, nullptr, nullptr); code != SQLITE_OK)
      return sqlite_error(db, code, path);
    return {};
  };
  TS_RETURN_IF_ERROR(execute(kFrom1To2));
  // Goes row by row, because the result of a query over rows that change while it runs is
  // undefined.
  Statement select(db, path, "SELECT id, note FROM record WHERE id>?1 ORDER BY id LIMIT 1");
  Statement update(db, path,
                   "UPDATE record SET note=?1, why=?2, strategy=?3, sketch=?4, decisions=?5 WHERE id=?6");
  for (int64_t id = std::numeric_limits<int64_t>::min();;) {
    select.reset();
    select.bind(id);
    TS_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) return {};
    id = select.integer(0);
    update.reset();
    for (const SqlValue& value : candidate_values(parse_origin(select.text(1)))) update.bind_value(value);
    update.bind(id);
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool none, update.step());
  }
}

Result<sqlite3*> copy_to_memory(sqlite3* db, const std::string& path) {
  sqlite3* copy = nullptr;
  int code = sqlite3_open_v2(":memory:", &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (code == SQLITE_OK) {
    if (sqlite3_backup* backup = sqlite3_backup_init(copy, "main", db, "main")) {
      sqlite3_backup_step(backup, -1);
      sqlite3_backup_finish(backup);
    }
    code = sqlite3_errcode(copy);
  }
  if (code == SQLITE_OK) return copy;
  Error error = sqlite_error(copy, code, path);
  sqlite3_close_v2(copy);
  return error;
}

}  // namespace tensorsmith::record
