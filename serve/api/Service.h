//===- Service.h - The interface of a server --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// OpenAI's interface over AsyncEngine, and what operators need. Requests are
// read and tokenised by threads of their own, and their grammars compiled by
// another; all else runs on the thread of the connections.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_API_SERVICE_H
#define LLAMAC_SERVE_API_SERVICE_H

#include "serve/api/AccessLog.h"
#include "serve/api/AnswerWriter.h"
#include "serve/api/GrammarQueue.h"
#include "serve/api/Metrics.h"
#include "serve/api/ServedModel.h"
#include "serve/http/HttpServer.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac::serve {

struct ServiceOptions {
  /// One of which a client needs, but for the page and /health; none: no key.
  std::vector<std::string> keys = {};
  /// Pages of these origins may call; "*": any.
  std::vector<std::string> origins = {};
};

class Service {
public:
  /// `models`, at least one, and `log` outlive it.
  Service(asio::io_context &context, ServedModels models,
          const ServiceOptions &options, AccessLog &log);
  ~Service();

  HttpHandler handler();

  /// Whether requests must come by a name of this machine: pages of other
  /// sites could reach a server at a loopback address otherwise.
  void requireLocalHost(bool isRequired) { needsLocalHost = isRequired; }

  /// Takes no more requests for answers.
  void drain() { isDraining = true; }

  /// For once a second: keeps figures for charts.
  void keepFigures() { metrics.keep(); }

  /// Answers that have not ended.
  size_t running() const { return active; }

private:
  struct Entry;
  struct Route;
  struct Submitted;
  static absl::Span<const Route> routes();
  const Route *findRoute(const HttpRequest &head) const;

  std::optional<HttpAnswer> refuse(const HttpRequest &head,
                                   const Route *route) const;
  std::optional<HttpAnswer> refuseOrigin(const HttpRequest &head) const;
  bool isFriend(absl::string_view origin) const;
  bool hasKey(const HttpRequest &head) const;
  void addCommonFields(HttpExchange &exchange, Entry &entry) const;
  void write(const Entry &entry);

  Task<void> answer(HttpExchange &exchange);
  Task<void> page(HttpExchange &exchange, Entry &entry);
  Task<void> health(HttpExchange &exchange, Entry &entry);
  Task<void> showMetrics(HttpExchange &exchange, Entry &entry);
  Task<void> showHistory(HttpExchange &exchange, Entry &entry);
  Task<void> listKernels(HttpExchange &exchange, Entry &entry);
  Task<void> listModels(HttpExchange &exchange, Entry &entry);
  Task<void> complete(HttpExchange &exchange, Entry &entry);
  Task<void> tokenize(HttpExchange &exchange, Entry &entry);
  Task<void> detokenize(HttpExchange &exchange, Entry &entry);

  static Task<void> send(HttpExchange &exchange, Entry &entry,
                         HttpAnswer answer);
  /// Answers by what `make` makes of the model and the body's JSON.
  template <typename Function>
  Task<void> answerJson(HttpExchange &exchange, Entry &entry, Function make);
  absl::StatusOr<const ServedModel *>
  askedModel(const HttpExchange &exchange) const;
  absl::Status read(HttpExchange &exchange, bool isChat, Submitted &submitted);
  absl::Status submit(HttpExchange &exchange, Submitted &submitted);
  Task<void> stream(HttpExchange &exchange, Entry &entry, Submitted &submitted);

  /// Why an answer has nobody to go to.
  const char *leftText() const {
    return isDraining ? "the connection ended while the server did"
                      : "the client left";
  }

  asio::io_context &context;
  asio::thread_pool readers;
  ServedModels models;
  ServiceOptions options;
  AccessLog &log;
  Metrics metrics;
  GrammarQueue grammars;
  bool needsLocalHost = false;
  bool isDraining = false;
  size_t active = 0;
};

} // namespace llamac::serve

#endif // LLAMAC_SERVE_API_SERVICE_H
