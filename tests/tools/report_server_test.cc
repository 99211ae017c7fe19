// Who is served a report, and who is not.
#include "tools/report_server.h"

#include <gmock/gmock.h>
#include <httplib.h>

namespace tensorsmith::tools::report_server_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Link {
  int port = 0;
  std::string token;
};

Link parts_of(const std::string& url) {
  const std::string begin = "http://127.0.0.1:";
  EXPECT_THAT(url, StartsWith(begin));
  const size_t mark = url.find("/?token=");
  return {std::stoi(url.substr(begin.size())), url.substr(mark + 8)};
}

class ReportServerTest : public ::testing::Test {
 protected:
  int status(const std::string& path, const httplib::Headers& headers = {}) const {
    httplib::Client client("127.0.0.1", link_.port);
    const auto answer = client.Get(path, headers);
    return answer ? answer->status : -1;
  }

  void serve(const std::string& page, const std::string& data) {
    server_->serve({[=](const std::string& url) { return page + " " + url; },
                    [=](const std::string& url) { return data + " " + url; }});
  }

  std::unique_ptr<ReportServer> server_ = ReportServer::start(0).value();
  const Link link_ = parts_of(server_->url());
};

TEST_F(ReportServerTest, TheLinkLeadsToThePageAndItsData) {
  EXPECT_EQ(link_.token.size(), 32U);
  const std::string page = "/?token=" + link_.token;
  EXPECT_EQ(status(page), 503);  // nothing to show yet
  int asked = 0;
  server_->serve({[](const std::string&) { return std::string("<!doctype html>"); },
                  [&](const std::string&) { return std::to_string(++asked); }});
  httplib::Client client("127.0.0.1", link_.port);
  const auto answer = client.Get(page);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "<!doctype html>");
  EXPECT_THAT(answer->get_header_value("Content-Type"), HasSubstr("text/html"));
  EXPECT_EQ(answer->get_header_value("Cache-Control"), "no-store");
  const std::string data = "/data.json?token=" + link_.token;
  EXPECT_EQ(client.Get(data)->body, "1");
  EXPECT_EQ(client.Get(data)->body, "2");
  EXPECT_EQ(status("/manifest.json?token=" + link_.token), 404);
}

TEST_F(ReportServerTest, WaitsUntilThePagesThatFollowHaveTheLastReport) {
  const auto get = [&](const std::string& path) {
    httplib::Client client("127.0.0.1", link_.port);
    const auto answer = client.Get(path);
    EXPECT_TRUE(answer);
    return answer ? answer->body : "";
  };
  serve("page", "first");
  EXPECT_TRUE(server_->wait_until_sent(0)) << "nobody follows";
  // Two pages, each of which gets its own address of the data.
  const std::string one = get("/?token=" + link_.token), other = get("/?token=" + link_.token);
  EXPECT_NE(one, other);
  const auto data_of = [](const std::string& answer) {
    return "/" + answer.substr(answer.find("data.json"));
  };
  EXPECT_THAT(get(data_of(one)), StartsWith("first "));
  EXPECT_TRUE(server_->wait_until_sent(5));
  serve("page", "last");
  EXPECT_FALSE(server_->wait_until_sent(0.01));
  EXPECT_THAT(get(data_of(one)), StartsWith("last "));
  EXPECT_FALSE(server_->wait_until_sent(0.01)) << "the other page has not asked yet";
  EXPECT_EQ(data_of(get(data_of(other))), data_of(other)) << "a page stays the same reader";
  EXPECT_TRUE(server_->wait_until_sent(5));
}

TEST_F(ReportServerTest, WithoutTheTokenNobodyGetsAnything) {
  serve("page", "data");
  std::string other = link_.token;
  other.back() = other.back() == '0' ? '1' : '0';
  for (const std::string& token : {std::string(), other, link_.token.substr(1), link_.token + "0"}) {
    EXPECT_EQ(status("/?token=" + token), 403) << token;
    EXPECT_EQ(status("/data.json?token=" + token), 403) << token;
  }
  EXPECT_EQ(status("/"), 403);
  EXPECT_EQ(status("/none"), 403);
}

TEST_F(ReportServerTest, UnderAnotherNameNobodyGetsAnything) {
  serve("page", "data");
  const std::string page = "/?token=" + link_.token, port = std::to_string(link_.port);
  EXPECT_EQ(status(page, {{"Host", "localhost:" + port}}), 200);
  for (const char* host : {"evil.example", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example"})
    EXPECT_EQ(status(page, {{"Host", host}}), 403) << host;
  EXPECT_EQ(status(page, {{"Host", "evil.example:" + port}}), 403);
}

TEST_F(ReportServerTest, ATakenPortIsAnError) {
  const auto second = ReportServer::start(link_.port);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
  EXPECT_THAT(second.error().message(), HasSubstr("--serve " + std::to_string(link_.port)));
  const int port = link_.port;
  server_.reset();
  EXPECT_TRUE(ReportServer::start(port).ok()) << "the port is free again";
}

TEST_F(ReportServerTest, OtherAddressesOfThisMachineAreNotListenedOn) {
  httplib::Client client("127.0.0.2", link_.port);
  EXPECT_FALSE(client.Get("/"));
}

TEST_F(ReportServerTest, TokensDiffer) {
  const auto second = ReportServer::start(0);
  ASSERT_TRUE(second.ok());
  EXPECT_NE(parts_of((*second)->url()).token, link_.token);
}

}  // namespace
}  // namespace tensorsmith::tools::report_server_test
