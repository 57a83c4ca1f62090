//===- HttpServer.cpp - Listens, and keeps connections --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/http/HttpServer.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <utility>

namespace llamac::serve {

using asio::ip::tcp;
using boost::system::error_code;

HttpServer::HttpServer(asio::io_context &context, const ListenOptions &options)
    : context(context), options(options), acceptor(context), clock(context) {}

// Asio's cancel() could throw by its signature alone.
// NOLINTNEXTLINE(bugprone-exception-escape)
HttpServer::~HttpServer() { close(); }

absl::StatusOr<std::unique_ptr<HttpServer>>
HttpServer::bind(asio::io_context &context, const ListenOptions &options) {
  std::unique_ptr<HttpServer> server(new HttpServer(context, options));
  if (!options.certificate.empty()) {
    LLAMAC_ASSIGN_OR_RETURN(server->tls,
                            loadTls(options.certificate, options.key));
  }
  error_code error;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(
      options.host, absl::StrCat(options.port),
      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  const auto noAddress = [&] {
    return usageError(absl::StrCat("--host: expected an address of this "
                                   "machine, got ",
                                   options.host, ": ", error.message()));
  };
  if (error)
    return noAddress();
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor &acceptor = server->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error)
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error)
    acceptor.bind(endpoint, error);
  if (error == boost::system::errc::address_not_available)
    return noAddress();
  if (error)
    return usageError(absl::StrCat("--port: cannot take port ", options.port,
                                   " of ", options.host, ": ", error.message(),
                                   "; --port 0 takes a free one"));
  return server;
}

absl::Status HttpServer::start(HttpHandler answers,
                               std::function<void()> work) {
  handler = std::move(answers);
  eachSecond = std::move(work);
  error_code error;
  acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error)
    return usageError(absl::StrCat("--port: cannot listen at port ", port(),
                                   ": ", error.message()));
  asio::co_spawn(context, [this] { return acceptAll(); }, asio::detached);
  asio::co_spawn(context, [this] { return workEachSecond(); }, asio::detached);
  return absl::OkStatus();
}

std::string HttpServer::url() const {
  const tcp::endpoint at = acceptor.local_endpoint();
  const std::string address = at.address().to_string();
  return absl::StrCat(tls ? "https://" : "http://",
                      at.address().is_v6() ? absl::StrCat("[", address, "]")
                                           : address,
                      ":", at.port());
}

bool HttpServer::isLoopback() const {
  return acceptor.local_endpoint().address().is_loopback();
}

Task<void> HttpServer::acceptAll() {
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(asValue);
    if (error == asio::error::operation_aborted)
      co_return;
    if (!error) {
      open(std::move(socket));
      continue;
    }
    // Out of descriptors, most likely: clients wait until some are closed.
    asio::steady_timer pause(context, std::chrono::milliseconds(50));
    co_await pause.async_wait(asValue);
  }
}

/// Has the system ask a client's host that says nothing for a minute whether
/// it still knows the connection.
static void findDeadHosts(tcp::socket &socket) {
  error_code ignored;
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  for (const auto &[option, value] :
       {std::pair(TCP_KEEPIDLE, 60), std::pair(TCP_KEEPINTVL, 10),
        std::pair(TCP_KEEPCNT, 3)})
    (void)setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value,
                     sizeof(value));
}

void HttpServer::open(tcp::socket socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  findDeadHosts(socket);
  const tcp::endpoint peer = socket.remote_endpoint(ignored);
  auto connection = std::make_shared<HttpConnection>(
      context.get_executor(),
      tls ? tlsTransport(std::move(socket), *tls)
          : plainTransport(std::move(socket)),
      peer.address().to_string(), options.limits, handler);
  connected.insert(connection.get());
  if (isDraining)
    connection->drain();
  connection->start([this, raw = connection.get()] { connected.erase(raw); });
}

/// Closes connections whose time is over, and calls eachSecond.
Task<void> HttpServer::workEachSecond() {
  while (true) {
    clock.expires_after(std::chrono::seconds(1));
    const auto [error] = co_await clock.async_wait(asValue);
    if (error)
      co_return;
    for (HttpConnection *connection : connected)
      connection->closeIfOverdue(Clock::now());
    if (eachSecond)
      eachSecond();
  }
}

void HttpServer::drain() {
  isDraining = true;
  for (HttpConnection *connection : connected)
    connection->drain();
}

void HttpServer::close() {
  error_code ignored;
  acceptor.close(ignored);
  clock.cancel();
  for (HttpConnection *connection : connected)
    connection->close();
}

} // namespace llamac::serve
