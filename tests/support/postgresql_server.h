// A PostgreSQL server for one test program, in a temporary folder.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tensorsmith::testing {

class PostgresqlServer {
 public:
  // Returns the server of this process, started at the first call; null if PostgreSQL is not
  // installed or may not run, and the test must be skipped. With TENSORSMITH_REQUIRE_POSTGRESQL
  // set, as in scripts/test, this is a failure.
  static PostgresqlServer* get();
  static const std::string& why_not();
  ~PostgresqlServer();
  PostgresqlServer(const PostgresqlServer&) = delete;
  PostgresqlServer& operator=(const PostgresqlServer&) = delete;

  // Returns the address of a new, empty database: through a Unix socket, as the server's owner,
  // without a password.
  std::string new_database();
  // Returns the address of the same database through TCP, where a password is required.
  std::string by_tcp(const std::string& address, const std::string& user, const std::string& password) const;
  int port() const { return port_; }
  // Runs statements and returns the first column of the last statement's first row.
  static std::string run(const std::string& address, const std::string& sql);

  void stop(int signal);  // SIGINT: quickly, SIGQUIT: as after a crash
  void start();

 private:
  PostgresqlServer() = default;
  bool create();
  pid_t spawn(const std::vector<std::string>& command) const;
  std::string name_of(const std::string& address) const;

  std::filesystem::path folder_;
  std::string programs_;
  int port_ = 0;
  pid_t server_ = 0;
  int databases_ = 0;
};

}  // namespace tensorsmith::testing
