//===- Progress.h - One live line about a long task -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_PROGRESS_H
#define LLAMAC_RUNTIME_BASE_PROGRESS_H

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>

namespace llamac {

/// "1.5 GiB", "320 KiB", "17 B".
std::string formatBytes(uint64_t bytes);

/// "1 file", "2 files".
std::string formatCount(int64_t count, absl::string_view what);

/// Rewrites one line on stderr while work goes on: stage, how far it is, time
/// left. Silent when stderr is no terminal or `quiet` is set.
class Progress {
public:
  explicit Progress(bool quiet = false);
  ~Progress() { finish(); }

  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// A stage of unknown size, such as compiling.
  void stage(absl::string_view name);

  /// `done` of `total` bytes of the stage `name`; at most ten lines a second
  /// are written.
  void update(absl::string_view name, uint64_t done, uint64_t total);

  /// Reports other work, of which `text` tells how far it is. A `share` of 0
  /// gives no time left.
  void update(absl::string_view name, double share,
              absl::FunctionRef<std::string()> text);

  /// Clears the line.
  void finish();

private:
  void write(absl::string_view line);

  bool live;
  bool shown = false;
  std::string current;
  double stageStart = 0, lastWrite = 0; ///< Times of steadySeconds().
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_PROGRESS_H
