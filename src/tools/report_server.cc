#include "tools/report_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

namespace tensorsmith::tools {
namespace {

constexpr const char* kAddress = "127.0.0.1";
constexpr int kThreads = 2;  // a page sends one request at a time
constexpr size_t kMostReaders = 64;
constexpr const char* kVersionHeader = "Report-Version";
constexpr const char* kReaderHeader = "Report-Reader";

Result<std::string> random_token() {
  std::array<uint8_t, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return Error{ErrorCode::kIo, "--serve",
                 "the operating system returned no random bytes, which the link's token needs"};
  std::string token;
  for (const uint8_t byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

// Takes the same time wherever the texts differ.
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
    // Avoids SO_REUSEPORT, the library's default, with which two programs could share the port.
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
    server_.Get("/", [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response, "text/html; charset=utf-8", &ServedReport::page);
    });
    server_.Get("/data.json", [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response, "application/json", &ServedReport::data);
    });
    // Called after a response was written.
    server_.set_logger([this](const httplib::Request&, const httplib::Response& response) {
      if (response.status == 200 && response.has_header(kReaderHeader))
        was_sent(std::stoi(response.get_header_value(kReaderHeader)),
                 std::stoi(response.get_header_value(kVersionHeader)));
    });
    port_ = port == 0 ? server_.bind_to_any_port(kAddress) : server_.bind_to_port(kAddress, port) ? port : -1;
    if (port_ < 0)
      return Error{ErrorCode::kIo, fmt::format("--serve {}", port),
                   "cannot listen on this port; most likely another program uses it. Name another port, or 0 "
                   "for any free one"};
    listener_ = std::thread([this] {
      server_.listen_after_bind();
      ended_ = true;
    });
    // stop() has no effect before the server runs, and then the thread would never end.
    while (!server_.is_running() && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {};
  }

  void serve(ServedReport report) override {
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
    ++version_;
  }
  bool wait_until_sent(double seconds) override {
    int wanted = 0;
    {
      const std::lock_guard lock(mutex_);
      wanted = version_;
    }
    std::unique_lock lock(readers_mutex_);
    const auto all_have_it = [&] {
      const auto since = Moment::clock::now() - std::chrono::duration<double>(kFollowingSeconds);
      return std::all_of(readers_.begin(), readers_.end(), [&](const auto& entry) {
        return entry.second.asked < since || entry.second.sent >= wanted;
      });
    };
    return sent_.wait_for(lock, std::chrono::duration<double>(seconds), all_have_it);
  }
  std::string url() const override { return fmt::format("http://{}:{}/?token={}", kAddress, port_, token_); }

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
    response.set_content(
        "This address lacks the run's token. Use the complete link that the command printed.\n",
        "text/plain");
    return httplib::Server::HandlerResponse::Handled;
  }

  void answer(const httplib::Request& request, httplib::Response& response, const char* type,
              std::function<std::string(const std::string&)> ServedReport::* part) {
    const int reader = reader_of(request.get_param_value("reader"));
    const std::lock_guard lock(mutex_);
    if (!(report_.*part)) {
      response.status = 503;
      return;
    }
    response.set_content((report_.*part)(fmt::format("data.json?token={}&reader={}", token_, reader)), type);
    response.set_header(kReaderHeader, std::to_string(reader));
    response.set_header(kVersionHeader, std::to_string(version_));
  }

  // Returns the number of the requesting page: the one it was given before, else a new one.
  int reader_of(const std::string& named) {
    const std::lock_guard lock(readers_mutex_);
    const auto longest_ago = [](const auto& a, const auto& b) { return a.second.asked < b.second.asked; };
    auto at = std::find_if(readers_.begin(), readers_.end(),
                           [&](const auto& entry) { return std::to_string(entry.first) == named; });
    if (at == readers_.end()) {
      if (readers_.size() >= kMostReaders)
        readers_.erase(std::min_element(readers_.begin(), readers_.end(), longest_ago));
      at = readers_.emplace(++last_reader_, Reader()).first;
    }
    at->second.asked = Moment::clock::now();
    return at->first;
  }
  void was_sent(int reader, int version) {
    const std::lock_guard lock(readers_mutex_);
    const auto at = readers_.find(reader);
    if (at == readers_.end()) return;
    at->second.asked = Moment::clock::now();  // the page polls again from now on
    at->second.sent = std::max(at->second.sent, version);
    sent_.notify_all();
  }

  const std::string token_;
  int port_ = -1;
  httplib::Server server_;
  std::mutex mutex_;  // guards report_ and serializes its calls
  ServedReport report_;
  int version_ = 0;  // number of serve() calls
  using Moment = std::chrono::steady_clock::time_point;
  struct Reader {
    Moment asked;
    int sent = 0;  // the newest version that was sent to the page
  };
  std::mutex readers_mutex_;  // guards the members up to ended_
  std::condition_variable sent_;
  std::map<int, Reader> readers_;  // by number
  int last_reader_ = 0;
  std::atomic<bool> ended_ = false;  // the listening thread has ended
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
