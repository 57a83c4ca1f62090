//===- Tier.h - Which tests run ---------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests run in two tiers: the default one has every mechanism once, the
// exhaustive one (scripts/test.sh --exhaustive) every combination. A binary
// chooses its parameters by isExhaustive(), which ctest says as CMake's
// LLAMAC_EXHAUSTIVE_TESTS was when the tests were configured.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_TIER_H
#define LLAMAC_TESTS_TIER_H

#include <cstdlib>
#include <string_view>

namespace llamac {

inline bool isExhaustive() {
  const char *value = std::getenv("LLAMAC_EXHAUSTIVE");
  return value && std::string_view(value) == "1";
}

/// Whether whatever a test needs has to be there.
inline bool isCi() {
  const char *value = std::getenv("CI");
  return value && std::string_view(value) == "true";
}

} // namespace llamac

/// Ends a test that lacks something: skipped, or failed in CI.
#define LLAMAC_SKIP(message)                                                   \
  do {                                                                         \
    if (llamac::isCi())                                                        \
      GTEST_FAIL() << (message);                                               \
    GTEST_SKIP() << (message);                                                 \
  } while (false)

#endif // LLAMAC_TESTS_TIER_H
