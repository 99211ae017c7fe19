// Serves a report to browsers of this machine.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace tensorsmith::tools {

// What is served. Called on the server's threads, one call at a time. data_url: where the page that asks finds newer data,
// relative to it, with the token.
struct ServedReport {
  std::function<std::string(const std::string& data_url)> page;  // HTML
  std::function<std::string(const std::string& data_url)> data;  // JSON
};

// Listens on 127.0.0.1 alone until it is destroyed. Whoever asks needs the token of the link; one whose Host is not the
// link's gets nothing, so that a page of a stranger cannot reach it under a name that leads here (DNS rebinding).
class ReportServer {
 public:
  // port: 0 = any that is free. kIo: it cannot be had.
  static Result<std::unique_ptr<ReportServer>> start(int port);
  virtual ~ReportServer() = default;
  ReportServer(const ReportServer&) = delete;
  ReportServer& operator=(const ReportServer&) = delete;

  // Before this, requests are answered with 503. May be called again: what comes from then on is newer.
  virtual void serve(ServedReport report) = 0;
  // Waits until each page that follows the report was sent what the last serve() gave, which is at once where none follows;
  // for so many seconds at most. A page follows if it asked in the last kFollowingSeconds. false: not yet.
  static constexpr double kFollowingSeconds = 10;
  virtual bool wait_until_sent(double seconds) = 0;
  virtual std::string url() const = 0;  // of the page, with the token: for people

 protected:
  ReportServer() = default;
};

}  // namespace tensorsmith::tools
