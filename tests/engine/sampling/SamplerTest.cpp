//===- SamplerTest.cpp - Chooses the next token ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/sampling/Sampler.h"

#include "runtime/base/Status.h"
#include "tests/engine/sampling/ChiSquare.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

namespace llamac {
namespace {

static Sampler make(SamplingOptions options) {
  auto sampler = Sampler::create(options);
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  return *std::move(sampler);
}

/// The token chosen of `logits`.
static int32_t pick(Sampler &sampler, const std::vector<float> &logits) {
  const absl::StatusOr<int32_t> id = sampler.sample(logits);
  EXPECT_TRUE(id.ok()) << id.status();
  return id.value_or(-1);
}

/// How often each id came in `draws` draws, as a share.
static std::map<int32_t, double>
shares(Sampler &sampler, const std::vector<float> &logits, int draws) {
  std::map<int32_t, double> counts;
  for (int i = 0; i < draws; ++i)
    counts[pick(sampler, logits)] += 1.0 / draws;
  return counts;
}

TEST(ArgmaxTest, FindsTheFirstOfTheLargestAtAnyPlace) {
  for (size_t size : {1, 2, 15, 16, 17, 31, 32, 33, 100}) {
    for (size_t place = 0; place < size; ++place) {
      std::vector<float> logits(size, -3.5f);
      logits[place] = 2;
      EXPECT_EQ(argmax(logits), static_cast<int32_t>(place));
      logits.back() = 2;
      EXPECT_EQ(argmax(logits), static_cast<int32_t>(place));
    }
  }
}

TEST(SamplerTest, GreedyIgnoresTheSeed) {
  for (uint64_t seed : {0, 1, 2}) {
    Sampler sampler = make({.seed = seed});
    EXPECT_EQ(pick(sampler, {1, 5, 3}), 1);
  }
}

TEST(SamplerTest, DrawsFollowTheProbabilities) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
  Sampler sampler = make({.temperature = 1, .seed = 3});
  const auto counts = shares(sampler, logits, 40000);
  EXPECT_NEAR(counts.at(0), 1.0 / 8, 0.01);
  EXPECT_NEAR(counts.at(1), 2.0 / 8, 0.01);
  EXPECT_NEAR(counts.at(2), 5.0 / 8, 0.01);
}

TEST(SamplerTest, TemperatureDividesLogits) {
  const std::vector<float> logits = {0, std::log(4.0f)};
  Sampler sampler = make({.temperature = 2, .seed = 3});
  EXPECT_NEAR(shares(sampler, logits, 40000).at(1), 2.0 / 3, 0.01);
}

TEST(SamplerTest, TopKKeepsTheLargestLogits) {
  const std::vector<float> logits = {1, 4, 2, 4, 3};
  Sampler two = make({.temperature = 5, .topK = 2, .seed = 9});
  const auto counts = shares(two, logits, 4000);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts.at(1), 0.5, 0.05);
  EXPECT_NEAR(counts.at(3), 0.5, 0.05);
  Sampler one = make({.temperature = 5, .topK = 1, .seed = 9});
  EXPECT_EQ(shares(one, logits, 1000).count(1), 1u);
  EXPECT_EQ(shares(one, logits, 1000).size(), 1u);
  for (const int64_t all : {99, 0, -1}) {
    Sampler more = make({.temperature = 5, .topK = all, .seed = 9});
    EXPECT_EQ(shares(more, logits, 4000).size(), 5u);
  }
}

TEST(SamplerTest, TopPKeepsTheFewestThatReachIt) {
  // Probabilities 0.5, 0.3, 0.2.
  const std::vector<float> logits = {std::log(0.2f), std::log(0.5f),
                                     std::log(0.3f)};
  Sampler half = make({.temperature = 1, .topP = 0.49, .seed = 1});
  EXPECT_NEAR(shares(half, logits, 1000).at(1), 1, 1e-9);
  Sampler most = make({.temperature = 1, .topP = 0.75, .seed = 1});
  const auto counts = shares(most, logits, 40000);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts.at(1), 0.625, 0.01);
  Sampler all = make({.temperature = 1, .topP = 1, .seed = 1});
  EXPECT_EQ(shares(all, logits, 4000).size(), 3u);
}

/// The weights of tokens as the options define them, 0 for those that are not
/// kept: all tokens are sorted, and each option drops those at the end. None
/// where rounding decides what is kept.
static std::optional<std::vector<long double>>
weighBySort(const std::vector<float> &logits, const SamplingOptions &options) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  auto isClose = [](long double a, long double b) {
    return std::abs(a - b) < 1e-9L * std::max(std::abs(a), std::abs(b));
  };
  std::vector<long double> sums;
  long double sum = 0;
  for (const int32_t id : order) {
    const long double weight =
        std::exp((static_cast<long double>(logits[id]) - logits[order[0]]) /
                 options.temperature);
    if (weight != options.minP && isClose(weight, options.minP))
      return std::nullopt;
    if (weight < options.minP ||
        (options.topK > 0 && sums.size() == static_cast<size_t>(options.topK)))
      break;
    sums.push_back(sum += weight);
  }
  const long double goal = options.topP * sum;
  size_t kept = 1;
  while (kept < sums.size() && sums[kept - 1] < goal)
    ++kept;
  if (kept < sums.size() && (isClose(sums[kept - 1], goal) ||
                             (kept > 1 && isClose(sums[kept - 2], goal))))
    return std::nullopt;
  std::vector<long double> weights(logits.size());
  for (size_t i = 0; i < kept; ++i)
    weights[order[i]] = sums[i] - (i > 0 ? sums[i - 1] : 0);
  return weights;
}

/// The token that the noise of a key draws by the definition; none where the
/// choice is within rounding of another.
static std::optional<int32_t> chooseBySort(const std::vector<float> &logits,
                                           const SamplingOptions &options,
                                           uint32_t noiseKey) {
  const auto weights = weighBySort(logits, options);
  if (!weights)
    return std::nullopt;
  std::vector<std::pair<long double, int32_t>> times;
  for (int32_t id = 0; id < static_cast<int32_t>(logits.size()); ++id)
    if ((*weights)[id] > 0) {
      const long double u = (tokenNoise(noiseKey, id) + 0.5L) * 0x1p-32L;
      times.emplace_back(-std::log1p(-u) / (*weights)[id], id);
    }
  std::sort(times.begin(), times.end());
  if (times.size() > 1 &&
      times[1].first - times[0].first < 1e-9L * times[0].first)
    return std::nullopt;
  return times[0].second;
}

TEST(SamplerTest, ATokenIsThatOfASortOfAllTokens) {
  std::mt19937 random(5);
  int compared = 0, undecided = 0;
  for (const size_t size : {1, 7, 300, 5000})
    for (const float scale : {0.1f, 3.0f})
      for (const bool hasEquals : {false, true}) {
        std::normal_distribution<float> normal(0, scale);
        std::vector<float> logits(size);
        for (float &logit : logits) {
          logit = normal(random);
          if (hasEquals)
            logit = std::round(logit * 4) / 4;
        }
        for (const double temperature : {1e-300, 0.01, 0.7, 5.0})
          for (const int64_t topK : {0, 1, 40, 1000})
            for (const double topP : {1.0, 0.9, 0.5, 1e-6})
              for (const double minP : {0.0, 1e-3, 0.3, 1.0}) {
                const SamplingOptions options{.temperature = temperature,
                                              .topK = topK,
                                              .topP = topP,
                                              .seed = 1,
                                              .minP = minP};
                const auto noiseKey = static_cast<uint32_t>(random());
                const std::optional<int32_t> expected =
                    chooseBySort(logits, options, noiseKey);
                undecided += !expected;
                if (!expected)
                  continue;
                ++compared;
                ASSERT_EQ(make(options).choose(logits, noiseKey), *expected)
                    << size << " tokens of scale " << scale << ", temperature "
                    << temperature << ", top-k " << topK << ", top-p " << topP
                    << ", min-p " << minP << ", key " << noiseKey;
              }
      }
  EXPECT_GT(compared, 2000);
  EXPECT_LT(undecided, compared / 4);
}

TEST(SamplerTest, EveryKeyHasAToken) {
  const std::vector<float> logits = {3, 1, 2, -700, 3, -1e30f};
  for (const double topP : {1.0, 0.8})
    for (const uint32_t noiseKey : {0U, 1U, 1U << 31, UINT32_MAX}) {
      Sampler sampler = make({.temperature = 1, .topP = topP, .seed = 1});
      EXPECT_NE(sampler.choose(logits, noiseKey), 5);
    }
}

TEST(SamplerTest, MinPKeepsTokensOfAShareOfTheLargestProbability) {
  // Probabilities 0.5, 0.3, 0.15, 0.05: at 0.2 of 0.5 three are left.
  const std::vector<float> logits = {std::log(0.15f), std::log(0.5f),
                                     std::log(0.05f), std::log(0.3f)};
  Sampler sampler = make({.temperature = 1, .seed = 1, .minP = 0.2});
  const auto counts = shares(sampler, logits, 40000);
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_NEAR(counts.at(1), 0.5 / 0.95, 0.01);
  EXPECT_NEAR(counts.at(3), 0.3 / 0.95, 0.01);
  EXPECT_NEAR(counts.at(0), 0.15 / 0.95, 0.01);
}

/// The probabilities of tokens as the options define them.
static std::vector<double> probabilitiesOf(const std::vector<float> &logits,
                                           const SamplingOptions &options) {
  const auto weights = weighBySort(logits, options);
  EXPECT_TRUE(weights);
  const long double sum =
      std::accumulate(weights->begin(), weights->end(), 0.0L);
  std::vector<double> probabilities;
  for (const long double weight : *weights)
    probabilities.push_back(static_cast<double>(weight / sum));
  return probabilities;
}

TEST(SamplerTest, AMillionDrawsFollowTheProbabilities) {
  std::vector<float> flat(20, 0.5f), peaked, mixed;
  for (int i = 0; i < 12; ++i)
    peaked.push_back(-1.1f * static_cast<float>(i * 5 % 12));
  for (int i = 0; i < 40; ++i)
    mixed.push_back(2 * std::sin(static_cast<float>(3 * i)));
  const std::pair<const std::vector<float> &, SamplingOptions> cases[] = {
      {flat, {.temperature = 1}},
      {flat, {.temperature = 1, .topK = 7}},
      {peaked, {.temperature = 1}},
      {peaked, {.temperature = 0.4}},
      {peaked, {.temperature = 3, .topK = 8, .topP = 0.8}},
      {mixed, {.temperature = 1}},
      {mixed, {.temperature = 1.5, .topK = 20}},
      {mixed, {.temperature = 1, .topP = 0.7}},
      {mixed, {.temperature = 0.8, .minP = 0.1}},
      {mixed, {.temperature = 0.9, .topK = 30, .topP = 0.9, .minP = 0.02}},
  };
  for (const auto &[logits, options] : cases) {
    SCOPED_TRACE(absl::StrCat(
        logits.size(), " tokens, temperature ", options.temperature, ", top-k ",
        options.topK, ", top-p ", options.topP, ", min-p ", options.minP));
    SamplingOptions seeded = options;
    seeded.seed = 3;
    Sampler sampler = make(seeded);
    std::vector<double> counts(logits.size());
    for (int i = 0; i < 1'000'000; ++i)
      ++counts[pick(sampler, logits)];
    expectDrawnBy(probabilitiesOf(logits, options), counts);
  }
}

TEST(SamplerTest, SeedsAsAWholeFollowTheProbabilities) {
  // First tokens of as many answers.
  const std::vector<float> logits = {1, -2, 0.5, 3, 2, -9, 2.5, 1.5, 0, 2.9f};
  for (const int64_t topK : {0, 4}) {
    SamplingOptions options{.temperature = 1.3, .topK = topK};
    std::vector<double> counts(logits.size());
    for (uint64_t seed = 0; seed < 20000; ++seed) {
      options.seed = seed;
      Sampler sampler = make(options);
      ++counts[pick(sampler, logits)];
    }
    expectDrawnBy(probabilitiesOf(logits, options), counts);
  }
}

TEST(SamplerTest, ADraftOfLikeLogitsMostlyDrawsTheSame) {
  // The rule of ratios would accept 0.85 of them.
  constexpr int distributions = 3000, tokens = 2000;
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  Sampler sampler = make({.temperature = 1, .seed = 2});
  std::vector<float> logits(tokens), ofDraft(tokens);
  int same = 0;
  for (int i = 0; i < distributions; ++i) {
    for (int id = 0; id < tokens; ++id) {
      logits[id] = 4 * normal(random);
      ofDraft[id] = logits[id] + 0.5f * normal(random);
    }
    Sampler drafts = sampler.forDrafts();
    const int32_t draft = pick(drafts, ofDraft);
    same += draft == pick(sampler, logits);
  }
  EXPECT_GT(same, 0.77 * distributions);
  EXPECT_LT(same, 0.85 * distributions);
}

TEST(SamplerTest, ADraftOfTheSameLogitsAlwaysDrawsTheSame) {
  std::vector<float> logits(300);
  for (size_t id = 0; id < logits.size(); ++id)
    logits[id] = std::sin(static_cast<float>(7 * id));
  for (const int64_t topK : {0, 40}) {
    Sampler sampler =
        make({.temperature = 1, .topK = topK, .topP = 0.9, .seed = 5});
    for (int i = 0; i < 100; ++i) {
      Sampler drafts = sampler.forDrafts();
      ASSERT_EQ(pick(drafts, logits), pick(sampler, logits));
    }
  }
}

TEST(SamplerTest, RepetitionPenaltyIsOfPromptAndAnswer) {
  Sampler sampler = make({.repetitionPenalty = 2});
  sampler.see({0, 3, 3});
  // 0: 5 / 2 = 2.5; 3: -1 * 2 = -2.
  EXPECT_EQ(pick(sampler, {5, 2.6f, 0, -1}), 1);
  EXPECT_EQ(pick(sampler, {5, 2.4f, 0, -1}), 0);
  // Now 1 as well: 4.9 / 2, and once only however often they were seen.
  EXPECT_EQ(pick(sampler, {4.8f, 4.9f, 2.44f, -1}), 1);
  EXPECT_EQ(pick(sampler, {-3, -3, -5.9f, -2.9f}), 3);
  EXPECT_EQ(pick(sampler, {-3, -3, -5.7f, -2.9f}), 2);
}

TEST(SamplerTest, FrequencyAndPresencePenaltiesAreOfTheAnswer) {
  Sampler frequency = make({.frequencyPenalty = 0.5});
  frequency.see({0, 0, 0, 0});
  for (const int32_t expected : {0, 0, 0, 1, 0, 1})
    EXPECT_EQ(pick(frequency, {2.2f, 1, 0}), expected);
  Sampler presence = make({.presencePenalty = 0.5});
  presence.see({0, 0, 0, 0});
  for (const int32_t expected : {0, 0, 0})
    EXPECT_EQ(pick(presence, {2.2f, 1, 0}), expected);
  EXPECT_EQ(pick(presence, {2.2f, 1.8f, 0}), 1);
  EXPECT_EQ(pick(presence, {2.2f, 1.8f, 0}), 0);
  // A negative one favours what was there.
  Sampler favours = make({.presencePenalty = -1});
  EXPECT_EQ(pick(favours, {1, 0}), 0);
  EXPECT_EQ(pick(favours, {1, 1.9f}), 0);
}

TEST(SamplerTest, BiasComesBeforeThePenalties) {
  // (1 + 1) / 4 and not 1 / 4 + 1.
  Sampler sampler =
      make({.repetitionPenalty = 4, .logitBias = {{0, 1}, {2, -100}}});
  sampler.see({0});
  EXPECT_EQ(pick(sampler, {1, 0.6f, 90}), 1);
  EXPECT_EQ(pick(sampler, {1, 0.4f, 90}), 0);
}

TEST(SamplerTest, StopIdsComeAfterTheLeastNumberOfTokens) {
  const std::vector<int32_t> stopIds = {1, 2};
  for (const double temperature : {0.0, 1.0}) {
    auto sampler = Sampler::create({.temperature = temperature,
                                    .topK = 1,
                                    .logitBias = {{1, 100}},
                                    .minTokens = 3},
                                   stopIds);
    ASSERT_TRUE(sampler.ok());
    for (const int32_t expected : {3, 3, 3, 1})
      EXPECT_EQ(pick(*sampler, {0, 5, 4, 3}), expected);
  }
  auto none = Sampler::create({.minTokens = 1}, {{0, 1}});
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(exitCode(none->sample({1, 2}).status()), ExitCode::Usage);
}

TEST(SamplerTest, LogprobsAreThoseOfTheRawLogits) {
  // Shares 1/8, 2/8, 4/8, 1/8; the choice is changed, what is reported is not.
  const std::vector<float> logits = {0, std::log(2.0f), std::log(4.0f), 0};
  Sampler sampler = make({.temperature = 0.1,
                          .topK = 1,
                          .seed = 1,
                          .logitBias = {{3, 50}},
                          .logprobs = 3});
  EXPECT_TRUE(sampler.takeLogprobs().empty());
  ASSERT_EQ(pick(sampler, logits), 3);
  const std::vector<TokenLogprobs> taken = sampler.takeLogprobs();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_TRUE(sampler.takeLogprobs().empty());
  const TokenLogprobs &logprobs = taken[0];
  EXPECT_EQ(logprobs.chosen.id, 3);
  EXPECT_NEAR(logprobs.chosen.logprob, std::log(1.0 / 8), 1e-6);
  EXPECT_EQ(logprobs.rank, 4);
  ASSERT_EQ(logprobs.alternatives.size(), 3u);
  const std::pair<int32_t, double> expected[] = {
      {2, 4.0 / 8}, {1, 2.0 / 8}, {0, 1.0 / 8}};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(logprobs.alternatives[i].id, expected[i].first);
    EXPECT_NEAR(logprobs.alternatives[i].logprob, std::log(expected[i].second),
                1e-6);
  }
  Sampler alone = make({.logprobs = 0});
  ASSERT_EQ(pick(alone, logits), 2);
  const std::vector<TokenLogprobs> ofAlone = alone.takeLogprobs();
  ASSERT_EQ(ofAlone.size(), 1u);
  EXPECT_TRUE(ofAlone[0].alternatives.empty());
  EXPECT_EQ(ofAlone[0].rank, 1);
  Sampler more = make({.logprobs = 9});
  ASSERT_EQ(pick(more, logits), 2);
  const std::vector<TokenLogprobs> ofMore = more.takeLogprobs();
  ASSERT_EQ(ofMore.size(), 1u);
  EXPECT_EQ(ofMore[0].alternatives.size(), 4u);
}

TEST(SamplerTest, TheDeviceSamplesWhatItKnows) {
  const SamplingOptions known[] = {
      {}, {.temperature = 1, .topK = 3, .topP = 0.5, .seed = 1}};
  for (const SamplingOptions &options : known)
    EXPECT_TRUE(make(options).samplesOnDevice());
  const SamplingOptions unknown[] = {{.minP = 0.1},
                                     {.repetitionPenalty = 1.1},
                                     {.frequencyPenalty = 0.1},
                                     {.presencePenalty = 0.1},
                                     {.logitBias = {{1, 1}}},
                                     {.minTokens = 1},
                                     {.logprobs = 0}};
  for (const SamplingOptions &options : unknown)
    EXPECT_FALSE(make(options).samplesOnDevice());
}

TEST(SamplerTest, NamesTheVocabularyThatABiasLeaves) {
  const absl::Status status =
      Sampler::create({.logitBias = {{7, 1}}}, {}, 7).status();
  EXPECT_EQ(exitCode(status), ExitCode::Usage);
  EXPECT_EQ(status.message(), "logit_bias: expected a token id below 7, got 7");
}

TEST(SamplerTest, TheSeedDecidesEveryDraw) {
  std::vector<float> logits;
  for (int i = 0; i < 500; ++i)
    logits.push_back(std::sin(static_cast<float>(i)));
  auto draws = [&](uint64_t seed) {
    Sampler sampler = make({.temperature = 1, .topP = 0.9, .seed = seed});
    std::vector<int32_t> ids;
    for (int i = 0; i < 50; ++i)
      ids.push_back(pick(sampler, logits));
    return ids;
  };
  EXPECT_EQ(draws(7), draws(7));
  EXPECT_NE(draws(7), draws(8));
}

TEST(SamplerTest, ASeedIsMadeAndReportedAndRepeatsTheDraws) {
  const std::vector<float> logits(100, 0.0f);
  Sampler made = make({.temperature = 1});
  Sampler again = make({.temperature = 1, .seed = made.seed()});
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(pick(made, logits), pick(again, logits));
}

TEST(SamplerTest, VeryColdAndVeryHotAreNoNumbersNowhere) {
  const std::vector<float> logits = {-1e30f, 3, 2, 1e30f, -1e30f};
  Sampler cold = make({.temperature = 1e-300, .seed = 1});
  EXPECT_EQ(pick(cold, logits), 3);
  Sampler hot = make({.temperature = 1e300, .seed = 1});
  EXPECT_EQ(shares(hot, logits, 2000).size(), 5u);
}

TEST(SamplerTest, ADrawForThePlanIsTheOneThatTheSamplerMakes) {
  const SamplingOptions options{
      .temperature = 0.7, .topK = 9, .topP = 0.8, .seed = 11};
  auto host = Sampler::create(options), plan = Sampler::create(options);
  ASSERT_TRUE(host.ok() && plan.ok());
  std::vector<float> logits(50);
  for (size_t id = 0; id < logits.size(); ++id)
    logits[id] = static_cast<float>(id * 7 % 50) / 10;
  for (int i = 0; i < 100; ++i) {
    const SamplingParams draw = plan->nextParams();
    EXPECT_EQ(draw.temperature, 0.7f);
    EXPECT_EQ(draw.topK, 9);
    EXPECT_EQ(draw.topP, 0.8f);
    EXPECT_EQ(plan->choose(logits, draw.noiseKey), pick(*host, logits));
  }
}

TEST(SamplerTest, ADrawForThePlanHoldsWhatFloatsHold) {
  auto draw = [](const SamplingOptions &options) {
    return Sampler::create(options)->nextParams();
  };
  EXPECT_EQ(draw({}).temperature, 0);
  // Neither turns into one that means something else.
  EXPECT_GT(draw({.temperature = 1e-300, .seed = 1}).temperature, 0);
  EXPECT_TRUE(std::isfinite(draw({.temperature = 1e300}).temperature));
  EXPECT_GT(draw({.temperature = 1, .topP = 1e-300}).topP, 0);
  EXPECT_EQ(draw({.temperature = 1, .topK = int64_t{1} << 40}).topK,
            std::numeric_limits<int32_t>::max());
}

TEST(SamplerTest, RefusesWhatIsNoParameter) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const SamplingOptions bad[] = {
      {.temperature = -0.1},
      {.temperature = nan},
      {.temperature = infinity},
      {.topK = -2},
      {.topP = 0},
      {.topP = -1},
      {.topP = 1.01},
      {.topP = nan},
      {.minP = -0.1},
      {.minP = 1.1},
      {.minP = nan},
      {.repetitionPenalty = 0},
      {.repetitionPenalty = nan},
      {.frequencyPenalty = 2.1},
      {.frequencyPenalty = nan},
      {.presencePenalty = -2.1},
      {.presencePenalty = nan},
      {.logitBias = {{-1, 1}}},
      {.logitBias = {{1, 100.5}}},
      {.logitBias = {{1, nan}}},
      {.logitBias = {{1, 1}, {1, 2}}},
      {.minTokens = -1},
      {.logprobs = -2},
      {.logprobs = mostLogprobs + 1},
  };
  for (const SamplingOptions &options : bad)
    EXPECT_EQ(exitCode(Sampler::create(options).status()), ExitCode::Usage);
}

// From the authors' programs (xoshiro256** seeded by splitmix64), state of
// splitmix64(0): e220a8397b1dcdaf 6e789e6aa1b965f4 06c45d188009454f
// f88bb8a8724c81ec.
TEST(RandomStreamTest, IsXoshiro) {
  RandomStream random(0);
  const uint64_t s1 = 0x6e789e6aa1b965f4;
  const uint64_t product = s1 * 5;
  EXPECT_EQ(random.next(), ((product << 7) | (product >> 57)) * 9);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double unit = random.nextUniform();
    ASSERT_GE(unit, 0);
    ASSERT_LT(unit, 1);
    sum += unit;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

} // namespace
} // namespace llamac
