//===- SassRules.cpp - What kernels' machine code keeps to ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/codegen/cuda/SassRules.h"

#include "tests/codegen/cuda/EmittedModel.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>

namespace llamac {

namespace {
/// Instructions that the machine code of some kernels has: kernels whose name
/// begins with `name` and whose source has `text`.
struct Family {
  const char *name;
  const char *text;
  const char *product; ///< The instruction that multiplies, in a loop; null:
                       ///< any.
  const char *copies;  ///< How weights, or keys and values, come.
  const char *ahead;   ///< Asks L2 for what comes later, from sm_90 on.
};

/// How a product of few rows reads and multiplies.
enum class Walk {
  Lanes,        ///< gemv: loads, FFMA.
  Mma,          ///< gemm: asynchronous copies, HMMA.
  Stream,       ///< Bulk copies, FFMA.
  HalvesStream, ///< Bulk copies, HMMA.
};

/// The most instructions for each weight that a lane multiplies, in products of
/// up to `rows` rows.
struct Bound {
  Walk walk;
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
    {"qkv_gemm_attention", "", "HMMA", "LDGSTS", nullptr},
    {"", "WeightStream<config>", nullptr, "UBLKCP", "UBLKPF"},
    {"attention_split_", "", "HMMA", "LDGSTS", "UBLKPF"},
    {"attention_n", "attentionWgmma<", "HGMMA", "UTMALDG", nullptr},
};

// An FFMA for each weight and row; what else a loop has unpacks the weights or
// is a step's share of waits and copies. The bounds are what 1B, 8B and 70B
// take on the six GPUs, and a twentieth.
static constexpr Bound bounds[] = {
    {Walk::Lanes, "bf16", 1, 2.7},
    {Walk::Lanes, "bf16", 2, 4.5},
    {Walk::Lanes, "bf16", 4, 7.6},
    {Walk::Lanes, "q8_0", 1, 4.1},
    {Walk::Lanes, "q8_0", 2, 5.3},
    {Walk::Lanes, "q8_0", 4, 8.5},
    {Walk::Lanes, "q4_0", 1, 4.8},
    {Walk::Lanes, "q4_0", 2, 6.0},
    {Walk::Lanes, "q4_0", 4, 8.6},
    {Walk::Lanes, "mxfp8", 1, 5.9},
    {Walk::Lanes, "mxfp8", 2, 7.2},
    {Walk::Lanes, "mxfp8", 4, 9.8},
    {Walk::Lanes, "fp8", 1, 5.9},
    {Walk::Lanes, "fp8", 2, 7.2},
    {Walk::Lanes, "fp8", 4, 9.8},
    {Walk::Mma, "bf16", 16, 1.95},
    {Walk::Mma, "bf16", 64, 3.35},
    {Walk::Mma, "q8_0", 16, 5.5},
    {Walk::Mma, "q8_0", 64, 6.8},
    {Walk::Mma, "q4_0", 16, 4.9},
    {Walk::Mma, "q4_0", 64, 6.3},
    {Walk::Mma, "mxfp8", 16, 7.3},
    {Walk::Mma, "mxfp8", 64, 8.8},
    {Walk::Mma, "fp8", 16, 7.3},
    {Walk::Mma, "fp8", 64, 8.8},
    {Walk::Stream, "bf16", 1, 3.9},
    {Walk::HalvesStream, "q8_0", 1, 3.5},
    {Walk::HalvesStream, "q8_0", 2, 2.8},
    {Walk::HalvesStream, "q8_0", 4, 3.0},
    {Walk::HalvesStream, "q4_0", 1, 3.3},
    {Walk::HalvesStream, "q4_0", 2, 3.6},
    {Walk::HalvesStream, "q4_0", 4, 3.8},
    {Walk::HalvesStream, "mxfp8", 1, 3.5},
    {Walk::HalvesStream, "mxfp8", 2, 3.5},
    {Walk::HalvesStream, "mxfp8", 4, 3.5},
    {Walk::HalvesStream, "fp8", 1, 3.5},
    {Walk::HalvesStream, "fp8", 2, 3.5},
    {Walk::HalvesStream, "fp8", 4, 3.5},
};

/// Rows of a multiple of this are whole steps of a loop; others spend as much
/// on their ends as on weights.
static constexpr int boundedDepth = 2048;

/// The first `.name = N` of a kernel's config; 0 where there is none.
static int sizeOf(const std::string &source, const char *name) {
  return numberIn(source, absl::StrCat(R"(\.)", name, R"( = (\d+))"));
}

/// The rows of input that a warp multiplies weights by; 0 where the kernel is
/// no product of few rows, or of tiles of more of them.
static int rowsOf(const std::string &kernel, const std::string &source) {
  if (absl::StrContains(kernel, "gemv"))
    return sizeOf(source, "maxRows");
  const int rows = sizeOf(source, "tileRows");
  return rows / std::max(1, sizeOf(source, "warpsAlongRows"));
}

static Walk walkOf(const std::string &source, const Sass &sass) {
  const bool isMma = sass.count("HMMA") > 0;
  if (absl::StrContains(source, "WeightStream<config>"))
    return isMma ? Walk::HalvesStream : Walk::Stream;
  return isMma ? Walk::Mma : Walk::Lanes;
}

double instructionsPerWeight(const std::string &kernel,
                             const std::string &source, const Sass &sass) {
  const int rows = rowsOf(kernel, source);
  if (rows == 0)
    return 0;
  // An m16n8k16 takes 256 weights, for each 8 rows of input.
  const bool isMma = sass.count("HMMA") > 0;
  const double weights = isMma ? 8.0 / std::max(1, rows / 8) : 1.0 / rows;
  const char *product = isMma ? "HMMA" : "FFMA";
  const SassLoop *loop = sass.loopOf(product);
  return loop ? static_cast<double>(loop->size()) /
                    (static_cast<double>(sass.count(product, *loop)) * weights)
              : 0;
}

/// Whether `loop` runs a whole product on tensor cores in a loop of its own, of
/// which instruction `at` is none: one of many splits, say, after which a block
/// says that it is done.
static bool isBesideProduct(const Sass &sass, const SassLoop &loop, size_t at) {
  const auto has = [](const SassLoop &in, size_t i) {
    return std::find(in.begin(), in.end(), i) != in.end();
  };
  return std::any_of(sass.loops.begin(), sass.loops.end(),
                     [&](const SassLoop &inner) {
                       return inner.size() < loop.size() &&
                              has(loop, inner.front()) && !has(inner, at) &&
                              std::any_of(
                                  inner.begin(), inner.end(),
                                  [&](size_t i) {
                                    return sass.instructions[i].is("HMMA") ||
                                           sass.instructions[i].is("HGMMA");
                                  });
                     });
}

/// The most exponentials that run between two waits for products, while those
/// that the second waits for are under way.
static int exponentialsBesideProducts(const Sass &sass) {
  int most = 0, sinceWait = -1;
  for (const SassInstruction &at : sass.instructions) {
    if (at.is("WARPGROUP.DEPBAR")) {
      most = std::max(most, sinceWait);
      sinceWait = 0;
    } else if (at.is("HGMMA")) {
      sinceWait = -1;
    } else if (at.is("MUFU.EX2") && sinceWait >= 0) {
      ++sinceWait;
    }
  }
  return most;
}

/// Whether an instruction orders accesses for the whole GPU.
static bool ordersGpu(const SassInstruction &at) {
  return at.is("MEMBAR") && !absl::StrContains(at.opcode, "CTA");
}

/// A resident step orders them where it ends, behind all products and
/// attention: in no loop over layers or depth. Its loops have too many ways out
/// to be told apart, so this goes by where instructions stand.
static std::string ordersAheadOfProducts(const Sass &sass) {
  size_t first = sass.instructions.size(), last = 0;
  for (size_t i = 0; i < sass.instructions.size(); ++i) {
    const SassInstruction &at = sass.instructions[i];
    if (ordersGpu(at))
      first = std::min(first, i);
    if (at.is("UBLKCP") || at.is("HMMA"))
      last = i;
  }
  return first < last ? "MEMBAR ahead of a product or attention\n" : "";
}

std::string brokenSassRules(const std::string &kernel,
                            const std::string &source, const Sass &sass) {
  std::string broken;
  for (const char *local : {"LDL", "STL"})
    if (const size_t count = sass.count(local))
      absl::StrAppend(&broken, count, " ", local, ": local memory\n");
  if (absl::StartsWith(kernel, "resident"))
    return broken + ordersAheadOfProducts(sass);
  for (const SassLoop &loop : sass.loops)
    for (size_t i : loop)
      if (const SassInstruction &at = sass.instructions[i];
          ordersGpu(at) && !isBesideProduct(sass, loop, i))
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
    // Where each split of a depth has one slice there is no loop over it.
    const bool isOneSlice =
        sizeOf(source, "splits") > 1 &&
        sizeOf(source, "splits") == (sizeOf(source, "depth") + 63) / 64;
    if (family.product && !isOneSlice && !sass.loopOf(family.product))
      absl::StrAppend(&broken, "no ", family.product, " in a loop\n");
    if (!sass.count(family.copies))
      absl::StrAppend(&broken, "no ", family.copies, "\n");
    // Kernels wait from sm_90 on.
    if (family.ahead && sass.count("ACQBULK") && !sass.count(family.ahead))
      absl::StrAppend(&broken, "no ", family.ahead, ": asks nothing ahead\n");
  }
  // A lane has 32 scores of a tile of 64 x 64.
  if (absl::StrContains(source, "attentionWgmma<") &&
      !absl::StrContains(source, "ExpKind::Poly3"))
    if (const int beside = exponentialsBesideProducts(sass); beside < 32)
      absl::StrAppend(&broken, beside,
                      " exponentials of a tile run beside products, expected "
                      "32\n");
  const double perWeight = instructionsPerWeight(kernel, source, sass);
  for (const Bound &bound : bounds)
    if (bound.walk == walkOf(source, sass) &&
        absl::StrContains(kernel, absl::StrCat("_", bound.format)) &&
        rowsOf(kernel, source) == bound.rows &&
        sizeOf(source, "depth") % boundedDepth == 0 && perWeight > bound.most)
      absl::StrAppend(&broken, perWeight,
                      " instructions a weight, expected at most ", bound.most,
                      "\n");
  return broken;
}

} // namespace llamac
