//===- KernelReport.cpp - Where a step's time goes ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/KernelReport.h"

#include "runtime/base/Status.h"
#include "runtime/device/Profile.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace llamac::serve {

using nlohmann::ordered_json;

/// The kernels of a step of one token; seconds are 0.
static std::vector<KernelSum> untimedStep(const schema::PlanT &plan) {
  const std::vector<double> seconds(plan.programs.front()->launches.size());
  Profile profile(plan);
  profile.add({.shape = {.rows = 1, .outputRows = 1},
               .context = 1,
               .keys = 1,
               .seconds = seconds});
  return profile.sums();
}

/// The seconds that `sum` takes at `limits`.
static double leastSeconds(const KernelSum &sum, const DeviceLimits &limits) {
  return std::max(sum.bytes / limits.bandwidth, sum.arithmeticSeconds(limits));
}

absl::StatusOr<ordered_json> kernelReport(const ServedModel &model) {
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<DeviceLimits> limits,
                          model.limits());
  const auto timed = model.requests().kernelTimes();
  const std::vector<KernelSum> sums =
      timed ? *timed : untimedStep(model.model().plan());
  ordered_json kernels = ordered_json::array();
  for (const KernelSum &sum : sums) {
    if (sum.family.empty()) // All of them.
      continue;
    ordered_json kernel = {
        {"name", sum.kernel},       {"kind", sum.family},
        {"launches", sum.launches}, {"bytes", sum.bytes},
        {"flops", sum.operations},  {"seconds", nullptr},
        {"share_of_step", nullptr}, {"share_of_limit", nullptr}};
    if (timed && sum.seconds > 0) {
      kernel["seconds"] = sum.seconds;
      kernel["share_of_step"] = sum.seconds / sums.back().seconds;
      if (limits)
        kernel["share_of_limit"] = leastSeconds(sum, *limits) / sum.seconds;
    }
    kernels.push_back(std::move(kernel));
  }
  return ordered_json{{"model", model.name()},
                      {"device", model.model().loaded().describe()},
                      {"kernels", std::move(kernels)}};
}

} // namespace llamac::serve
