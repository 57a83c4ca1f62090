//===- LaunchObserver.h - Steps seen launch by launch -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An engine that has an observer runs its steps one launch at a time and shows
// each one, before and after, with the memory that it works on. The observer
// may read and change that memory, as a check does that compares every launch
// with a reference, on any device.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_DEVICE_LAUNCHOBSERVER_H
#define LLAMAC_RUNTIME_DEVICE_LAUNCHOBSERVER_H

#include "runtime/device/Device.h"
#include "runtime/plan/plan_generated.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace llamac {

/// The memory that operands of a program's launches have while a step runs. An
/// operand of kind arena, kv or input has memory here; others are an internal
/// error, as are bytes outside the memory.
class StepMemory {
public:
  virtual ~StepMemory();

  /// `size` bytes, `offset` bytes behind where `operand` points. Valid until
  /// the next launch or call; `staging` holds them where the host does not see
  /// the device's memory.
  virtual absl::StatusOr<absl::Span<const uint8_t>>
  read(const schema::Operand &operand, uint64_t offset, uint64_t size,
       std::vector<uint8_t> &staging) = 0;

  virtual absl::Status write(const schema::Operand &operand, uint64_t offset,
                             absl::Span<const uint8_t> bytes) = 0;
};

/// Rows of a step compute tokens of a prompt, or tokens that were sampled, one
/// at a time.
enum class RowKind { Prompt, Decode };

/// A launch, by its numbers in the plan, in a step of `shape`.
struct LaunchSite {
  size_t program = 0;
  size_t launch = 0;
  StepShape shape;
  /// All rows are of this kind where the engine has programs for each kind.
  std::optional<RowKind> kind = {};
};

/// An error of either ends the step.
class LaunchObserver {
public:
  virtual ~LaunchObserver();

  virtual absl::Status before(const LaunchSite &, StepMemory &) {
    return absl::OkStatus();
  }
  virtual absl::Status after(const LaunchSite &, StepMemory &) {
    return absl::OkStatus();
  }
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_DEVICE_LAUNCHOBSERVER_H
