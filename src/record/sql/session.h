// What the record database needs of an SQL engine: SQLite's and PostgreSQL's sessions implement it, so that each query
// stands once. For use inside the room.
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
// std::monostate: NULL.
using SqlValue = std::variant<std::monostate, int64_t, double, std::string, Blob>;
using SqlValues = std::vector<SqlValue>;

// Rows of a query; columns count from 0 and are there after step() returned true.
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

// Tables that an SQLite file gets when they are first needed: files without them are read by earlier versions too.
enum class SqlTable : uint8_t { kDevice, kProfile, kFleet };

class SqlSession {
 public:
  virtual ~SqlSession() = default;
  virtual const std::string& place() const = 0;  // for errors

  // Parameters are $1, $2, ...; no other dollar stands in the text.
  virtual Result<std::unique_ptr<SqlRows>> query(const std::string& sql, const SqlValues& values) = 0;
  // Within snapshot() only: rows come as they are asked for, and other queries may run between them.
  virtual Result<std::unique_ptr<SqlRows>> stream(const std::string& sql, const SqlValues& values) = 0;
  // The number of rows that were inserted or changed. Within transaction() only.
  virtual Result<int64_t> change(const std::string& sql, const SqlValues& values) = 0;

  // All that `body` changes, or nothing; one writer at a time, so that the numbers of rows follow the order in which they
  // become visible. Where the connection is lost, body runs again on a new one, also when it had come to its end: it must
  // be right to run it twice.
  virtual Status transaction(const std::function<Status()>& body) = 0;
  // What `body` reads is of one moment. Runs again as above.
  virtual Status snapshot(const std::function<Status()>& body) = 0;

  virtual Status ensure(SqlTable table) = 0;  // within transaction() only
  virtual Result<bool> has(SqlTable table) = 0;
  virtual Status check_structure() = 0;  // as far as the engine can tell

  // The column that numbers the rows of every table in the order of insertion.
  virtual const char* row_number() const = 0;
  // An expression: the engine's clock, milliseconds since 1970.
  virtual const char* now_ms() const = 0;
};

}  // namespace tensorsmith::record
