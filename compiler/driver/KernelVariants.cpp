//===- KernelVariants.cpp - Kernels with other tiles ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/KernelVariants.h"

#include "ir/kernel/Cost.h"
#include "ir/llama/OpNames.h"
#include "runtime/tune/CostModel.h"

#include "absl/strings/str_format.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <xxhash.h>

using namespace mlir;

namespace llamac {

std::string textHash(StringRef text) {
  return absl::StrFormat("%016x", XXH3_64bits(text.data(), text.size()));
}

std::string generatorHash(ArrayRef<KernelHeader> headers) {
  std::string all = LLAMAC_VERSION;
  for (const KernelHeader &header : headers)
    all += (header.name + "\n" + header.text).str();
  return textHash(all);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// "q4_1[576x1536]"; of a cache "kv".
static std::string typeText(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return "kv";
  std::string text = llama::elementTypeName(tensor.getElementType()).str();
  if (text.empty())
    llvm::raw_string_ostream(text) << tensor.getElementType();
  auto sizes = llvm::map_range(tensor.getShape(), [](int64_t size) {
    return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
  });
  return text + "[" + llvm::join(sizes, "x") + "]";
}

static DictionaryAttr tilesOf(Attribute config) {
  if (auto matmul = dyn_cast<kernel::MatmulConfigAttr>(config))
    return matmul.getTiles();
  return cast<kernel::AttentionConfigAttr>(config).getTiles();
}

/// The tiles of `config` that `own` does not have: "ahead=2048 panels=4". So
/// the kernel's own are "", and variants of one tile differ from it in one.
static std::string tilesText(Attribute config, Attribute own) {
  const DictionaryAttr ownTiles = tilesOf(own);
  std::vector<std::string> texts;
  for (NamedAttribute size : tilesOf(config))
    if (!ownTiles || ownTiles.get(size.getName()) != size.getValue())
      texts.push_back((size.getName().strref() + "=" +
                       llvm::Twine(cast<IntegerAttr>(size.getValue()).getInt()))
                          .str());
  return llvm::join(texts, " ");
}

/// The most rows that a launch of `kernel` may have.
static int64_t maxRowsOf(plan::KernelOp kernel, ModuleOp plan) {
  int64_t most = 1;
  for (auto program : plan.getOps<plan::ProgramOp>())
    for (auto launch : program.getOps<plan::LaunchOp>())
      if (launch.getKernel() == kernel.getSymName()) {
        const uint64_t rows = launch.getRows() == plan::RowSymbol::Tokens
                                  ? program.getMaxRows()
                                  : program.getMaxWanted();
        most = std::max(most, static_cast<int64_t>(rows));
      }
  return most;
}

/// The source without the kernel's name and the comments, so that kernels which
/// are called differently count as one.
static std::string namelessSource(StringRef source, StringRef symbol) {
  std::string text;
  SmallVector<StringRef> lines;
  source.split(lines, '\n');
  for (StringRef line : lines)
    if (!line.ltrim().starts_with("//"))
      text += line.str() + "\n";
  for (size_t at = text.find(symbol); at != std::string::npos;
       at = text.find(symbol, at))
    text.replace(at, symbol.size(), "");
  return text;
}

/// What `kernel`, of `source`, computes: readable, and by the hash exact.
static std::string tuningText(plan::KernelOp kernel, StringRef source,
                              int64_t maxRows) {
  Operation &op = kernel.getPrototype();
  auto typesOf = [](auto values) {
    return llvm::join(
        llvm::map_range(values,
                        [](Value value) { return typeText(value.getType()); }),
        " ");
  };
  return (kernel.getFamily() + " of at most " + llvm::Twine(maxRows) +
          (maxRows == 1 ? " row: " : " rows: ") + typesOf(op.getOperands()) +
          " -> " + typesOf(op.getResults()) + " #" +
          textHash(namelessSource(source, kernel.getSymName())))
      .str();
}

//===----------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------===//

static schema::TileModel toSchema(const kernel::TileModel &model) {
  return {static_cast<uint64_t>(model.weightRows),
          static_cast<uint64_t>(model.rowBytes),
          static_cast<uint64_t>(model.flightBytes),
          static_cast<uint64_t>(model.chains),
          static_cast<uint64_t>(model.resident),
          static_cast<uint64_t>(model.tiles),
          static_cast<uint64_t>(model.itemKeys),
          static_cast<uint64_t>(model.localBytes),
          model.usesMatrixUnits};
}

static void takeGeometry(const kernel::LaunchGeometry &geometry,
                         schema::VariantT &variant) {
  variant.items = geometry.items;
  variant.rowBlock = geometry.rowBlock;
  variant.scratchBytes = geometry.scratch;
  variant.threads = static_cast<int32_t>(geometry.threads);
  variant.cluster = static_cast<int32_t>(geometry.cluster);
  variant.dependent = geometry.dependent;
  for (const kernel::TensorMapGeometry &map : geometry.maps)
    variant.maps.emplace_back(map.operand, map.elementBytes, map.columns,
                              map.rows, map.columns * map.elementBytes,
                              map.boxColumns, map.boxRows, map.swizzleBytes);
}

std::optional<std::string> kernelSource(plan::KernelOp kernel,
                                        const Backend &backend) {
  ScopedDiagnosticHandler quiet(kernel.getContext(),
                                [](Diagnostic &) { return success(); });
  auto files = backend.emit({kernel}, {}, SourceLayout::AsWritten);
  if (failed(files))
    return std::nullopt;
  return files.value_or(std::vector<SourceFile>()).front().text;
}

/// A variant of `kernel` with `config`, in `scratch`; none when there is no
/// room for it.
static std::optional<schema::VariantT>
makeVariant(plan::KernelOp kernel, Attribute config, size_t number,
            ModuleOp scratch, const Backend &backend) {
  OpBuilder builder = OpBuilder::atBlockEnd(scratch.getBody());
  auto clone = cast<plan::KernelOp>(builder.clone(*kernel));
  clone.setSymName((kernel.getSymName() + "_v" + llvm::Twine(number)).str());
  Operation &op = clone.getPrototype();
  op.setAttr("config", config);
  const kernel::Target &target = backend.target();
  const kernel::LaunchGeometry own = target.geometry(&kernel.getPrototype()),
                               geometry = target.geometry(&op);
  // A map of the cache, whose rows only the plan knows, is not for variants.
  const bool isFree = llvm::all_of(
      geometry.maps, [](const auto &map) { return map.rows >= 0; });
  if (geometry.workspace > own.workspace || geometry.counters > own.counters ||
      !isFree)
    return std::nullopt;
  std::optional<std::string> source = kernelSource(clone, backend);
  if (!source)
    return std::nullopt;
  schema::VariantT variant;
  variant.tiles = tilesText(config, kernel.getPrototype().getAttr("config"));
  variant.symbol = clone.getSymName().str();
  variant.source = *std::move(source);
  takeGeometry(geometry, variant);
  variant.model =
      std::make_unique<schema::TileModel>(toSchema(target.tileModel(&op)));
  return variant;
}

/// The variants with those first that the model takes for the fastest.
static std::vector<schema::VariantT>
ranked(std::vector<schema::VariantT> variants, const schema::LaunchCost &cost,
       const TunedStep &step, const MachineSpec &machine) {
  std::vector<std::pair<double, size_t>> order;
  for (auto [i, variant] : llvm::enumerate(variants))
    order.emplace_back(
        predict({cost, *variant.model, variant.items}, step, machine).seconds,
        i);
  llvm::sort(order);
  std::vector<schema::VariantT> sorted;
  sorted.reserve(order.size());
  for (const auto &[seconds, number] : order)
    sorted.push_back(std::move(variants[number]));
  return sorted;
}

llvm::StringMap<KernelTuning> listVariants(ModuleOp plan,
                                           const PlanContents &contents,
                                           const Backend &backend,
                                           ArrayRef<std::string> fixed) {
  llvm::StringMap<KernelTuning> all;
  const MachineSpec machine = nominalMachine(contents.target, contents.gpu);
  for (auto kernel : plan.getOps<plan::KernelOp>()) {
    if (llvm::is_contained(fixed, kernel.getSymName()))
      continue;
    Operation &op = kernel.getPrototype();
    const std::vector<Attribute> configs = backend.target().otherConfigs(&op);
    if (configs.empty())
      continue;
    OwningOpRef<ModuleOp> scratch = ModuleOp::create(kernel.getLoc());
    KernelTuning tuning;
    for (auto [i, config] : llvm::enumerate(configs))
      if (std::optional<schema::VariantT> variant =
              makeVariant(kernel, config, i + 1, *scratch, backend))
        tuning.variants.push_back(*std::move(variant));
    const std::optional<std::string> source = kernelSource(kernel, backend);
    if (tuning.variants.empty() || !source)
      continue;
    const int64_t rows = maxRowsOf(kernel, plan);
    tuning.tuning = tuningText(kernel, *source, rows);
    // Tolerance 0 asks for the same bits.
    for (OpResult result : op.getResults())
      if (!backend.target().otherConfigsAreExact())
        tuning.tolerance = std::max(
            tuning.tolerance,
            backend.numerics().tolerance(&op, result.getResultNumber()));
    tuning.model = toSchema(backend.target().tileModel(&op));
    tuning.variants =
        ranked(std::move(tuning.variants),
               launchCost(&op, contents.kv, contents.context),
               {rows, std::max<int64_t>(rows, contents.context / 8)}, machine);
    all[kernel.getSymName()] = std::move(tuning);
  }
  return all;
}

} // namespace llamac
