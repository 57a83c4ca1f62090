//===- Interrupts.cpp - Work that ends well when it is told to ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Interrupts.h"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <unistd.h>

namespace llamac {

static constexpr int signals[] = {SIGHUP, SIGINT, SIGTERM};

/// The signals' actions before, in that order.
static struct sigaction before[std::size(signals)];
static std::atomic<int> came;
static std::atomic<bool> ignoresCtrlC;

static void restore() {
  for (size_t i = 0; i < std::size(signals); ++i)
    sigaction(signals[i], &before[i], nullptr);
}

static void onSignal(int signal) {
  if (came.exchange(signal) == 0 || (signal == SIGINT && ignoresCtrlC))
    return;
  // Comes again once this handler is done.
  restore();
  raise(signal);
}

Interrupts::Interrupts(SecondCtrlC second) {
  came = 0;
  ignoresCtrlC = second == SecondCtrlC::Ignored;
  struct sigaction action = {};
  action.sa_handler = onSignal;
  // Without SA_RESTART: a read that waits for input ends.
  for (size_t i = 0; i < std::size(signals); ++i) {
    sigaction(signals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN)
      sigaction(signals[i], &action, nullptr);
  }
}

Interrupts::~Interrupts() { restore(); }

int Interrupts::signal() const { return came; }

void Interrupts::endProcess() {
  restore();
  raise(came);
  for (;;)
    pause();
}

} // namespace llamac
