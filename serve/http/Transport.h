//===- Transport.h - Bytes to and from a client -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_HTTP_TRANSPORT_H
#define LLAMAC_SERVE_HTTP_TRANSPORT_H

#include "serve/http/Signal.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace boost::asio::ssl {
class context; // NOLINT(readability-identifier-naming): Boost's name.
} // namespace boost::asio::ssl

namespace llamac::serve {

/// A connection to one client, with or without TLS. One read and one write may
/// be under way at a time.
class Transport {
public:
  virtual ~Transport();

  /// False when the client cannot be talked to.
  virtual Task<bool> start() = 0;

  /// Reads some bytes; 0 when there will be no more.
  virtual Task<size_t> read(asio::mutable_buffer to) = 0;

  /// Writes all of `bytes`; false when the client does not take them.
  virtual Task<bool> write(absl::string_view bytes) = 0;

  /// Says that no more is written.
  virtual Task<void> finish() = 0;

  /// Returns when the other host takes no more, or close() was called.
  virtual Task<void> waitUntilBroken() = 0;

  /// Whether the client has said that it sends no more, even where what it sent
  /// is not read yet.
  virtual bool hasEnded() = 0;

  /// Ends what is under way, and the connection.
  virtual void close() = 0;
};

std::unique_ptr<Transport> plainTransport(asio::ip::tcp::socket socket);

/// `context` outlives the result.
std::unique_ptr<Transport> tlsTransport(asio::ip::tcp::socket socket,
                                        asio::ssl::context &context);

/// For servers, by a certificate (chain) and its key, both in PEM. Bad file
/// for what cannot be read, or does not belong together.
absl::StatusOr<std::shared_ptr<asio::ssl::context>>
loadTls(const std::string &certificate, const std::string &key);

} // namespace llamac::serve

#endif // LLAMAC_SERVE_HTTP_TRANSPORT_H
