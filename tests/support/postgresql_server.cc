#include "postgresql_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace tensorsmith::testing {

namespace fs = std::filesystem;

namespace {

std::string reason;

// Returns the folder of the newest installed version.
std::string find_programs() {
  std::error_code ignored;
  std::string found;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", ignored))
    if (fs::exists(entry.path() / "bin/initdb", ignored))
      found = std::max(found, (entry.path() / "bin").string());
  return found;
}

int free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(probe, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
  close(probe);
  return ntohs(address.sin_port);
}

const passwd* other_user() { return geteuid() == 0 ? getpwnam("postgres") : nullptr; }

}  // namespace

PostgresqlServer* PostgresqlServer::get() {
  static std::unique_ptr<PostgresqlServer> server = [] {
    std::unique_ptr<PostgresqlServer> made(new PostgresqlServer());
    if (!made->create()) made.reset();
    return made;
  }();
  if (server == nullptr) {
    EXPECT_FALSE(std::getenv("TENSORSMITH_REQUIRE_POSTGRESQL")) << reason;
  }
  return server.get();
}

const std::string& PostgresqlServer::why_not() { return reason; }

bool PostgresqlServer::create() {
  programs_ = find_programs();
  if (programs_.empty()) return reason = "PostgreSQL's server is not installed", false;
  if (geteuid() == 0 && other_user() == nullptr)
    return reason = "PostgreSQL does not run as root, and there is no user postgres", false;
  std::string pattern = (fs::temp_directory_path() / "postgresql_test_XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
  if (const passwd* user = other_user()) {
    if (chown(folder_.c_str(), user->pw_uid, user->pw_gid) != 0) return reason = "chown failed", false;
  }
  int status = 0;
  const std::string data = (folder_ / "data").string();
  waitpid(spawn({programs_ + "/initdb", "-D", data, "-U", "owner", "--auth-local=trust",
                 "--auth-host=scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C"}),
          &status, 0);
  if (status != 0) return reason = "initdb failed; see " + (folder_ / "log").string(), false;
  port_ = free_port();
  start();
  return true;
}

pid_t PostgresqlServer::spawn(const std::vector<std::string>& command) const {
  const passwd* user = other_user();
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string log = (folder_ / "log").string();
  const pid_t child = fork();
  if (child != 0) return child;
  if (user != nullptr &&
      (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
    _exit(126);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGQUIT);  // ends with the test, however the test ends
  if (chdir(folder_.c_str()) != 0) _exit(125);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(out, 1);
  dup2(out, 2);
  for (int fd = 3; fd < 256; ++fd) close(fd);
  execv(arguments[0], arguments.data());
  _exit(127);
}

void PostgresqlServer::start() {
  server_ = spawn({programs_ + "/postgres", "-D", (folder_ / "data").string(), "-k", folder_.string(), "-p",
                   std::to_string(port_), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c",
                   "shared_buffers=16MB", "-c", "max_connections=60"});
  const std::string address =
      "postgresql:///postgres?host=" + folder_.string() + "&port=" + std::to_string(port_) + "&user=owner";
  for (int i = 0; i < 600 && PQping(address.c_str()) != PQPING_OK; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void PostgresqlServer::stop(int signal) {
  kill(server_, signal);
  waitpid(server_, nullptr, 0);
  server_ = 0;
}

PostgresqlServer::~PostgresqlServer() {
  if (server_ > 0) stop(SIGQUIT);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string PostgresqlServer::new_database() {
  const std::string name = "test" + std::to_string(++databases_);
  const std::string end = "?host=" + folder_.string() + "&port=" + std::to_string(port_) + "&user=owner";
  run("postgresql:///postgres" + end, "CREATE DATABASE " + name);
  return "postgresql:///" + name + end;
}

std::string PostgresqlServer::name_of(const std::string& address) const {
  return address.substr(14, address.find('?') - 14);  // the part after "postgresql:///"
}

std::string PostgresqlServer::by_tcp(const std::string& address, const std::string& user,
                                     const std::string& password) const {
  return "postgresql://" + user + (password.empty() ? "" : ":" + password) +
         "@127.0.0.1:" + std::to_string(port_) + "/" + name_of(address);
}

std::string PostgresqlServer::run(const std::string& address, const std::string& sql) {
  PGconn* connection = PQconnectdb(address.c_str());
  EXPECT_EQ(PQstatus(connection), CONNECTION_OK) << PQerrorMessage(connection);
  PGresult* result = PQexec(connection, sql.c_str());
  const ExecStatusType status = PQresultStatus(result);
  EXPECT_TRUE(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
      << sql << ": " << PQerrorMessage(connection);
  std::string out;
  if (status == PGRES_TUPLES_OK && PQntuples(result) > 0) out = PQgetvalue(result, 0, 0);
  PQclear(result);
  PQfinish(connection);
  return out;
}

}  // namespace tensorsmith::testing
