//===- MetricsTest.cpp - Figures in Prometheus' format --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/Metrics.h"

#include "tests/serve/ServedToy.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include <gmock/gmock.h>

#include <map>

namespace llamac::serve {
namespace {

class MetricsTest : public ServedToyTest {
protected:
  /// The value of each series, by its name and labels.
  static std::map<std::string, double> valuesOf(const Metrics &metrics) {
    std::map<std::string, double> values;
    for (absl::string_view line : absl::StrSplit(metrics.text(/*grammars=*/2),
                                                 '\n', absl::SkipEmpty())) {
      if (line.front() == '#')
        continue;
      const size_t space = line.rfind(' ');
      double &value = values[std::string(line.substr(0, space))];
      EXPECT_TRUE(absl::SimpleAtod(line.substr(space + 1), &value)) << line;
    }
    return values;
  }
};

TEST_F(MetricsTest, AnswersAreCountedByWhyTheyEnded) {
  Metrics metrics(models);
  AnswerMetrics &answers = metrics.of(*models.front());
  answers.addEnd({.reason = StopReason::StopId, .answerTokens = 2});
  answers.addEnd({.reason = StopReason::StopString, .answerTokens = 2});
  answers.addEnd({.reason = StopReason::Length, .answerTokens = 2});
  answers.addEnd({.status = usageError("wrong")});
  auto values = valuesOf(metrics);
  const auto ended = [&](const char *why) {
    return values[absl::StrCat("vllm:request_success_total{finished_reason=\"",
                               why, "\",model_name=\"toy\"}")];
  };
  EXPECT_EQ(ended("stop"), 2);
  EXPECT_EQ(ended("length"), 1);
  EXPECT_EQ(ended("error"), 1);
  EXPECT_EQ(values["llamac:num_grammars_compiling"], 2);
}

TEST_F(MetricsTest, TimesAreThoseOfAnswersThatEndedWell) {
  Metrics metrics(models);
  AnswerMetrics &answers = metrics.of(*models.front());
  answers.addEnd({.reason = StopReason::StopId,
                  .answerTokens = 2,
                  .queueSeconds = 0.25,
                  .firstTokenSeconds = 0.5,
                  .seconds = 2});
  answers.addEnd({.reason = StopReason::Length, .seconds = 1}); // No token.
  answers.addEnd({.status = usageError("wrong"), .seconds = 9});
  auto values = valuesOf(metrics);
  const auto sum = [&](const char *of) {
    return values[absl::StrCat("vllm:", of,
                               "_seconds_sum{model_name=\"toy\"}")];
  };
  EXPECT_EQ(sum("e2e_request_latency"), 3);
  EXPECT_EQ(sum("request_queue_time"), 0.25);
  EXPECT_EQ(sum("time_to_first_token"), 0.5);
  EXPECT_EQ(
      values["vllm:e2e_request_latency_seconds_count{model_name=\"toy\"}"], 2);
  EXPECT_EQ(
      values["vllm:time_to_first_token_seconds_count{model_name=\"toy\"}"], 1);
}

TEST_F(MetricsTest, AnIdleEngineHasItsPagesFreeAndNothingCounted) {
  const Metrics metrics(models);
  auto values = valuesOf(metrics);
  for (const char *name : {"num_requests_running", "num_requests_waiting",
                           "kv_cache_usage_perc", "generation_tokens_total"}) {
    const std::string series =
        absl::StrCat("vllm:", name, "{model_name=\"toy\"}");
    ASSERT_TRUE(values.contains(series)) << series;
    EXPECT_EQ(values[series], 0) << series;
  }
}

} // namespace
} // namespace llamac::serve
