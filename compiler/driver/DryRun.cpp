//===- DryRun.cpp - What a plan would need, before there is one -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/DryRun.h"

#include "runtime/base/Status.h"
#include "runtime/cpu/MachineLimits.h"
#include "runtime/cuda/GpuSpec.h"

#include <algorithm>
#include <unistd.h>

namespace llamac {

std::optional<DeviceFacts> gpuFacts(const std::string &name) {
  const GpuProduct *product = findGpuProduct(name);
  if (!product)
    return std::nullopt;
  return DeviceFacts{product->name,
                     product->memoryBytes,
                     product->bandwidth,
                     "data sheet",
                     product->readShare,
                     product->shareFrom,
                     7e-6,
                     "measured by others on two H100 with NVLink"};
}

absl::StatusOr<DeviceFacts> hostFacts() {
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<CpuDevice> device,
                          CpuDevice::create());
  LLAMAC_ASSIGN_OR_RETURN(const double bandwidth, readBandwidth(*device));
  const auto bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return DeviceFacts{device->describe(), bytes, bandwidth, "measured here",
                     // docs/performance.md
                     0.85, "measured on a Xeon", 3e-6, "assumed"};
}

static absl::StatusOr<schema::PlanT> manifestOf(const Checkpoint &checkpoint,
                                                const CompileOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Compilation> compilation,
                          Compilation::create(checkpoint, options));
  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Schedule));
  return compilation->manifest();
}

/// The totals of the smallest program that has as many rows.
static DecodeStep decodeOf(const schema::PlanT &plan, int64_t sequences) {
  DecodeStep step{.sequences = sequences, .totals = {}};
  const auto holds = [&](const auto &program) {
    return program->maxRows >= sequences && program->maxOutputRows >= sequences;
  };
  const auto program = std::ranges::find_if(plan.programs, holds);
  if (program == plan.programs.end())
    return step;
  const auto rows = static_cast<double>(sequences);
  const double keys = rows * static_cast<double>(plan.context);
  for (const auto &launch : (*program)->launches) {
    step.collectives += peersOf(*launch) != nullptr;
    step.totals += totalsOf(*plan.kernels[launch->kernel], rows, keys, keys);
  }
  return step;
}

namespace {

/// Looks for the largest context for which there is memory. What a plan takes
/// is nearly a line in its context: interpolated between one that fits and one
/// that does not, a few compilations find it.
class ContextSearch {
public:
  ContextSearch(const Checkpoint &checkpoint, const CompileOptions &options,
                uint64_t memory, int64_t pageTokens)
      : checkpoint(checkpoint), options(options), memory(memory),
        pageTokens(pageTokens),
        most(std::min(checkpoint.config.maxContext, kernel::longestContext)) {}

  /// `fitting` tokens take `bytes`.
  absl::StatusOr<int64_t> run(int64_t fitting, uint64_t bytes) {
    if (fitting >= most)
      return fitting;
    Point low{fitting / pageTokens, bytes};
    LLAMAC_ASSIGN_OR_RETURN(Point high, at((most - 1) / pageTokens + 1));
    if (high.bytes <= memory)
      return most;
    while (high.pages - low.pages > 1) {
      const double share = static_cast<double>(memory - low.bytes) /
                           static_cast<double>(high.bytes - low.bytes);
      const int64_t between = high.pages - low.pages;
      // The page that should be the last; then the one behind it.
      const auto guess =
          static_cast<int64_t>(share * static_cast<double>(between));
      LLAMAC_ASSIGN_OR_RETURN(
          const Point next,
          at(low.pages + std::clamp<int64_t>(guess, 1, between - 1)));
      (next.bytes <= memory ? low : high) = next;
    }
    return std::max(low.pages * pageTokens, fitting);
  }

private:
  struct Point {
    int64_t pages;
    uint64_t bytes;
  };

  absl::StatusOr<Point> at(int64_t pages) {
    options.context = std::min(pages * pageTokens, most);
    LLAMAC_ASSIGN_OR_RETURN(const schema::PlanT plan,
                            manifestOf(checkpoint, options));
    return Point{pages, memoryNeeds(plan).total()};
  }

  const Checkpoint &checkpoint;
  CompileOptions options;
  uint64_t memory;
  int64_t pageTokens;
  int64_t most; ///< Tokens.
};

} // namespace

/// The smallest number of ranks, doubled from those of `options`, for whose
/// parts `device` has the memory; 0 where there is none. The ranks of a host
/// share its memory.
static absl::StatusOr<int64_t> ranksThatFit(const Checkpoint &checkpoint,
                                            CompileOptions options,
                                            const DeviceFacts &device) {
  while (options.target != "cpu" && (options.ranks *= 2) <= mostRanks) {
    const absl::StatusOr<schema::PlanT> plan = manifestOf(checkpoint, options);
    if (exitCode(plan.status()) == ExitCode::Unsupported)
      continue; // The model has no parts for so many.
    LLAMAC_RETURN_IF_ERROR(plan.status());
    if (memoryNeeds(*plan).total() <= device.memoryBytes)
      return options.ranks;
  }
  return 0;
}

absl::StatusOr<DryRun> dryRun(const Checkpoint &checkpoint,
                              const CompileOptions &options,
                              const DeviceFacts &device) {
  DryRun run;
  LLAMAC_ASSIGN_OR_RETURN(const schema::PlanT plan,
                          manifestOf(checkpoint, options));
  run.memory = memoryNeeds(plan);
  run.decode.push_back(decodeOf(plan, 1));
  if (options.maxSequences > 1)
    run.decode.push_back(decodeOf(plan, options.maxSequences));
  if (!run.fits(device)) {
    LLAMAC_ASSIGN_OR_RETURN(const int64_t ranks,
                            ranksThatFit(checkpoint, options, device));
    run.advice = memoryAdvice(plan, run.memory, device.memoryBytes, ranks);
    return run;
  }
  LLAMAC_ASSIGN_OR_RETURN(run.largestContext,
                          ContextSearch(checkpoint, options, device.memoryBytes,
                                        plan.kv->pageTokens)
                              .run(options.context, run.memory.total()));
  return run;
}

} // namespace llamac
