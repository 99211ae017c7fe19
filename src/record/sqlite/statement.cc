#include "record/sqlite/statement.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tensorsmith::record {

namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

Error sqlite_error(sqlite3* db, int code, const std::string& path) {
  const std::string detail =
      db != nullptr && sqlite3_errcode(db) != SQLITE_OK ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const int os_error = db != nullptr ? sqlite3_system_errno(db) : 0;
  const std::string os = os_error != 0 ? std::string(" (") + std::strerror(os_error) + ")" : std::string();
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return {ErrorCode::kCorrupt, path,
              "is not an SQLite database, so it is not a Tensorsmith database; name another file, or move "
              "this one away"};
    case SQLITE_CORRUPT:
      return {ErrorCode::kCorrupt, path,
              "the database is damaged (" + detail +
                  "); restore a copy, or save the readable part with \"sqlite3 FILE .recover\""};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::kTimeout, path,
              "another process kept the database locked for " + std::to_string(kBusyTimeoutMs / 1000) +
                  " s; wait until it has finished, then run the command again"};
    case SQLITE_FULL:
      return {ErrorCode::kIo, path, "the disk is full, and this change was not written; free some space"};
    case SQLITE_READONLY:
      return {ErrorCode::kIo, path, "the database or its folder is not writable (" + detail + ")"};
    case SQLITE_CANTOPEN:
      // SQLite's ENOENT may refer to the file that it then could not create.
      if (os_error == ENOENT && access(folder_of(path).c_str(), F_OK) == 0)
        return {ErrorCode::kIo, path, "cannot be created: its folder is not writable; name another path"};
      return {os_error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path,
              "cannot be opened or created" + os + "; check that its folder exists and is accessible"};
    case SQLITE_IOERR:
      if (os_error == ENOSPC)
        return {ErrorCode::kIo, path, "the disk is full, and this change was not written; free some space"};
      return {ErrorCode::kIo, path, "reading or writing failed: " + detail + os};
    case SQLITE_TOOBIG:
      return {ErrorCode::kInvalidArgument, path, "a value is too large for the database: " + detail};
    default:
      return {ErrorCode::kIo, path, "database error: " + detail + os};
  }
}

}  // namespace tensorsmith::record
