//===- Service.cpp - The interface of a server ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/Service.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Exceptions.h"
#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/JsonText.h"
#include "serve/api/ApiError.h"
#include "serve/api/KernelReport.h"
#include "serve/http/OnPool.h"
#include "serve/http/Target.h"
#include "serve/page/Page.h"

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"

#include <boost/asio/post.hpp>
#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <ctime>
#include <utility>

namespace llamac::serve {

using http::verb;
using nlohmann::ordered_json;

/// Threads that read requests: a long prompt holds up few others.
static constexpr int readerThreads = 4;

/// In the log, of a request whose client did not wait for its answer.
static constexpr unsigned clientLeftStatus = 499;

/// After so long without a token a stream gets a comment, so that nothing in
/// between takes it for dead.
static constexpr std::chrono::seconds commentInterval{15};

/// Events of streams that go on are sent once in a frame of a screen, those of
/// all streams at one time: waking this thread for each token of a small model
/// takes time from its engine, and nobody sees it sooner.
static constexpr std::chrono::milliseconds frame{16};

//===----------------------------------------------------------------------===//
// Routes
//===----------------------------------------------------------------------===//

/// The log's record of a request.
struct Service::Entry {
  const HttpRequest *request = nullptr;
  std::string remote = {}, id = {}, traceparent = {};
  double start = steadySeconds();
  unsigned status = 0;
  std::string model = {}, finishReason = {}, error = {};
  Usage usage = {};
  double firstToken = 0; ///< Seconds after `start`; 0: none is known of.
};

struct Service::Route {
  verb method;
  const char *path; ///< One that ends with / stands for all below it.
  bool isOpen;      ///< Whether clients without a key may call it.
  bool makesAnswers;
  bool isChat;
  Task<void> (Service::*answer)(HttpExchange &exchange, Entry &entry);
};

absl::Span<const Service::Route> Service::routes() {
  static constexpr Route all[] = {
      {verb::get, "/", true, false, false, &Service::page},
      {verb::get, "/health", true, false, false, &Service::health},
      {verb::get, "/metrics", false, false, false, &Service::showMetrics},
      {verb::get, "/v1/llamac/history", false, false, false,
       &Service::showHistory},
      {verb::get, "/v1/llamac/kernels", false, false, false,
       &Service::listKernels},
      {verb::get, "/v1/models", false, false, false, &Service::listModels},
      {verb::get, "/v1/models/", false, false, false, &Service::listModels},
      {verb::post, "/v1/chat/completions", false, true, true,
       &Service::complete},
      {verb::post, "/v1/completions", false, true, false, &Service::complete},
      {verb::post, "/tokenize", false, false, false, &Service::tokenize},
      {verb::post, "/detokenize", false, false, false, &Service::detokenize},
  };
  return all;
}

static absl::string_view fieldOf(const HttpRequest &head, http::field name) {
  const auto value = head[name];
  return {value.data(), value.size()};
}

static absl::string_view fieldOf(const HttpRequest &head, const char *name) {
  const auto value = head[name];
  return {value.data(), value.size()};
}

static absl::string_view targetOf(const HttpRequest &head) {
  return {head.target().data(), head.target().size()};
}

const Service::Route *Service::findRoute(const HttpRequest &head) const {
  const std::string path = pathOf(targetOf(head));
  for (const Route &route : routes()) {
    const absl::string_view own = route.path;
    if (path == own || (own.size() > 1 && absl::EndsWith(own, "/") &&
                        absl::StartsWith(path, own)))
      return &route;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Who may ask
//===----------------------------------------------------------------------===//

bool Service::hasKey(const HttpRequest &head) const {
  if (options.keys.empty())
    return true;
  absl::string_view given = fieldOf(head, http::field::authorization);
  if (absl::StartsWithIgnoreCase(given, "Bearer "))
    given = absl::StripAsciiWhitespace(given.substr(7));
  else
    given = fieldOf(head, "X-Api-Key");
  // In the same time for every wrong key of a length.
  bool isKnown = false;
  for (const std::string &key : options.keys)
    isKnown |= key.size() == given.size() &&
               CRYPTO_memcmp(key.data(), given.data(), key.size()) == 0;
  return isKnown;
}

/// The name in a Host field, without its port.
static absl::string_view hostName(absl::string_view host) {
  if (absl::StartsWith(host, "["))
    return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

static bool isLocalName(absl::string_view name) {
  return absl::EqualsIgnoreCase(name, "localhost") || name == "[::1]" ||
         (absl::StartsWith(name, "127.") && absl::c_all_of(name, [](char c) {
            return absl::ascii_isdigit(c) || c == '.';
          }));
}

/// Whether pages of `origin` may call.
bool Service::isFriend(absl::string_view origin) const {
  return absl::c_linear_search(options.origins, origin) ||
         absl::c_linear_search(options.origins, "*");
}

/// A page of another site must neither use the server nor read its answers.
std::optional<HttpAnswer> Service::refuseOrigin(const HttpRequest &head) const {
  const absl::string_view host = fieldOf(head, http::field::host);
  if (host.empty() && head.version() >= 11)
    return errorAnswer(400, "Host: expected a name, got none");
  if (needsLocalHost && !host.empty() && !isLocalName(hostName(host)))
    return errorAnswer(403, "Host: expected localhost, as the server listens "
                            "there alone; see --host");
  const absl::string_view origin = fieldOf(head, http::field::origin);
  if (origin.empty() || isFriend(origin) ||
      (!host.empty() && absl::EndsWith(origin, absl::StrCat("://", host))))
    return std::nullopt;
  return errorAnswer(403, "Origin: expected this server, or one that --cors "
                          "names");
}

std::optional<HttpAnswer> Service::refuse(const HttpRequest &head,
                                          const Route *route) const {
  if (auto answer = refuseOrigin(head))
    return answer;
  if (targetOf(head) == "*")
    return HttpAnswer{204, "", "", {{"Allow", "GET, HEAD, POST, OPTIONS"}}};
  if (head.method() == verb::options && !options.origins.empty()) {
    return HttpAnswer{
        204,
        "",
        "",
        {{"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
         {"Access-Control-Allow-Headers",
          "Authorization, Content-Type, X-Api-Key, X-Request-Id, traceparent"},
         {"Access-Control-Max-Age", "600"}}};
  }
  if (!(route && route->isOpen) && !hasKey(head))
    return errorAnswer(401, "key: expected one that the server knows, as "
                            "Authorization: Bearer KEY or X-Api-Key: KEY");
  if (!route) {
    const auto name = [](std::string *out, const Route &one) {
      const bool isFolder =
          one.path != absl::string_view("/") && absl::EndsWith(one.path, "/");
      absl::StrAppend(out, one.path, isFolder ? "NAME" : "");
    };
    return errorAnswer(
        404, absl::StrCat("path: expected one of ",
                          absl::StrJoin(routes(), ", ", name), "; got ",
                          rawPathOf(targetOf(head)).substr(0, 200)));
  }
  const bool isRead = route->method == verb::get;
  if (head.method() != route->method &&
      !(isRead && head.method() == verb::head)) {
    HttpAnswer answer = errorAnswer(
        405, absl::StrCat("method: expected ", isRead ? "GET or HEAD" : "POST",
                          " of ", route->path));
    answer.fields = {{"Allow", isRead ? "GET, HEAD" : "POST"}};
    return answer;
  }
  if (!route->makesAnswers)
    return std::nullopt;
  if (isDraining)
    return errorAnswer(503, "server: is ending; try another one, or again "
                            "later");
  // Before the body: an answer that says so comes at once.
  const auto isFull = [](const std::unique_ptr<ServedModel> &model) {
    const SchedulerCounts counts = model->requests().counts();
    const int64_t most = model->requests().mostAnswers();
    return most > 0 && counts.running + counts.waiting >= most;
  };
  if (absl::c_all_of(models, isFull))
    return errorAnswer(503, "queue: is full; try again later");
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Any request
//===----------------------------------------------------------------------===//

Service::Service(asio::io_context &context, ServedModels served,
                 const ServiceOptions &options, AccessLog &log)
    : context(context), readers(readerThreads), models(std::move(served)),
      options(options), log(log), metrics(models), grammars(context) {}

Service::~Service() {
  readers.join();
  // Engines tell the metrics of answers until they are gone.
  models.clear();
}

/// Whether `text` may go back to the client, and into logs, as it is.
static bool isPlainId(absl::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         absl::c_all_of(text, [](char c) {
           return absl::ascii_isalnum(c) || absl::StrContains("-_.:", c);
         });
}

/// Sets the ids of a request, its own where it has some, and the fields that
/// all answers have.
void Service::addCommonFields(HttpExchange &exchange, Entry &entry) const {
  const HttpRequest &request = *entry.request;
  const absl::string_view id = fieldOf(request, "X-Request-Id");
  entry.id = isPlainId(id) ? std::string(id) : randomId("req_");
  exchange.addField("X-Request-Id", entry.id);
  // https://www.w3.org/TR/trace-context/
  const absl::string_view trace = fieldOf(request, "traceparent");
  if (isPlainId(trace)) {
    entry.traceparent = std::string(trace);
    exchange.addField("traceparent", entry.traceparent);
  }
  const absl::string_view origin = fieldOf(request, http::field::origin);
  if (!origin.empty() && isFriend(origin)) {
    exchange.addField("Access-Control-Allow-Origin", std::string(origin));
    exchange.addField("Vary", "Origin");
    exchange.addField("Access-Control-Expose-Headers", "X-Request-Id");
  }
}

/// The time now by `format` of strftime, with the clock of UTC or this place.
static std::string timeText(const char *format,
                            std::tm *clock(const std::time_t *, std::tm *)) {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  std::array<char, 32> text;
  return {text.data(),
          std::strftime(text.data(), text.size(), format, clock(&now, &parts))};
}

/// `line` of the log in short, for a terminal.
static std::string shortLine(const ordered_json &line) {
  std::string text = timeText("%H:%M:%S", localtime_r);
  for (const char *name : {"method", "path"})
    if (line.contains(name))
      absl::StrAppend(&text, " ", line[name].get<std::string>());
  absl::StrAppendFormat(&text, " %d in %.3f s", line["status"].get<int>(),
                        line["seconds"].get<double>());
  if (line.contains("model")) {
    absl::StrAppendFormat(&text, ": %s, %d tokens (%d cached), %d answered",
                          line["model"].get<std::string>(),
                          line["prompt_tokens"].get<int64_t>(),
                          line["cached_tokens"].get<int64_t>(),
                          line["completion_tokens"].get<int64_t>());
    if (line.contains("first_token_seconds"))
      absl::StrAppendFormat(&text, ", the first after %.3f s",
                            line["first_token_seconds"].get<double>());
    const std::string reason = line["finish_reason"].get<std::string>();
    absl::StrAppend(&text, reason.empty() ? "" : ", ", reason);
  }
  if (line.contains("error"))
    absl::StrAppend(&text, ": ", line["error"].get<std::string>());
  return printable(text);
}

/// Whole microseconds, as clocks have no more to say.
static double microseconds(double seconds) {
  return std::round(1e6 * seconds) / 1e6;
}

void Service::write(const Entry &entry) {
  ordered_json line = {{"time", timeText("%Y-%m-%dT%H:%M:%SZ", gmtime_r)},
                       {"id", entry.id},
                       {"remote", entry.remote}};
  if (entry.request) {
    line["method"] = std::string(entry.request->method_string());
    line["path"] = std::string(rawPathOf(targetOf(*entry.request)));
  }
  line["status"] = entry.status;
  line["seconds"] = microseconds(steadySeconds() - entry.start);
  if (!entry.model.empty())
    line.update({{"model", entry.model},
                 {"prompt_tokens", entry.usage.promptTokens},
                 {"cached_tokens", entry.usage.cachedTokens},
                 {"completion_tokens", entry.usage.answerTokens},
                 {"finish_reason", entry.finishReason}});
  if (entry.firstToken > 0)
    line["first_token_seconds"] = microseconds(entry.firstToken);
  if (!entry.traceparent.empty())
    line["traceparent"] = entry.traceparent;
  if (!entry.error.empty())
    line["error"] = entry.error;
  log.write(log.isTerminal() ? shortLine(line) : jsonText(line));
}

HttpHandler Service::handler() {
  HttpHandler handler;
  handler.refuse = [this](HttpExchange &exchange) {
    Entry entry{&exchange.request(), exchange.remote()};
    auto answer = refuse(exchange.request(), findRoute(exchange.request()));
    if (!answer)
      return answer;
    addCommonFields(exchange, entry);
    entry.status = answer->status;
    entry.error = answer->error;
    write(entry);
    return answer;
  };
  handler.answer = [this](HttpExchange &exchange) { return answer(exchange); };
  handler.malformed = [this](const HttpRequest &head, unsigned status,
                             absl::string_view why, const std::string &remote) {
    Entry entry{head.target().empty() ? nullptr : &head, remote,
                randomId("req_")};
    entry.status = status;
    entry.error = std::string(why);
    write(entry);
  };
  handler.errorAnswer = [](unsigned status, absl::string_view why) {
    return errorAnswer(status, why);
  };
  return handler;
}

Task<void> Service::answer(HttpExchange &exchange) {
  Entry entry{&exchange.request(), exchange.remote()};
  addCommonFields(exchange, entry);
  ++active;
  const absl::Cleanup done = [&] { --active; };
  const Route *route = findRoute(exchange.request());
  absl::Status thrown;
  try {
    co_await (this->*route->answer)(exchange, entry);
  } catch (...) {
    // Also of the threads that worked for it.
    thrown = statusOfException();
  }
  if (!thrown.ok()) {
    entry.error = std::string(thrown.message());
    if (!exchange.begun())
      co_await send(exchange, entry, errorAnswer(thrown));
  }
  write(entry);
}

/// Sends `answer`, and has it logged.
Task<void> Service::send(HttpExchange &exchange, Entry &entry,
                         HttpAnswer answer) {
  entry.status = answer.status;
  entry.error = answer.error;
  co_await exchange.send(answer);
}

//===----------------------------------------------------------------------===//
// Metrics and health
//===----------------------------------------------------------------------===//

Task<void> Service::page(HttpExchange &exchange, Entry &entry) {
  co_await send(exchange, entry, pageAnswer());
}

Task<void> Service::health(HttpExchange &exchange, Entry &entry) {
  co_await send(exchange, entry,
                isDraining ? errorAnswer(503, "server: is ending")
                           : HttpAnswer{200, R"({"status": "ok"})"});
}

Task<void> Service::showMetrics(HttpExchange &exchange, Entry &entry) {
  co_await send(exchange, entry,
                {200, metrics.text(grammars.size()),
                 "text/plain; version=0.0.4; charset=utf-8"});
}

static ordered_json modelJson(const ServedModel &model) {
  return {{"id", model.name()},
          {"object", "model"},
          {"created", model.created()},
          {"owned_by", "llamac"},
          {"max_model_len", model.model().context()}};
}

/// `made` as an answer.
static HttpAnswer answerOf(const absl::StatusOr<ordered_json> &made) {
  if (!made.ok())
    return errorAnswer(made.status());
  return {200, jsonText(*made)};
}

Task<void> Service::listModels(HttpExchange &exchange, Entry &entry) {
  const std::string path = pathOf(targetOf(exchange.request()));
  absl::string_view name = path;
  const bool isOne = absl::ConsumePrefix(&name, "/v1/models/");
  const auto list = [&]() -> absl::StatusOr<ordered_json> {
    if (isOne) {
      LLAMAC_ASSIGN_OR_RETURN(const ServedModel *model,
                              findModel(models, name));
      return modelJson(*model);
    }
    ordered_json all = ordered_json::array();
    for (const auto &model : models)
      all.push_back(modelJson(*model));
    return ordered_json{{"object", "list"}, {"data", std::move(all)}};
  };
  co_await send(exchange, entry, answerOf(list()));
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

/// The model that the query names; without one, the first.
absl::StatusOr<const ServedModel *>
Service::askedModel(const HttpExchange &exchange) const {
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<std::string> name,
                          queryField(targetOf(exchange.request()), "model"));
  if (!name)
    return models.front().get();
  return findModel(models, *name);
}

Task<void> Service::showHistory(HttpExchange &exchange, Entry &entry) {
  co_await send(
      exchange, entry, answerOf([&]() -> absl::StatusOr<ordered_json> {
        LLAMAC_ASSIGN_OR_RETURN(const ServedModel *model, askedModel(exchange));
        return metrics.history(*model);
      }()));
}

Task<void> Service::listKernels(HttpExchange &exchange, Entry &entry) {
  HttpAnswer answer = co_await onPool(readers, [&]() {
    return answerOf([&]() -> absl::StatusOr<ordered_json> {
      LLAMAC_ASSIGN_OR_RETURN(const ServedModel *model, askedModel(exchange));
      return kernelReport(*model);
    }());
  });
  co_await send(exchange, entry, std::move(answer));
}

template <typename Function>
Task<void> Service::answerJson(HttpExchange &exchange, Entry &entry,
                               Function make) {
  HttpAnswer answer = co_await onPool(readers, [&] {
    return answerOf([&]() -> absl::StatusOr<ordered_json> {
      LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                              readBody(exchange.request().body()));
      LLAMAC_ASSIGN_OR_RETURN(const JsonObject object,
                              JsonObject::root(document));
      LLAMAC_ASSIGN_OR_RETURN(const ServedModel *model,
                              findModel(models, object));
      return make(*model, object);
    }());
  });
  co_await send(exchange, entry, std::move(answer));
}

Task<void> Service::tokenize(HttpExchange &exchange, Entry &entry) {
  co_await answerJson(
      exchange, entry,
      [&](const ServedModel &model,
          const JsonObject &object) -> absl::StatusOr<ordered_json> {
        LLAMAC_ASSIGN_OR_RETURN(
            const std::vector<int32_t> ids,
            readTokenizeRequest(model, object, exchange.request().body()));
        return ordered_json{{"count", ids.size()},
                            {"max_model_len", model.model().context()},
                            {"tokens", ids}};
      });
}

Task<void> Service::detokenize(HttpExchange &exchange, Entry &entry) {
  co_await answerJson(
      exchange, entry,
      [](const ServedModel &model,
         const JsonObject &object) -> absl::StatusOr<ordered_json> {
        LLAMAC_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                                readDetokenizeRequest(model, object));
        LLAMAC_ASSIGN_OR_RETURN(std::string text,
                                model.tokenizer().decode(ids));
        return ordered_json{{"prompt", std::move(text)}};
      });
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

namespace {

/// Wakes the thread of the connections from that of an engine.
class Waker {
public:
  Waker(asio::io_context &context, Signal &signal)
      : context(context), signal(&signal) {}

  void wake(const std::shared_ptr<Waker> &self) {
    if (!isPosted.exchange(true))
      asio::post(context, [self] {
        self->isPosted = false;
        if (self->signal)
          self->signal->notify();
      });
  }

  /// Until listen() wake() does nothing.
  void ignore() { isPosted = true; }
  void listen() { isPosted = false; }

  /// From now on nobody waits.
  void forget() { signal = nullptr; }

private:
  asio::io_context &context;
  std::atomic<bool> isPosted = false;
  Signal *signal;
};

} // namespace

/// A request with the answers that come to it.
struct Service::Submitted {
  double at = 0; ///< When the prompts were submitted.
  std::unique_ptr<ApiRequest> request = {};
  std::shared_ptr<Waker> waker = {};
  /// One for each prompt; none yet where the grammar is to be compiled.
  std::vector<std::unique_ptr<AnswerStream>> streams = {};
};

/// An engine's thread calls this with each part of an answer.
static AnswerCallback partCallback(std::shared_ptr<Waker> waker,
                                   AnswerMetrics &metrics, bool streams) {
  return [waker = std::move(waker), &metrics, streams,
          last = std::vector<double>()](const AnswerPart &part) mutable {
    const double now = steadySeconds();
    const auto answer = static_cast<size_t>(part.answer);
    last.resize(std::max(last.size(), answer + 1));
    double &before = last[answer];
    const auto tokens = static_cast<double>(part.tokens.size());
    if (before > 0)
      for (size_t i = 0; i < part.tokens.size(); ++i)
        metrics.addTokenTime((now - before) / tokens);
    if (tokens > 0)
      before = now;
    if (part.end)
      metrics.addEnd(*part.end);
    if (streams || part.end)
      waker->wake(waker);
  };
}

/// Hands the request of `submitted`, which has its grammar, to its engine.
absl::Status Service::submit(HttpExchange &exchange, Submitted &submitted) {
  submitted.waker = std::make_shared<Waker>(context, exchange.changed());
  const ServedModel &model = *submitted.request->model;
  int64_t answers = 0;
  for (const Request &one : submitted.request->requests)
    answers += one.answers;
  const int64_t most = model.requests().mostAnswers();
  if (most > 0 && answers > most)
    return fieldError("n", absl::StrCat("expected at most ", most,
                                        " answers of all prompts, as many as "
                                        "may run and wait, got ",
                                        answers));
  submitted.at = steadySeconds();
  for (const Request &one : submitted.request->requests) {
    LLAMAC_ASSIGN_OR_RETURN(
        submitted.streams.emplace_back(),
        model.requests().submit(one,
                                partCallback(submitted.waker, metrics.of(model),
                                             submitted.request->streams)));
  }
  return absl::OkStatus();
}

/// Reads the request of `exchange`, and submits it unless its grammar is still
/// to be compiled.
absl::Status Service::read(HttpExchange &exchange, bool isChat,
                           Submitted &submitted) {
  LLAMAC_ASSIGN_OR_RETURN(
      ApiRequest request,
      readApiRequest(models, isChat, exchange.request().body()));
  submitted.request = std::make_unique<ApiRequest>(std::move(request));
  if (const auto &source = submitted.request->grammar()) {
    const auto kept =
        submitted.request->model->model().grammars()->find(*source);
    if (!kept)
      return absl::OkStatus();
    LLAMAC_RETURN_IF_ERROR(takeGrammar(*submitted.request, kept));
  }
  return submit(exchange, submitted);
}

Task<void> Service::complete(HttpExchange &exchange, Entry &entry) {
  const bool isChat = findRoute(exchange.request())->isChat;
  Submitted submitted;
  const absl::Cleanup forget = [&] {
    if (submitted.waker)
      submitted.waker->forget();
  };
  absl::Status status = co_await onPool(
      readers, [&] { return read(exchange, isChat, submitted); });
  if (status.ok() && submitted.streams.empty()) {
    ApiRequest &request = *submitted.request;
    status = takeGrammar(
        request,
        co_await grammars.compile(exchange, *request.model->model().grammars(),
                                  *request.grammar()));
    if (status.ok())
      status =
          co_await onPool(readers, [&] { return submit(exchange, submitted); });
  }
  if (!status.ok() && exchange.clientLeft()) {
    entry.status = clientLeftStatus;
    entry.error = leftText();
    co_return;
  }
  if (!status.ok()) {
    submitted.streams.clear(); // Ends the prompts before the one that failed.
    co_return co_await send(exchange, entry, errorAnswer(status));
  }
  entry.model = submitted.request->model->name();
  co_await stream(exchange, entry, submitted);
}

/// The end of the frame that it is now.
static Clock::time_point nextFrame() {
  const Clock::time_point now = Clock::now();
  return now - now.time_since_epoch() % frame + frame;
}

/// The answers to `submitted` as they come, or when all have.
Task<void> Service::stream(HttpExchange &exchange, Entry &entry,
                           Submitted &submitted) {
  const ApiRequest &request = *submitted.request;
  const HttpAnswer eventStream{200,
                               "",
                               "text/event-stream; charset=utf-8",
                               {{"Cache-Control", "no-cache"}}};
  AnswerWriter writer(request);
  int open = 0;
  for (const Request &one : request.requests)
    open += one.answers;
  absl::Status failure;
  bool isTaken = true;
  /// The events of the parts that have come.
  const auto takeParts = [&] {
    std::string events;
    for (size_t prompt = 0; prompt < submitted.streams.size(); ++prompt)
      while (auto part = submitted.streams[prompt]->next(0)) {
        // A whole answer is taken when it ends, and says when it began.
        if (entry.firstToken == 0 && request.streams && !part->tokens.empty())
          entry.firstToken = steadySeconds() - entry.start;
        else if (entry.firstToken == 0 && part->end &&
                 part->end->firstTokenSeconds > 0)
          entry.firstToken =
              submitted.at - entry.start + part->end->firstTokenSeconds;
        open -= part->end.has_value();
        if (part->end)
          failure.Update(part->end->status);
        events += writer.take(prompt, *std::move(part));
      }
    return events;
  };
  const auto sendEvents = [&](std::string events) -> Task<void> {
    if (!exchange.begun())
      isTaken = co_await exchange.begin(eventStream);
    isTaken = isTaken && co_await exchange.sendPart(events);
  };
  while (open > 0) {
    std::string events = takeParts();
    if (!failure.ok())
      break;
    const bool hasEvents = !events.empty();
    if (hasEvents)
      co_await sendEvents(std::move(events));
    isTaken = isTaken && !exchange.clientLeft();
    if (!isTaken || open == 0)
      break;
    if (hasEvents) {
      submitted.waker->ignore();
      co_await exchange.changed().wait(nextFrame());
      submitted.waker->listen();
      continue; // With what came meanwhile.
    }
    if (!co_await exchange.changed().wait(Clock::now() + commentInterval) &&
        request.streams)
      co_await sendEvents(": the answer goes on\n\n");
  }
  if (!isTaken)
    takeParts(); // The engine has worked for them.
  entry.usage = writer.usage();
  entry.finishReason = writer.finishReason();
  entry.status = 200;
  if (!isTaken) {
    // Answers that still run end with their streams.
    entry.status = clientLeftStatus;
    entry.error = leftText();
  } else if (!failure.ok() && exchange.begun()) {
    entry.error = std::string(failure.message());
    co_await sendEvents(
        absl::StrCat("data: ", errorAnswer(failure).body, "\n\n"));
    co_await exchange.end();
  } else if (!failure.ok()) {
    co_await send(exchange, entry, errorAnswer(failure));
  } else if (request.streams) {
    co_await sendEvents(writer.streamEnd());
    co_await exchange.end();
  } else {
    co_await exchange.send({200, writer.whole()});
  }
}

} // namespace llamac::serve
