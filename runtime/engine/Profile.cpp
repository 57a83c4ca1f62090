//===- Profile.cpp - Where the time of steps goes -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Profile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace llamac {

void Profile::add(const TimedStep &step) {
  const auto &launches = plan.programs[step.program]->launches;
  if (steps == 0)
    firstStart = step.start;
  double start = step.start - firstStart;
  for (size_t i = 0; i < launches.size(); ++i) {
    const schema::LaunchT &launch = *launches[i];
    const auto rows = static_cast<double>(rowsOf(launch, step.shape));
    if (rows == 0)
      continue;
    Slice slice{&launch, steps, start, step.seconds[i], 0, 0};
    if (const schema::LaunchCost *cost = launch.cost.get()) {
      slice.bytes = static_cast<double>(cost->weightBytes()) +
                    static_cast<double>(cost->rowBytes()) * rows +
                    static_cast<double>(cost->keyBytes()) *
                        static_cast<double>(step.context);
      slice.operations = static_cast<double>(cost->rowFlops()) * rows +
                         static_cast<double>(cost->keyFlops()) *
                             static_cast<double>(step.keys);
    }
    slices.push_back(slice);
    start += step.seconds[i];
  }
  ++steps;
}

std::string Profile::table(std::optional<double> bandwidth) const {
  struct Sum {
    std::string kernel;
    int64_t launches = 0;
    double seconds = 0, bytes = 0, operations = 0;

    void add(const Slice &slice) {
      ++launches;
      seconds += slice.seconds;
      bytes += slice.bytes;
      operations += slice.operations;
    }
  };
  std::map<uint32_t, Sum> byKernel;
  Sum all{.kernel = "all"};
  for (const Slice &slice : slices) {
    Sum &sum = byKernel[slice.launch->kernel];
    sum.kernel = plan.kernels[slice.launch->kernel]->symbol;
    sum.add(slice);
    all.add(slice);
  }
  std::vector<Sum> sums;
  sums.reserve(byKernel.size() + 1);
  for (const auto &[kernel, sum] : byKernel)
    sums.push_back(sum);
  std::sort(sums.begin(), sums.end(), [](const Sum &a, const Sum &b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.kernel < b.kernel;
  });
  sums.push_back(all);

  std::string out = absl::StrFormat(
      "%-44s %9s %10s %6s %10s %9s %9s%s\n", "kernel", "launches", "ms", "time",
      "us each", "GB/s", "GFLOP/s", bandwidth ? " bandwidth" : "");
  for (const Sum &sum : sums) {
    const double seconds = std::max(sum.seconds, 1e-9);
    absl::StrAppendFormat(
        &out, "%-44s %9d %10.3f %5.1f%% %10.2f %9.1f %9.1f", sum.kernel,
        sum.launches, sum.seconds * 1e3,
        100 * sum.seconds / std::max(all.seconds, 1e-9),
        sum.seconds / static_cast<double>(std::max<int64_t>(sum.launches, 1)) *
            1e6,
        sum.bytes / seconds * 1e-9, sum.operations / seconds * 1e-9);
    if (bandwidth)
      absl::StrAppendFormat(&out, " %8.1f%%",
                            100 * sum.bytes / seconds / *bandwidth);
    out += "\n";
  }
  absl::StrAppendFormat(&out, "%d steps, each launch after the one before it",
                        steps);
  if (bandwidth)
    absl::StrAppendFormat(&out, "; bandwidth: of the %.0f GB/s of a copy",
                          *bandwidth * 1e-9);
  return out + "\n";
}

std::string Profile::trace() const {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (const Slice &slice : slices)
    events.push_back({{"name", slice.launch->label},
                      {"cat", plan.kernels[slice.launch->kernel]->family},
                      {"ph", "X"},
                      {"ts", slice.start * 1e6},
                      {"dur", slice.seconds * 1e6},
                      {"pid", 0},
                      {"tid", 0},
                      {"args",
                       {{"kernel", plan.kernels[slice.launch->kernel]->symbol},
                        {"step", slice.step},
                        {"bytes", slice.bytes},
                        {"operations", slice.operations}}}});
  const nlohmann::ordered_json root = {{"traceEvents", events},
                                       {"displayTimeUnit", "ms"}};
  return root.dump(-1, ' ', /*ensure_ascii=*/true,
                   nlohmann::json::error_handler_t::replace);
}

} // namespace llamac
