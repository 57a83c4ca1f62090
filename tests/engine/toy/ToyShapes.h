//===- ToyShapes.h - Sizes and formulas of the toy model --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled by the toy kernels, which are freestanding, and by the tests that
// say what the kernels must give.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_ENGINE_TOY_TOYSHAPES_H
#define LLAMAC_TESTS_ENGINE_TOY_TOYSHAPES_H

namespace llamac::toy {

constexpr int vocab = 96;
constexpr int dim = 8; // One head of 8.
constexpr int context = 30;
constexpr int pageTokens = 4;
constexpr int pagesPerSequence = 8; // ceil(30 / 4)
constexpr int pageBytes = 128;
constexpr int maxSequences = 3;
constexpr int logitsBlock = 8;
/// The window of the second layer, where it has one, and the pages of its ring:
/// just enough for steps of 8 rows.
constexpr int window = 5;
constexpr int ringPages = 4;

/// The layers' embeddings: what they keep of a token.
constexpr unsigned embed(int layer, int token) {
  return layer == 0 ? token + 1 : 3 * token + 7;
}

constexpr unsigned hashStart = 2166136261u;
constexpr unsigned mixHash(unsigned hash, unsigned value) {
  return (hash ^ value) * 16777619u;
}

/// A sequence whose hash is a multiple of this gives a logit of NaN.
constexpr unsigned poison = 61;

/// Logits fall from 0 at id hash % (vocab - 1) on; the last id's says which
/// program ran.
inline float logitOf(unsigned hash, int id, float program) {
  if (id == vocab - 1)
    return -100 - program;
  if (id == 3 && hash % poison == 0)
    return __builtin_nanf("");
  const int ids = vocab - 1;
  const int target = static_cast<int>(hash % ids);
  return -0.25f * static_cast<float>((id - target + ids) % ids);
}

/// The token that a plan that samples draws with a temperature.
constexpr int drawnToken(unsigned noiseKey, int topK) {
  return 2 + static_cast<int>((noiseKey >> 8 ^ static_cast<unsigned>(topK)) %
                              (vocab - 3));
}

} // namespace llamac::toy

#endif // LLAMAC_TESTS_ENGINE_TOY_TOYSHAPES_H
