//===- Interrupts.h - Work that ends well when it is told to ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_INTERRUPTS_H
#define LLAMAC_RUNTIME_BASE_INTERRUPTS_H

namespace llamac {

/// While it lives, SIGHUP, SIGINT and SIGTERM do not end the process where it
/// stands: the work in its scope asks for them and ends itself. A second signal
/// does what the first would have done without it, but for a second Ctrl-C
/// where that is `ignored`. Signals that are ignored stay so. One object at a
/// time.
class Interrupts {
public:
  enum class SecondCtrlC { Ends, Ignored };

  explicit Interrupts(SecondCtrlC second = SecondCtrlC::Ends);
  Interrupts(const Interrupts &) = delete;
  Interrupts &operator=(const Interrupts &) = delete;
  ~Interrupts();

  /// The signal that came; 0 for none.
  int signal() const;

  /// Ends the process as that signal would have.
  [[noreturn]] void endProcess();
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_INTERRUPTS_H
