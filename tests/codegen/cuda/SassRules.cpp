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

#include <cstdlib>
#include <regex>

namespace llamac {

namespace {
/// What a family has, and has not.
struct Family {
  const char *prefix;
  const char *product;          ///< What multiplies, in a loop; null: nothing.
  const char *copies = nullptr; ///< How its operands come.
  /// Most instructions in the loop for each product of a warpgroup.
  double mostForEach = 0;
};

/// Most instructions for each weight that a lane multiplies.
struct Bound {
  const char *format;
  int rows;
  const char *product;
  double most;
};
} // namespace

// A kernel is of the first family whose prefix its name has.
static constexpr Family families[] = {
    {"gemm_wgmma_", "HGMMA", "UTMALDG", 40},
    {"qkv_wgmma_", "HGMMA", "UTMALDG", 70},
    {"attention_split_", "HMMA"},
};

static constexpr Bound bounds[] = {
    {"bf16", 1, "FFMA", 3.4},
};

double instructionsPerWeight(const std::string &kernel,
                             const std::string &source, const Sass &sass) {
  static const std::regex rows(R"(\.maxRows = (\d+))");
  std::smatch match;
  if (!absl::StrContains(kernel, "gemv") ||
      !std::regex_search(source, match, rows))
    return 0;
  const int maxRows = std::atoi(match[1].str().c_str());
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
  return broken;
}

} // namespace llamac
