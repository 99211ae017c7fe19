// A connection to a PostgreSQL server: how it is made, what is asked on it, and what its errors mean. For use inside the
// room: no other header shows libpq.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "record/sql/session.h"

namespace tensorsmith::record {

// What a server answered; never null.
using Answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

class PostgresqlConnection {
 public:
  PostgresqlConnection(std::string address, bool read_only);

  // Drops the connection that there is and makes a new one.
  Status connect();
  // One statement with parameters. Rows come as text.
  Result<Answer> ask(const std::string& sql, const SqlValues& values);
  // Statements without parameters and rows.
  Status execute(const std::string& sql);
  // Whether the last error may go away on a new connection: the connection was lost, the server is about to start or to
  // stop, or it asks for the transaction once more.
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

// Whether libpq's words are of a server that starts, stops or is cut off, with or without TLS. One that is not there at all says
// something else.
bool is_about_to_be_there(const std::string& words);

// Makes the tables, or brings them to the present schema version; where read_only, only looks. kMismatch: a newer version,
// or no tables.
Status prepare_schema(PostgresqlConnection& connection, bool read_only);

}  // namespace tensorsmith::record
