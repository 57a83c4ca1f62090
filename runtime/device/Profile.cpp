//===- Profile.cpp - Where the time of steps goes -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Profile.h"

#include "runtime/base/Progress.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace llamac {

nlohmann::ordered_json limitsJson(const DeviceLimits &limits) {
  return {{"bandwidth", limits.bandwidth},
          {"bandwidth_of", std::string(limits.bandwidthOf)},
          {"f32_operations", limits.f32Operations},
          {"int8_operations", limits.int8Operations}};
}

void Profile::add(const TimedStep &step) {
  const auto &launches = plan->programs[step.program]->launches;
  if (steps == 0)
    firstStart = step.start;
  double start = step.start - firstStart;
  for (size_t i = 0; i < launches.size(); ++i) {
    const schema::LaunchT &launch = *launches[i];
    const auto rows = static_cast<double>(rowsOf(launch, step.shape));
    if (rows == 0)
      continue;
    const LaunchTotals totals = totalsOf(*plan->kernels[launch.kernel], rows,
                                         static_cast<double>(step.context),
                                         static_cast<double>(step.keys));
    slices.push_back({&launch, steps, start, step.seconds[i], totals.bytes(),
                      totals.operations});
    start += step.seconds[i];
  }
  ++steps;
}

std::vector<KernelSum> Profile::sums() const {
  std::map<uint32_t, KernelSum> byKernel;
  KernelSum all{.kernel = "all"};
  for (const Slice &slice : slices) {
    const schema::KernelT &kernel = *plan->kernels[slice.launch->kernel];
    KernelSum &sum = byKernel[slice.launch->kernel];
    sum.kernel = kernel.symbol;
    sum.family = kernel.family;
    for (KernelSum *each : {&sum, &all}) {
      ++each->launches;
      each->seconds += slice.seconds;
      each->bytes += slice.bytes;
      each->operations += slice.operations;
      each->int8Operations += kernel.int8Products ? slice.operations : 0;
    }
  }
  std::vector<KernelSum> sums;
  sums.reserve(byKernel.size() + 1);
  for (const auto &[kernel, sum] : byKernel)
    sums.push_back(sum);
  std::sort(sums.begin(), sums.end(),
            [](const KernelSum &a, const KernelSum &b) {
              return a.seconds != b.seconds ? a.seconds > b.seconds
                                            : a.kernel < b.kernel;
            });
  sums.push_back(all);
  return sums;
}

double KernelSum::arithmeticSeconds(const DeviceLimits &limits) const {
  const auto at = [](double count, double rate) {
    return rate > 0 ? count / rate : 0;
  };
  return at(operations - int8Operations, limits.f32Operations) +
         at(int8Operations, limits.int8Operations);
}

std::string Profile::table(const std::optional<DeviceLimits> &limits) const {
  const bool hasPeak = limits && limits->f32Operations > 0;
  std::string out =
      absl::StrFormat("%-44s %9s %10s %6s %10s %9s %9s%s%s\n", "kernel",
                      "launches", "ms", "time", "us each", "GB/s", "GFLOP/s",
                      limits ? " bandwidth" : "", hasPeak ? "      peak" : "");
  const std::vector<KernelSum> rows = sums();
  const double total = std::max(rows.back().seconds, 1e-9);
  for (const KernelSum &row : rows) {
    const double seconds = std::max(row.seconds, 1e-9);
    const double bandwidth = row.bytes / seconds;
    const double operations = row.operations / seconds;
    absl::StrAppendFormat(
        &out, "%-44s %9d %10.3f %5.1f%% %10.2f %9.1f %9.1f", row.kernel,
        row.launches, row.seconds * 1e3, 100 * row.seconds / total,
        row.seconds / static_cast<double>(std::max<int64_t>(row.launches, 1)) *
            1e6,
        bandwidth * 1e-9, operations * 1e-9);
    if (limits)
      absl::StrAppendFormat(&out, " %8.1f%%",
                            100 * bandwidth / limits->bandwidth);
    if (hasPeak)
      absl::StrAppendFormat(&out, " %8.1f%%",
                            100 * row.arithmeticSeconds(*limits) / seconds);
    out += '\n';
  }
  absl::StrAppend(&out, formatCount(steps, "step"),
                  ", each launch after the one before it");
  if (limits)
    absl::StrAppendFormat(&out, "; bandwidth: of the %.0f GB/s of %s",
                          limits->bandwidth * 1e-9, limits->bandwidthOf);
  if (hasPeak)
    absl::StrAppendFormat(&out,
                          "; peak: of %.0f GFLOP/s in f32, %.0f in products of "
                          "int8",
                          limits->f32Operations * 1e-9,
                          limits->int8Operations * 1e-9);
  return out + "\n";
}

std::string Profile::trace() const {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (const Slice &slice : slices)
    events.push_back({{"name", slice.launch->label},
                      {"cat", plan->kernels[slice.launch->kernel]->family},
                      {"ph", "X"},
                      {"ts", slice.start * 1e6},
                      {"dur", slice.seconds * 1e6},
                      {"pid", 0},
                      {"tid", 0},
                      {"args",
                       {{"kernel", plan->kernels[slice.launch->kernel]->symbol},
                        {"step", slice.step},
                        {"bytes", slice.bytes},
                        {"operations", slice.operations}}}});
  const nlohmann::ordered_json root = {{"traceEvents", events},
                                       {"displayTimeUnit", "ms"}};
  return root.dump(-1, ' ', /*ensure_ascii=*/true,
                   nlohmann::json::error_handler_t::replace);
}

} // namespace llamac
