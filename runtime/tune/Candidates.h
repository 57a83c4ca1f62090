//===- Candidates.h - What the tuner chooses from ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_CANDIDATES_H
#define LLAMAC_RUNTIME_TUNE_CANDIDATES_H

#include "runtime/device/Device.h"
#include "runtime/tune/CostModel.h"
#include "runtime/tune/TuningStore.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// A kernel with some tiles: the plan's own, or a variant.
struct Candidate {
  std::optional<size_t> variant = {}; ///< None: the plan's own.
  std::string tiles = {};             ///< Empty for the plan's own.
  Prediction prediction = {};         ///< Of a launch.
  std::string rejected = {};          ///< Why it is out; empty: it is not.
  std::shared_ptr<const std::string> code = {}; ///< See KernelPick.
};

struct TunedKernel {
  size_t number = 0;                 ///< In the plan.
  schema::LaunchCost cost = {};      ///< Of a launch.
  std::vector<Candidate> candidates; ///< The own, then others, best first.
};

/// The kernels of program number `program` that have variants, as the model
/// ranks them for a step of `step` on `machine`.
std::vector<TunedKernel> candidatesOf(const schema::PlanT &plan, size_t program,
                                      const TunedStep &step,
                                      const MachineSpec &machine);

/// In how many tiles "a=1 b=2" and "b=3" differ. One that is not named is as
/// the plan's own kernel has it.
size_t tilesApart(const std::string &a, const std::string &b);

/// What `device` does at most: as `store` has it, which may be null, else
/// measured, which takes seconds, and kept there.
MachineSpec machineOf(Device &device, const schema::PlanT &plan,
                      TuningStore *store);

/// Under which the choice for kernel number `kernel` of `plan` is kept.
TuningKey tuningKey(const schema::PlanT &plan, size_t kernel,
                    const std::string &device);

/// The number of the variant of `kernel` with `tiles`; none for the empty text
/// and for tiles that it does not have.
std::optional<size_t> findVariant(const schema::KernelT &kernel,
                                  const std::string &tiles);

/// Whether a variant of a plan for `target` runs only by machine code that the
/// tuner brings; elsewhere the device compiles its source.
bool needsCode(const std::string &target);

/// What `store` has for the kernels of `plan` on the device called `device`, by
/// kernel.
std::vector<KernelPick> storedPicks(const schema::PlanT &plan,
                                    const std::string &device,
                                    TuningStore &store);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_CANDIDATES_H
