//===- Transport.cpp - Bytes to and from a client -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/http/Transport.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include <poll.h>
#include <utility>

namespace llamac::serve {

using asio::ip::tcp;
using boost::system::error_code;

Transport::~Transport() = default;

namespace {

/// The common part of both kinds: `Stream` reads and writes.
template <typename Stream> class StreamTransport : public Transport {
public:
  template <typename... Arguments>
  explicit StreamTransport(Arguments &&...arguments)
      : stream(std::forward<Arguments>(arguments)...) {}

  Task<size_t> read(asio::mutable_buffer to) override {
    const auto [error, size] = co_await stream.async_read_some(to, asValue);
    co_return error ? 0 : size;
  }

  Task<bool> write(absl::string_view bytes) override {
    const auto [error, size] = co_await asio::async_write(
        stream, asio::buffer(bytes.data(), bytes.size()), asValue);
    co_return !error;
  }

  Task<void> waitUntilBroken() override {
    co_await stream.lowest_layer().async_wait(tcp::socket::wait_error, asValue);
  }

  bool hasEnded() override {
    pollfd polled = {stream.lowest_layer().native_handle(), POLLRDHUP, 0};
    return poll(&polled, 1, 0) > 0;
  }

  void close() override {
    error_code ignored;
    stream.lowest_layer().close(ignored);
  }

protected:
  void shutDown() {
    error_code ignored;
    stream.lowest_layer().shutdown(tcp::socket::shutdown_send, ignored);
  }

  Stream stream;
};

class PlainTransport final : public StreamTransport<tcp::socket> {
public:
  using StreamTransport::StreamTransport;
  Task<bool> start() override { co_return true; }
  Task<void> finish() override {
    shutDown();
    co_return;
  }
};

class TlsTransport final
    : public StreamTransport<asio::ssl::stream<tcp::socket>> {
public:
  using StreamTransport::StreamTransport;
  Task<bool> start() override {
    const auto [error] = co_await stream.async_handshake(
        asio::ssl::stream_base::server, asValue);
    co_return !error;
  }
  Task<void> finish() override {
    co_await stream.async_shutdown(asValue);
    shutDown();
  }
};

} // namespace

std::unique_ptr<Transport> plainTransport(tcp::socket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

std::unique_ptr<Transport> tlsTransport(tcp::socket socket,
                                        asio::ssl::context &context) {
  return std::make_unique<TlsTransport>(std::move(socket), context);
}

absl::StatusOr<std::shared_ptr<asio::ssl::context>>
loadTls(const std::string &certificate, const std::string &key) {
  auto context =
      std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  context->set_options(asio::ssl::context::default_workarounds |
                       asio::ssl::context::no_tlsv1 |
                       asio::ssl::context::no_tlsv1_1);
  error_code error;
  context->use_certificate_chain_file(certificate, error);
  if (error)
    return badFileError(absl::StrCat(
        certificate, ": expected a certificate in PEM, got ", error.message()));
  context->use_private_key_file(key, asio::ssl::context::pem, error);
  if (error)
    return badFileError(absl::StrCat(
        key, ": expected the certificate's private key in PEM, got ",
        error.message()));
  return context;
}

} // namespace llamac::serve
