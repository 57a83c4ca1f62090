//===- Progress.cpp - One live line about a long task ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Progress.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Terminal.h"

#include "absl/strings/str_format.h"

#include <cstdio>
#include <iterator>
#include <unistd.h>

namespace llamac {

std::string formatBytes(uint64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  return unit == 0 ? absl::StrFormat("%d B", bytes)
                   : absl::StrFormat("%.1f %s", value, units[unit]);
}

std::string formatCount(int64_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

Progress::Progress(bool quiet) : live(!quiet && isatty(STDERR_FILENO)) {}

void Progress::stage(absl::string_view name) {
  current = std::string(name);
  stageStart = lastWrite = steadySeconds();
  write(absl::StrFormat("%s ...", name));
}

void Progress::update(absl::string_view name, uint64_t done, uint64_t total) {
  update(name,
         total == 0 ? 0
                    : static_cast<double>(done) / static_cast<double>(total),
         [&] {
           return absl::StrFormat("%s of %s", formatBytes(done),
                                  formatBytes(total));
         });
}

void Progress::update(absl::string_view name, double share,
                      absl::FunctionRef<std::string()> text) {
  if (!live)
    return;
  const double now = steadySeconds();
  if (current != name) {
    current = std::string(name);
    stageStart = now;
  } else if (now - lastWrite < 0.1) {
    return;
  }
  lastWrite = now;
  std::string line = absl::StrFormat("%s: %s", name, text());
  const double seconds = now - stageStart;
  if (share > 0 && seconds > 0.5)
    line += absl::StrFormat(", %.0f s left", seconds * (1 - share) / share);
  write(line);
}

void Progress::finish() {
  if (shown)
    std::fputs("\r\x1b[K", stderr);
  shown = false;
}

void Progress::write(absl::string_view line) {
  if (!live)
    return;
  std::fprintf(stderr, "\r\x1b[K%s", printable(line).c_str());
  std::fflush(stderr);
  shown = true;
}

} // namespace llamac
