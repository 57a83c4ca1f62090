//===- CandidatesTest.cpp - What there is to choose from ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Candidates.h"

#include <gtest/gtest.h>

namespace llamac {
namespace {

TEST(CandidatesTest, TilesAreApartByThoseThatDiffer) {
  EXPECT_EQ(tilesApart("", ""), 0U);
  EXPECT_EQ(tilesApart("a=1 b=2", "a=1 b=2"), 0U);
  EXPECT_EQ(tilesApart("a=1 b=2", "a=1 b=3"), 1U);
  EXPECT_EQ(tilesApart("a=1 b=2", "a=2 b=3"), 2U);
}

TEST(CandidatesTest, TilesThatAreNotNamedAreThePlansOwn) {
  EXPECT_EQ(tilesApart("", "a=1"), 1U);
  EXPECT_EQ(tilesApart("a=1", "a=1 b=2"), 1U);
  EXPECT_EQ(tilesApart("a=1", "b=2"), 2U);
}

} // namespace
} // namespace llamac
