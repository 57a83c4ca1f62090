//===- HttpServer.h - Listens, and keeps connections ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_HTTP_HTTPSERVER_H
#define LLAMAC_SERVE_HTTP_HTTPSERVER_H

#include "serve/http/HttpConnection.h"

#include "absl/status/statusor.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>

namespace llamac::serve {

struct ListenOptions {
  std::string host = "127.0.0.1";         ///< An address, or a name for one.
  uint16_t port = 8080;                   ///< 0: a free one.
  std::string certificate = {}, key = {}; ///< Files for TLS; none without.
  HttpLimits limits = {};
};

/// A server on one thread, which runs `context`.
class HttpServer {
public:
  /// Takes the port, which refuses connections until start(). `context`
  /// outlives it. Usage error for a host that is no address of the
  /// machine, or a port that is taken; those of loadTls().
  static absl::StatusOr<std::unique_ptr<HttpServer>>
  bind(asio::io_context &context, const ListenOptions &options);
  ~HttpServer();

  /// Listens from now on, and calls `eachSecond`, if there is one, once a
  /// second.
  absl::Status start(HttpHandler handler,
                     std::function<void()> eachSecond = {});

  /// Where it listens: "http://127.0.0.1:8080".
  std::string url() const;

  /// Whether only this machine can reach it.
  bool isLoopback() const;
  uint16_t port() const { return acceptor.local_endpoint().port(); }

  size_t connections() const { return connected.size(); }

  /// From now on a connection ends with the request that it is at.
  void drain();

  /// Ends everything.
  void close();

private:
  HttpServer(asio::io_context &context, const ListenOptions &options);
  Task<void> acceptAll();
  Task<void> workEachSecond();
  void open(asio::ip::tcp::socket socket);

  asio::io_context &context;
  ListenOptions options;
  HttpHandler handler;
  std::function<void()> eachSecond;
  std::shared_ptr<asio::ssl::context> tls;
  asio::ip::tcp::acceptor acceptor;
  asio::steady_timer clock;
  std::unordered_set<HttpConnection *> connected;
  bool isDraining = false;
};

} // namespace llamac::serve

#endif // LLAMAC_SERVE_HTTP_HTTPSERVER_H
