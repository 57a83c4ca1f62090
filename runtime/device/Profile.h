//===- Profile.h - Where the time of steps goes -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_DEVICE_PROFILE_H
#define LLAMAC_RUNTIME_DEVICE_PROFILE_H

#include "runtime/device/Device.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// `limits` as llamac bench writes them, and its reports read them.
nlohmann::ordered_json limitsJson(const DeviceLimits &limits);

/// A step that has run, with the time of each of its launches.
struct TimedStep {
  size_t program = 0;
  StepShape shape;
  int64_t context = 0; ///< Tokens of its sequences after it, all together.
  int64_t keys = 0;    ///< Keys that its rows see, all together.
  double start = 0;    ///< In seconds, since any one time.
  absl::Span<const double> seconds = {};
};

/// The launches of one kernel.
struct KernelSum {
  std::string kernel;
  std::string family = {}; ///< Empty for the sum of all.
  int64_t launches = 0;
  double seconds = 0, bytes = 0, operations = 0;
  double int8Operations = 0; ///< Products of int8 among `operations`.

  /// The seconds of its operations at the rates of `limits`; 0 where those are
  /// not known.
  double arithmeticSeconds(const DeviceLimits &limits) const;
};

/// Collects steps of one plan, which outlives it. Bytes and operations are
/// those that the plan counts for a launch (LaunchCost in
/// runtime/plan/plan.fbs).
class Profile {
public:
  explicit Profile(const schema::PlanT &plan) : plan(&plan) {}

  void add(const TimedStep &step);

  /// The sums of each kernel, the longest first, and of all at the end.
  std::vector<KernelSum> sums() const;

  /// For people, a line for each of sums(): launches, time, share of all time,
  /// bytes and operations a second, and their shares of `limits` where known.
  std::string table(const std::optional<DeviceLimits> &limits) const;

  /// All launches one by one in Chrome's trace format: a complete event each,
  /// in microseconds.
  std::string trace() const;

private:
  struct Slice {
    const schema::LaunchT *launch;
    size_t step;
    double start, seconds; ///< In seconds.
    double bytes, operations;
  };

  const schema::PlanT *plan;
  size_t steps = 0;
  double firstStart = 0;
  std::vector<Slice> slices;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_DEVICE_PROFILE_H
