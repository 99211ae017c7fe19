// The interface between the record database and an SQL engine. SQLite's and PostgreSQL's sessions
// implement it, so that each query is written once. Internal to src/record.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tensorsmith::record {

struct Blob {
  std::string bytes;
};
// std::monostate represents NULL.
using SqlValue = std::variant<std::monostate, int64_t, double, std::string, Blob>;
using SqlValues = std::vector<SqlValue>;

// Rows of a query. Columns count from 0 and are available after step() returned true.
class SqlRows {
 public:
  virtual ~SqlRows() = default;
  virtual Result<bool> step() = 0;  // false: no further row
  virtual std::string text(int column) const = 0;
  virtual std::string blob(int column) const = 0;
  virtual bool is_null(int column) const = 0;
  virtual int64_t integer(int column) const = 0;
  virtual double real(int column) const = 0;
};

// Tables that are added to an SQLite file when they are first needed.
enum class SqlTable : uint8_t { kDevice, kProfile, kFleet };

class SqlSession {
 public:
  virtual ~SqlSession() = default;
  virtual const std::string& place() const = 0;  // for error messages

  // Parameters are $1, $2, ...; the text must not contain any other dollar sign.
  virtual Result<std::unique_ptr<SqlRows>> query(const std::string& sql, const SqlValues& values) = 0;
  // Only within snapshot(): rows are fetched on demand, and other queries may run in between.
  virtual Result<std::unique_ptr<SqlRows>> stream(const std::string& sql, const SqlValues& values) = 0;
  // Returns the number of inserted or changed rows. Only within transaction().
  virtual Result<int64_t> change(const std::string& sql, const SqlValues& values) = 0;

  // Runs `body` as a transaction, all or nothing. There is one writer at a time, so that the row
  // numbers follow the order in which rows become visible. If the connection is lost, `body` runs
  // again on a new one, even if it had already completed, so running it twice must be correct.
  virtual Status transaction(const std::function<Status()>& body) = 0;
  // All reads of `body` see the same snapshot. It runs again as in transaction().
  virtual Status snapshot(const std::function<Status()>& body) = 0;

  virtual Status ensure(SqlTable table) = 0;  // only within transaction()
  virtual Result<bool> has(SqlTable table) = 0;
  // Returns whether records have the column `disturbance`. Only databases of earlier versions that are
  // opened read-only lack it.
  virtual Result<bool> has_disturbance() = 0;
  virtual Status check_structure() = 0;  // as far as the engine can check it

  // The column that numbers the rows of each table in insertion order.
  virtual const char* row_number() const = 0;
  // An SQL expression for the engine's clock: milliseconds since 1970.
  virtual const char* now_ms() const = 0;
};

}  // namespace tensorsmith::record
