//===- CpuDevice.cpp - Plans run by the host's cores ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/CpuDevice.h"

#include "runtime/base/Status.h"
#include "runtime/cpu/CpuProgram.h"
#include "runtime/cpu/MachineLimits.h"
#include "runtime/threads/Topology.h"

#include "absl/strings/str_cat.h"

namespace llamac {

absl::StatusOr<std::shared_ptr<CpuDevice>>
CpuDevice::create(const CpuDeviceOptions &options) {
  if (options.threads < 0 || options.threads > maxThreads)
    return usageError(absl::StrCat("threads: expected 1 to ", maxThreads,
                                   ", got ", options.threads));
  LLAMAC_ASSIGN_OR_RETURN(const IsaLevel limit, usableIsaLevel(options.isa));
  const int threads =
      options.threads == 0 ? usablePhysicalCores() : options.threads;
  return std::shared_ptr<CpuDevice>(new CpuDevice(threads, limit));
}

CpuDevice::CpuDevice(int threads, IsaLevel limit)
    : limit(limit), pool(threads) {
  // The system may give fewer.
  description = {.name =
                     absl::StrCat("cpu, ", pool.size(),
                                  pool.size() == 1 ? " thread" : " threads"),
                 .threads = pool.size(),
                 .arithmetic = "cpu",
                 .rankLink = RankLink::Waits};
}

absl::StatusOr<size_t> CpuDevice::chooseCode(const schema::PlanT &plan) const {
  std::vector<std::string> levels;
  levels.reserve(plan.code.size());
  for (const auto &code : plan.code)
    levels.push_back(code->isa);
  auto choice = chooseIsaLevel(levels, limit);
  // A limit below the machine's can be raised.
  if (!choice.ok() && limit < hostIsaLevel())
    return usageError(choice.status().message());
  return choice;
}

std::string CpuDevice::identity(const schema::PlanT &plan) const {
  const auto code = chooseCode(plan);
  return absl::StrCat("cpu, ", processorDescription(), ", ", threads(),
                      " threads, ",
                      code.ok() ? plan.code[*code]->isa : "no code");
}

absl::StatusOr<std::optional<DeviceLimits>> CpuDevice::measureLimits() {
  LLAMAC_ASSIGN_OR_RETURN(const double bandwidth, readBandwidth(*this));
  LLAMAC_ASSIGN_OR_RETURN(const double f32, f32Rate(*this));
  LLAMAC_ASSIGN_OR_RETURN(const double int8, int8Rate(*this));
  return DeviceLimits{.bandwidth = bandwidth,
                      .bandwidthOf = "a read",
                      .f32Operations = f32,
                      .int8Operations = int8};
}

absl::StatusOr<std::unique_ptr<LoadedCode>>
CpuDevice::loadCode(std::shared_ptr<const PlanReader> plan) {
  return loadCpuCode(*this, plan);
}

absl::Status CpuDevice::run(absl::FunctionRef<void(int)> job) {
  LLAMAC_RETURN_IF_ERROR(pool.checkProcess(describe()));
  const std::lock_guard<std::mutex> lock(running);
  pool.run(job);
  return absl::OkStatus();
}

absl::Status CpuDevice::forEach(size_t count,
                                absl::FunctionRef<void(size_t)> work) {
  std::atomic<size_t> next = 0;
  return run([&](int) {
    for (size_t i = next++; i < count; i = next++)
      work(i);
  });
}

} // namespace llamac
