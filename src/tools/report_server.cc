#include "tools/report_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <thread>

namespace tensorsmith::tools {
namespace {

constexpr const char* kAddress = "127.0.0.1";
constexpr int kThreads = 2;  // a page asks one thing at a time

Result<std::string> random_token() {
  std::array<uint8_t, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return Error{ErrorCode::kIo, "--serve", "the system gives no random bytes for the link's token"};
  std::string token;
  for (const uint8_t byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

// Takes as long wherever they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return different == 0;
}

class HttpReportServer final : public ReportServer {
 public:
  HttpReportServer(std::string token) : token_(std::move(token)) {}
  ~HttpReportServer() override {
    server_.stop();
    if (listener_.joinable()) listener_.join();
  }

  Status listen(int port) {
    // Without SO_REUSEPORT, the library's default, with which two programs would share the port.
    server_.set_socket_options([](int socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_keep_alive_timeout(1);
    server_.set_payload_max_length(0);
    server_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return admit(request, response);
    });
    server_.Get("/", [this](const httplib::Request&, httplib::Response& response) {
      answer(response, "text/html; charset=utf-8", &ServedReport::page);
    });
    server_.Get("/data.json", [this](const httplib::Request&, httplib::Response& response) {
      answer(response, "application/json", &ServedReport::data);
    });
    port_ = port == 0 ? server_.bind_to_any_port(kAddress) : server_.bind_to_port(kAddress, port) ? port : -1;
    if (port_ < 0)
      return Error{
          ErrorCode::kIo, fmt::format("--serve {}", port),
          "the port cannot be had, most likely another program has it; name another one, or 0 for any "
          "that is free"};
    listener_ = std::thread([this] {
      server_.listen_after_bind();
      ended_ = true;
    });
    // Before it runs, stop() would do nothing, and the thread would never end.
    while (!server_.is_running() && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {};
  }

  void serve(ServedReport report) override {
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
  }
  std::string url() const override { return fmt::format("http://{}:{}/?token={}", kAddress, port_, token_); }
  std::string data_url() const override { return "data.json?token=" + token_; }

 private:
  httplib::Server::HandlerResponse admit(const httplib::Request& request, httplib::Response& response) const {
    response.set_header("Cache-Control", "no-store");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    response.set_header("X-Frame-Options", "DENY");
    const std::string host = request.get_header_value("Host");
    const bool ours =
        request.get_header_value_count("Host") == 1 &&
        (host == fmt::format("{}:{}", kAddress, port_) || host == fmt::format("localhost:{}", port_));
    if (ours && equal_in_constant_time(request.get_param_value("token"), token_))
      return httplib::Server::HandlerResponse::Unhandled;
    response.status = 403;
    response.set_content("The link of the run, with its token, leads to its report.\n", "text/plain");
    return httplib::Server::HandlerResponse::Handled;
  }

  void answer(httplib::Response& response, const char* type,
              std::function<std::string()> ServedReport::* part) {
    const std::lock_guard lock(mutex_);
    if (!(report_.*part)) {
      response.status = 503;
      return;
    }
    response.set_content((report_.*part)(), type);
  }

  const std::string token_;
  int port_ = -1;
  httplib::Server server_;
  std::mutex mutex_;  // of report_ and its calls
  ServedReport report_;
  std::atomic<bool> ended_ = false;  // the listener
  std::thread listener_;
};

}  // namespace

Result<std::unique_ptr<ReportServer>> ReportServer::start(int port) {
  TS_ASSIGN_OR_RETURN(std::string token, random_token());
  auto server = std::make_unique<HttpReportServer>(std::move(token));
  TS_RETURN_IF_ERROR(server->listen(port));
  return std::unique_ptr<ReportServer>(std::move(server));
}

}  // namespace tensorsmith::tools
