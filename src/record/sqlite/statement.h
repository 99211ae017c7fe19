// SQLite statements and errors. Internal to src/record; no other header exposes SQLite.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/sql/session.h"

namespace tensorsmith::record {

// How long a call waits for a lock of another process.
inline constexpr int kBusyTimeoutMs = 60'000;

// Returns the error for a failed SQLite call on the file, with a remedy for the user.
Error sqlite_error(sqlite3* db, int code, const std::string& path);

// A prepared statement; columns are available after step() returned true.
class Statement {
 public:
  Statement(sqlite3* db, const std::string& path, const std::string& sql) : db_(db), path_(path) {
    code_ = sqlite3_prepare_v2(db, sql.c_str(), sql.size(), &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::string_view text) {
    keep(sqlite3_bind_text64(statement_, ++bound_, text.data() == nullptr ? "" : text.data(), text.size(),
                             SQLITE_TRANSIENT, SQLITE_UTF8));
    return *this;
  }
  Statement& bind(int64_t value) {
    keep(sqlite3_bind_int64(statement_, ++bound_, value));
    return *this;
  }
  Statement& bind(double value) {
    keep(sqlite3_bind_double(statement_, ++bound_, value));
    return *this;
  }
  Statement& bind_value(const SqlValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) return bind(std::string_view(*text));
    if (const auto* blob = std::get_if<Blob>(&value))
      return bind_blob(blob->bytes.data(), blob->bytes.size());
    if (const auto* integer = std::get_if<int64_t>(&value)) return bind(*integer);
    if (const auto* real = std::get_if<double>(&value)) return bind(*real);
    return bind_null();
  }
  Statement& bind_null() {
    keep(sqlite3_bind_null(statement_, ++bound_));
    return *this;
  }
  Statement& bind_blob(const void* data, size_t bytes) {
    // A null pointer would bind NULL instead of an empty blob.
    keep(bytes == 0 ? sqlite3_bind_zeroblob(statement_, ++bound_, 0)
                    : sqlite3_bind_blob64(statement_, ++bound_, data, bytes, SQLITE_TRANSIENT));
    return *this;
  }
  // Returns true if there is a row, false at the end.
  Result<bool> step() {
    if (code_ == SQLITE_OK) {
      code_ = sqlite3_step(statement_);
      if (code_ == SQLITE_ROW) return code_ = SQLITE_OK, true;
      if (code_ == SQLITE_DONE) return code_ = SQLITE_OK, false;
    }
    return sqlite_error(db_, code_, path_);
  }
  void reset() {
    sqlite3_reset(statement_);
    bound_ = 0;
  }

  std::string text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    if (data == nullptr) return {};
    return std::string(data, sqlite3_column_bytes(statement_, column));
  }
  std::string_view blob(int column) const {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    if (data == nullptr) return {};
    return std::string_view(data, sqlite3_column_bytes(statement_, column));
  }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }

 private:
  void keep(int code) {
    if (code_ == SQLITE_OK) code_ = code;
  }
  sqlite3* db_;
  const std::string& path_;
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
  int bound_ = 0;
};

}  // namespace tensorsmith::record
