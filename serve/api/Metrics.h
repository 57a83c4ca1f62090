//===- Metrics.h - Figures for operators and routers ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names and meanings are vLLM's (docs.vllm.ai, Production Metrics), which
// routers and dashboards know.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_API_METRICS_H
#define LLAMAC_SERVE_API_METRICS_H

#include "serve/api/ServedModel.h"
#include "text/request/Request.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace llamac::serve {

/// The figures of one model that come from its answers. Any thread may add.
class AnswerMetrics {
public:
  AnswerMetrics(prometheus::Registry &registry, const std::string &model);

  void addEnd(const AnswerEnd &end);
  void addTokenTime(double seconds) { tokenTime->Observe(seconds); }

private:
  prometheus::Family<prometheus::Counter> *finished;
  std::string model;
  prometheus::Histogram *firstToken, *tokenTime, *whole, *queue;
};

/// The figures of all models.
class Metrics {
public:
  /// `models` outlives it.
  explicit Metrics(const ServedModels &models);

  AnswerMetrics &of(const ServedModel &model);

  /// In Prometheus' text format. `grammars` are compiled or wait for it.
  std::string text(size_t grammars) const;

  /// Keeps the figures of all engines as of now for five minutes. For one
  /// thread, as history() is.
  void keep();

  /// The kept figures of a model, oldest first: {"seconds_ago": [...],
  /// "figures": {"vllm:num_requests_running": [...], ...}}.
  nlohmann::ordered_json history(const ServedModel &model) const;

private:
  /// The figures of all models at one time, by model and figure.
  struct Sample {
    double time = 0;
    std::vector<std::vector<double>> figures = {};
  };

  size_t numberOf(const ServedModel &model) const;

  const ServedModels &models;
  prometheus::Registry registry;
  std::vector<std::unique_ptr<AnswerMetrics>> answers; ///< One for each of the
                                                       ///< models.
  std::deque<Sample> samples;                          ///< Oldest first.
};

} // namespace llamac::serve

#endif // LLAMAC_SERVE_API_METRICS_H
