//===- StepTimer.cpp - Times steps of a program ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/StepTimer.h"

#include "runtime/base/Status.h"
#include "runtime/tune/Trials.h"

#include <algorithm>

namespace llamac {

std::pair<size_t, size_t> launchesOfLayers(const schema::ProgramT &program,
                                           int64_t layers) {
  const auto &launches = program.launches;
  const auto firstOf = [&](int64_t layer) -> size_t {
    const auto at =
        std::find_if(launches.begin(), launches.end(), [&](const auto &launch) {
          return std::any_of(
              launch->operands.begin(), launch->operands.end(),
              [&](const schema::Operand &operand) {
                return operand.kind() == schema::OperandKind::Kv &&
                       operand.index() == static_cast<uint32_t>(layer);
              });
        });
    return static_cast<size_t>(at - launches.begin());
  };
  const size_t end = firstOf(layers);
  if (end == launches.size())
    return {0, launches.size()};
  return {firstOf(0), end};
}

absl::StatusOr<BoundProgram>
BoundProgram::load(Device &device,
                   const std::shared_ptr<const PlanReader> &plan, size_t number,
                   const ProgramBindings &bindings) {
  BoundProgram bound;
  LLAMAC_ASSIGN_OR_RETURN(bound.code, device.loadCode(plan));
  LLAMAC_ASSIGN_OR_RETURN(bound.program, bound.code->prepare(number, bindings));
  return bound;
}

absl::StatusOr<StepTimer> StepTimer::create(PreparedProgram &run,
                                            const schema::ProgramT &program,
                                            int64_t numLayers,
                                            const StepShape &shape) {
  constexpr double longEnough = 0.25;
  StepTimer timer(shape);
  // The first run brings pages and code.
  LLAMAC_RETURN_IF_ERROR(timer.time(run, program).status());
  LLAMAC_ASSIGN_OR_RETURN(const double ofOne, timer.time(run, program));
  if (ofOne * static_cast<double>(numLayers) < 2 * longEnough)
    timer.layers.reset();
  else
    timer.layers = static_cast<int64_t>(std::max(1.0, longEnough / ofOne));
  LLAMAC_ASSIGN_OR_RETURN(timer.took, timer.time(run, program));
  return timer;
}

std::pair<size_t, size_t>
StepTimer::span(const schema::ProgramT &program) const {
  if (!layers)
    return {0, program.launches.size()};
  return launchesOfLayers(program, *layers);
}

absl::StatusOr<double> StepTimer::time(PreparedProgram &run,
                                       const schema::ProgramT &program) const {
  const double start = steadySeconds();
  if (!layers) {
    LLAMAC_RETURN_IF_ERROR(run.run(shape));
    return steadySeconds() - start;
  }
  const auto [begin, end] = span(program);
  for (size_t launch = begin; launch < end; ++launch)
    LLAMAC_RETURN_IF_ERROR(run.runLaunch(launch, shape));
  return steadySeconds() - start;
}

} // namespace llamac
