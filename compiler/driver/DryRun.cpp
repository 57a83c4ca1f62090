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

#include "absl/functional/function_ref.h"

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

/// The bytes that `models` need together, with their options changed by
/// `change`.
static absl::StatusOr<uint64_t>
bytesOf(absl::Span<const DryRunModel> models,
        absl::FunctionRef<void(CompileOptions &)> change) {
  uint64_t bytes = 0;
  for (const DryRunModel &model : models) {
    CompileOptions options = model.options;
    change(options);
    LLAMAC_ASSIGN_OR_RETURN(const schema::PlanT plan,
                            manifestOf(model.checkpoint, options));
    bytes += memoryNeeds(plan).total();
  }
  return bytes;
}

/// The totals of the smallest program that has as many rows, or of the largest
/// as often as it takes.
static DecodeStep decodeOf(const schema::PlanT &plan, int64_t sequences) {
  DecodeStep step{.sequences = sequences, .totals = {}};
  const auto rowsOf = [](const auto &program) {
    return std::min(program->maxRows, program->maxOutputRows);
  };
  auto program =
      std::ranges::find_if(plan.programs, [&](const auto &candidate) {
        return rowsOf(candidate) >= sequences;
      });
  if (program == plan.programs.end())
    program = std::ranges::max_element(plan.programs, {}, rowsOf);
  for (int64_t left = sequences; left > 0; left -= rowsOf(*program)) {
    const auto rows = static_cast<double>(std::min(left, rowsOf(*program)));
    const double keys = rows * static_cast<double>(plan.context);
    for (const auto &launch : (*program)->launches) {
      step.collectives += peersOf(*launch) != nullptr;
      step.totals += totalsOf(*plan.kernels[launch->kernel], rows, keys, keys);
    }
  }
  return step;
}

namespace {

/// Looks for the largest context for which there is memory. What plans take is
/// nearly a line in their context: interpolated between one that fits and one
/// that does not, a few compilations find it.
class ContextSearch {
public:
  ContextSearch(absl::Span<const DryRunModel> models, uint64_t memory,
                int64_t pageTokens)
      : models(models), memory(memory), pageTokens(pageTokens),
        most(std::min(models.front().checkpoint.config.maxContext,
                      kernel::longestContext)) {}

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
    LLAMAC_ASSIGN_OR_RETURN(
        const uint64_t bytes, bytesOf(models, [&](CompileOptions &options) {
          options.context = std::min(pages * pageTokens, most);
        }));
    return Point{pages, bytes};
  }

  absl::Span<const DryRunModel> models;
  uint64_t memory;
  int64_t pageTokens;
  int64_t most; ///< Tokens.
};

} // namespace

/// The smallest number of ranks, doubled from those of `options`, for whose
/// parts `device` has the memory; 0 where there is none. The ranks of a host
/// share its memory.
static absl::StatusOr<int64_t>
ranksThatFit(absl::Span<const DryRunModel> models, const DeviceFacts &device) {
  int64_t ranks = models.front().options.ranks;
  while (models.front().options.target != "cpu" && (ranks *= 2) <= mostRanks) {
    const absl::StatusOr<uint64_t> bytes = bytesOf(
        models, [&](CompileOptions &options) { options.ranks = ranks; });
    if (exitCode(bytes.status()) == ExitCode::Unsupported)
      continue; // A model has no parts for so many.
    LLAMAC_RETURN_IF_ERROR(bytes.status());
    if (*bytes <= device.memoryBytes)
      return ranks;
  }
  return 0;
}

absl::StatusOr<DryRun> dryRun(absl::Span<const DryRunModel> models,
                              const DeviceFacts &device) {
  DryRun run;
  const auto &[checkpoint, options] = models.front();
  LLAMAC_ASSIGN_OR_RETURN(const schema::PlanT plan,
                          manifestOf(checkpoint, options));
  run.memory = memoryNeeds(plan);
  for (const DryRunModel &draft : models.subspan(1)) {
    LLAMAC_ASSIGN_OR_RETURN(const schema::PlanT drafting,
                            manifestOf(draft.checkpoint, draft.options));
    run.draft = memoryNeeds(drafting);
  }
  run.decode.push_back(decodeOf(plan, 1));
  if (options.maxSequences > 1)
    run.decode.push_back(decodeOf(plan, options.maxSequences));
  if (!run.fits(device)) {
    LLAMAC_ASSIGN_OR_RETURN(const int64_t ranks, ranksThatFit(models, device));
    // The draft model is taken to need what it needs now.
    const uint64_t drafting = std::min(run.draft.total(), device.memoryBytes);
    run.advice =
        memoryAdvice(plan, run.memory, device.memoryBytes - drafting, ranks);
    if (run.memory.total() <= device.memoryBytes)
      run.advice += "; without --draft it fits";
    return run;
  }
  LLAMAC_ASSIGN_OR_RETURN(
      run.largestContext,
      ContextSearch(models, device.memoryBytes, plan.kv->pageTokens)
          .run(options.context, run.total()));
  return run;
}

} // namespace llamac
