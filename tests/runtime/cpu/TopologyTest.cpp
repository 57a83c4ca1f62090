//===- TopologyTest.cpp - The cores a process may use ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/Topology.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <thread>

namespace llamac {
namespace {

TEST(TopologyTest, IsBetweenOneAndTheProcessors) {
  EXPECT_GE(usablePhysicalCores(), 1);
  EXPECT_LE(usablePhysicalCores(),
            static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(TopologyTest, TheAffinityMaskIsRespected) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before))
    ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const int cores = usablePhysicalCores();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(cores, 1);
}

} // namespace
} // namespace llamac
