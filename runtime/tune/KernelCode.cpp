//===- KernelCode.cpp - Machine code for the tuner ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/KernelCode.h"

#include "runtime/base/ParallelFor.h"
#include "runtime/base/Status.h"
#include "runtime/tune/Candidates.h"
#include "runtime/tune/ProgramWays.h"

namespace llamac {

VariantCompiler::~VariantCompiler() = default;

std::vector<KernelSource> sourcesOf(const schema::VariantT &variant) {
  return {{variant.symbol, variant.source}};
}

std::vector<KernelSource> sourcesOf(const schema::ScheduleT &schedule) {
  std::vector<KernelSource> sources;
  sources.reserve(schedule.kernels.size());
  for (const auto &kernel : schedule.kernels)
    sources.push_back({kernel->symbol, kernel->source});
  return sources;
}

//===----------------------------------------------------------------------===//
// Code of schedules
//===----------------------------------------------------------------------===//

void ScheduleCompiler::takeStored(TuningStore &store) {
  const schema::PlanT &plan = model.plan();
  const std::string device = model.device().identity(plan);
  for (size_t program = 0; program < plan.programs.size(); ++program)
    if (StoredWay stored = storedWay(plan, program, device, store); stored.code)
      codes.insert_or_assign(*stored.way.schedule, std::move(stored.code));
}

void ScheduleCompiler::compileRest(const std::atomic<bool> *stop) {
  const schema::PlanT &plan = model.plan();
  std::vector<size_t> missing;
  for (size_t number = 0; number < plan.schedules.size(); ++number)
    if (!codes.contains(number) && scheduleNeedsCode(plan, number))
      missing.push_back(number);
  const std::string isa = model.code().isa();
  std::vector<absl::StatusOr<std::string>> compiled(missing.size(),
                                                    std::string());
  parallelFor(model.device().threads(), missing.size(), [&](size_t i) {
    if (!(stop && *stop))
      compiled[i] = compiler->compile(sourcesOf(*plan.schedules[missing[i]]),
                                      plan.target, isa);
  });
  for (size_t i = 0; i < missing.size(); ++i)
    if (!compiled[i].ok())
      codes.insert_or_assign(missing[i], compiled[i].status());
    else if (!compiled[i]->empty())
      codes.insert_or_assign(missing[i], std::make_shared<const std::string>(
                                             *std::move(compiled[i])));
}

absl::StatusOr<std::shared_ptr<const std::string>>
ScheduleCompiler::codeOf(size_t schedule) const {
  const auto known = codes.find(schedule);
  return known == codes.end() ? nullptr : known->second;
}

//===----------------------------------------------------------------------===//
// What is kept without code
//===----------------------------------------------------------------------===//

absl::StatusOr<int> compileStored(const Model &model, TuningStore &store,
                                  VariantCompiler &compiler) {
  const schema::PlanT &plan = model.plan();
  int count = 0;
  if (!needsCode(plan.target))
    return count;
  const std::string device = model.device().identity(plan);
  const std::string isa = model.code().isa();
  const auto complete = [&](const schema::KernelT &kernel) -> absl::Status {
    const TuningKey key{device, plan.generator, kernel.tuning};
    std::optional<TuningEntry> entry =
        kernel.variants.empty() ? std::nullopt : store.find(key);
    const auto variant =
        entry ? findVariant(kernel, entry->tiles) : std::nullopt;
    if (!variant || !entry->code.empty())
      return absl::OkStatus();
    const schema::VariantT &chosen = *kernel.variants[*variant];
    LLAMAC_ASSIGN_OR_RETURN(
        entry->code, compiler.compile(sourcesOf(chosen), plan.target, isa));
    entry->symbol = chosen.symbol;
    count += store.keep(key, *entry) ? 1 : 0;
    return absl::OkStatus();
  };
  for (const auto &kernel : plan.kernels)
    LLAMAC_RETURN_IF_ERROR(complete(*kernel));
  for (const auto &schedule : plan.schedules)
    for (const auto &kernel : schedule->kernels)
      LLAMAC_RETURN_IF_ERROR(complete(*kernel));
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    if (plan.programs[i]->tuning.empty())
      continue;
    const TuningKey key = wayKey(plan, i, device);
    std::optional<TuningEntry> entry = store.find(key);
    const auto way = entry ? findWay(plan, i, entry->tiles) : std::nullopt;
    if (!way || !way->schedule || !entry->code.empty() ||
        !scheduleNeedsCode(plan, *way->schedule))
      continue;
    const schema::ScheduleT &schedule = *plan.schedules[*way->schedule];
    LLAMAC_ASSIGN_OR_RETURN(
        entry->code, compiler.compile(sourcesOf(schedule), plan.target, isa));
    entry->symbol = schedule.name;
    count += store.keep(key, *entry) ? 1 : 0;
  }
  return count;
}

} // namespace llamac
