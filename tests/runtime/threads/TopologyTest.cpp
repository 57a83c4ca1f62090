//===- TopologyTest.cpp - The cores a process may use ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/threads/Topology.h"

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

/// usablePhysicalCores(processes) of a thread that may run on one processor.
static int coresOnFirstProcessor(int processes) {
  cpu_set_t before;
  EXPECT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before))
    ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const int cores = usablePhysicalCores(processes);
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  return cores;
}

TEST(TopologyTest, TheAffinityMaskIsRespected) {
  EXPECT_EQ(coresOnFirstProcessor(1), 1);
}

TEST(TopologyTest, ProcessesBoundToACoreEachDoNotShareIt) {
  EXPECT_GE(usablePhysicalCores(maxThreads), 1);
  EXPECT_EQ(coresOnFirstProcessor(2), 1);
}

} // namespace
} // namespace llamac
