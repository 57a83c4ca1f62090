//===- SassRules.cpp - What kernels' machine code keeps to ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/codegen/cuda/SassRules.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdlib>
#include <regex>

namespace llamac {

namespace {
/// What the machine code of some kernels has: those whose name begins with
/// `name` and whose source has `text`.
struct Family {
  const char *name;
  const char *text;
  const char *product; ///< What multiplies, in a loop; null: any.
  const char *copies;  ///< How weights, or keys and values, come.
  const char *ahead;   ///< Asks L2 for what comes later, from sm_90 on.
};

/// The most instructions for each weight that a lane multiplies, in products of
/// up to `rows` rows.
struct Bound {
  const char *format;
  int rows;
  double most;
};
} // namespace

// Each rule whose kernels these are.
static constexpr Family families[] = {
    {"gemm_wgmma_", "", "HGMMA", "UTMALDG", nullptr},
    {"qkv_wgmma_", "", "HGMMA", "UTMALDG", nullptr},
    {"gemm_attention", "", "HMMA", "LDGSTS", nullptr},
    {"gemm_feed_forward", "", "HMMA", "LDGSTS", nullptr},
    {"gemv_mma_", "", "HMMA", "LDG", nullptr},
    {"qkv_gemv_mma_", "", "HMMA", "LDG", nullptr},
    {"", "WeightStream<config>", nullptr, "UBLKCP", "UBLKPF"},
    {"attention_split_", "", "HMMA", "LDGSTS", "UBLKPF"},
    {"attention_n", "attentionWgmma<", "HGMMA", "UTMALDG", nullptr},
};

// Of f32 sums 1 + 1 / rows instructions for each weight and row multiply. What
// else a loop has is a step's share of waits and copies.
static constexpr Bound bounds[] = {
    {"bf16", 1, 3.8}, {"bf16", 2, 4.8}, {"bf16", 4, 6.3}, {"bf16", 16, 5.4},
    {"q4_0", 1, 3.3}, {"q4_0", 2, 3.5}, {"q4_0", 4, 7.9}, {"q4_0", 16, 6.7},
};

static int rowsOf(const std::string &source) {
  static const std::regex rows(R"(\.maxRows = (\d+))");
  std::smatch match;
  return std::regex_search(source, match, rows)
             ? std::atoi(match[1].str().c_str())
             : 0;
}

double instructionsPerWeight(const std::string &kernel,
                             const std::string &source, const Sass &sass) {
  const int maxRows = rowsOf(source);
  if (!absl::StrContains(kernel, "gemv") || maxRows == 0)
    return 0;
  // An m16n8k16 takes 256 weights, for each 8 rows of input.
  const bool isMma = sass.count("HMMA") > 0;
  const double weights = isMma ? 8.0 / std::max(1, maxRows / 8) : 1.0 / maxRows;
  const char *product = isMma ? "HMMA" : "FFMA";
  const SassLoop *loop = sass.loopOf(product);
  return loop ? static_cast<double>(loop->size()) /
                    (static_cast<double>(sass.count(product, *loop)) * weights)
              : 0;
}

std::string brokenSassRules(const std::string &kernel,
                            const std::string &source, const Sass &sass) {
  std::string broken;
  for (const char *local : {"LDL", "STL"})
    if (const size_t count = sass.count(local))
      absl::StrAppend(&broken, count, " ", local, ": local memory\n");
  for (const SassLoop &loop : sass.loops)
    for (size_t i : loop)
      if (const SassInstruction &at = sass.instructions[i];
          at.is("MEMBAR") && !absl::StrContains(at.opcode, "CTA"))
        absl::StrAppend(&broken, at.opcode, " in a loop\n");
  if (sass.count("ACQBULK") > 0)
    for (const SassInstruction *at : sass.before("ACQBULK"))
      for (const char *access : {"LD", "LDG", "LDGSTS", "ST", "STG", "ATOM",
                                 "ATOMG", "RED", "UTMASTG"})
        if (at->is(access))
          absl::StrAppend(&broken, at->opcode,
                          " before the wait for earlier launches\n");
  for (const Family &family : families) {
    if (!absl::StartsWith(kernel, family.name) ||
        !absl::StrContains(source, family.text))
      continue;
    if (family.product && !sass.loopOf(family.product))
      absl::StrAppend(&broken, "no ", family.product, " in a loop\n");
    if (!sass.count(family.copies))
      absl::StrAppend(&broken, "no ", family.copies, "\n");
    // Kernels wait from sm_90 on.
    if (family.ahead && sass.count("ACQBULK") && !sass.count(family.ahead))
      absl::StrAppend(&broken, "no ", family.ahead, ": asks nothing ahead\n");
  }
  const double perWeight = instructionsPerWeight(kernel, source, sass);
  for (const Bound &bound : bounds)
    if (absl::StrContains(kernel, absl::StrCat("_", bound.format)) &&
        rowsOf(source) == bound.rows && perWeight > bound.most)
      absl::StrAppend(&broken, perWeight,
                      " instructions a weight, expected at most ", bound.most,
                      "\n");
  return broken;
}

} // namespace llamac
