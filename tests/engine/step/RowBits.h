//===- RowBits.h - Rows of the same tokens, launch by launch ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The result of a launch for a row depends on the tokens of its sequence up to
// it and nothing else, where an engine is batch-invariant. An observer keeps
// the bits of each result of each launch for each row, and those of each page
// that a launch appends to, and names the first launch that gives a row of the
// same tokens other bits: alone and beside others, in this cut of a prompt or
// that.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_ENGINE_STEP_ROWBITS_H
#define LLAMAC_TESTS_ENGINE_STEP_ROWBITS_H

#include "engine/step/Engine.h"

#include "absl/container/flat_hash_map.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// Observes engines of one model, for one rank, that run one after the other
/// and read no prefix file.
class RowBits final : public LaunchObserver {
public:
  explicit RowBits(const schema::PlanT &plan);

  absl::Status before(const LaunchSite &site, StepMemory &memory) override;
  absl::Status after(const LaunchSite &site, StepMemory &memory) override;

  /// Rows and pages that were compared with one that came before.
  int64_t compared() const { return count; }

  /// The first launch whose bits differ: the operation and layer, kernels,
  /// place and bits. Empty where there is none.
  const std::string &difference() const { return first; }

private:
  /// Stands for all that a row depends on: its tokens from the first one on,
  /// and where an engine does not mix them, which of them were sampled.
  using RowId = uint64_t;

  struct Row {
    RowId id;
    int32_t slot, position;
  };

  struct Kept {
    std::vector<uint8_t> bytes;
    size_t program, launch;
  };

  absl::Status readStep(const LaunchSite &site, StepMemory &memory);
  absl::Status compareResult(const LaunchSite &site, size_t param,
                             StepMemory &memory);
  absl::Status comparePages(const LaunchSite &site, size_t param,
                            StepMemory &memory);
  void compare(const LaunchSite &site, size_t param, RowId id,
               absl::Span<const uint8_t> bytes, const std::string &what);

  /// The page of a row in the pools of `group`.
  int32_t pageOf(size_t group, const Row &row) const;
  /// Whether `row` lies in a page that its sequence has not written before.
  bool isInNewPage(size_t group, const Row &row) const;

  const schema::PlanT &plan;
  /// Launches of one operation have one name in all programs: by program and
  /// launch.
  std::vector<std::vector<uint64_t>> names;
  std::vector<std::vector<int32_t>> pageTables; ///< The step's page tables, by
                                                ///< group.
  std::vector<Row> rows;                        ///< Rows of the step.
  std::vector<size_t> outputs;                  ///< Output rows of these.
  std::vector<uint64_t> draws;                  ///< How outputs are sampled.
  /// Who is in each place of the first group's pages.
  absl::flat_hash_map<int64_t, RowId> places;
  absl::flat_hash_map<uint64_t, Kept> known;
  std::vector<uint8_t> staging;
  int64_t count = 0;
  std::string first;
};

/// Gives `requests` random requests to an engine alone, and then to a scheduler
/// one with each step, with few pages; what RowBits found.
struct RowBitsReport {
  int64_t compared = 0;
  std::string difference;
};
absl::StatusOr<RowBitsReport>
compareRowBits(const std::shared_ptr<const Model> &model, int requests,
               bool batchInvariant);

} // namespace llamac

#endif // LLAMAC_TESTS_ENGINE_STEP_ROWBITS_H
