//===- RankLeader.h - Rank 0 of several processes ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The engine runs in the process of rank 0 and sees one device. What it asks of
// that, the device asks of the other processes by messages, and does itself:
// they follow it, each with its parts of the weights and of the cache
// (RankFollower.h).
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_LOAD_RANKLEADER_H
#define LLAMAC_RUNTIME_LOAD_RANKLEADER_H

#include "runtime/device/Device.h"
#include "runtime/load/ModelOptions.h"
#include "runtime/ranks/RankWorld.h"

#include <memory>

namespace llamac {

/// Tells the other ranks of `world` to open the plan at `path`; its number.
uint32_t announcePlan(RankWorld &world, absl::string_view path,
                      const ModelOptions &options);

/// Whether the ranks of `world` can run `plan`: badPlan for one for another
/// number of ranks.
absl::Status checkRanks(const RankWorld &world, const PlanReader &plan);

/// The device of all ranks, of which `own` is this one's, for the announced
/// plan `number`, once all have opened it; they begin to load its weights.
/// Errors: those of the other ranks and
/// of their devices' meeting; badPlan where one has another plan or is
/// another program.
absl::StatusOr<std::shared_ptr<Device>>
leadRanks(RankWorld &world, uint32_t number, const PlanReader &plan,
          std::shared_ptr<Device> own, const ModelOptions &options);

/// Tells the other ranks to end.
void endRanks(RankWorld &world);

} // namespace llamac

#endif // LLAMAC_RUNTIME_LOAD_RANKLEADER_H
