//===- HttpServerTest.cpp - Connections and hostile clients ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/http/HttpServer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

namespace llamac::serve {
namespace {

using asio::ip::tcp;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A client that sends bytes as they are.
class Client {
public:
  explicit Client(uint16_t port) : socket(context) {
    socket.connect({asio::ip::make_address("127.0.0.1"), port});
  }

  void send(absl::string_view bytes) {
    boost::system::error_code ignored;
    asio::write(socket, asio::buffer(bytes.data(), bytes.size()), ignored);
  }
  void finish() { socket.shutdown(tcp::socket::shutdown_send); }

  /// Up to `mark`, or to the end of the connection.
  std::string readTo(absl::string_view mark) {
    std::array<char, 4096> piece;
    while (!absl::StrContains(text, mark)) {
      boost::system::error_code error;
      const size_t size = socket.read_some(asio::buffer(piece), error);
      if (error)
        break;
      text.append(piece.data(), size);
    }
    return std::exchange(text, {});
  }
  std::string readAll() { return readTo("no such mark"); }

private:
  asio::io_context context;
  tcp::socket socket;
  std::string text;
};

/// A server whose answer is what it understood; /stream answers in parts until
/// its client leaves, /wait when it has left.
class HttpServerTest : public testing::Test {
protected:
  void start(const HttpLimits &limits = {}) {
    ListenOptions options;
    options.port = 0;
    options.limits = limits;
    auto bound = HttpServer::bind(context, options);
    ASSERT_TRUE(bound.ok()) << bound.status();
    server = *std::move(bound);
    HttpHandler handler;
    handler.refuse = [](HttpExchange &exchange) -> std::optional<HttpAnswer> {
      if (exchange.request().target() == "/no")
        return HttpAnswer{403, "no"};
      return std::nullopt;
    };
    handler.answer = [this](HttpExchange &exchange) {
      return answer(exchange);
    };
    handler.malformed = [this](const HttpRequest &head, unsigned,
                               absl::string_view, const std::string &) {
      ++malformed;
      target = std::string(head.target());
    };
    handler.errorAnswer = [](unsigned status, absl::string_view why) {
      return HttpAnswer{status, std::string(why)};
    };
    ASSERT_TRUE(server->start(std::move(handler)).ok());
    thread = std::thread([this] { context.run(); });
  }

  ~HttpServerTest() override {
    context.stop();
    if (thread.joinable())
      thread.join();
  }

  Task<void> answer(HttpExchange &exchange) {
    const HttpRequest &request = exchange.request();
    if (request.target() == "/stream") {
      bool isTaken = co_await exchange.begin({200, "", "text/plain"});
      while (isTaken && !exchange.clientLeft()) {
        isTaken = co_await exchange.sendPart(std::string(100'000, '.'));
        co_await exchange.changed().wait(Clock::now() +
                                         std::chrono::milliseconds(1));
      }
      ++left;
    } else if (request.target() == "/wait") {
      while (!exchange.clientLeft())
        co_await exchange.changed().wait();
      ++left;
    } else if (request.target() == "/slow") {
      while (!exchange.clientLeft() &&
             co_await exchange.changed().wait(Clock::now() +
                                              std::chrono::milliseconds(200))) {
      }
      left += exchange.clientLeft();
      co_await exchange.send({200, "slow"});
    } else if (request.target() == "/fields") {
      std::string text = "[";
      for (const auto &field : request)
        absl::StrAppend(&text, std::string(field.name_string()), "=",
                        std::string(field.value()), " ");
      co_await exchange.send({200, text + "]"});
    } else if (request.target() == "/parts") {
      co_await exchange.begin({200, "", "text/plain"});
      for (const char *part : {"one", "", "two"})
        co_await exchange.sendPart(part);
      co_await exchange.end();
    } else {
      co_await exchange.send(
          {200, absl::StrCat(std::string(request.method_string()), " ",
                             std::string(request.target()), " [",
                             request.body(), "]")});
    }
  }

  /// The answer to `bytes`, after which nothing is sent.
  std::string ask(absl::string_view bytes) {
    Client client(server->port());
    client.send(bytes);
    client.finish();
    return client.readAll();
  }

  /// Waits until the server has no connection any more.
  void waitUntilClosed() {
    for (int i = 0; i < 5000 && open() > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(open(), 0u);
  }

  size_t open() {
    return asio::post(context, asio::use_future(
                                   [this] { return server->connections(); }))
        .get();
  }

  void waitUntilLeft(int count) {
    for (int i = 0; i < 5000 && left < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(left, count);
  }

  asio::io_context context{1};
  std::unique_ptr<HttpServer> server;
  std::thread thread;
  std::atomic<int> left = 0, malformed = 0;
  std::string target; ///< The last malformed request names it.
};

TEST_F(HttpServerTest, AConnectionTakesRequestsOneAfterTheOther) {
  start();
  Client client(server->port());
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.readTo("[]"), HasSubstr("GET /a []"));
  // Two at once, the first in pieces.
  client.send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Le");
  client.send("ngth: 3\r\n\r\nab");
  client.send("cGET /c HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string both = client.readTo("GET /c []");
  EXPECT_THAT(both, HasSubstr("POST /b [abc]"));
  EXPECT_THAT(both, HasSubstr("GET /c []"));
}

TEST_F(HttpServerTest, ChunkedBodiesAndPartsAreUnderstood) {
  start();
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                  "\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
              HasSubstr("POST / [abcde]"));
  EXPECT_THAT(ask("GET /parts HTTP/1.1\r\nHost: x\r\n\r\n"),
              HasSubstr("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"));
  const std::string old = ask("GET /parts HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old, HasSubstr("\r\n\r\nonetwo"));
  EXPECT_THAT(old, Not(HasSubstr("chunked")));
}

TEST_F(HttpServerTest, HeadHasTheFieldsOfGetAndNoBody) {
  start();
  const std::string text = ask("HEAD /abc HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(text, HasSubstr("Content-Length: 12"));
  EXPECT_THAT(text, Not(HasSubstr("HEAD /abc")));
}

TEST_F(HttpServerTest, AClientThatExpectsItIsToldToGoOn) {
  start();
  Client client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: "
              "100-continue\r\n\r\n");
  EXPECT_THAT(client.readTo("\r\n\r\n"), StartsWith("HTTP/1.1 100 "));
  client.send("ok");
  EXPECT_THAT(client.readTo("]"), HasSubstr("[ok]"));
}

TEST_F(HttpServerTest, ARefusedRequestIsAnsweredBeforeItsBody) {
  start();
  Client client(server->port());
  client.send("POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  const std::string text = client.readAll();
  EXPECT_THAT(text, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(text, HasSubstr("Connection: close"));
}

TEST_F(HttpServerTest, AmbiguousLengthsAreRefused) {
  start();
  const char *head = "POST / HTTP/1.1\r\nHost: x\r\n";
  const char *hidden = "\r\n0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const char *fields :
       {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n", "Content-Length: -1\r\n",
        "Content-Length: +3\r\n", "Content-Length: 0x3\r\n",
        "Content-Length: 3, 4\r\n",
        "Content-Length: 99999999999999999999\r\n"}) {
    const std::string text = ask(absl::StrCat(head, fields, hidden));
    EXPECT_THAT(text, testing::AnyOf(StartsWith("HTTP/1.1 400 "),
                                     StartsWith("HTTP/1.1 413 ")))
        << fields;
    EXPECT_THAT(text, Not(HasSubstr("/hidden"))) << fields;
  }
  EXPECT_EQ(malformed, 12);
  EXPECT_EQ(target, "/");
}

TEST_F(HttpServerTest, BytesThatAreNoRequestAreRefused) {
  start();
  for (const char *text :
       {"\x16\x03\x01\x02", "GET\r\n\r\n", "GET / HTTP/3.0\r\n\r\n",
        "GET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\nA b: c\r\n\r\n",
        "\r\n\r\n\r\n{}", "GET /\x01 HTTP/1.1\r\n\r\n"})
    EXPECT_THAT(ask(text), testing::MatchesRegex("(HTTP/1.1 (400|505) .*)?"))
        << text;
}

TEST_F(HttpServerTest, FloodsOfFieldsAndBodiesEndAtTheirLimits) {
  start({.headerBytes = 4096, .bodyBytes = 1000});
  const std::string flood(100'000, 'x');
  EXPECT_THAT(ask(absl::StrCat("GET / HTTP/1.1\r\nA: ", flood, "\r\n\r\n")),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask(absl::StrCat("GET /", flood, " HTTP/1.1\r\n\r\n")),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask(absl::StrCat("POST / HTTP/1.1\r\nHost: x\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n186a0\r\n",
                               flood)),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("GET /still HTTP/1.1\r\nHost: x\r\n\r\n"),
              HasSubstr("GET /still []"));
}

TEST_F(HttpServerTest, HeadsTrailersAndExtensionsOfChunksHaveOneLimit) {
  start({.headerBytes = 4096});
  const std::string chunked =
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string large(200'000, 'x');
  std::string many, fields;
  for (int i = 0; i < 100; ++i) {
    many += absl::StrCat("1;a=", std::string(100, 'x'), "\r\nb\r\n");
    fields += absl::StrCat("F", i, ": ", std::string(100, 'x'), "\r\n");
  }
  for (const std::string &rest :
       {absl::StrCat("5;a=", large, "\r\nabcde\r\n0\r\n\r\n"),
        absl::StrCat("5;a=", large), absl::StrCat(std::string(9000, '0'), "1"),
        absl::StrCat("0;a=", large, "\r\n\r\n"),
        absl::StrCat(many, "0\r\n\r\n"), absl::StrCat("0\r\n", fields, "\r\n"),
        absl::StrCat("0\r\nA: ", large, "\r\n\r\n"),
        absl::StrCat("0\r\n", std::string(500'000, '\n'))}) {
    // Also from a client that goes on waiting.
    Client client(server->port());
    client.send(chunked + rest);
    EXPECT_THAT(client.readTo("\r\n\r\n"), StartsWith("HTTP/1.1 431 "))
        << rest.substr(0, 20);
  }
  { // A head that comes in pieces, each of which is short.
    Client client(server->port());
    client.send("GET / HTTP/1.1\r\n");
    for (int i = 0; i < 100; ++i) {
      client.send(absl::StrCat("F", i, ": ", std::string(100, 'x'), "\r\n"));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_THAT(client.readAll(), StartsWith("HTTP/1.1 431 "));
  }
  // Plain chunks are no such thing, however small.
  std::string small;
  for (int i = 0; i < 3000; ++i)
    small += "1\r\nx\r\n";
  EXPECT_THAT(ask(absl::StrCat(chunked, small, "0\r\n\r\n")),
              HasSubstr("xxx]"));
  EXPECT_THAT(
      ask(absl::StrCat(chunked, "1;a=\"b c\"\r\nx\r\n0\r\nA: b\r\n\r\n")),
      HasSubstr("[x]"));
  waitUntilClosed();
}

TEST_F(HttpServerTest, TrailersAreNoPartOfTheHead) {
  start();
  const std::string text =
      ask("POST /fields HTTP/1.1\r\nHost: x\r\nA: 1\r\n"
          "Transfer-Encoding: chunked\r\n\r\n"
          "1\r\nx\r\n0\r\nA: 2\r\nHost: y\r\nB: 3\r\n\r\n");
  EXPECT_THAT(text, HasSubstr("[Host=x A=1 Transfer-Encoding=chunked ]"));
}

TEST_F(HttpServerTest, HeadsThatOthersReadInAnotherWayAreRefused) {
  start();
  for (const char *text :
       {"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "GET http://y/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA:\r\n\tc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n A: b\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\nA: b\r\n c\r\n\r\n",
        "GET x HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://me@x/a HTTP/1.1\r\nHost: x\r\n\r\n"})
    EXPECT_THAT(ask(text), StartsWith("HTTP/1.1 400 ")) << text;
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\nExpect: a\r\n\r\n"),
              StartsWith("HTTP/1.1 417 "));
  // Bytes that look like a folded line in a body are none.
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"
                  "\r\n\r\n4\r\n\r\n c\r\n0\r\n\r\n"),
              HasSubstr("POST / [\r\n c]"));
}

TEST_F(HttpServerTest, TargetsInAbsoluteFormAreServedByTheirOwnHost) {
  start();
  for (const auto &[target, path] :
       {std::pair("http://y/a?b=http://c", "/a?b=http://c"),
        std::pair("HTTP://y", "/"), std::pair("https://y?b", "/?b")})
    EXPECT_THAT(
        ask(absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: x\r\n\r\n")),
        HasSubstr(absl::StrCat("GET ", path, " []")));
  EXPECT_THAT(ask("GET http://y:80/fields HTTP/1.1\r\nHost: x\r\n\r\n"),
              HasSubstr("[Host=y:80 ]"));
  EXPECT_THAT(ask("GET /http://y HTTP/1.1\r\nHost: x\r\n\r\n"),
              HasSubstr("GET /http://y []"));
}

TEST_F(HttpServerTest, OldClientsKeepAConnectionThatTheyAskToKeep) {
  start();
  Client client(server->port());
  for (int i = 0; i < 2; ++i) {
    client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\nExpect: "
                "100-continue\r\n\r\n\r\n");
    EXPECT_THAT(client.readTo("[]"),
                testing::AllOf(StartsWith("HTTP/1.1 200 "),
                               HasSubstr("Connection: keep-alive\r\n")));
  }
  client.send("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.readAll(), HasSubstr("Connection: close\r\n"));
}

TEST_F(HttpServerTest, AClientThatClosesItsHalfIsAnswered) {
  start();
  for (const char *version : {"1.0", "1.1"}) {
    Client client(server->port());
    client.send(
        absl::StrCat("GET /slow HTTP/", version, "\r\nHost: x\r\n\r\n"));
    client.finish();
    const std::string text = client.readAll();
    EXPECT_THAT(text, testing::EndsWith("\r\n\r\nslow")) << version;
    EXPECT_EQ(absl::StrContains(text, " 100 "), version[2] == '1');
  }
  EXPECT_EQ(left, 0);
}

TEST_F(HttpServerTest, AClientThatLeavesIsNoticed) {
  start();
  { // With more behind its request than is read ahead.
    Client client(server->port());
    client.send(absl::StrCat("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n",
                             std::string(100'000, 'x')));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  waitUntilLeft(1);
  left = 0;
  { // While nothing is sent.
    Client client(server->port());
    client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  waitUntilLeft(1);
  { // While it is sent to.
    Client client(server->port());
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    client.readTo("...");
  }
  waitUntilLeft(2);
}

TEST_F(HttpServerTest, SlowClientsAreClosedWhenTheirTimeIsOver) {
  start({.idle = std::chrono::seconds(1),
         .request = std::chrono::seconds(1),
         .write = std::chrono::seconds(1),
         .farewell = std::chrono::seconds(1)});
  Client idle(server->port()), torn(server->port()), deaf(server->port());
  torn.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc");
  deaf.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"); // And never reads.
  waitUntilLeft(1);
  EXPECT_EQ(idle.readAll(), "");
  EXPECT_EQ(torn.readAll(), "");
}

TEST_F(HttpServerTest, AServerThatClosesEndsWhateverWaits) {
  start();
  Client waits(server->port()), deaf(server->port()), torn(server->port()),
      flood(server->port()), idle(server->port());
  waits.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  deaf.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"); // And never reads.
  torn.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            "5;a");
  flood.send(absl::StrCat("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n",
                          std::string(100'000, 'x')));
  for (int i = 0; i < 5000 && open() < 5; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  asio::post(context, [&] { server->close(); });
  // Nothing is left that run() would wait for.
  for (int i = 0; i < 5000 && !context.stopped(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(context.stopped());
  EXPECT_EQ(left, 3);
  EXPECT_EQ(server->connections(), 0u);
}

TEST_F(HttpServerTest, ADrainedServerAnswersWhatItHasAndEndsConnections) {
  start();
  Client idle(server->port()), busy(server->port());
  idle.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  idle.readTo("[]");
  busy.send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  asio::post(context, [&] { server->drain(); });
  EXPECT_EQ(idle.readAll(), "");
  busy.send("2");
  EXPECT_THAT(busy.readAll(), HasSubstr("POST /b [12]"));
  // A new one may still ask, once.
  EXPECT_THAT(ask("GET /c HTTP/1.1\r\nHost: x\r\n\r\nGET /d HTTP/1.1\r\n\r\n"),
              testing::AllOf(HasSubstr("GET /c []"), Not(HasSubstr("/d"))));
}

} // namespace
} // namespace llamac::serve
