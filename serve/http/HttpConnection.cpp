//===- HttpConnection.cpp - One client's requests -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/http/HttpConnection.h"

#include "runtime/base/Terminal.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/beast/http/rfc7230.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>

namespace llamac::serve {

using boost::system::error_code;

/// The most bytes that are read ahead of the parser.
static constexpr size_t mostInput = size_t{64} << 10;

static constexpr absl::string_view continueAnswer =
    "HTTP/1.1 100 Continue\r\n\r\n";

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

const std::string &HttpExchange::remote() const { return connection.remote; }
Signal &HttpExchange::changed() { return connection.changed; }
bool HttpExchange::clientLeft() const { return connection.isBroken; }

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
  else if (message->version() < 11)
    add("Connection", "keep-alive");
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
  probe();
}

/// Waits until the client's host says that it takes no more.
Task<void> HttpConnection::watch() {
  co_await transport->waitUntilBroken();
  isBroken = true;
  changed.notify();
}

/// Sends an interim answer to a client that sends no more.
void HttpConnection::probe() {
  if (!current || !current->takesInterimAnswers())
    return;
  asio::co_spawn(
      executor,
      [self = shared_from_this()]() -> Task<void> {
        if (self->current && self->current->takesInterimAnswers() &&
            !self->isWriting)
          co_await self->write(continueAnswer);
      },
      asio::detached);
}

HttpRefusal HttpConnection::refusalOf(const error_code &error) const {
  if (error == http::error::body_limit)
    return {413, absl::StrCat("body: expected at most ", limits.bodyBytes,
                              " bytes, got more")};
  if (error == http::error::header_limit)
    return {431, absl::StrCat("header: expected at most ", limits.headerBytes,
                              " bytes of fields, trailers and extensions of "
                              "chunks, got more")};
  if (error == http::error::bad_version)
    return {505, "version: expected HTTP/1.1 or HTTP/1.0"};
  if (error == http::error::bad_content_length ||
      error == http::error::multiple_content_length)
    return {400, "Content-Length: expected one number of bytes"};
  if (error == http::error::bad_chunk ||
      error == http::error::bad_chunk_extension)
    return {400, "body: expected chunks, got other bytes"};
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

/// Whether a line of fields goes on in the next one, as RFC 9112, 5.2, has
/// servers refuse it.
static bool hasFoldedLine(absl::string_view fields) {
  return absl::StrContains(fields, "\r\n ") ||
         absl::StrContains(fields, "\r\n\t");
}

/// Makes a target in absolute form, http://HOST/PATH, one in origin form. Its
/// host counts, not that of the field (RFC 9112, 3.2.2). False where there is
/// no host.
static bool takeAuthority(HttpRequest &head) {
  absl::string_view target(head.target().data(), head.target().size());
  const size_t scheme = target.find("://");
  const bool isAbsolute =
      scheme != absl::string_view::npos &&
      (absl::EqualsIgnoreCase(target.substr(0, scheme), "http") ||
       absl::EqualsIgnoreCase(target.substr(0, scheme), "https"));
  if (!isAbsolute)
    return true;
  target.remove_prefix(scheme + 3);
  const size_t end = std::min(target.find_first_of("/?"), target.size());
  const std::string host(target.substr(0, end));
  if (host.empty() || absl::StrContains(host, '@'))
    return false;
  const absl::string_view rest = target.substr(end);
  head.target(absl::StrCat(absl::StartsWith(rest, "/") ? "" : "/", rest));
  head.set(http::field::host, host);
  return true;
}

/// Returns the fault of `head`, if there is one. Its target becomes a path.
static std::optional<HttpRefusal> checkHead(HttpRequest &head) {
  const auto refuse = [](std::string why) {
    return HttpRefusal{400, std::move(why)};
  };
  if (!hasPlainLength(head))
    return refuse("body: expected one length, by Content-Length or as chunks");
  const auto hosts = head.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && head.version() >= 11))
    return refuse(absl::StrCat("Host: expected one field, got ", hosts));
  if (!takeAuthority(head))
    return refuse("target: expected http://HOST/PATH, got no host or a user's "
                  "name");
  const auto target = head.target();
  if (target.front() != '/' &&
      !(target == "*" && head.method() == http::verb::options))
    return refuse("target: expected a path that begins with /");
  const auto expected = head[http::field::expect];
  if (head.version() >= 11 && !expected.empty() &&
      !boost::beast::iequals(expected, "100-continue"))
    return HttpRefusal{417, "Expect: expected 100-continue, got another one"};
  return std::nullopt;
}

namespace {

/// Counts a request's bytes that are no part of its body, which have one limit.
/// Each chunk has a few of them free.
class FramingCounter {
public:
  explicit FramingCounter(http::request_parser<http::string_body> &parser)
      : parser(parser) {
    parser.on_chunk_header(onChunk);
  }

  /// Adds `used` bytes that the parser took.
  void add(size_t used) { taken += used; }

  /// Whether they, and `waiting` ones that it needs more than, are too many.
  bool exceeds(uint64_t most, size_t waiting) const {
    return taken + waiting >
           most + parser.get().body().size() + plainChunk * chunks;
  }

private:
  /// The size in hexadecimal digits, and the ends of two lines.
  static constexpr uint64_t plainChunk = 20;

  http::request_parser<http::string_body> &parser;
  uint64_t taken = 0, chunks = 0;
  std::function<void(uint64_t, boost::beast::string_view, error_code &)>
      onChunk = [this](uint64_t, boost::beast::string_view, error_code &) {
        ++chunks;
      };
};

} // namespace

/// Takes the next request. Nothing: the client left, or is sent away; Refused:
/// it was answered already, and the next one may come.
Task<HttpConnection::Taken> HttpConnection::takeRequest(Parser &parser) {
  parser.header_limit(static_cast<std::uint32_t>(limits.headerBytes));
  parser.body_limit(limits.bodyBytes);
  FramingCounter framing(parser);
  isIdle = true;
  limit(limits.idle);
  std::optional<http::request_header<>> admitted;
  size_t seen = 0; // Size of the input when the parser last needed more.
  while (!parser.is_done()) {
    // Some clients end a body with a line's end that is not counted in it.
    while (isIdle && absl::StartsWith(input, "\r\n")) {
      input.erase(0, 2);
      taken.notify();
    }
    if (input.size() == seen || (isIdle && input == "\r")) {
      if (hasEnded || isBroken || (isIdle && isDraining && !isFirst))
        co_return Taken::Nothing;
      co_await arrived.wait();
      continue;
    }
    if (isIdle) {
      isIdle = isFirst = false;
      limit(limits.request);
    }
    error_code error;
    const bool wasHead = !parser.is_header_done();
    const size_t used =
        parser.put(asio::const_buffer(input.data(), input.size()), error);
    framing.add(used);
    const bool needsMore = error == http::error::need_more || used == 0;
    if (error == http::error::need_more)
      error = {};
    if (!error && framing.exceeds(limits.headerBytes,
                                  needsMore ? input.size() - used : 0))
      error = http::error::header_limit;
    if (error) {
      co_await refuse(parser.get(), refusalOf(error));
      co_return Taken::Nothing;
    }
    // The parser takes a head or the last chunk's trailers by themselves.
    if ((wasHead || parser.is_done()) && (!admitted || parser.chunked()) &&
        hasFoldedLine({input.data(), used})) {
      co_await refuse(parser.get(),
                      {400, "header: expected each field on one line, got one "
                            "that is folded"});
      co_return Taken::Nothing;
    }
    input.erase(0, used);
    taken.notify();
    seen = needsMore ? input.size() : 0;
    if (!parser.is_header_done() || admitted)
      continue;
    HttpRequest &head = parser.get();
    if (std::optional<HttpRefusal> wrong = checkHead(head)) {
      co_await refuse(head, *std::move(wrong));
      co_return Taken::Nothing;
    }
    admitted = head.base();
    HttpExchange exchange(*this, head, parser.is_done() && parser.keep_alive());
    if (const std::optional<HttpAnswer> answer = handler.refuse(exchange)) {
      const bool isSent = co_await exchange.send(*answer);
      co_return isSent &&exchange.keepsAlive ? Taken::Refused : Taken::Nothing;
    }
    if (!parser.is_done() && head.version() >= 11 &&
        head.count(http::field::expect) > 0)
      co_await write(continueAnswer);
  }
  // Trailers are no part of the head, which was looked at before they came.
  parser.get().base() = *std::move(admitted);
  unlimit();
  co_return Taken::Request;
}

/// Sends a client away whose bytes cannot be understood.
Task<void> HttpConnection::refuse(const HttpRequest &head,
                                  HttpRefusal refusal) {
  handler.malformed(head, refusal.status, refusal.why, remote);
  const HttpRequest none;
  HttpExchange exchange(*this, none, /*keepsAlive=*/false);
  co_await exchange.send(handler.errorAnswer(refusal.status, refusal.why));
}

//===----------------------------------------------------------------------===//
// The connection
//===----------------------------------------------------------------------===//

Task<bool> HttpConnection::write(absl::string_view bytes) {
  while (isWriting)
    co_await written.wait();
  isWriting = true;
  const Clock::time_point before = deadline;
  limit(limits.write);
  const bool isTaken = co_await transport->write(bytes);
  deadline = before;
  isWriting = false;
  written.notify();
  co_return isTaken && !isBroken;
}

/// Lingers before closing: the bytes sent last would be lost if bytes that
/// nobody read were left.
Task<void> HttpConnection::sayFarewell() {
  limit(limits.farewell);
  discards = true;
  taken.notify();
  co_await transport->finish();
  while (!hasEnded && !isBroken)
    co_await arrived.wait();
}

void HttpConnection::close() {
  transport->close();
  isBroken = discards = true;
  for (Signal *signal : {&arrived, &taken, &written, &changed})
    signal->notify();
}

void HttpConnection::closeIfOverdue(Clock::time_point now) {
  if (now > deadline)
    close();
  else if (!hasEnded && input.size() >= mostInput && transport->hasEnded())
    // Unread input hides that the client has ended.
    probe();
}

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
  asio::co_spawn(
      executor, [self = shared_from_this()] { return self->watch(); },
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
    current = &exchange;
    if (hasEnded)
      probe();
    const absl::Cleanup answered = [this] { current = nullptr; };
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
