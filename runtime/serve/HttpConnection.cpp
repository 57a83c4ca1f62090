//===- HttpConnection.cpp - One client's requests -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/HttpConnection.h"

#include "runtime/base/Terminal.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/beast/http/rfc7230.hpp>

#include <array>
#include <exception>

namespace llamac::serve {

using boost::system::error_code;

/// What is read ahead of the parser at most.
static constexpr size_t mostInput = size_t{64} << 10;

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

const std::string &HttpExchange::remote() const { return connection.remote; }
Signal &HttpExchange::changed() { return connection.changed; }
bool HttpExchange::clientLeft() const { return connection.hasEnded; }

/// The status line and fields, to a body of `size` or of parts.
std::string HttpExchange::head(const HttpAnswer &answer,
                               std::optional<size_t> size) const {
  const http::status status = http::int_to_status(answer.status);
  std::string text =
      absl::StrCat("HTTP/1.1 ", answer.status, " ",
                   std::string(http::obsolete_reason(status)), "\r\n");
  const auto add = [&](absl::string_view name, absl::string_view value) {
    absl::StrAppend(&text, name, ": ", value, "\r\n");
  };
  if (!answer.type.empty())
    add("Content-Type", answer.type);
  if (size && status != http::status::no_content)
    add("Content-Length", absl::StrCat(*size));
  if (!size && isChunked)
    add("Transfer-Encoding", "chunked");
  if (!keepsAlive)
    add("Connection", "close");
  for (const HttpFields *fields : {&answer.fields, &common})
    for (const auto &[name, value] : *fields)
      add(name, value);
  return text + "\r\n";
}

Task<bool> HttpExchange::send(const HttpAnswer &answer) {
  hasBegun = true;
  keepsAlive = keepsAlive && !connection.isDraining;
  std::string text = head(answer, answer.body.size());
  if (message->method() != http::verb::head)
    text += answer.body;
  co_return co_await connection.write(text);
}

Task<bool> HttpExchange::begin(const HttpAnswer &answer) {
  hasBegun = true;
  isChunked = message->version() >= 11;
  keepsAlive = keepsAlive && isChunked && !connection.isDraining;
  co_return co_await connection.write(head(answer, std::nullopt));
}

Task<bool> HttpExchange::sendPart(absl::string_view part) {
  // An empty chunk would be the end.
  if (part.empty())
    co_return true;
  if (!isChunked)
    co_return co_await connection.write(part);
  co_return co_await connection.write(
      absl::StrCat(absl::Hex(part.size()), "\r\n", part, "\r\n"));
}

Task<bool> HttpExchange::end() {
  co_return isChunked ? co_await connection.write("0\r\n\r\n") : true;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Reads as long as the client sends.
Task<void> HttpConnection::readAll() {
  std::array<char, 16 << 10> piece;
  while (const size_t size = co_await transport->read(
             asio::buffer(piece.data(), piece.size()))) {
    if (discards)
      continue;
    input.append(piece.data(), size);
    arrived.notify();
    while (input.size() >= mostInput && !discards)
      co_await taken.wait();
  }
  hasEnded = true;
  arrived.notify();
  changed.notify();
}

namespace {
/// How an error of the parser is answered.
struct Refusal {
  unsigned status;
  const char *why;
};
} // namespace

static Refusal refusalOf(const error_code &error) {
  if (error == http::error::body_limit)
    return {413, "body: expected fewer bytes"};
  if (error == http::error::header_limit)
    return {431, "header: expected fewer bytes"};
  if (error == http::error::bad_version)
    return {505, "version: expected HTTP/1.1 or HTTP/1.0"};
  return {400, "request: expected HTTP/1.1, got other bytes"};
}

/// Whether the body of `head` ends where its fields say and nowhere else:
/// what reads it otherwise in between may be led astray.
static bool hasPlainLength(const HttpRequest &head) {
  const auto coding = head.count(http::field::transfer_encoding);
  return coding == 0 || (coding == 1 && head.version() >= 11 &&
                         head.count(http::field::content_length) == 0 &&
                         boost::beast::iequals(
                             head[http::field::transfer_encoding], "chunked"));
}

/// Takes the next request. Nothing: the client left, or is sent away; Refused:
/// it was answered already, and the next one may come.
Task<HttpConnection::Taken> HttpConnection::takeRequest(Parser &parser) {
  parser.header_limit(static_cast<std::uint32_t>(limits.headerBytes));
  parser.body_limit(limits.bodyBytes);
  parser.eager(true);
  isIdle = true;
  limit(limits.idle);
  bool isAdmitted = false;
  size_t seen = 0; // Of the input, which the parser needs more than.
  while (!parser.is_done()) {
    if (input.size() == seen) {
      if (hasEnded || (isIdle && isDraining && !isFirst))
        co_return Taken::Nothing;
      co_await arrived.wait();
      continue;
    }
    if (isIdle) {
      isIdle = isFirst = false;
      limit(limits.request);
    }
    error_code error;
    const size_t used =
        parser.put(asio::const_buffer(input.data(), input.size()), error);
    input.erase(0, used);
    taken.notify();
    seen = error == http::error::need_more || used == 0 ? input.size() : 0;
    if (error && error != http::error::need_more) {
      const auto [status, why] = refusalOf(error);
      co_await refuse(status, why);
      co_return Taken::Nothing;
    }
    if (!parser.is_header_done() || isAdmitted)
      continue;
    isAdmitted = true;
    const HttpRequest &head = parser.get();
    if (!hasPlainLength(head)) {
      co_await refuse(400, "body: expected one length, by Content-Length or as "
                           "chunks");
      co_return Taken::Nothing;
    }
    HttpExchange exchange(*this, head, parser.is_done() && parser.keep_alive());
    if (const std::optional<HttpAnswer> answer = handler.refuse(exchange)) {
      const bool isSent = co_await exchange.send(*answer);
      co_return isSent &&exchange.keepsAlive ? Taken::Refused : Taken::Nothing;
    }
    if (!parser.is_done() &&
        boost::beast::iequals(head[http::field::expect], "100-continue"))
      co_await write("HTTP/1.1 100 Continue\r\n\r\n");
  }
  unlimit();
  co_return Taken::Request;
}

/// Sends a client away whose bytes cannot be understood.
Task<void> HttpConnection::refuse(unsigned status, absl::string_view why) {
  handler.malformed(status, why, remote);
  const HttpRequest none;
  HttpExchange exchange(*this, none, /*keepsAlive=*/false);
  co_await exchange.send(handler.errorAnswer(status, why));
}

//===----------------------------------------------------------------------===//
// The connection
//===----------------------------------------------------------------------===//

Task<bool> HttpConnection::write(absl::string_view bytes) {
  const Clock::time_point before = deadline;
  limit(limits.write);
  const bool isTaken = co_await transport->write(bytes);
  deadline = before;
  co_return isTaken;
}

/// What was sent last would be lost if bytes that nobody read were left.
Task<void> HttpConnection::sayFarewell() {
  limit(limits.farewell);
  discards = true;
  taken.notify();
  co_await transport->finish();
  while (!hasEnded)
    co_await arrived.wait();
}

void HttpConnection::close() { transport->close(); }

void HttpConnection::drain() {
  isDraining = true;
  arrived.notify();
}

Task<void> HttpConnection::run() {
  limit(limits.request);
  if (!co_await transport->start())
    co_return close();
  asio::co_spawn(
      executor, [self = shared_from_this()] { return self->readAll(); },
      asio::detached);
  bool keepsAlive = true;
  while (keepsAlive) {
    Parser parser;
    const Taken request = co_await takeRequest(parser);
    if (request == Taken::Nothing)
      break;
    if (request == Taken::Refused)
      continue;
    HttpExchange exchange(*this, parser.get(), parser.keep_alive());
    co_await handler.answer(exchange);
    keepsAlive = exchange.keepsAlive && exchange.hasBegun && !isDraining;
  }
  co_await sayFarewell();
  close();
}

void HttpConnection::start(std::function<void()> onEnd) {
  asio::co_spawn(
      executor, [self = shared_from_this()] { return self->run(); },
      [self = shared_from_this(),
       onEnd = std::move(onEnd)](const std::exception_ptr &thrown) {
        self->close();
        onEnd();
        try {
          if (thrown)
            std::rethrow_exception(thrown);
        } catch (const std::exception &error) {
          // Memory, most likely: its request is lost, and no other.
          printWarning(absl::StrCat("connection from ", self->remote, ": ",
                                    error.what()));
        }
      });
}

} // namespace llamac::serve
