//===- StepInputs.h - What a step is given ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inputs of a step lie in one buffer of the device, one behind the other as
// in schema::InputRole, but the page tables last: they are the largest, and few
// steps change them. The host keeps a copy of the others and fills rows of it;
// what lies between the first and the last of these is sent at once, since a
// copy to a device takes about as long for some KB as for a word.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_LOAD_STEPINPUTS_H
#define LLAMAC_RUNTIME_LOAD_STEPINPUTS_H

#include "runtime/device/Device.h"

#include "absl/functional/function_ref.h"

#include <array>
#include <cstdint>
#include <vector>

namespace llamac {

/// Where each input of a plan starts in the buffer of all.
class InputLayout {
public:
  explicit InputLayout(const schema::PlanT &plan);

  uint64_t offset(schema::InputRole role) const { return of(role).offset; }
  uint64_t bytes(schema::InputRole role) const { return of(role).bytes; }

  /// Bytes of all, and of those before the page tables.
  uint64_t totalBytes() const {
    return offset(schema::InputRole::PageTable) +
           bytes(schema::InputRole::PageTable);
  }
  uint64_t rowBytes() const { return offset(schema::InputRole::PageTable); }

  /// Where each schema::InputRole has its input, in a buffer at `start`; null
  /// for the number of the rank, which is elsewhere.
  std::vector<void *> addresses(void *start) const;

private:
  struct Place {
    uint64_t offset = 0, bytes = 0;
  };

  const Place &of(schema::InputRole role) const {
    return places[static_cast<size_t>(role)];
  }

  std::array<Place, static_cast<size_t>(schema::InputRole::MAX) + 1> places;
};

class StepInputs {
public:
  /// Copies `bytes` to the buffer at `offset`.
  using Write = absl::FunctionRef<absl::Status(
      uint64_t offset, absl::Span<const uint8_t> bytes)>;

  explicit StepInputs(const schema::PlanT &plan)
      : places(plan), host(places.rowBytes()) {}

  const InputLayout &layout() const { return places; }

  /// The first `count` rows of an input, for the host to fill: what they were
  /// sent as last, and for send() to send. T is as large as a row, or, of one
  /// of several numbers, `count` counts these.
  template <typename T>
  absl::Span<T> rows(schema::InputRole role, size_t count) {
    return {reinterpret_cast<T *>(touch(role, count, sizeof(T))), count};
  }

  /// Gives `write` what was filled since the last time, and what lies between.
  absl::Status send(Write write);

private:
  uint8_t *touch(schema::InputRole role, size_t count, uint64_t rowBytes);

  InputLayout places;
  std::vector<uint8_t> host;
  uint64_t begin = 0, end = 0; ///< Bytes of `host` to send; none: both 0.
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_LOAD_STEPINPUTS_H
