//===- CpuProgram.cpp - A plan's launches on the host ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/CpuProgram.h"

#include "runtime/base/Status.h"
#include "runtime/cpu/CodeObject.h"
#include "runtime/threads/WorkStealing.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>

namespace llamac {

namespace {

/// A launch with everything looked up.
struct BoundLaunch {
  CpuKernel kernel;
  void *const *args;
  schema::RowSymbol rows;
  int64_t items;
  int64_t rowBlock;
  bool barrier;
  const schema::Operand *peers; ///< The operand of peersOf(); else null.
};

class CpuProgram final : public PreparedProgram {
public:
  CpuProgram(CpuDevice &device, const schema::PlanT &plan, size_t program,
             const std::vector<CpuKernel> &kernels,
             const ProgramBindings &bindings, std::vector<void *> scratch);

  absl::Status run(const StepShape &shape,
                   absl::FunctionRef<void()> meanwhile) override;
  absl::Status runLaunch(size_t launch, const StepShape &shape) override;

private:
  void runThread(int thread, const StepShape &shape);
  void waitForRanks(size_t launch, int64_t rows, int thread);
  void runItems(size_t launch, int64_t rows, int thread);

  CpuDevice &device;
  /// Operands of all launches, one launch after the other.
  std::vector<void *> args;
  std::vector<BoundLaunch> launches;
  std::vector<void *> scratch; ///< Each thread's own.
  RankExchange *ranks;         ///< Null for one rank.
  WorkStealing work;
};

class CpuCode final : public LoadedCode {
public:
  CpuCode(CpuDevice &device, std::shared_ptr<const PlanReader> plan,
          std::unique_ptr<CodeObject> object, std::string isa)
      : device(device), plan(std::move(plan)), object(std::move(object)),
        level(std::move(isa)) {}

  absl::Status findKernels();
  absl::Status allocateScratch();

  std::string isa() const override { return level; }
  absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(size_t program, const ProgramBindings &bindings) override;

private:
  CpuDevice &device;
  std::shared_ptr<const PlanReader> plan;
  std::unique_ptr<CodeObject> object;
  /// The objects of variants, each by the string that has its bytes.
  std::map<const std::string *, std::unique_ptr<CodeObject>> variants;
  std::string level;
  std::vector<CpuKernel> kernels;               ///< Numbered as in the plan.
  std::vector<std::unique_ptr<Buffer>> scratch; ///< Each thread's own.
};

} // namespace

CpuProgram::CpuProgram(CpuDevice &device, const schema::PlanT &plan,
                       size_t number, const std::vector<CpuKernel> &kernels,
                       const ProgramBindings &bindings,
                       std::vector<void *> scratch)
    : PreparedProgram(*plan.programs[number]), device(device),
      scratch(std::move(scratch)), ranks(bindings.ranks),
      work(program.launches.size(), device.threads()) {
  for (const auto &launch : program.launches)
    for (const schema::Operand &operand : launch->operands)
      args.push_back(addressOf(operand, bindings));
  void *const *next = args.data();
  for (const auto &launch : program.launches) {
    const schema::GeometryT &geometry = *plan.kernels[launch->kernel]->geometry;
    launches.push_back({kernels[launch->kernel], next, launch->rows,
                        geometry.items, geometry.rowBlock, launch->barrier,
                        peersOf(*launch)});
    next += launch->operands.size();
  }
}

absl::Status CpuProgram::run(const StepShape &shape,
                             absl::FunctionRef<void()> /*meanwhile*/) {
  LLAMAC_RETURN_IF_ERROR(checkShape(program, shape));
  work.nextStep();
  LLAMAC_RETURN_IF_ERROR(
      device.run([&](int thread) { runThread(thread, shape); }));
  if (ranks)
    ranks->finish();
  return absl::OkStatus();
}

absl::Status CpuProgram::runLaunch(size_t launch, const StepShape &shape) {
  LLAMAC_RETURN_IF_ERROR(checkShape(program, shape));
  LLAMAC_RETURN_IF_ERROR(checkLaunch(program, launch));
  work.nextStep();
  const int64_t rows = rowsOf(launches[launch].rows, shape);
  if (rows == 0)
    return absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR(device.run([&](int thread) {
    if (launches[launch].peers)
      waitForRanks(launch, rows, thread);
    runItems(launch, rows, thread);
  }));
  if (ranks)
    ranks->finish();
  return absl::OkStatus();
}

void CpuProgram::waitForRanks(size_t launch, int64_t rows, int thread) {
  const schema::Operand &peers = *launches[launch].peers;
  device.barrier();
  if (thread == 0)
    ranks->exchange(peers.offset(),
                    peers.index() * static_cast<uint64_t>(rows));
  device.barrier();
}

void CpuProgram::runThread(int thread, const StepShape &shape) {
  bool needsBarrier = false;
  for (size_t launch = 0; launch < launches.size(); ++launch) {
    // A launch without work passes its barrier on to the next.
    needsBarrier |= launches[launch].barrier;
    const int64_t rows = rowsOf(launches[launch].rows, shape);
    if (rows == 0)
      continue;
    if (launches[launch].peers)
      waitForRanks(launch, rows, thread);
    else if (needsBarrier)
      device.barrier();
    needsBarrier = false;
    runItems(launch, rows, thread);
  }
}

void CpuProgram::runItems(size_t launch, int64_t rows, int thread) {
  const BoundLaunch &bound = launches[launch];
  const int64_t items = bound.items * rowBlocks(bound.rowBlock, rows);
  int64_t lastBlock = -1;
  for (WorkRange range = work.take(launch, thread, items); !range.empty();
       range = work.take(launch, thread, items)) {
    const CpuLaunch call{bound.args,      rows,     range.begin, range.end,
                         scratch[thread], lastBlock};
    bound.kernel(&call);
    lastBlock = (range.end - 1) / bound.items;
  }
}

absl::Status CpuCode::findKernels() {
  const auto &all = plan->plan().kernels;
  for (size_t i = 0; i < all.size(); ++i) {
    const CodeObject *from = object.get();
    if (const std::string *code = plan->codeOf(i)) {
      std::unique_ptr<CodeObject> &opened = variants[code];
      if (!opened) {
        LLAMAC_ASSIGN_OR_RETURN(
            opened,
            CodeObject::open(
                {reinterpret_cast<const uint8_t *>(code->data()), code->size()},
                absl::StrCat("code of tuned kernel ", all[i]->symbol)));
      }
      from = opened.get();
    }
    LLAMAC_ASSIGN_OR_RETURN(kernels.emplace_back(),
                            from->kernel(all[i]->symbol));
  }
  return absl::OkStatus();
}

absl::Status CpuCode::allocateScratch() {
  uint64_t most = 64;
  for (const auto &kernel : plan->plan().kernels)
    most = std::max(most, kernel->geometry->scratchBytes);
  for (int i = 0; i < device.threads(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(scratch.emplace_back(),
                            device.allocate(most, MemoryUse::Dense));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PreparedProgram>>
CpuCode::prepare(size_t program, const ProgramBindings &bindings) {
  std::vector<void *> scratchOfThread;
  scratchOfThread.reserve(scratch.size());
  for (const auto &buffer : scratch)
    scratchOfThread.push_back(buffer->address());
  return std::make_unique<CpuProgram>(device, plan->plan(), program, kernels,
                                      bindings, std::move(scratchOfThread));
}

absl::StatusOr<std::unique_ptr<LoadedCode>>
loadCpuCode(CpuDevice &device, const std::shared_ptr<const PlanReader> &plan) {
  const schema::PlanT &manifest = plan->plan();
  if (manifest.target != "cpu")
    return deviceError(absl::StrCat(
        plan->path(), ": target: expected cpu, got ", manifest.target));
  auto choice = device.chooseCode(manifest);
  if (!choice.ok())
    return withContext(choice.status(), plan->path());
  const schema::CodeObjectT &chosen = *manifest.code[*choice];
  LLAMAC_ASSIGN_OR_RETURN(
      std::unique_ptr<CodeObject> object,
      CodeObject::open(plan->bytes(chosen.section),
                       absl::StrCat(plan->path(), ": section ", chosen.section,
                                    " (code for ", chosen.isa, ")")));
  auto code =
      std::make_unique<CpuCode>(device, plan, std::move(object), chosen.isa);
  LLAMAC_RETURN_IF_ERROR(code->findKernels());
  LLAMAC_RETURN_IF_ERROR(code->allocateScratch());
  return code;
}

} // namespace llamac
