//===- KernelVariants.cpp - Kernels with other tiles ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/trial/KernelVariants.h"

#include "codegen/cpu/CpuBackend.h"
#include "codegen/cuda/CudaBackend.h"
#include "codegen/sim/SimCompiler.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "simulator/SimCode.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <xxhash.h>

using namespace mlir;

namespace llamac {

/// A key of what `text` says, of at most `rows` rows.
static std::string tuningKey(StringRef what, int64_t rows, StringRef text) {
  return absl::StrFormat("%s of at most %d rows #%016x", what.str(), rows,
                         XXH3_64bits(text.data(), text.size()));
}

//===----------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------===//

static DictionaryAttr tilesOf(Attribute config) {
  if (auto matmul = dyn_cast<kernel::MatmulConfigAttr>(config))
    return matmul.getTiles();
  return cast<kernel::AttentionConfigAttr>(config).getTiles();
}

/// The tiles of `config` that differ from those of `selected`, the kernel's:
/// "ahead=2048 panels=4"; "" for the selected config itself.
static std::string tilesText(Attribute config, Attribute selected) {
  const DictionaryAttr selectedTiles = tilesOf(selected);
  std::vector<std::string> texts;
  for (NamedAttribute size : tilesOf(config))
    if (!selectedTiles || selectedTiles.get(size.getName()) != size.getValue())
      texts.push_back((size.getName().strref() + "=" +
                       llvm::Twine(cast<IntegerAttr>(size.getValue()).getInt()))
                          .str());
  return llvm::join(texts, " ");
}

/// The source of `kernel` alone, as it is written; none, without a diagnostic,
/// when it does not fit the device.
static std::optional<std::string> kernelSource(plan::KernelOp kernel,
                                               const Backend &backend) {
  ScopedDiagnosticHandler quiet(kernel.getContext(),
                                [](Diagnostic &) { return success(); });
  auto files = backend.emit({kernel}, {}, SourceLayout::AsWritten);
  if (failed(files))
    return std::nullopt;
  return files.value_or(std::vector<SourceFile>()).front().text;
}

/// A variant of `kernel` with `config`, in `scratch`; none when it does not fit
/// the device. `step` is what it is predicted for.
static std::optional<schema::VariantT>
makeVariant(plan::KernelOp kernel, Attribute config, size_t number,
            ModuleOp scratch, const Backend &backend,
            const kernel::CostStep &step) {
  OpBuilder builder = OpBuilder::atBlockEnd(scratch.getBody());
  auto clone = cast<plan::KernelOp>(builder.clone(*kernel));
  clone.setSymName((kernel.getSymName() + "_v" + llvm::Twine(number)).str());
  Operation &op = clone.getPrototype();
  op.setAttr("config", config);
  const kernel::Target &target = backend.target();
  clone.setGeometryOf(target.geometry(&op));
  const plan::GeometryAttr selected = kernel.getGeometry(),
                           geometry = clone.getGeometry();
  // Launches pass the kernel's own workspace and counters.
  if (geometry.getWorkspace() > selected.getWorkspace() ||
      geometry.getCounters() > selected.getCounters() || failed(clone.verify()))
    return std::nullopt;
  std::optional<std::string> source = kernelSource(clone, backend);
  if (!source)
    return std::nullopt;
  schema::VariantT variant;
  variant.tiles = tilesText(config, kernel.getPrototype().getAttr("config"));
  variant.symbol = clone.getSymName().str();
  variant.source = *std::move(source);
  variant.geometry = std::make_unique<schema::GeometryT>(geometryOf(clone));
  variant.predicted = target.predictedSeconds(&op, step);
  return variant;
}

llvm::StringMap<KernelTuning> listVariants(ModuleOp plan,
                                           const PlanContents &contents,
                                           const Backend &backend,
                                           ArrayRef<std::string> fixed) {
  llvm::StringMap<KernelTuning> all;
  const kernel::Target &target = backend.target();
  for (auto kernel : plan.getOps<plan::KernelOp>()) {
    Operation &op = kernel.getPrototype();
    const std::vector<Attribute> configs = target.otherConfigs(&op);
    if (configs.empty() || llvm::is_contained(fixed, kernel.getSymName()))
      continue;
    const int64_t rows = kernel.getMaxRows();
    const kernel::CostStep step{.rows = rows,
                                .context = std::max(rows, contents.context / 8),
                                .splitContext = contents.context,
                                .kvTokenBytes = kvTokenBytes(contents.kv)};
    OwningOpRef<ModuleOp> scratch = ModuleOp::create(kernel.getLoc());
    KernelTuning tuning;
    for (auto [i, config] : llvm::enumerate(configs)) {
      std::optional<schema::VariantT> variant =
          makeVariant(kernel, config, i + 1, *scratch, backend, step);
      if (!variant)
        continue;
      // The target's order breaks ties.
      const auto place = llvm::upper_bound(
          tuning.variants, variant->predicted,
          [](double predicted, const schema::VariantT &other) {
            return predicted < other.predicted;
          });
      tuning.variants.insert(place, *std::move(variant));
    }
    const std::optional<std::string> source = kernelSource(kernel, backend);
    if (tuning.variants.empty() || !source)
      continue;
    tuning.tuning = tuningKey(kernel.getSymName(), rows, *source);
    // Tolerance 0 asks for the same bits.
    for (OpResult result : op.getResults())
      if (!target.otherConfigsAreExact())
        tuning.tolerance = std::max(
            tuning.tolerance,
            backend.numerics().tolerance(&op, result.getResultNumber()));
    tuning.predicted = target.predictedSeconds(&op, step);
    all[kernel.getSymName()] = std::move(tuning);
  }
  return all;
}

std::string programTuning(plan::ProgramOp program) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << program;
  bool overlaps = false;
  for (auto launch : program.getOps<plan::LaunchOp>()) {
    const plan::GeometryAttr geometry = launch.getKernelOp().getGeometry();
    os << geometry;
    overlaps |= geometry.getDependent();
  }
  if (!overlaps)
    return {};
  return tuningKey("step", static_cast<int64_t>(program.getMaxRows()), text);
}

//===----------------------------------------------------------------------===//
// Machine code
//===----------------------------------------------------------------------===//

std::string generatorOf(StringRef target) {
  std::string all = LLAMAC_VERSION;
  const ArrayRef<KernelHeader> headers = target == "cpu" ? kernelHeaders()
                                         : target == "sim"
                                             ? simHeaders()
                                             : CudaBackend({}).headers();
  for (const KernelHeader &header : headers)
    all += (header.name + "\n" + header.text).str();
  return absl::StrFormat("%016x", XXH3_64bits(all.data(), all.size()));
}

absl::Status ClangVariantCompiler::check(const PlanReader &plan) const {
  const std::string expected = generatorOf(plan.plan().target);
  const std::string &generator = plan.plan().generator;
  if (generator == expected)
    return absl::OkStatus();
  return badPlanError(
      absl::StrCat(plan.path(), ": generator: expected ", expected, ", got ",
                   generator.empty() ? "none" : generator,
                   "; another llamac compiled the plan: compile it again"));
}

absl::StatusOr<std::string> ClangVariantCompiler::compile(
    absl::Span<const schema::VariantT *const> variants,
    const std::string &target, const std::string &isa) const {
  if (target == "sim") {
    std::vector<SourceFile> files;
    for (const schema::VariantT *variant : variants)
      files.push_back({variant->symbol + ".cu", variant->source});
    return compileForSim(files, simFlavourOf(isa));
  }
  const std::optional<IsaLevel> level = parseIsaLevel(isa);
  if (!level)
    return internalError(absl::StrCat("code of the level ", isa, " runs"));
  std::vector<std::string> units;
  for (const schema::VariantT *variant : variants)
    units.push_back(variant->source);
  return compileForCpu(units, *level);
}

} // namespace llamac
