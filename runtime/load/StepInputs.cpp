//===- StepInputs.cpp - What a step is given ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/load/StepInputs.h"

#include "runtime/plan/PlanConfig.h"

#include <algorithm>
#include <cassert>

namespace llamac {

using schema::InputRole;

InputLayout::InputLayout(const schema::PlanT &plan) {
  // The last program holds the most rows.
  const auto rows = static_cast<uint64_t>(plan.programs.back()->maxRows);
  uint64_t end = 0;
  const auto place = [&](InputRole role, uint64_t bytes) {
    places[static_cast<size_t>(role)] = {end, bytes};
    end += reservedBytes(bytes);
  };
  for (const InputRole role : schema::EnumValuesInputRole())
    if (role != InputRole::PageTable && role != InputRole::Rank)
      place(role, rows * inputRowBytes(plan, role));
  place(InputRole::PageTable,
        plan.kv->groups.size() * pageTableBytes(*plan.kv));
}

std::vector<void *> InputLayout::addresses(void *start) const {
  std::vector<void *> result;
  for (const InputRole role : schema::EnumValuesInputRole())
    result.push_back(role == InputRole::Rank
                         ? nullptr
                         : static_cast<uint8_t *>(start) + offset(role));
  return result;
}

uint8_t *StepInputs::touch(InputRole role, size_t count, uint64_t rowBytes) {
  assert(count * rowBytes <= places.bytes(role));
  const uint64_t first = places.offset(role), last = first + count * rowBytes;
  if (count != 0) {
    begin = end == 0 ? first : std::min(begin, first);
    end = std::max(end, last);
  }
  return host.data() + first;
}

absl::Status StepInputs::send(Write write) {
  const absl::Span<const uint8_t> bytes(host.data() + begin, end - begin);
  const uint64_t offset = begin;
  begin = end = 0;
  return bytes.empty() ? absl::OkStatus() : write(offset, bytes);
}

} // namespace llamac
