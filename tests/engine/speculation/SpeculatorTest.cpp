//===- SpeculatorTest.cpp - Tests of the drafts of a step -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/speculation/Speculator.h"

#include "gtest/gtest.h"

using namespace llamac;

namespace {

using Tokens = std::vector<int32_t>;

/// An answer that goes on as its prompt began: 3, 4, 5 and so on.
class SpeculatorTest : public testing::Test {
protected:
  DraftedAnswer answer(int asked, int64_t most = 100) {
    return {&drafts, tokens, promptTokens, nullptr, stopIds, asked, most};
  }

  Tokens draft(int asked, int64_t most = 100, int64_t mostRows = 100) {
    return speculator.draft({answer(asked, most)}, /*rows=*/1, mostRows)[0];
  }

  Speculator speculator{nullptr};
  AnswerDrafts drafts;
  Tokens tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2};
  int64_t promptTokens = 9;
  Tokens stopIds;
};

} // namespace

TEST_F(SpeculatorTest, ANumberIsDraftedWhereverSomethingRepeats) {
  EXPECT_EQ(draft(4), (Tokens{3, 4, 5, 6}));
  tokens.push_back(0);
  EXPECT_EQ(draft(4), Tokens());
}

TEST_F(SpeculatorTest, DraftsEndWithTheAnswerTheStepAndStopIds) {
  EXPECT_EQ(draft(8, /*most=*/2), (Tokens{3, 4}));
  EXPECT_EQ(draft(8, /*most=*/-1), Tokens());
  EXPECT_EQ(draft(8, /*most=*/100, /*mostRows=*/4), (Tokens{3, 4, 5}));
  stopIds = {6};
  EXPECT_EQ(draft(8), (Tokens{3, 4, 5}));
}

TEST_F(SpeculatorTest, AStepWithoutRoomWantsNoDraft) {
  EXPECT_TRUE(speculator.wantsDraft(answer(8), /*rows=*/1, /*mostRows=*/2));
  EXPECT_FALSE(speculator.wantsDraft(answer(8), /*rows=*/1, /*mostRows=*/1));
  EXPECT_EQ(draft(8, /*most=*/100, /*mostRows=*/1), Tokens());
}

TEST_F(SpeculatorTest, OnlyThoseThatPayNeedCosts) {
  for (const int asked : {-2, 0, 1, 16})
    EXPECT_FALSE(speculator.needsCosts(asked));
  EXPECT_TRUE(speculator.needsCosts(-1));
}

TEST_F(SpeculatorTest, WithoutADraftModelOnlyThoseThatAskHaveDrafts) {
  EXPECT_FALSE(speculator.isOn(-2));
  EXPECT_FALSE(speculator.isOn(0));
  EXPECT_TRUE(speculator.isOn(-1));
  EXPECT_TRUE(speculator.isOn(1));
}

TEST_F(SpeculatorTest, WhatPaysWaitsForWhatAStepCosts) {
  EXPECT_TRUE(speculator.needsCostOf(1));
  EXPECT_EQ(draft(-1), Tokens());
  EXPECT_FALSE(speculator.wantsDraft(answer(-1), 1, 100));
  for (int64_t rows = 1; rows <= 17; ++rows)
    speculator.recordStep(rows, 1 + 0.001 * static_cast<double>(rows));
  EXPECT_FALSE(speculator.needsCostOf(1));
  EXPECT_TRUE(speculator.wantsDraft(answer(-1), 1, 100));
  EXPECT_FALSE(draft(-1).empty());
  for (int step = 0; step < 100; ++step)
    for (int64_t rows = 2; rows <= 17; ++rows)
      speculator.recordStep(rows, 20);
  speculator.recordStep(1, 1);
  EXPECT_EQ(draft(-1), Tokens());
}

TEST_F(SpeculatorTest, RowsThatRequestsSayComeBeforeThoseThatPay) {
  AnswerDrafts others;
  DraftedAnswer paying = answer(-1);
  paying.drafts = &others;
  for (int64_t rows = 1; rows <= 17; ++rows)
    speculator.recordStep(rows, 1);
  const auto found = speculator.draft({paying, answer(5)}, 2, /*mostRows=*/9);
  EXPECT_EQ(found[0].size(), 2u);
  EXPECT_EQ(found[1].size(), 5u);
}
