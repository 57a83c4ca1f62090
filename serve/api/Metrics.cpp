//===- Metrics.cpp - Figures for operators and routers --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/Metrics.h"

#include "runtime/base/Clock.h"
#include "text/request/RequestJson.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

namespace llamac::serve {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

static prometheus::Histogram *addHistogram(prometheus::Registry &registry,
                                           const char *name, const char *help,
                                           const std::string &model,
                                           const std::vector<double> &bounds) {
  return &prometheus::BuildHistogram()
              .Name(name)
              .Help(help)
              .Register(registry)
              .Add({{"model_name", model}}, bounds);
}

// From the time of a step of a small model to that of a long answer.
static const std::vector<double> stepBounds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
static const std::vector<double> waitBounds = {
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
static const std::vector<double> answerBounds = {
    0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800};

AnswerMetrics::AnswerMetrics(prometheus::Registry &registry,
                             const std::string &model)
    : finished(&prometheus::BuildCounter()
                    .Name("vllm:request_success_total")
                    .Help("Answers that ended, by why")
                    .Register(registry)),
      model(model),
      firstToken(addHistogram(registry, "vllm:time_to_first_token_seconds",
                              "From a request to its first token", model,
                              waitBounds)),
      tokenTime(addHistogram(registry, "vllm:inter_token_latency_seconds",
                             "From a token to the next", model, stepBounds)),
      whole(addHistogram(registry, "vllm:e2e_request_latency_seconds",
                         "From a request to the end of its answer", model,
                         answerBounds)),
      queue(addHistogram(registry, "vllm:request_queue_time_seconds",
                         "From a request until it is begun", model,
                         waitBounds)) {
  for (const StopReason reason :
       {StopReason::StopId, StopReason::Length, StopReason::Cancelled})
    finished->Add({{"model_name", model},
                   {"finished_reason", std::string(finishReason(reason))}});
}

void AnswerMetrics::addEnd(const AnswerEnd &end) {
  finished
      ->Add(
          {{"model_name", model},
           {"finished_reason",
            end.status.ok() ? std::string(finishReason(end.reason)) : "error"}})
      .Increment();
  if (!end.status.ok())
    return;
  queue->Observe(end.queueSeconds);
  if (end.answerTokens > 0)
    firstToken->Observe(end.firstTokenSeconds);
  whole->Observe(end.seconds);
}

//===----------------------------------------------------------------------===//
// Engines
//===----------------------------------------------------------------------===//

namespace {
/// A figure of SchedulerCounts.
struct EngineFigure {
  const char *name;
  MetricType type;
  double (*value)(const SchedulerCounts &counts);
  const char *help;
};
} // namespace

template <auto field> static double count(const SchedulerCounts &counts) {
  return static_cast<double>(counts.*field);
}

static double cacheUsage(const SchedulerCounts &counts) {
  return counts.pages == 0 ? 0
                           : 1 - static_cast<double>(counts.freePages) /
                                     static_cast<double>(counts.pages);
}

static double acceptedTokens(const SchedulerCounts &counts) {
  return static_cast<double>(counts.acceptedTokens());
}

static constexpr EngineFigure figures[] = {
    {"vllm:num_requests_running", MetricType::Gauge,
     count<&SchedulerCounts::running>, "Answers that run"},
    {"vllm:num_requests_waiting", MetricType::Gauge,
     count<&SchedulerCounts::waiting>, "Answers that wait"},
    {"vllm:kv_cache_usage_perc", MetricType::Gauge, cacheUsage,
     "Share of the KV cache that answers use, 0 to 1"},
    {"vllm:prefix_cache_queries_total", MetricType::Counter,
     count<&SchedulerCounts::promptTokens>,
     "Tokens of prompts looked for in the prefix cache"},
    {"vllm:prefix_cache_hits_total", MetricType::Counter,
     count<&SchedulerCounts::cachedTokens>, "Those found"},
    {"vllm:num_preemptions_total", MetricType::Counter,
     count<&SchedulerCounts::preemptions>,
     "Answers put back for want of pages"},
    {"vllm:prompt_tokens_total", MetricType::Counter,
     count<&SchedulerCounts::promptTokens>, "Tokens of prompts"},
    {"vllm:generation_tokens_total", MetricType::Counter,
     count<&SchedulerCounts::answerTokens>, "Tokens of answers"},
    {"vllm:spec_decode_num_drafts_total", MetricType::Counter,
     count<&SchedulerCounts::drafts>, "Drafts that steps verified"},
    {"vllm:spec_decode_num_draft_tokens_total", MetricType::Counter,
     count<&SchedulerCounts::draftTokens>, "Their tokens"},
    {"vllm:spec_decode_num_accepted_tokens_total", MetricType::Counter,
     acceptedTokens, "Those accepted"},
};

/// The rows of steps, whose counts are by powers of two.
static ClientMetric stepHistogram(const SchedulerCounts &counts) {
  ClientMetric metric;
  uint64_t steps = 0;
  for (size_t i = 0; i < counts.stepRows.size(); ++i) {
    steps += static_cast<uint64_t>(counts.stepRows[i]);
    metric.histogram.bucket.push_back(
        {steps, static_cast<double>(uint64_t{1} << i)});
  }
  metric.histogram.sample_count = steps;
  metric.histogram.sample_sum = static_cast<double>(counts.rows);
  return metric;
}

static std::vector<MetricFamily> collectEngines(const ServedModels &models) {
  std::vector<MetricFamily> families;
  for (const EngineFigure &figure : figures)
    families.push_back({figure.name, figure.help, figure.type, {}});
  MetricFamily rows{"vllm:iteration_tokens_total",
                    "Tokens that a step runs",
                    MetricType::Histogram,
                    {}};
  MetricFamily cache{"vllm:cache_config_info",
                     "The KV cache: tokens of a page, and pages",
                     MetricType::Gauge,
                     {}};
  MetricFamily accepted{"vllm:spec_decode_num_accepted_tokens_per_pos_total",
                        "Draft tokens accepted, by their place in the draft",
                        MetricType::Counter,
                        {}};
  for (const auto &model : models) {
    const SchedulerCounts counts = model->requests().counts();
    const std::vector<ClientMetric::Label> labels = {
        {"model_name", model->name()}};
    for (size_t i = 0; i < families.size(); ++i) {
      ClientMetric &metric = families[i].metric.emplace_back();
      metric.label = labels;
      const double value = figures[i].value(counts);
      if (figures[i].type == MetricType::Gauge)
        metric.gauge.value = value;
      else
        metric.counter.value = value;
    }
    rows.metric.push_back(stepHistogram(counts));
    rows.metric.back().label = labels;
    ClientMetric &info = cache.metric.emplace_back();
    info.label = {
        {"model_name", model->name()},
        {"block_size", std::to_string(model->model().plan().kv->pageTokens)},
        {"num_gpu_blocks", std::to_string(counts.pages)}};
    info.gauge.value = 1;
    for (size_t place = 0; place < counts.accepted.size(); ++place) {
      ClientMetric &metric = accepted.metric.emplace_back();
      metric.label = labels;
      metric.label.push_back({"position", std::to_string(place)});
      metric.counter.value = static_cast<double>(counts.accepted[place]);
    }
  }
  families.push_back(std::move(rows));
  families.push_back(std::move(cache));
  families.push_back(std::move(accepted));
  return families;
}

Metrics::Metrics(const ServedModels &models) : models(models) {
  for (const auto &model : models)
    answers.push_back(std::make_unique<AnswerMetrics>(registry, model->name()));
}

size_t Metrics::numberOf(const ServedModel &model) const {
  const auto found = std::ranges::find(
      models, &model, [](const auto &own) { return own.get(); });
  return static_cast<size_t>(found - models.begin());
}

AnswerMetrics &Metrics::of(const ServedModel &model) {
  return *answers[numberOf(model)];
}

void Metrics::keep() {
  constexpr double secondsKept = 300;
  Sample &sample = samples.emplace_back(steadySeconds());
  for (const auto &model : models) {
    const SchedulerCounts counts = model->requests().counts();
    std::vector<double> &values = sample.figures.emplace_back();
    for (const EngineFigure &figure : figures)
      values.push_back(figure.value(counts));
  }
  while (samples.front().time < sample.time - secondsKept)
    samples.pop_front();
}

ordered_json Metrics::history(const ServedModel &model) const {
  const size_t number = numberOf(model);
  const double now = steadySeconds();
  ordered_json json = {{"model", model.name()},
                       {"seconds_ago", ordered_json::array()},
                       {"figures", ordered_json::object()}};
  for (const Sample &sample : samples) {
    json["seconds_ago"].push_back(now - sample.time);
    for (size_t i = 0; i < std::size(figures); ++i)
      json["figures"][figures[i].name].push_back(sample.figures[number][i]);
  }
  return json;
}

std::string Metrics::text(size_t grammars) const {
  std::vector<MetricFamily> families = collectEngines(models);
  ClientMetric compiling;
  compiling.gauge.value = static_cast<double>(grammars);
  families.push_back({"llamac:num_grammars_compiling",
                      "Grammars that are compiled or wait for it",
                      MetricType::Gauge,
                      {std::move(compiling)}});
  std::vector<MetricFamily> others = registry.Collect();
  std::move(others.begin(), others.end(), std::back_inserter(families));
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

} // namespace llamac::serve
