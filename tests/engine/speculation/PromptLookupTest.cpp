//===- PromptLookupTest.cpp - Tests of prompt look-up ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/speculation/PromptLookup.h"

#include "gtest/gtest.h"

#include <random>

using namespace llamac;

static PromptLookup lookupOf(const std::vector<int32_t> &tokens,
                             bool areOfAnswer = false) {
  PromptLookup lookup;
  for (const int32_t token : tokens)
    lookup.append(token, areOfAnswer);
  return lookup;
}

/// The length of the longest end of `tokens` that was there before, by
/// comparison with every place.
static int64_t longestMatch(const std::vector<int32_t> &tokens) {
  int64_t longest = 0;
  for (auto end = std::ssize(tokens) - 2; end >= 0; --end) {
    int64_t length = 0;
    while (length <= end &&
           tokens[end - length] == tokens[tokens.size() - 1 - length])
      ++length;
    longest = std::max(longest, length);
  }
  return longest;
}

/// Whether `next` follows one of the places where the longest match ends.
static bool followsAMatch(const std::vector<int32_t> &tokens, int64_t length,
                          const std::vector<int32_t> &next) {
  for (auto end = std::ssize(tokens) - 2; end >= length - 1; --end) {
    if (!std::equal(tokens.begin() + (end + 1 - length),
                    tokens.begin() + (end + 1), tokens.end() - length))
      continue;
    std::vector<int32_t> longer(tokens.begin() + end + 1, tokens.end());
    // Past the end a text repeats itself.
    while (longer.size() < next.size())
      longer.push_back(longer[longer.size() - (tokens.size() - end - 1)]);
    longer.resize(next.size());
    if (longer == next)
      return true;
  }
  return false;
}

TEST(PromptLookupTest, DraftsWhatFollowedTheLongestMatch) {
  EXPECT_TRUE(PromptLookup().draft(4).tokens.empty());
  EXPECT_TRUE(lookupOf({1, 2, 3}).draft(4).tokens.empty());
  EXPECT_EQ(lookupOf({1, 2, 3, 9, 2, 4, 1, 2}).draft(3).tokens,
            (std::vector<int32_t>{3, 9, 2}));
  EXPECT_EQ(lookupOf({1, 2, 3, 9, 2, 4, 9, 2}).draft(2).tokens,
            (std::vector<int32_t>{4, 9}));
  EXPECT_TRUE(lookupOf({5, 5}).draft(0).tokens.empty());
}

TEST(PromptLookupTest, ATextThatRepeatsItsEndGoesOn) {
  EXPECT_EQ(lookupOf({7, 7}).draft(5).tokens,
            (std::vector<int32_t>{7, 7, 7, 7, 7}));
  EXPECT_EQ(lookupOf({9, 1, 2, 3, 1, 2, 3, 1}).draft(7).tokens,
            (std::vector<int32_t>{2, 3, 1, 2, 3, 1, 2}));
}

TEST(PromptLookupTest, DraftsAreThoseThatAScanFinds) {
  std::mt19937 random(5);
  for (int text = 0; text < 300; ++text) {
    const int vocab = 1 + static_cast<int>(random() % 6);
    std::vector<int32_t> tokens;
    PromptLookup lookup;
    for (int i = 0; i < 60; ++i) {
      // Pieces of what is there, and new tokens.
      if (tokens.size() > 4 && random() % 3 == 0) {
        const size_t from = random() % (tokens.size() - 3);
        for (size_t k = 0; k < 3; ++k) {
          tokens.push_back(tokens[from + k]);
          lookup.append(tokens.back(), k % 2 == 0);
        }
      } else {
        tokens.push_back(static_cast<int32_t>(random() % vocab));
        lookup.append(tokens.back(), random() % 2 == 0);
      }
      const int64_t length = longestMatch(tokens);
      const Draft draft = lookup.draft(6);
      ASSERT_EQ(draft.tokens.size(), length > 0 ? 6u : 0u);
      ASSERT_EQ(draft.survival.size(), draft.tokens.size());
      ASSERT_TRUE(length == 0 || followsAMatch(tokens, length, draft.tokens))
          << "text " << text << " of " << tokens.size() << " tokens";
    }
  }
}

TEST(PromptLookupTest, SurvivalIsWhatAnswersShow) {
  std::vector<int32_t> phrase;
  for (int32_t token = 0; token < 20; ++token)
    phrase.push_back(token);
  PromptLookup right = lookupOf(phrase), wrong = lookupOf(phrase);
  const auto survivalOf = [&](PromptLookup lookup) {
    for (int32_t token = 0; token < 3; ++token)
      lookup.append(token, /*isOfAnswer=*/false);
    return lookup.draft(4).survival;
  };
  const std::vector<double> before = survivalOf(right);
  EXPECT_TRUE(std::ranges::is_sorted(before, std::ranges::greater()));
  for (int round = 0; round < 10; ++round)
    for (int32_t token = 0; token < 20; ++token) {
      right.append(token, /*isOfAnswer=*/true);
      // Ends that were there before, which something new follows.
      wrong.append(token % 4 < 3 ? token : 100 + 20 * round + token,
                   /*isOfAnswer=*/true);
    }
  EXPECT_GT(survivalOf(right)[1], 0.9);
  EXPECT_LT(survivalOf(wrong)[1], 0.3);
}

TEST(PromptLookupTest, ALongTextTakesTimeInProportion) {
  // Each token of a scan would look at all before it: some 10^10 in all.
  PromptLookup lookup;
  for (int32_t i = 0; i < 200000; ++i)
    lookup.append(i % 1000 < 500 ? 7 : i % 13, /*isOfAnswer=*/true);
  EXPECT_EQ(lookup.size(), 200000);
  EXPECT_EQ(lookup.draft(16).tokens.size(), 16u);
}
