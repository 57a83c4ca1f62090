//===- WrapperCases.h - What each PTX wrapper should do ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_WRAPPERS_WRAPPERCASES_H
#define LLAMAC_TESTS_CONFORMANCE_WRAPPERS_WRAPPERCASES_H

#include "tests/conformance/wrappers/SourceDevice.h"

namespace llamac::conformance {

/// The contents of `in`.
enum class Input {
  Bits,      ///< Any words.
  Floats,    ///< Floats of every size, with infinities, zeros and a NaN.
  Positive,  ///< Floats from 2^-20 to 2^20.
  Bf16Pairs, ///< Small numbers, two a word.
  HalfPairs,
};

/// How a result may differ.
enum class Match {
  Exact, ///< Whatever moves or selects bits, or rounds once.
  Half2, ///< Two halves, exact; a NaN may have either sign.
  Float, ///< Floats within 1e-6 of the value: approximations on a GPU, which
         ///< give 0 for what is below 2^-126; NaN matches NaN.
  Sum,   ///< Floats within 1e-5, or above 1 within 1e-5 of the value: sums of
         ///< products in any order, and logarithms.
};

/// A kernel of Wrappers.cu and what it should give.
struct WrapperCase {
  std::string kernel;
  Input input;
  Match match;
  Words (*expected)(const Words &in);
  uint32_t threads = 32;
  std::optional<MapBox> map = {};
  uint32_t cluster = 1; ///< And blocks.
};

const std::vector<WrapperCase> &wrapperCases();

/// The 1,024 words that a case is given.
Words makeInput(Input kind);

bool matches(uint32_t got, uint32_t expected, Match match);

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_WRAPPERS_WRAPPERCASES_H
