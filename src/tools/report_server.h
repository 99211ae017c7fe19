// Serves a report to browsers on this machine.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace tensorsmith::tools {

// The served content. The callbacks run on the server's threads, one call at a time. data_url:
// where the requesting page finds newer data, a relative URL with the token.
struct ServedReport {
  std::function<std::string(const std::string& data_url)> page;  // HTML
  std::function<std::string(const std::string& data_url)> data;  // JSON
};

// Listens on 127.0.0.1 only, until destroyed. Requests need the token of the link. Requests whose
// Host differs from the link's are rejected, so that a foreign page cannot reach the server under a
// name that resolves to this machine (DNS rebinding).
class ReportServer {
 public:
  // port: 0 = any free port. kIo: the port is not available.
  static Result<std::unique_ptr<ReportServer>> start(int port);
  virtual ~ReportServer() = default;
  ReportServer(const ReportServer&) = delete;
  ReportServer& operator=(const ReportServer&) = delete;

  // Sets the served report. Before the first call, requests are answered with 503. A further call
  // publishes a newer version.
  virtual void serve(ServedReport report) = 0;
  // Waits for at most `seconds` until every page that follows the report has received the version
  // of the last serve() call; returns at once if no page follows. A page follows if it sent a
  // request in the last kFollowingSeconds. Returns false on timeout.
  static constexpr double kFollowingSeconds = 10;
  virtual bool wait_until_sent(double seconds) = 0;
  virtual std::string url() const = 0;  // of the page, with the token, for display

 protected:
  ReportServer() = default;
};

}  // namespace tensorsmith::tools
