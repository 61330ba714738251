#include "control/http/http_server.h"

#include <gtest/gtest.h>

#include <deque>

#include "test/support/http_client.h"

namespace sluice::http {
namespace {

using test::http_get;
using test::TcpConnection;

const core::IpAddress kLoopback4 = *core::parse_address("127.0.0.1");
const core::IpAddress kLoopback6 = *core::parse_address("::1");

std::unique_ptr<HttpServer> server(const Limits& limits = {}) {
  auto made = HttpServer::create(limits, {});
  EXPECT_TRUE(made.has_value());
  return std::move(*made);
}

Handler says(std::string body) {
  return [body = std::move(body)](const Request& r) {
    return Response{200, {{"X-Path", std::string(r.path)}}, body};
  };
}

TEST(HttpServer, EachListenerAnswersByItsOwnHandler) {
  const auto http = server();
  const auto a = *http->listen(kLoopback4, 0, says("a"));
  const auto b = *http->listen(kLoopback4, 0, says("b"));
  const auto answer = http_get(kLoopback4, a.port, "/x?y=1");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->body, "a");
  EXPECT_EQ(answer->headers.at("x-path"), "/x");
  EXPECT_EQ(answer->headers.at("connection"), "close");
  EXPECT_EQ(http_get(kLoopback4, b.port, "/")->body, "b");
}

// H-1: any method is answered alike, with a body on the way too.
TEST(HttpServer, AnyMethodIsAnswered) {
  const auto http = server();
  const auto a = *http->listen(kLoopback4, 0, says("a"));
  for (const char* method : {"POST", "DELETE", "BREW"}) {
    EXPECT_EQ(http_get(kLoopback4, a.port, "/", method)->status, 200) << method;
  }
  const auto head = http_get(kLoopback4, a.port, "/", "HEAD");
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->body, "");
  auto upload = TcpConnection::connect(kLoopback4, a.port);
  ASSERT_TRUE(upload->send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"));
  EXPECT_NE(upload->read_all().find("200"), std::string::npos);
}

TEST(HttpServer, FamiliesOfOnePortAreSeparateSockets) {
  const auto http = server();
  const auto v6 = http->listen(core::IpAddress{core::Ipv6Address{}}, 0, says("six"));
  if (!v6) {
    GTEST_SKIP() << "no IPv6 here: " << v6.error().message;
  }
  const auto v4 = http->listen(core::IpAddress{}, v6->port, says("four"));
  ASSERT_TRUE(v4.has_value()) << v4.error().message;
  EXPECT_EQ(http_get(kLoopback4, v6->port, "/")->body, "four");
  EXPECT_EQ(http_get(kLoopback6, v6->port, "/")->body, "six");
}

TEST(HttpServer, BusyPortIsAnErrorThatNamesIt) {
  const auto http = server();
  const auto a = *http->listen(kLoopback4, 0, says("a"));
  const auto again = http->listen(kLoopback4, a.port, says("b"));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().message,
            "cannot listen on 127.0.0.1:" + std::to_string(a.port) + ": Address already in use");
}

TEST(HttpServer, ClosedPortIsFreeAtOnce) {
  const auto http = server();
  const auto a = *http->listen(kLoopback4, 0, says("a"));
  http->close(a.id);
  EXPECT_FALSE(http_get(kLoopback4, a.port, "/").has_value());
  ASSERT_TRUE(http->listen(kLoopback4, a.port, says("b")).has_value());
  EXPECT_EQ(http_get(kLoopback4, a.port, "/")->body, "b");
}

// F89: a connection that was open before the listener closed gets no answer.
TEST(HttpServer, OldConnectionOfAClosedListenerGetsNoAnswer) {
  const auto http = server();
  const auto a = *http->listen(kLoopback4, 0, says("a"));
  auto old = TcpConnection::connect(kLoopback4, a.port);
  ASSERT_TRUE(old->send("GET / HTTP/1.1\r\n"));
  http->close(a.id);
  old->send("Host: x\r\n\r\n");
  EXPECT_EQ(old->read_all().find("200"), std::string::npos);
}

// F106: slow connections do not keep a probe from its answer.
TEST(HttpServer, AnswersWhileThousandsOfSlowConnectionsHang) {
  Limits limits;
  limits.connections = 64;
  const auto http = server(limits);
  const auto a = *http->listen(kLoopback4, 0, says("a"));
  std::deque<TcpConnection> slow;
  for (int i = 0; i < 2000; ++i) {
    auto connection = TcpConnection::connect(kLoopback4, a.port);
    ASSERT_TRUE(connection.has_value()) << i;
    connection->send("GET / HTTP/1.1\r\nX: ");
    slow.push_back(std::move(*connection));
    if (slow.size() > 400) {  // the test's own descriptors
      slow.pop_front();
    }
    if (i % 500 == 499) {
      // In its turn, not when the slow ones have been ended for their age: they still hang.
      EXPECT_EQ(http_get(kLoopback4, a.port, "/")->status, 200);
      EXPECT_FALSE(slow.back().closed_by_peer());
    }
  }
  EXPECT_TRUE(slow.front().closed_by_peer());  // the limit holds: the oldest were ended
}

// F106
TEST(HttpServer, TenMegabytesOfRequestLineAreRefused) {
  const auto http = server();
  const auto a = *http->listen(kLoopback4, 0, says("a"));
  auto connection = TcpConnection::connect(kLoopback4, a.port);
  connection->send("GET /" + std::string(10u << 20, 'x') + " HTTP/1.1\r\n\r\n");
  EXPECT_EQ(connection->read_all().find("200 OK"), std::string::npos);
  EXPECT_EQ(http_get(kLoopback4, a.port, "/")->status, 200);
}

// F106
TEST(HttpServer, EndlessHeadersAreEnded) {
  const auto http = server();
  const auto a = *http->listen(kLoopback4, 0, says("a"));
  auto connection = TcpConnection::connect(kLoopback4, a.port);
  connection->send("GET / HTTP/1.1\r\n");
  const std::string line = "X-Filler: " + std::string(1000, 'x') + "\r\n";
  for (int i = 0; i < 1000 && connection->send(line); ++i) {
  }
  EXPECT_TRUE(connection->closed_by_peer());
}

// F106: a connection that sends a byte now and then is never idle, but too old.
TEST(HttpServer, ConnectionOlderThanTheDeadlineIsEnded) {
  Limits limits;
  limits.deadline = std::chrono::milliseconds(20);
  const auto http = server(limits);
  const auto a = *http->listen(kLoopback4, 0, says("a"));
  auto connection = TcpConnection::connect(kLoopback4, a.port);
  EXPECT_TRUE(connection->closed_by_peer());
}

TEST(HttpServer, HandlerThatThrowsAnswers503) {
  const auto http = server();
  const auto a = *http->listen(kLoopback4, 0,
                               [](const Request&) -> Response { throw std::runtime_error("no"); });
  EXPECT_EQ(http_get(kLoopback4, a.port, "/")->status, 503);
}

}  // namespace
}  // namespace sluice::http
