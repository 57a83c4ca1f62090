//===- WrapperRuns.cpp - Every wrapper on every device --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/Register.h"
#include "tests/conformance/Sources.h"
#include "tests/conformance/wrappers/WrapperCases.h"

#include <gtest/gtest.h>

namespace llamac::conformance {

/// Two operands of a warpgroup's product in shared memory.
static constexpr uint32_t tierSharedBytes = 48 << 10;

namespace {

class WrapperTest : public testing::Test {
public:
  WrapperTest(const SourceDeviceRow &row, const WrapperCase &wrapper)
      : row(row), wrapper(wrapper) {}

  void TestBody() override {
    const auto device = row.create(wrappersSource());
    ASSERT_TRUE(device.ok()) << device.status();
    const Words in = makeInput(wrapper.input);
    const Words expected = wrapper.expected(in);
    const auto out =
        (*device)->run({.kernel = wrapper.kernel,
                        .threads = wrapper.threads,
                        .sharedBytes = wrapper.map ? tierSharedBytes : 2048U,
                        .map = wrapper.map,
                        .cluster = wrapper.cluster},
                       in, expected.size());
    if (absl::IsUnimplemented(out.status()))
      GTEST_SKIP() << out.status().message();
    ASSERT_TRUE(out.ok()) << out.status();
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_TRUE(matches((*out)[i], expected[i], wrapper.match))
          << "out[" << i << "] is " << std::hex << (*out)[i] << ", expected "
          << expected[i] << ", of " << in[i % in.size()];
  }

private:
  SourceDeviceRow row;
  WrapperCase wrapper;
};

} // namespace

void registerWrapperTests(const std::vector<SourceDeviceRow> &devices) {
  for (const SourceDeviceRow &row : devices)
    for (const WrapperCase &wrapper : wrapperCases())
      testing::RegisterTest(("Wrappers/" + row.name).c_str(),
                            wrapper.kernel.c_str(), nullptr, nullptr, __FILE__,
                            __LINE__, [row, wrapper]() -> testing::Test * {
                              return new WrapperTest(row, wrapper);
                            });
}

} // namespace llamac::conformance
