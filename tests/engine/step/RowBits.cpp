//===- RowBits.cpp - Rows of the same tokens, launch by launch ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/engine/step/RowBits.h"

#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "tests/engine/scheduler/RandomLoad.h"

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace llamac {

using schema::InputRole, schema::OperandKind, schema::ParamRole;

RowBits::RowBits(const schema::PlanT &plan) : plan(plan) {
  for (const auto &program : plan.programs) {
    std::map<std::string, int> seen;
    std::vector<uint64_t> &of = names.emplace_back();
    for (const auto &launch : program->launches)
      of.push_back(absl::HashOf(launch->label, seen[launch->label]++));
  }
}

/// The first `count` elements of an input.
template <typename T>
static absl::StatusOr<std::vector<T>>
readInput(InputRole role, uint64_t group, size_t count, StepMemory &memory) {
  std::vector<T> values(count);
  if (count == 0)
    return values;
  std::vector<uint8_t> staging;
  LLAMAC_ASSIGN_OR_RETURN(
      const absl::Span<const uint8_t> bytes,
      memory.read(schema::Operand(OperandKind::Input,
                                  static_cast<uint32_t>(role), group),
                  0, count * sizeof(T), staging));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

int32_t RowBits::pageOf(size_t group, const Row &row) const {
  return pageTables[group][row.slot * plan.kv->pagesPerSequence +
                           row.position / plan.kv->pageTokens];
}

bool RowBits::isInNewPage(size_t group, const Row &row) const {
  return row.position / plan.kv->pageTokens < plan.kv->groups[group].pages();
}

/// Reads which rows the step has. One that goes on with the output rows of the
/// step before has no others.
absl::Status RowBits::readStep(const LaunchSite &site, StepMemory &memory) {
  if (const auto count = static_cast<size_t>(site.shape.rows); count != 0) {
    LLAMAC_ASSIGN_OR_RETURN(
        const auto tokens,
        readInput<int32_t>(InputRole::Tokens, 0, count, memory));
    LLAMAC_ASSIGN_OR_RETURN(
        const auto positions,
        readInput<int32_t>(InputRole::Positions, 0, count, memory));
    LLAMAC_ASSIGN_OR_RETURN(
        const auto sequences,
        readInput<int32_t>(InputRole::Sequences, 0, count, memory));
    pageTables.clear();
    for (size_t group = 0; group < plan.kv->groups.size(); ++group) {
      LLAMAC_ASSIGN_OR_RETURN(
          pageTables.emplace_back(),
          readInput<int32_t>(InputRole::PageTable, group,
                             pageTableBytes(*plan.kv) / sizeof(int32_t),
                             memory));
    }
    rows.clear();
    const auto placeOf = [&](const Row &row) {
      return pageOf(0, row) * plan.kv->pageTokens +
             row.position % plan.kv->pageTokens;
    };
    const int kind = site.kind ? static_cast<int>(*site.kind) : -1;
    for (size_t i = 0; i < count; ++i) {
      Row &row = rows.emplace_back(Row{0, sequences[i], positions[i]});
      RowId before = 0;
      if (row.position > 0) {
        const auto found =
            places.find(placeOf({0, row.slot, row.position - 1}));
        if (found == places.end())
          return internalError("a row stands behind tokens that were not seen");
        before = found->second;
      }
      row.id = absl::HashOf(before, tokens[i], kind);
      const auto place = placeOf(row);
      places[place] = row.id;
      // See before().
      if (row.position % plan.kv->pageTokens == 0)
        for (int64_t behind = 1; behind < plan.kv->pageTokens; ++behind)
          places.erase(place + behind);
    }
  }
  const auto count = static_cast<size_t>(site.shape.outputRows);
  LLAMAC_ASSIGN_OR_RETURN(
      const auto wanted,
      readInput<int32_t>(InputRole::OutputRows, 0, count, memory));
  outputs.assign(wanted.begin(), wanted.end());
  draws.assign(count, 0);
  if (!site.shape.samples)
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(
      const auto params,
      readInput<SamplingParams>(InputRole::SamplingParams, 0, count, memory));
  for (size_t i = 0; i < count; ++i)
    draws[i] = absl::HashOf(absl::string_view(
        reinterpret_cast<const char *>(&params[i]), sizeof(SamplingParams)));
  return absl::OkStatus();
}

absl::Status RowBits::before(const LaunchSite &site, StepMemory &memory) {
  if (site.launch == 0)
    LLAMAC_RETURN_IF_ERROR(readStep(site, memory));
  // The bytes behind the keys of a page, of whoever had it before, are not
  // theirs.
  const schema::LaunchT &launch =
      *plan.programs[site.program]->launches[site.launch];
  const schema::KernelT &kernel = *plan.kernels[launch.kernel];
  const std::vector<uint8_t> zeros(plan.kv->pageBytes);
  for (size_t param = 0; site.shape.rows > 0 && param < kernel.params.size();
       ++param) {
    if (kernel.params[param] != ParamRole::AppendedCache)
      continue;
    const schema::Operand &pool = launch.operands[param];
    const size_t group = plan.kv->layerGroups[pool.index()];
    for (const Row &row : rows)
      if (row.position % plan.kv->pageTokens == 0 && isInNewPage(group, row))
        LLAMAC_RETURN_IF_ERROR(memory.write(
            schema::Operand(OperandKind::Kv, pool.index(), 0),
            static_cast<uint64_t>(pageOf(group, row)) * plan.kv->pageBytes,
            zeros));
  }
  return absl::OkStatus();
}

absl::Status RowBits::after(const LaunchSite &site, StepMemory &memory) {
  const schema::LaunchT &launch =
      *plan.programs[site.program]->launches[site.launch];
  const schema::KernelT &kernel = *plan.kernels[launch.kernel];
  for (size_t param = 0; param < kernel.params.size(); ++param) {
    if (kernel.params[param] == ParamRole::Result)
      LLAMAC_RETURN_IF_ERROR(compareResult(site, param, memory));
    if (kernel.params[param] == ParamRole::AppendedCache && site.shape.rows > 0)
      LLAMAC_RETURN_IF_ERROR(comparePages(site, param, memory));
  }
  return absl::OkStatus();
}

absl::Status RowBits::compareResult(const LaunchSite &site, size_t param,
                                    StepMemory &memory) {
  const schema::LaunchT &launch =
      *plan.programs[site.program]->launches[site.launch];
  const schema::KernelT &kernel = *plan.kernels[launch.kernel];
  const bool isOfOutputs = launch.rows == schema::RowSymbol::Outputs;
  const auto count = static_cast<size_t>(isOfOutputs ? site.shape.outputRows
                                                     : site.shape.rows);
  const uint64_t rowBytes = resultRowBytes(kernel, param);
  if (rowBytes == 0 || count == 0)
    return absl::OkStatus();
  // Launches that only move inputs may give numbers of sequences, which say
  // nothing of their tokens.
  bool isDrawn = false, isOfInputs = true;
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const schema::Operand &operand = launch.operands[i];
    const bool isInput = operand.kind() == OperandKind::Input;
    isDrawn |= isInput && operand.index() ==
                              static_cast<uint32_t>(InputRole::SamplingParams);
    isOfInputs &= isInput || kernel.params[i] == ParamRole::Result;
  }
  if (isOfInputs)
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(
      const absl::Span<const uint8_t> bytes,
      memory.read(launch.operands[param], 0, count * rowBytes, staging));
  for (size_t i = 0; i < count; ++i) {
    const Row &row = rows[isOfOutputs ? outputs[i] : i];
    compare(site, param, isDrawn ? absl::HashOf(row.id, draws[i]) : row.id,
            bytes.subspan(i * rowBytes, rowBytes),
            absl::StrCat("the row of position ", row.position));
  }
  return absl::OkStatus();
}

absl::Status RowBits::comparePages(const LaunchSite &site, size_t param,
                                   StepMemory &memory) {
  const schema::Operand &pool =
      plan.programs[site.program]->launches[site.launch]->operands[param];
  const size_t group = plan.kv->layerGroups[pool.index()];
  const int64_t pageTokens = plan.kv->pageTokens;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row &row = rows[i];
    const bool isLast = i + 1 == rows.size() || rows[i + 1].slot != row.slot ||
                        row.position % pageTokens == pageTokens - 1;
    if (!isLast || !isInNewPage(group, row))
      continue;
    LLAMAC_ASSIGN_OR_RETURN(
        const absl::Span<const uint8_t> bytes,
        memory.read(pool,
                    static_cast<uint64_t>(pageOf(group, row)) *
                        plan.kv->pageBytes,
                    plan.kv->pageBytes, staging));
    // Behind the keys there may be those of drafts that were rejected.
    RowId id = row.id;
    const int64_t page = pageOf(0, row) * pageTokens;
    for (int64_t behind = row.position % pageTokens + 1; behind < pageTokens;
         ++behind)
      if (const auto rejected = places.find(page + behind);
          rejected != places.end())
        id = absl::HashOf(id, behind, rejected->second);
    compare(site, param, id, bytes,
            absl::StrCat("the page of positions ",
                         row.position / pageTokens * pageTokens, " to ",
                         row.position));
  }
  return absl::OkStatus();
}

/// The 32 bits around byte `at`.
static std::string bitsAt(absl::Span<const uint8_t> bytes, size_t at) {
  uint32_t bits = 0;
  const size_t begin = at / sizeof bits * sizeof bits;
  std::memcpy(&bits, &bytes[begin],
              std::min(sizeof bits, bytes.size() - begin));
  return absl::StrCat(absl::Hex(bits, absl::kZeroPad8));
}

void RowBits::compare(const LaunchSite &site, size_t param, RowId id,
                      absl::Span<const uint8_t> bytes,
                      const std::string &what) {
  const schema::LaunchT &launch =
      *plan.programs[site.program]->launches[site.launch];
  const auto params = plan.kernels[launch.kernel]->params.begin();
  // Results have one number in all programs, whatever workspace is before them.
  const auto number = std::count(params, params + static_cast<ptrdiff_t>(param),
                                 ParamRole::Result);
  const auto [place, isNew] = known.try_emplace(
      absl::HashOf(names[site.program][site.launch], bytes.size(), number, id));
  Kept &kept = place->second;
  if (isNew) {
    kept = {{bytes.begin(), bytes.end()}, site.program, site.launch};
    return;
  }
  ++count;
  const auto differ =
      std::mismatch(bytes.begin(), bytes.end(), kept.bytes.begin());
  if (differ.first == bytes.end() || !first.empty())
    return;
  const auto at = static_cast<size_t>(differ.first - bytes.begin());
  const auto by = [&](size_t program, size_t launch) {
    const schema::ProgramT &of = *plan.programs[program];
    return absl::StrCat(plan.kernels[of.launches[launch]->kernel]->symbol,
                        " of program ", of.name);
  };
  first =
      absl::StrCat(launch.label, ": ", what, " in operand ", param,
                   " differs from byte ", at, " on: ", bitsAt(kept.bytes, at),
                   " by ", by(kept.program, kept.launch), ", ",
                   bitsAt(bytes, at), " by ", by(site.program, site.launch));
}

absl::StatusOr<RowBitsReport>
compareRowBits(const std::shared_ptr<const Model> &model, int requests,
               bool batchInvariant) {
  const schema::PlanT &plan = model->plan();
  if (plan.ranks > 1)
    return usageError("expected a plan for one rank, whose memory is in one "
                      "place, got one for several");
  constexpr int mostTokens = 8;
  const int64_t longest = std::min<int64_t>(model->context(), 200);
  load::RandomRequests random(*model, longest, mostTokens);
  std::vector<Request> wanted;
  for (int i = 0; i < requests; ++i) {
    GenerateOptions &options = wanted.emplace_back(random.next()).options;
    if (options.maxTokens < 0)
      options.maxTokens = mostTokens;
  }

  RowBits bits(plan);
  {
    LLAMAC_ASSIGN_OR_RETURN(
        const std::unique_ptr<Engine> alone,
        Engine::create(model,
                       {.batchInvariant = batchInvariant, .observer = &bits}));
    for (const Request &request : wanted)
      load::aloneOf(*alone, request, 0);
  }
  // For two or three long sequences, so that others are preempted.
  const int64_t pages = 2 * longest / plan.kv->pageTokens + 1;
  LLAMAC_ASSIGN_OR_RETURN(
      const std::unique_ptr<Scheduler> scheduler,
      Scheduler::create(model, {.kvPages = pages,
                                .batchInvariant = batchInvariant,
                                .observer = &bits}));
  // One comes with each step, so that prompts run beside answers.
  for (Request &request : wanted) {
    LLAMAC_RETURN_IF_ERROR(
        scheduler->submit(std::move(request), [](const AnswerPart &) {})
            .status());
    scheduler->step();
  }
  while (!scheduler->isIdle())
    scheduler->step();
  return RowBitsReport{bits.compared(), bits.difference()};
}

} // namespace llamac
