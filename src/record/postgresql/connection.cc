#include "record/postgresql/connection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "record/postgresql/address.h"
#include "record/postgresql/schema.h"

namespace tensorsmith::record {

namespace {

// Defaults unless the address or PostgreSQL's variables say otherwise: an unresponsive server is
// given up after about 25 s.
constexpr std::array<std::array<const char*, 2>, 6> kDefaults = {
    {{"connect_timeout", "10"},
     {"keepalives_idle", "10"},
     {"keepalives_interval", "5"},
     {"keepalives_count", "3"},
     {"tcp_user_timeout", "25000"},
     {"fallback_application_name", "tensorsmith"}}};

// Settings of each session. The search path keeps objects of other schemas from replacing our
// tables. The server gives up an unresponsive client in the same way as the client gives up the
// server.
constexpr const char* kSession =
    "SET search_path=tensorsmith, pg_catalog, pg_temp; SET bytea_output=hex; SET extra_float_digits=1; "
    "SET client_min_messages=warning; SET standard_conforming_strings=on; "
    "SET tcp_keepalives_idle=10; SET tcp_keepalives_interval=5; SET tcp_keepalives_count=3; "
    "SET tcp_user_timeout=25000";

// Lock key ("tensors") for pg_advisory_xact_lock, held by a client that changes the schema.
constexpr const char* kSchemaLock = "SELECT pg_advisory_xact_lock(32762643847672435)";

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (size_t i = text.find('\n'); i != std::string::npos; i = text.find('\n', i)) {
    size_t end = i;
    while (end < text.size() && (text[end] == '\n' || text[end] == '\t' || text[end] == ' ')) ++end;
    text.replace(i, end - i, "; ");
  }
  return text;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Servers accept only valid UTF-8. Invalid bytes become U+FFFD, as in an export.
std::string valid_text(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    size_t length = byte < 0x80                   ? 1
                    : byte >= 0xc2 && byte < 0xe0 ? 2
                    : byte >= 0xe0 && byte < 0xf0 ? 3
                    : byte >= 0xf0 && byte < 0xf5 ? 4
                                                  : 0;
    if (byte == 0 || i + length > text.size()) length = 0;
    for (size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) length = 0;
    if (length > 1) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      // Overlong encodings, UTF-16 surrogates, and values beyond U+10FFFF.
      if ((byte == 0xe0 && second < 0xa0) || (byte == 0xed && second >= 0xa0) ||
          (byte == 0xf0 && second < 0x90) || (byte == 0xf4 && second >= 0x90))
        length = 0;
    }
    if (length == 0) {
      out += "\xef\xbf\xbd";
      ++i;
    } else {
      out.append(text, i, length);
      i += length;
    }
  }
  return out;
}

std::string number_text(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

}  // namespace

bool is_about_to_be_there(const std::string& words) {
  return has(words, "the database system is") || has(words, "closed the connection unexpectedly") ||
         has(words, "Connection reset by peer") || has(words, "SSL SYSCALL error") ||
         has(words, "SSL connection has been closed unexpectedly");
}

PostgresqlConnection::PostgresqlConnection(std::string address, bool read_only)
    : address_(std::move(address)),
      place_(without_password(address_)),
      read_only_(read_only),
      connection_(nullptr, &PQfinish) {}

Status PostgresqlConnection::connect() {
  transient_ = false;
  std::vector<const char*> keys, values;
  // Parameters of the address come later and override the defaults.
  for (const auto& [key, value] : kDefaults) {
    keys.push_back(key);
    values.push_back(value);
  }
  keys.push_back("dbname");
  values.push_back(address_.c_str());
  keys.push_back("client_encoding");
  values.push_back("UTF8");
  keys.push_back(nullptr);
  values.push_back(nullptr);
  connection_.reset(PQconnectdbParams(keys.data(), values.data(), /*expand_dbname=*/1));
  if (connection_ == nullptr) return Error{ErrorCode::kResourceExhausted, place_, "out of memory"};
  if (PQstatus(connection_.get()) != CONNECTION_OK) return connect_error();
  // Notices are discarded, since a library must not print.
  PQsetNoticeReceiver(connection_.get(), [](void*, const PGresult*) {}, nullptr);
  TS_RETURN_IF_ERROR(execute(kSession));
  return read_only_ ? execute("SET default_transaction_read_only=on") : Status();
}

Error PostgresqlConnection::connect_error() {
  const std::string detail = without_passwords_of(address_, one_line(PQerrorMessage(connection_.get())));
  const auto error = [&](ErrorCode code, const std::string& remedy) {
    return Error{code, place_, detail + "; " + remedy};
  };
  if (has(detail, "password authentication failed") || has(detail, "no password supplied") ||
      has(detail, "authentication failed") || has(detail, "no pg_hba.conf entry"))
    return error(ErrorCode::kIo,
                 "the server denied access to this user; check the user, the password (PGPASSWORD or "
                 "~/.pgpass) and the server's pg_hba.conf");
  if (has(detail, "role \"") && has(detail, "does not exist"))
    return error(ErrorCode::kNotFound, "name another user, or create this one with createuser");
  if (has(detail, "database \"") && has(detail, "does not exist"))
    return error(ErrorCode::kNotFound, "create it with createdb, or name another one");
  if (has(detail, "permission denied for database"))
    return error(ErrorCode::kIo, "ask its owner to GRANT CONNECT to this user");
  if ((has(detail, "SSL") || has(detail, "certificate")) && !is_about_to_be_there(detail))
    return error(ErrorCode::kIo, "check sslmode and sslrootcert against the server's certificate");
  transient_ = true;
  if (has(detail, "too many") || has(detail, "remaining connection slots"))
    return error(ErrorCode::kResourceExhausted, "close other clients, or raise the server's max_connections");
  if (has(detail, "URI") || has(detail, "invalid") || has(detail, "missing")) transient_ = false;
  if (!transient_)
    return error(ErrorCode::kInvalidArgument, "write it as postgresql://USER@HOST:PORT/NAME?OPTION=VALUE");
  return error(ErrorCode::kIo,
               "check that the server runs and that the host and port in the address are right");
}

Error PostgresqlConnection::answer_error(const PGresult* answer) {
  const char* field = answer != nullptr ? PQresultErrorField(answer, PG_DIAG_SQLSTATE) : nullptr;
  const std::string state = field != nullptr ? field : "";
  // An error without a state comes from libpq, which got no answer.
  const bool lost = PQstatus(connection_.get()) != CONNECTION_OK || state.empty();
  const char* primary = answer != nullptr ? PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY) : nullptr;
  const std::string detail = without_passwords_of(
      address_, one_line(primary != nullptr ? primary : PQerrorMessage(connection_.get())));
  const std::string kind = state.substr(0, 2);
  // Class 40: the transaction must be retried; 57P01 to 57P05: the server is stopping or starting,
  // or the session was idle for too long.
  transient_ = lost || kind == "08" || state == "40001" || state == "40P01" || state.starts_with("57P");
  if (transient_)
    return {ErrorCode::kIo, place_,
            "the connection was lost (" + detail +
                "); check that the server runs, then run the command again. Records that were added before "
                "are kept"};
  if (state == "25006") return {ErrorCode::kIo, place_, "the database is not writable (" + detail + ")"};
  if (state == "42501" || state == "28000")
    return {ErrorCode::kIo, place_,
            detail + "; ask the owner of the database for the rights that docs/fleets.md lists"};
  if (state == "55P03")
    return {ErrorCode::kTimeout, place_,
            "another client kept the database locked for 60 s; wait until it has finished, then run the "
            "command again"};
  if (kind == "53")
    return {state == "53100" ? ErrorCode::kIo : ErrorCode::kResourceExhausted, place_,
            "the server is out of space, and this change was not written: " + detail};
  if (state == "54000")
    return {ErrorCode::kInvalidArgument, place_, "a value is too large for the database: " + detail};
  return {ErrorCode::kIo, place_, "database error: " + detail + " (" + state + ")"};
}

Result<Answer> PostgresqlConnection::ask(const std::string& sql, const SqlValues& values) {
  transient_ = false;
  std::vector<std::string> texts(values.size());
  std::vector<const char*> data(values.size(), nullptr);
  std::vector<int> lengths(values.size(), 0), formats(values.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::holds_alternative<std::monostate>(values[i])) continue;
    if (const auto* text = std::get_if<std::string>(&values[i])) texts[i] = valid_text(*text);
    if (const auto* integer = std::get_if<int64_t>(&values[i])) texts[i] = std::to_string(*integer);
    if (const auto* real = std::get_if<double>(&values[i])) texts[i] = number_text(*real);
    if (const auto* blob = std::get_if<Blob>(&values[i])) {
      texts[i] = blob->bytes;
      formats[i] = 1;
    }
    data[i] = texts[i].c_str();
    lengths[i] = texts[i].size();
  }
  Answer answer(PQexecParams(connection_.get(), sql.c_str(), values.size(), nullptr, data.data(),
                             lengths.data(), formats.data(), /*resultFormat=*/0),
                &PQclear);
  const ExecStatusType status = PQresultStatus(answer.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) return answer_error(answer.get());
  return answer;
}

Status PostgresqlConnection::execute(const std::string& sql) {
  transient_ = false;
  const Answer answer(PQexec(connection_.get(), sql.c_str()), &PQclear);
  const ExecStatusType status = PQresultStatus(answer.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) return answer_error(answer.get());
  return {};
}

namespace {

// Returns 0 if there are no tables. Reads the catalogue as a table, because to_regclass() may use a
// state from before the transaction.
Result<int> schema_version(PostgresqlConnection& connection) {
  TS_ASSIGN_OR_RETURN(
      const Answer there,
      connection.ask("SELECT 1 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON "
                     "n.oid=c.relnamespace WHERE n.nspname='tensorsmith' AND c.relname='meta'",
                     {}));
  if (PQntuples(there.get()) == 0) return 0;
  TS_ASSIGN_OR_RETURN(const Answer version,
                      connection.ask("SELECT schema_version FROM tensorsmith.meta", {}));
  if (PQntuples(version.get()) != 1)
    return Error{ErrorCode::kCorrupt, connection.place(),
                 "its table tensorsmith.meta does not contain the schema version; restore a copy"};
  return std::atoi(PQgetvalue(version.get(), 0, 0));
}

Status migrate(PostgresqlConnection& connection) {
  TS_RETURN_IF_ERROR(connection.execute(kSchemaLock));
  // Another client may have changed the schema meanwhile.
  TS_ASSIGN_OR_RETURN(const int version, schema_version(connection));
  if (version >= kPostgresqlVersion) return {};
  if (version == 0) {
    // A user who may not create a schema can use an existing one.
    TS_ASSIGN_OR_RETURN(
        const Answer there,
        connection.ask("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname='tensorsmith'", {}));
    if (PQntuples(there.get()) == 0) TS_RETURN_IF_ERROR(connection.execute("CREATE SCHEMA tensorsmith"));
    TS_RETURN_IF_ERROR(connection.execute("CREATE TABLE meta(schema_version INTEGER NOT NULL)"));
    TS_RETURN_IF_ERROR(connection.execute("INSERT INTO meta VALUES(0)"));
  }
  for (int from = version; from < kPostgresqlVersion; ++from)
    TS_RETURN_IF_ERROR(connection.execute(kMigrations[from]));
  return connection.execute("UPDATE meta SET schema_version=" + std::to_string(kPostgresqlVersion));
}

}  // namespace

Status prepare_schema(PostgresqlConnection& connection, bool read_only) {
  TS_ASSIGN_OR_RETURN(const int version, schema_version(connection));
  if (version > kPostgresqlVersion)
    return Error{ErrorCode::kMismatch, connection.place(),
                 "has schema version " + std::to_string(version) +
                     ", but this program supports versions up to " + std::to_string(kPostgresqlVersion) +
                     "; use a newer Tensorsmith, or another database"};
  if (version < 0)
    return Error{ErrorCode::kCorrupt, connection.place(),
                 "has schema version " + std::to_string(version) + ", which never existed; restore a copy"};
  if (version == 0 && read_only)
    return Error{ErrorCode::kMismatch, connection.place(),
                 "does not contain a Tensorsmith database; commands that write records, such as `tune --db` "
                 "and `db copy`, create one"};
  if (version == kPostgresqlVersion || read_only) return {};
  TS_RETURN_IF_ERROR(connection.execute("BEGIN"));
  Status status = migrate(connection);
  if (status.ok()) return connection.execute("COMMIT");
  const bool transient = connection.is_transient();
  if (!transient) [[maybe_unused]]
    const Status rolled_back = connection.execute("ROLLBACK");
  return status;
}

}  // namespace tensorsmith::record
