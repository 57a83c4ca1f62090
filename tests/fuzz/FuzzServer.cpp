//===- FuzzServer.cpp - What a client may send to a server ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/fuzz/FuzzServer.h"

#include "frontends/TokenizerSources.h"
#include "runtime/base/Status.h"
#include "serve/api/ApiError.h"
#include "serve/http/HttpConnection.h"
#include "serve/http/Signal.h"
#include "tests/frontends/tokenizer/TokenizerFixtures.h"
#include "text/request/ChatFormat.h"
#include "text/request/ChatMessages.h"
#include "text/request/ToolCalls.h"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace llamac {

using namespace serve;

static void expectThat(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "expected %s\n", what);
  std::abort();
}

//===----------------------------------------------------------------------===//
// HTTP
//===----------------------------------------------------------------------===//

namespace {

/// A client that sends `bytes` in small pieces, and takes what comes.
class RecordedClient final : public Transport {
public:
  RecordedClient(const asio::any_io_executor &executor, absl::string_view bytes)
      : closed(executor), left(bytes) {}

  Task<bool> start() override { co_return true; }
  Task<size_t> read(asio::mutable_buffer to) override {
    const size_t size =
        isClosed ? 0 : std::min({size_t{61}, left.size(), to.size()});
    std::memcpy(to.data(), left.data(), size);
    left.remove_prefix(size);
    co_return size;
  }
  Task<bool> write(absl::string_view) override { co_return !isClosed; }
  Task<void> finish() override { co_return; }
  Task<void> waitUntilBroken() override {
    while (!isClosed)
      co_await closed.wait();
  }
  bool hasEnded() override { return left.empty(); }
  void close() override {
    isClosed = true;
    closed.notify();
  }

private:
  Signal closed;
  absl::string_view left;
  bool isClosed = false;
};

} // namespace

void fuzzHttp(absl::string_view bytes) {
  asio::io_context context(1);
  const HttpLimits limits = {.headerBytes = 2048, .bodyBytes = 4096};
  HttpHandler handler;
  handler.refuse = [](HttpExchange &exchange) -> std::optional<HttpAnswer> {
    if (exchange.request().count(http::field::authorization) > 0)
      return errorAnswer(401, "key: no");
    return std::nullopt;
  };
  handler.answer = [&](HttpExchange &exchange) -> Task<void> {
    const HttpRequest &request = exchange.request();
    expectThat(request.body().size() <= limits.bodyBytes,
               "a body in its limit");
    if (request.method() == http::verb::get) {
      co_await exchange.send({200, std::string(request.target())});
      co_return;
    }
    co_await exchange.begin({200, "", "text/plain"});
    co_await exchange.sendPart(request.body());
    co_await exchange.end();
  };
  handler.malformed = [](const HttpRequest &, unsigned status,
                         absl::string_view, const std::string &) {
    expectThat(status >= 400 && status < 600, "an error");
  };
  handler.errorAnswer = [](unsigned status, absl::string_view why) {
    return errorAnswer(status, why);
  };
  bool hasEnded = false;
  std::make_shared<HttpConnection>(
      context.get_executor(),
      std::make_unique<RecordedClient>(context.get_executor(), bytes),
      "127.0.0.1", limits, handler)
      ->start([&] { hasEnded = true; });
  context.run_for(std::chrono::seconds(10));
  expectThat(hasEnded, "a connection that ends with its bytes");
}

std::vector<std::string> httpSeeds() {
  return {"GET /a HTTP/1.1\r\nHost: x\r\n\r\nHEAD /b HTTP/1.0\r\n\r\n",
          "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: "
          "100-continue\r\n\r\nabcGET / HTTP/1.1\r\nHost: y\r\n\r\n",
          "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc"
          "\r\n0\r\nT: u\r\n\r\n",
          "POST / HTTP/1.1\r\nAuthorization: Bearer a\r\nContent-Length: 2"
          "\r\n\r\n{}"};
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

/// A template that shows all that it is given.
static const ChatFormat &chatFormat() {
  static const std::unique_ptr<Tokenizer> tokenizer = *loadTokenizer(
      *buildHuggingFaceBlob({{"tokenizer.json", test::piecesJson().dump()},
                             std::nullopt,
                             std::nullopt}));
  static const std::unique_ptr<const ChatFormat> format = *ChatFormat::create(
      *tokenizer,
      "{% for m in messages %}{{ m.role ~ m.content }}{% for c in m.tool_calls "
      "%}{{ c | tojson }}{% endfor %}{% endfor %}{{ tools | tojson }}"
      "{{ reasoning_effort }}",
      "the template");
  return *format;
}

void fuzzChatRequest(absl::string_view bytes) {
  const auto document = parseJson("body", bytes);
  if (!document.ok())
    return;
  const auto object = JsonObject::root(*document);
  if (!object.ok())
    return;
  const auto mayBe = [](const absl::Status &status) {
    expectThat(exitCode(status) != ExitCode::Internal, "no internal error");
    expectThat(status.ok() || errorAnswer(status).status == 400,
               "an error of the client");
    return status.ok();
  };
  const auto request = readChatRequest(*object, bytes, chatFormat());
  if (!mayBe(request.status()))
    return;
  mayBe(chatFormat().text(request->inputs).status());
  const std::vector<Tool> &tools = request->tools.tools;
  expectThat(tools.empty() ||
                 nlohmann::json::accept(callSchema(tools, "arguments")),
             "a schema that is JSON");
  for (const ToolCallSyntax &syntax : toolCallSyntaxes())
    if (!tools.empty())
      expectThat(nlohmann::json::accept(strictCalls(tools, syntax).text),
                 "tags that are JSON");
}

std::vector<std::string> chatRequestSeeds() {
  return {
      R"({"messages": [{"role": "developer", "content": "Be brief."},
          {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
          {"role": "assistant", "content": null, "tool_calls": [{"id": "a",
           "type": "function", "function": {"name": "f",
           "arguments": "{\"x\": [1]}"}}]},
          {"role": "tool", "tool_call_id": "a", "content": "2"}],
          "reasoning_effort": "low", "documents": [{"a": 1}]})",
      R"({"messages": [{"role": "user", "content": "a"}], "tools": [{"type":
          "function", "function": {"name": "f", "strict": true, "parameters":
          {"type": "object"}}}, {"type": "function", "function": {"name": "g"}}],
          "tool_choice": {"type": "function", "function": {"name": "g"}}})"};
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

/// The output of a parser for `text` in pieces of `size`, as one text.
static std::string parseCalls(const ToolCallSyntax &syntax,
                              absl::string_view text, size_t size) {
  ToolCallParser parser(syntax);
  std::string content, calls;
  int last = -1;
  const auto add = [&](const ToolCallPieces &pieces) {
    content += pieces.content;
    for (const ToolCallPart &part : pieces.calls) {
      expectThat(part.call == last || part.call == last + 1, "calls in order");
      if (part.call != last)
        calls += "\n" + part.name + " ";
      last = part.call;
      calls += part.arguments;
    }
  };
  for (size_t at = 0; at < text.size(); at += size)
    add(parser.add(text.substr(at, size)));
  add(parser.end());
  return content + "\n---" + calls;
}

void fuzzToolCalls(absl::string_view bytes) {
  for (const ToolCallSyntax &syntax : toolCallSyntaxes()) {
    const std::string whole = parseCalls(syntax, bytes, bytes.size() + 1);
    for (const size_t size : {1, 3, 16})
      expectThat(parseCalls(syntax, bytes, size) == whole,
                 "the same for every way to cut");
  }
}

std::vector<std::string> toolCallSeeds() {
  return {"Hi.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
          "[\"}\\\"\"]}}\n</tool_call>\n<tool_call>{\"arguments\": \"{}\", "
          "\"name\": \"g\"}</tool_call> end",
          "{\"name\": \"f\", \"parameters\": {\"x\": 1}}; {\"name\": \"g\", "
          "\"parameters\": {}}"};
}

} // namespace llamac
