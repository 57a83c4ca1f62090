//===- InterruptsTest.cpp - Work that ends well when it is told to --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Interrupts.h"

#include <gtest/gtest.h>

#include <csignal>
#include <unistd.h>

namespace llamac {
namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;

TEST(Interrupts, TheFirstSignalIsKnownAndTheSecondEnds) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    const auto first = [&] {
      const Interrupts interrupts;
      raise(signal);
      _exit(interrupts.signal());
    };
    EXPECT_EXIT(first(), ExitedWithCode(signal), "^$");
    const auto second = [&] {
      const Interrupts interrupts;
      raise(signal);
      raise(signal);
      _exit(0);
    };
    EXPECT_EXIT(second(), KilledBySignal(signal), "^$");
  }
}

TEST(Interrupts, AnEndIsThatOfTheSignal) {
  const auto end = [] {
    Interrupts interrupts;
    raise(SIGTERM);
    interrupts.endProcess();
  };
  EXPECT_EXIT(end(), KilledBySignal(SIGTERM), "^$");
}

TEST(Interrupts, BehindItsScopeSignalsAreAsBefore) {
  const auto after = [] {
    {
      const Interrupts interrupts;
    }
    raise(SIGINT);
    _exit(0);
  };
  EXPECT_EXIT(after(), KilledBySignal(SIGINT), "^$");
}

TEST(Interrupts, ASignalThatIsIgnoredStaysSo) {
  const auto ignored = [] {
    std::signal(SIGHUP, SIG_IGN);
    const Interrupts interrupts;
    raise(SIGHUP);
    _exit(interrupts.signal());
  };
  EXPECT_EXIT(ignored(), ExitedWithCode(0), "^$");
}

} // namespace
} // namespace llamac
