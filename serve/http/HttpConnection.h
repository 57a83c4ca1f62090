//===- HttpConnection.h - One client's requests -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// HTTP/1.1 as RFC 9112 has it, parsed by Boost.Beast. One coroutine reads all
// the time, another takes requests one by one and answers them, and a third
// waits for the connection to break. All of it, and the handlers, runs on one
// thread. Whatever waits has a deadline, and close() wakes it.
//
// A client that sends no more may have left, or wait for its answer with its
// half of the connection closed (RFC 9112, 9.6): only what is sent to it tells
// them apart, as the host of one that left resets the connection. While nothing
// else is sent, an interim answer, 100 Continue, does that.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_HTTP_HTTPCONNECTION_H
#define LLAMAC_SERVE_HTTP_HTTPCONNECTION_H

#include "serve/http/Transport.h"

#include "absl/strings/string_view.h"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llamac::serve {

namespace http = boost::beast::http;

using HttpRequest = http::request<http::string_body>;
using HttpFields = std::vector<std::pair<std::string, std::string>>;

/// An answer that is sent as a whole.
struct HttpAnswer {
  unsigned status = 200;
  std::string body = {};
  std::string type = "application/json"; ///< None when empty.
  HttpFields fields = {};
  std::string error = {}; ///< For logs; empty where all is well.
};

struct HttpLimits {
  /// Bytes of a request's head, trailers and extensions of chunks together.
  uint64_t headerBytes = uint64_t{32} << 10;
  uint64_t bodyBytes = uint64_t{32} << 20;
  /// Between two requests; until one has come whole; until a client has taken
  /// what is sent; until one that is sent away has read why.
  std::chrono::seconds idle{75}, request{60}, write{60}, farewell{2};
};

class HttpConnection;

/// A request and the way to answer it.
class HttpExchange {
public:
  const HttpRequest &request() const { return *message; }
  const std::string &remote() const;

  /// Is set off when the client leaves, and by the handler as it wants.
  Signal &changed();
  bool clientLeft() const;

  /// Fields that every answer gets.
  void addField(std::string name, std::string value) {
    common.emplace_back(std::move(name), std::move(value));
  }

  /// Sends `answer`. False when the client does not take it.
  Task<bool> send(const HttpAnswer &answer);

  /// Sends an answer in parts: the status and fields, any parts, the end.
  Task<bool> begin(const HttpAnswer &head);
  Task<bool> sendPart(absl::string_view part);
  Task<bool> end();

  bool begun() const { return hasBegun; }

private:
  friend class HttpConnection;
  HttpExchange(HttpConnection &connection, const HttpRequest &message,
               bool keepsAlive)
      : connection(connection), message(&message), keepsAlive(keepsAlive) {}

  bool takesInterimAnswers() const {
    return !hasBegun && message->version() >= 11;
  }

  std::string head(const HttpAnswer &answer, std::optional<size_t> size) const;

  HttpConnection &connection;
  const HttpRequest *message;
  HttpFields common;
  bool keepsAlive;
  bool hasBegun = false, isChunked = false;
};

/// The server's answers to requests.
struct HttpHandler {
  /// Is asked when a request's header is there: an answer spares its body.
  std::function<std::optional<HttpAnswer>(HttpExchange &head)> refuse;
  /// Answers it.
  std::function<Task<void>(HttpExchange &exchange)> answer;
  /// Is told of requests that cannot be read; `head` is what was read of it.
  std::function<void(const HttpRequest &head, unsigned status,
                     absl::string_view why, const std::string &remote)>
      malformed;
  /// The answer to one.
  std::function<HttpAnswer(unsigned status, absl::string_view why)> errorAnswer;
};

/// Why a request cannot be read.
struct HttpRefusal {
  unsigned status;
  std::string why;
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
public:
  /// `limits` and `handler` outlive it.
  HttpConnection(const asio::any_io_executor &executor,
                 std::unique_ptr<Transport> transport, std::string remote,
                 const HttpLimits &limits, const HttpHandler &handler)
      : executor(executor), transport(std::move(transport)),
        remote(std::move(remote)), limits(limits), handler(handler),
        arrived(executor), taken(executor), written(executor),
        changed(executor) {}

  /// Runs it until it ends; keeps it alive meanwhile.
  void start(std::function<void()> onEnd);

  /// Closes it if what is waited for is overdue. Is called once a second.
  void closeIfOverdue(Clock::time_point now);

  /// Takes no request after the one that is answered or comes in, and the first
  /// one.
  void drain();

  void close();

private:
  friend class HttpExchange;
  using Parser = http::request_parser<http::string_body>;

  Task<void> run();
  Task<void> readAll();
  Task<void> watch();
  void probe();
  enum class Taken { Request, Refused, Nothing };
  Task<Taken> takeRequest(Parser &parser);
  HttpRefusal refusalOf(const boost::system::error_code &error) const;
  Task<void> refuse(const HttpRequest &head, HttpRefusal refusal);
  Task<void> sayFarewell();
  Task<bool> write(absl::string_view bytes);
  void limit(Clock::duration longest) { deadline = Clock::now() + longest; }
  void unlimit() { deadline = Clock::time_point::max(); }

  asio::any_io_executor executor;
  std::unique_ptr<Transport> transport;
  std::string remote;
  const HttpLimits &limits;
  const HttpHandler &handler;
  Clock::time_point deadline = Clock::time_point::max();
  std::string input;     ///< Read, and not taken yet.
  bool hasEnded = false; ///< The client sends no more.
  bool isBroken = false; ///< The client takes no more, or it is closed.
  bool discards = false; ///< Whether further input is dropped.
  bool isIdle = false, isDraining = false;
  bool isFirst = true;             ///< No request was taken yet.
  bool isWriting = false;          ///< One at a time.
  HttpExchange *current = nullptr; ///< The exchange that is answered.
  Signal arrived, taken;           ///< Bytes of `input`.
  Signal written;
  Signal changed; ///< The exchange has changed.
};

} // namespace llamac::serve

#endif // LLAMAC_SERVE_HTTP_HTTPCONNECTION_H
