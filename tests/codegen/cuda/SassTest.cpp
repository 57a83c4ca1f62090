//===- SassTest.cpp - Reading machine code --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/codegen/cuda/SassRules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llamac {
namespace {

using testing::HasSubstr;

/// A kernel with a copy before its wait, a loop within a loop, a slow path
/// behind the end that branches back, and padding.
constexpr const char *kernel = R"(
	.section	.text.kernel,"ax",@progbits
.text.kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   UBLKCP.S.G [UR8], [UR6], UR4 ;
        /*0020*/                   ACQBULK ;
.L_x_0:
        /*0030*/                   LDG.E.128 R8, desc[UR8][R16.64] ;
.L_x_1:
        /*0040*/                   FFMA R1, R2, R3, R1 ;
        /*0050*/                   FFMA R4, R2, R3, R4 ;
        /*0060*/              @!P0 BRA `(.L_x_3) ;
.L_x_2:
        /*0070*/               @P1 BRA `(.L_x_1) ;
        /*0080*/                   FADD R1, R1, R4 ;
        /*0090*/               @P2 BRA `(.L_x_0) ;
        /*00a0*/                   MEMBAR.ALL.GPU ;
        /*00b0*/                   EXIT ;
.L_x_3:
        /*00c0*/                   YIELD ;
        /*00d0*/                   BRA `(.L_x_2) ;
.L_x_4:
        /*00e0*/                   BRA `(.L_x_4);
        /*00f0*/                   NOP;
)";

TEST(SassTest, ReadsInstructionsAndLoops) {
  const Sass sass = parseSass(kernel);
  ASSERT_EQ(sass.instructions.size(), 16u);
  EXPECT_EQ(sass.instructions[3].opcode, "LDG.E.128");
  EXPECT_TRUE(sass.instructions[6].isPredicated);
  EXPECT_EQ(sass.instructions[6].target, 12u);
  EXPECT_EQ(sass.count("FFMA"), 2u);
  // The slow path is of the loop that it returns to; what is behind is not.
  ASSERT_EQ(sass.loops.size(), 2u);
  EXPECT_EQ(sass.loops[0], (SassLoop{4, 5, 6, 7, 12, 13}));
  EXPECT_EQ(sass.loops[1], (SassLoop{3, 4, 5, 6, 7, 8, 9, 12, 13}));
  ASSERT_NE(sass.loopOf("FFMA"), nullptr);
  EXPECT_EQ(*sass.loopOf("FFMA"), sass.loops[0]);
  EXPECT_EQ(sass.loopOf("HMMA"), nullptr);
  EXPECT_EQ(sass.before("ACQBULK").size(), 2u);
}

TEST(SassTest, ACallOfALabelIsABranch) {
  std::string text = kernel;
  const std::string from = "@P2 BRA `(.L_x_0) ;";
  text.replace(text.find(from), from.size(), "@P2 CALL.REL.NOINC `(.L_x_0) ;");
  EXPECT_EQ(parseSass(text).loops, parseSass(kernel).loops);
}

/// `text` with `from` replaced by `to`, judged.
std::string judged(const std::string &from, const std::string &to) {
  std::string text = kernel;
  text.replace(text.find(from), from.size(), to);
  return brokenSassRules("other", "", parseSass(text));
}

TEST(SassTest, RulesFindWhatBreaksThem) {
  EXPECT_EQ(brokenSassRules("other", "", parseSass(kernel)), "");
  EXPECT_THAT(judged("UBLKCP.S.G [UR8]", "LDG.E R2, [R8]"),
              HasSubstr("LDG.E before the wait"));
  EXPECT_THAT(judged("FADD R1, R1, R4", "MEMBAR.ALL.GPU"),
              HasSubstr("MEMBAR.ALL.GPU in a loop"));
  EXPECT_EQ(judged("FADD R1, R1, R4", "MEMBAR.ALL.CTA"), "");
  // Behind a whole product on tensor cores, not within it.
  std::string split = kernel;
  split.replace(split.find("FFMA R4, R2, R3, R4"), 19, "HMMA R4, R2, R3, R4");
  split.replace(split.find("FADD R1, R1, R4"), 15, "MEMBAR.ALL.GPU");
  EXPECT_EQ(brokenSassRules("other", "", parseSass(split)), "");
  split.replace(split.find("FFMA R1, R2, R3, R1"), 19, "MEMBAR.ALL.GPU");
  EXPECT_THAT(brokenSassRules("other", "", parseSass(split)),
              HasSubstr("MEMBAR.ALL.GPU in a loop"));
  EXPECT_THAT(judged("FADD R1, R1, R4", "STL [R1], R4"),
              HasSubstr("1 STL: local memory"));
  EXPECT_EQ(brokenSassRules("gemm_wgmma_x", "", parseSass(kernel)),
            "no HGMMA in a loop\nno UTMALDG\n");
  EXPECT_EQ(brokenSassRules("x", "WeightStream<config> s", parseSass(kernel)),
            "no UBLKPF: asks nothing ahead\n");
}

TEST(SassTest, TheSoftmaxRunsBesideProducts) {
  std::string beside = "/*0000*/ WARPGROUP.DEPBAR.LE gsb0, 0x1 ;\n";
  for (int i = 0; i < 32; ++i)
    beside += "/*0010*/ MUFU.EX2 R1, R1 ;\n";
  const std::string wait = "/*0020*/ WARPGROUP.DEPBAR.LE gsb0, 0x0 ;\n";
  const std::string source = "attentionWgmma<config>(";
  EXPECT_EQ(brokenSassRules("x", source, parseSass(beside + wait)), "");
  EXPECT_THAT(
      brokenSassRules(
          "x", source,
          parseSass(beside + "/*0010*/ HGMMA.64x64x16.F32 R1, R1 ;\n" + wait)),
      HasSubstr("0 exponentials of a tile run beside products"));
}

TEST(SassTest, InstructionsAreCountedForEachWeight) {
  // Six in the loop for two products of one row, one weight each, or of two.
  const Sass sass = parseSass(kernel);
  EXPECT_EQ(instructionsPerWeight("gemv_x_bf16", ".maxRows = 1", sass), 3);
  EXPECT_EQ(instructionsPerWeight("gemv_x_bf16_m2", ".maxRows = 2", sass), 6);
  EXPECT_EQ(instructionsPerWeight("gemm_x_bf16", ".maxRows = 1", sass), 0);
  EXPECT_THAT(brokenSassRules("gemv_x_bf16_m2", ".maxRows = 2", sass),
              HasSubstr("6 instructions a weight, expected at most 4.5"));
  EXPECT_EQ(
      brokenSassRules("gemv_x_bf16_m2", ".depth = 576, .maxRows = 2", sass),
      "");
}

} // namespace
} // namespace llamac
