// A connection to a PostgreSQL server: opening, queries, and the meaning of its errors. Internal to
// src/record; no other header exposes libpq.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "record/sql/session.h"

namespace tensorsmith::record {

// A server's answer; never null.
using Answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

class PostgresqlConnection {
 public:
  PostgresqlConnection(std::string address, bool read_only);

  // Drops the current connection and makes a new one.
  Status connect();
  // Executes one statement with parameters. Rows are returned as text.
  Result<Answer> ask(const std::string& sql, const SqlValues& values);
  // Executes statements without parameters and rows.
  Status execute(const std::string& sql);
  // Whether the last error may disappear on a new connection: the connection was lost, the server
  // is starting or stopping, or it requests a retry of the transaction.
  bool is_transient() const { return transient_; }
  const std::string& place() const { return place_; }

 private:
  Error connect_error();
  Error answer_error(const PGresult* answer);

  std::string address_, place_;
  bool read_only_;
  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  bool transient_ = false;
};

// Whether libpq's message is about a server that is starting, stopping or was cut off, with or
// without TLS. The message for a server that does not exist differs.
bool is_about_to_be_there(const std::string& words);

// Creates the tables or upgrades them to the present schema version; only checks them if read_only.
// kMismatch: a newer version, or no tables.
Status prepare_schema(PostgresqlConnection& connection, bool read_only);

}  // namespace tensorsmith::record
