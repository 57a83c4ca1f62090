//===- PlanVerifier.cpp - Is a manifest fit to run? -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanVerifier.h"

#include "runtime/base/Status.h"
#include "runtime/io/CheckedMath.h"
#include "runtime/io/Dequantize.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/plan/TensorMap.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace llamac {

// Far above any valid plan; they bound what a damaged one can ask for.
static constexpr uint64_t maxRows = uint64_t{1} << 20;
static constexpr uint64_t maxSize = uint64_t{1} << 31;
static constexpr uint64_t maxBytes = uint64_t{1} << 44;
static constexpr uint64_t maxCounterBytes = uint64_t{1} << 24;
static constexpr uint64_t maxScratch = uint64_t{1} << 30;
static constexpr uint64_t maxItems = uint64_t{1} << 40;
static constexpr uint64_t maxBlockThreads = 1024;
// Of a grid of blocks, as the CUDA driver has them: 32-bit integers in kernels.
static constexpr uint64_t maxGridItems = (uint64_t{1} << 31) - 1;
static constexpr uint64_t maxGridRowBlocks = 65535;
static constexpr uint64_t maxCluster = 8; // That every GPU with clusters has.

namespace {

/// A place in the manifest. Its checks tell whether the place is sound, and
/// keep the error, which is the first since checks end with it.
class Place {
public:
  Place(absl::Status &error, std::string name)
      : error(error), name(std::move(name)) {}

  /// A part of this place.
  Place operator[](const absl::AlphaNum &part) const {
    return {error,
            name.empty() ? absl::StrCat(part) : absl::StrCat(name, ": ", part)};
  }

  bool wrong(const absl::AlphaNum &expected, const absl::AlphaNum &got) const {
    error = badPlanError(
        absl::StrCat(name, ": expected ", expected, ", got ", got));
    return false;
  }

  bool isIn(int64_t value, int64_t low, uint64_t high) const {
    return (value >= low &&
            (value < 0 || static_cast<uint64_t>(value) <= high)) ||
           wrong(absl::StrCat(low, " to ", high), value);
  }
  bool isBelow(uint64_t value, uint64_t limit) const {
    return value < limit ||
           wrong(absl::StrCat("a number below ", limit), value);
  }
  template <typename Enum> bool isOneOf(Enum value) const {
    return isBelow(static_cast<uint64_t>(value),
                   static_cast<uint64_t>(Enum::MAX) + 1);
  }
  bool isText(const std::string &text) const {
    return (!text.empty() && text.find('\0') == std::string::npos) ||
           wrong("a text", text.empty() ? "none" : "a zero in it");
  }
  /// Bytes [offset, offset + size) of an arena, at a multiple of `alignment`.
  bool isInArena(const schema::ProgramT &program, uint64_t offset,
                 uint64_t size, uint64_t alignment, const char *what) const {
    return (offset % alignment == 0 &&
            isInside(offset, size, program.arenaBytes)) ||
           wrong(absl::StrCat(what, " for ", size, " bytes in the arena of ",
                              program.arenaBytes),
                 absl::StrCat("offset ", static_cast<int64_t>(offset)));
  }

private:
  absl::Status &error;
  std::string name;
};

/// The checks of one manifest; each member checks one table of the schema.
class Verifier {
public:
  Verifier(const schema::PlanT &plan, const std::vector<PlanSection> &sections)
      : plan(plan), sections(sections), config(fromPlan(*plan.config)) {}

  absl::Status run();

private:
  bool checkConfig();
  bool checkSourceFiles() const;
  bool checkWeights() const;
  bool checkWeight(const schema::WeightT &weight, const Place &at) const;
  bool checkSource(const schema::WeightT &weight, const Place &at) const;
  bool checkWeightShape(const schema::WeightT &weight, const Place &at) const;
  bool checkKv() const;
  bool checkKvGroups() const;
  bool checkRings() const;
  bool checkKernels() const;
  bool checkGeometry(const schema::KernelT &kernel,
                     const schema::GeometryT &geometry, const Place &at) const;
  bool checkPrograms() const;
  bool checkProgram(const schema::ProgramT &program, const Place &at) const;
  bool checkMap(const schema::ProgramT &program, const schema::LaunchT &launch,
                const schema::TensorMap &map, const Place &at) const;
  bool checkLaunch(const schema::ProgramT &program,
                   const schema::LaunchT &launch, const Place &at) const;
  bool checkOperand(const schema::ProgramT &program,
                    const schema::Operand &operand, const Place &at) const;
  bool checkRole(const schema::ProgramT &program, const schema::LaunchT &launch,
                 size_t number, const Place &at) const;
  bool checkPageTable(const schema::LaunchT &launch, const Place &at) const;
  bool checkCode() const;
  bool checkTokenizer() const;
  bool checkSampling() const;
  bool checkSection(const Place &at, int64_t number, SectionKind kind) const;

  const schema::PlanT &plan;
  const std::vector<PlanSection> &sections;
  const ModelConfig config;
  absl::Status error;
  const Place root = {error, ""};
};

} // namespace

static bool isPageTable(const schema::Operand &operand) {
  return operand.kind() == schema::OperandKind::Input &&
         operand.index() == static_cast<uint32_t>(schema::InputRole::PageTable);
}

bool Verifier::checkSection(const Place &at, int64_t number,
                            SectionKind kind) const {
  if (!at.isIn(number, 0, sections.empty() ? 0 : sections.size() - 1))
    return false;
  return (static_cast<uint64_t>(number) < sections.size() &&
          sections[number].kind == kind) ||
         at.wrong(
             absl::StrCat("a section that holds a ", sectionKindName(kind)),
             absl::StrCat("section ", number));
}

bool Verifier::checkConfig() {
  if (absl::Status status = validateModelConfig(config); !status.ok()) {
    error = badPlanError(absl::StrCat("config: ", status.message()));
    return false;
  }
  if (config.ropeScaling)
    for (double value :
         {config.ropeScaling->factor, config.ropeScaling->lowFreqFactor,
          config.ropeScaling->highFreqFactor, config.ropeScaling->oldContext})
      if (!(value > 0) || !std::isfinite(value))
        return root["config: rope scaling"].wrong("positive numbers", value);
  return root["context"].isIn(plan.context, 1, maxSize) &&
         root["ranks"].isIn(plan.ranks, 1, mostRanks) &&
         root["exchange area"].isBelow(plan.exchangeBytes, maxBytes);
}

bool Verifier::checkSourceFiles() const {
  for (size_t i = 0; i < plan.sourceFiles.size(); ++i) {
    const Place at = root[absl::StrCat("source file ", i)];
    if (!at["path"].isText(plan.sourceFiles[i]->path) ||
        !at["fingerprint"].isText(plan.sourceFiles[i]->fingerprint))
      return false;
  }
  return true;
}

// The shape that the hyperparameters give the weight of a canonical name.
static std::optional<std::pair<int64_t, int64_t>>
expectedShape(const ModelConfig &config, absl::string_view name) {
  const int64_t query = config.numHeads * config.headSize;
  const int64_t keyValue = config.numKvHeads * config.headSize;
  const struct {
    absl::string_view name;
    int64_t rows, cols;
  } shapes[] = {
      {"tok_embeddings", config.vocabSize, config.dim},
      {"output", config.vocabSize, config.dim},
      {"norm", 1, config.dim},
      {"attention_norm", 1, config.dim},
      {"ffn_norm", 1, config.dim},
      {"attention.wq", query, config.dim},
      {"attention.wk", keyValue, config.dim},
      {"attention.wv", keyValue, config.dim},
      {"attention.wo", config.dim, query},
      {"feed_forward.w1", config.ffnDim, config.dim},
      {"feed_forward.w2", config.dim, config.ffnDim},
      {"feed_forward.w3", config.ffnDim, config.dim},
  };
  if (absl::StartsWith(name, "layers.")) {
    name.remove_prefix(7);
    const size_t dot = name.find('.');
    if (dot == absl::string_view::npos)
      return std::nullopt;
    name.remove_prefix(dot + 1);
  }
  for (const auto &shape : shapes)
    if (shape.name == name)
      return std::pair(shape.rows, shape.cols);
  return std::nullopt;
}

static std::string shapeText(int64_t rows, int64_t cols) {
  return absl::StrCat("[", rows, ", ", cols, "]");
}

bool Verifier::checkWeightShape(const schema::WeightT &weight,
                                const Place &at) const {
  using schema::WeightLayout;
  if (!at["type"].isOneOf(weight.type) ||
      !at["layout"].isOneOf(weight.layout) ||
      !at["rows"].isIn(weight.rows, 1, maxSize) ||
      !at["cols"].isIn(weight.cols, 1, maxSize))
    return false;
  if (weight.layout != WeightLayout::RowMajor) {
    const WeightLayout packed =
        plan.target == "cpu" ? WeightLayout::Panel16 : WeightLayout::Planes;
    if (weight.layout != packed)
      return at["layout"].wrong(
          absl::StrCat(EnumNameWeightLayout(packed), " for ", plan.target),
          EnumNameWeightLayout(weight.layout));
    if (weight.cols % 8 != 0)
      return at["cols"].wrong("a multiple of 8", weight.cols);
  }
  if (!at["split dimension"].isIn(weight.splitDim, 0, 1) ||
      !at["parts"].isIn(weight.parts, 1, static_cast<uint64_t>(plan.ranks)))
    return false;
  if (plan.ranks % weight.parts != 0)
    return at["parts"].wrong(absl::StrCat("a divisor of ", plan.ranks),
                             weight.parts);
  const auto expected = expectedShape(config, weight.name);
  const MatrixShape whole = wholeShape(weight);
  return !expected || *expected == std::pair(whole.rows, whole.cols) ||
         at["shape"].wrong(shapeText(expected->first, expected->second),
                           shapeText(whole.rows, whole.cols));
}

bool Verifier::checkSource(const schema::WeightT &weight,
                           const Place &at) const {
  const schema::WeightSourceT &source = *weight.source;
  if (!at["tensor"].isText(source.tensor) ||
      !at["source type"].isOneOf(source.type))
    return false;
  if (weight.type != source.type && !canQuantizeTo(fromPlan(weight.type)))
    return at["type"].wrong("the source's or one that is written",
                            dataTypeName(fromPlan(weight.type)));
  const Place halves = at["rotary halves"];
  const int64_t rotated = weight.rows == 1 ? weight.cols : weight.rows;
  if (!at["split dimension"].isIn(source.splitDim, 0, 1) ||
      !halves.isIn(source.rotaryHalves, 0, rotated))
    return false;
  if (source.rotaryHalves != 0 &&
      (source.rotaryHalves % 2 != 0 || rotated % source.rotaryHalves != 0))
    return halves.wrong(absl::StrCat("an even divisor of ", rotated),
                        source.rotaryHalves);
  if (!std::isfinite(source.addend))
    return at["addend"].wrong("a finite number", source.addend);
  uint64_t total = 0;
  for (const schema::SourceExtent &part : source.parts) {
    if (!at["source file"].isBelow(part.file(), plan.sourceFiles.size()))
      return false;
    const schema::SourceFileT &file = *plan.sourceFiles[part.file()];
    if (!isInside(part.offset(), part.size(), file.size))
      return at["extent"].wrong(
          absl::StrCat("to end within the ", file.size, " bytes of ",
                       file.path),
          absl::StrCat(part.size(), " bytes from ", part.offset()));
    const std::optional<uint64_t> sum = checkedAdd(total, part.size());
    if (!sum)
      return at["extents"].wrong("a sum of 64 bits", "more");
    total = *sum;
  }
  const MatrixShape whole = wholeShape(weight);
  const std::optional<uint64_t> bytes =
      checkedTensorBytes(fromPlan(source.type), whole.rows, whole.cols);
  return (bytes && *bytes == total) ||
         at["extents"].wrong(bytes ? absl::StrCat(*bytes, " bytes")
                                   : "whole blocks",
                             absl::StrCat(total, " bytes for ",
                                          shapeText(whole.rows, whole.cols)));
}

bool Verifier::checkWeight(const schema::WeightT &weight,
                           const Place &at) const {
  if (!checkWeightShape(weight, at))
    return false;
  const std::string shape = shapeText(weight.rows, weight.cols);
  const std::optional<uint64_t> bytes =
      checkedTensorBytes(fromPlan(weight.type), weight.rows, weight.cols);
  if (!bytes || *bytes > maxBytes)
    return at["shape"].wrong(
        absl::StrCat("whole blocks and at most ", maxBytes, " bytes"), shape);
  auto isBare = [](const schema::WeightT &other) {
    return other.section < 0 && !other.source;
  };
  if (weight.section >= 0 && weight.source)
    return at.wrong("either a section or a source", "both");
  if (isBare(weight) != isBare(*plan.weights.front()))
    return at.wrong("a section or a source as for all weights or none",
                    isBare(weight) ? "neither" : "one");
  if (isBare(weight))
    return true;
  if (weight.source)
    return checkSource(weight, at);
  for (int64_t part = 0; part < weight.parts; ++part) {
    const int64_t section = weight.section + part;
    if (!checkSection(at["section"], section, SectionKind::Weight))
      return false;
    if (sections[section].size != packedBytes(weight))
      return at["bytes"].wrong(
          absl::StrCat(packedBytes(weight), " for ", shape),
          sections[section].size);
  }
  return true;
}

bool Verifier::checkWeights() const {
  std::set<absl::string_view> names;
  for (size_t i = 0; i < plan.weights.size(); ++i) {
    const schema::WeightT &weight = *plan.weights[i];
    if (!root[absl::StrCat("weight ", i, ": name")].isText(weight.name))
      return false;
    const Place at = root[absl::StrCat("weight ", i, " (", weight.name, ")")];
    if (!names.insert(weight.name).second)
      return at.wrong("a name of its own", "one used before");
    if (!checkWeight(weight, at))
      return false;
  }
  return true;
}

bool Verifier::checkKv() const {
  const schema::KvLayoutT &kv = *plan.kv;
  const Place at = root["kv"], pageBytes = at["bytes of a page"];
  if (!at["tokens of a page"].isIn(kv.pageTokens, 1, maxSize))
    return false;
  const int64_t pages = (plan.context - 1) / kv.pageTokens + 1;
  if (kv.pagesPerSequence != pages)
    return at["pages of a sequence"].wrong(
        absl::StrCat(pages, " for a context of ", plan.context),
        kv.pagesPerSequence);
  if (!at["sequences"].isIn(kv.maxSequences, 1, maxRows))
    return false;
  // A page holds at least a byte for each element of K and of V.
  const std::optional<uint64_t> least = checkedProduct(
      {2, static_cast<uint64_t>(kv.pageTokens),
       static_cast<uint64_t>(kvHeadsOfRank(config.numKvHeads, plan.ranks)),
       static_cast<uint64_t>(config.headSize)});
  if (!least || kv.pageBytes < *least)
    return pageBytes.wrong(
        least ? absl::StrCat("at least ", *least) : "64 bits", kv.pageBytes);
  if (kv.pageBytes % 64 != 0)
    return pageBytes.wrong("a multiple of 64", kv.pageBytes);
  if (!pageBytes.isBelow(kv.pageBytes, maxBytes))
    return false;
  const std::optional<uint64_t> poolPages = checkedMul(
      static_cast<uint64_t>(pages), static_cast<uint64_t>(kv.maxSequences));
  if (!poolPages || *poolPages >= maxSize)
    return at["pages"].wrong(absl::StrCat("fewer than ", maxSize),
                             absl::StrCat(pages, " x ", kv.maxSequences));
  const std::optional<uint64_t> bytes = checkedProduct(
      {*poolPages, kv.pageBytes, static_cast<uint64_t>(config.numLayers)});
  return ((bytes && *bytes <= maxBytes) ||
          at["bytes of the pool"].wrong(absl::StrCat("at most ", maxBytes),
                                        bytes ? absl::StrCat(*bytes)
                                              : "more than 64 bits hold")) &&
         checkKvGroups();
}

bool Verifier::checkKvGroups() const {
  const schema::KvLayoutT &kv = *plan.kv;
  const Place at = root["kv"];
  const auto layers = static_cast<uint64_t>(config.numLayers);
  if (!at["groups"].isIn(static_cast<int64_t>(kv.groups.size()), 1, layers))
    return false;
  for (size_t i = 0; i < kv.groups.size(); ++i) {
    const schema::KvGroup &group = kv.groups[i];
    const Place of = at[absl::StrCat("group ", i)];
    if (!of["window"].isIn(group.window(), 0, maxSize) ||
        !of["pages"].isIn(group.pages(), 1,
                          static_cast<uint64_t>(kv.pagesPerSequence)))
      return false;
    if (group.window() == 0 && group.pages() != kv.pagesPerSequence)
      return of["pages"].wrong(
          absl::StrCat("the context's ", kv.pagesPerSequence), group.pages());
  }
  if (kv.layerGroups.size() != layers)
    return at["groups of layers"].wrong(absl::StrCat(layers),
                                        kv.layerGroups.size());
  for (size_t i = 0; i < layers; ++i)
    if (!at[absl::StrCat("group of layer ", i)].isBelow(kv.layerGroups[i],
                                                        kv.groups.size()))
      return false;
  return true;
}

/// A ring holds what the largest step reads and writes.
bool Verifier::checkRings() const {
  const schema::KvLayoutT &kv = *plan.kv;
  const int64_t rows = plan.programs.back()->maxRows;
  for (size_t i = 0; i < kv.groups.size(); ++i) {
    const schema::KvGroup &group = kv.groups[i];
    if (group.pages() == kv.pagesPerSequence)
      continue;
    const int64_t least = ringPages(group.window(), rows, kv.pageTokens);
    if (group.pages() < least)
      return root[absl::StrCat("kv: group ", i, ": pages")].wrong(
          absl::StrCat("at least ", least, " for a window of ", group.window(),
                       " and steps of ", rows, " rows"),
          group.pages());
  }
  return true;
}

bool Verifier::checkKernels() const {
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const schema::KernelT &kernel = *plan.kernels[i];
    const Place at = root[absl::StrCat("kernel ", i)];
    if (!at["symbol"].isText(kernel.symbol) ||
        !at["family"].isText(kernel.family) ||
        !at["overlap"].isOneOf(kernel.overlap) ||
        !checkGeometry(kernel, *kernel.geometry, at))
      return false;
    for (schema::ParamRole role : kernel.params)
      if (!at["role of a parameter"].isOneOf(role))
        return false;
    if (const auto results =
            std::ranges::count(kernel.params, schema::ParamRole::Result);
        kernel.resultRowBytes.size() != static_cast<size_t>(results))
      return at["result row bytes"].wrong(
          absl::StrCat(results, ", one for each result"),
          kernel.resultRowBytes.size());
    for (const uint64_t bytes : kernel.resultRowBytes)
      if (!at["result row bytes"].isBelow(bytes, maxSize))
        return false;
    for (size_t v = 0; v < kernel.variants.size(); ++v) {
      const schema::VariantT &variant = *kernel.variants[v];
      const Place of = at[absl::StrCat("variant ", v)];
      if (!of["symbol"].isText(variant.symbol) ||
          !of["tiles"].isText(variant.tiles) ||
          !of["source"].isText(variant.source) ||
          !checkGeometry(kernel, *variant.geometry, of))
        return false;
    }
  }
  return true;
}

/// What holds for any number of rows; checkLaunch() has the rest.
bool Verifier::checkGeometry(const schema::KernelT &kernel,
                             const schema::GeometryT &geometry,
                             const Place &at) const {
  const bool hasBlocks = plan.target == "cuda" || plan.target == "sim";
  if (!at["row block"].isIn(geometry.rowBlock, 0, maxRows) ||
      !at["items"].isIn(geometry.items, 1,
                        hasBlocks ? maxGridItems : maxItems) ||
      !at["scratch bytes"].isBelow(geometry.scratchBytes, maxScratch + 1) ||
      !at["threads of a block"].isIn(geometry.threads, hasBlocks ? 1 : 0,
                                     maxBlockThreads) ||
      !at["cluster"].isIn(geometry.cluster, 1, hasBlocks ? maxCluster : 1) ||
      !at["workspace bytes of a row"].isBelow(geometry.workspaceBytes,
                                              maxSize) ||
      !at["counters of a row"].isBelow(geometry.counters, maxCounterBytes))
    return false;
  if (geometry.items % geometry.cluster != 0)
    return at["items"].wrong(
        absl::StrCat("whole clusters of ", geometry.cluster), geometry.items);
  if (geometry.dependent && !hasBlocks)
    return at["dependent"].wrong(absl::StrCat("false for target ", plan.target),
                                 "true");
  if (!hasBlocks && !geometry.maps.empty())
    return at["tensor maps"].wrong(
        absl::StrCat("none for target ", plan.target), geometry.maps.size());
  for (const schema::TensorMap &map : geometry.maps)
    if (!at["operand of a tensor map"].isBelow(map.operand(),
                                               kernel.params.size()))
      return false;
  return true;
}

/// Whether only a plan for several ranks has such an operand.
static bool isOfRanks(const schema::Operand &operand) {
  return operand.kind() == schema::OperandKind::Exchange ||
         operand.kind() == schema::OperandKind::Peers ||
         (operand.kind() == schema::OperandKind::Input &&
          operand.index() == static_cast<uint32_t>(schema::InputRole::Rank));
}

bool Verifier::checkOperand(const schema::ProgramT &program,
                            const schema::Operand &operand,
                            const Place &at) const {
  if (plan.ranks == 1 && isOfRanks(operand))
    return at.wrong("one that a plan for one rank has",
                    EnumNameOperandKind(operand.kind()));
  switch (operand.kind()) {
  case schema::OperandKind::Arena:
    return at["arena offset"].isBelow(operand.offset(), program.arenaBytes);
  case schema::OperandKind::Weight:
    return at["weight"].isBelow(operand.index(), plan.weights.size());
  case schema::OperandKind::Kv:
    return at["kv layer"].isBelow(operand.index(),
                                  static_cast<uint64_t>(config.numLayers));
  case schema::OperandKind::Input: {
    if (!at["input"].isBelow(operand.index(),
                             static_cast<uint64_t>(schema::InputRole::MAX) + 1))
      return false;
    const Place of = at["offset in the input"];
    return isPageTable(operand)
               ? of.isBelow(operand.offset(), plan.kv->groups.size())
               : operand.offset() == 0 || of.wrong("0", operand.offset());
  }
  case schema::OperandKind::Constant:
    return checkSection(at["constants"], operand.index(),
                        SectionKind::Constants) &&
           at["offset in constants"].isBelow(operand.offset(),
                                             sections[operand.index()].size);
  case schema::OperandKind::Counters:
    return at["offset in counters"].isBelow(operand.offset(),
                                            plan.counterBytes);
  case schema::OperandKind::Exchange:
  case schema::OperandKind::Peers:
    return at["offset in the exchange area"].isBelow(operand.offset(),
                                                     plan.exchangeBytes);
  }
  return at["kind"].wrong(
      absl::StrCat("0 to ", static_cast<int>(schema::OperandKind::MAX)),
      static_cast<int>(operand.kind()));
}

/// The pools of a launch and the page table are of one group.
bool Verifier::checkPageTable(const schema::LaunchT &launch,
                              const Place &at) const {
  for (const schema::Operand &table : launch.operands) {
    if (!isPageTable(table))
      continue;
    const uint64_t group = table.offset();
    for (const schema::Operand &pool : launch.operands)
      if (pool.kind() == schema::OperandKind::Kv &&
          plan.kv->layerGroups[pool.index()] != group)
        return at["page table"].wrong(
            absl::StrCat("that of group ", plan.kv->layerGroups[pool.index()],
                         ", as layer ", pool.index(), " has"),
            absl::StrCat("that of group ", group));
  }
  return true;
}

/// Operand `number` of `launch` is one for a parameter of its role.
bool Verifier::checkRole(const schema::ProgramT &program,
                         const schema::LaunchT &launch, size_t number,
                         const Place &at) const {
  using schema::OperandKind, schema::ParamRole;
  const schema::KernelT &kernel = *plan.kernels[launch.kernel];
  const schema::Operand &operand = launch.operands[number];
  const OperandKind kind = operand.kind();
  const ParamRole role = kernel.params[number];
  const auto rows = static_cast<uint64_t>(maxRowsOf(launch, program));
  bool fits = false;
  switch (role) {
  case ParamRole::Activation:
    fits = kind == OperandKind::Arena || kind == OperandKind::Constant ||
           (kind == OperandKind::Input && !isPageTable(operand));
    break;
  case ParamRole::Weight:
    fits = kind == OperandKind::Weight;
    break;
  case ParamRole::Cache:
  case ParamRole::AppendedCache:
    fits = kind == OperandKind::Kv;
    break;
  case ParamRole::PageTable:
    fits = isPageTable(operand);
    break;
  case ParamRole::Result:
    fits = kind == OperandKind::Arena || kind == OperandKind::Exchange;
    if (const uint64_t bytes = resultRowBytes(kernel, number) * rows;
        fits && !isInside(operand.offset(), bytes,
                          kind == OperandKind::Arena ? program.arenaBytes
                                                     : plan.exchangeBytes))
      return at.wrong(absl::StrCat("a place for ", bytes, " bytes of results"),
                      absl::StrCat("offset ", operand.offset()));
    break;
  case ParamRole::Peers:
    fits = kind == OperandKind::Peers;
    if (const uint64_t bytes = operand.index() * rows;
        fits &&
        (bytes == 0 || !isInside(operand.offset(), bytes, plan.exchangeBytes)))
      return at.wrong(absl::StrCat("bytes of rows in the exchange area of ",
                                   plan.exchangeBytes),
                      absl::StrCat(bytes, " at ", operand.offset()));
    break;
  case ParamRole::Workspace:
    fits = kind == OperandKind::Arena;
    if (fits && !at.isInArena(program, operand.offset(),
                              kernel.geometry->workspaceBytes * rows,
                              /*alignment=*/1, "a place"))
      return false;
    break;
  case ParamRole::Counters:
    fits = kind == OperandKind::Counters;
    if (const uint64_t bytes =
            kernel.geometry->counters * rows * sizeof(uint32_t);
        fits && !isInside(operand.offset(), bytes, plan.counterBytes))
      return at.wrong(absl::StrCat(bytes, " bytes of the plan's ",
                                   plan.counterBytes, " of counters"),
                      absl::StrCat("offset ", operand.offset()));
    break;
  }
  return fits || at.wrong(absl::StrCat("one for a parameter of role ",
                                       EnumNameParamRole(role)),
                          EnumNameOperandKind(kind));
}

bool Verifier::checkLaunch(const schema::ProgramT &program,
                           const schema::LaunchT &launch,
                           const Place &at) const {
  if (!at["kernel"].isBelow(launch.kernel, plan.kernels.size()) ||
      !at["rows"].isOneOf(launch.rows))
    return false;
  const schema::KernelT &kernel = *plan.kernels[launch.kernel];
  const schema::GeometryT &geometry = *kernel.geometry;
  const int64_t blocks =
      geometry.rowBlock == 0
          ? 1
          : (maxRowsOf(launch, program) - 1) / geometry.rowBlock + 1;
  if (!at["items x row blocks"].isIn(geometry.items * blocks, 1, maxItems))
    return false;
  if (geometry.threads != 0 &&
      !at["row blocks of a grid"].isIn(blocks, 1, maxGridRowBlocks))
    return false;
  if (launch.operands.size() != kernel.params.size())
    return at["operands"].wrong(
        absl::StrCat(kernel.params.size(), ", one for each parameter"),
        launch.operands.size());
  for (size_t i = 0; i < launch.operands.size(); ++i)
    if (const Place of = at[absl::StrCat("operand ", i)];
        !checkOperand(program, launch.operands[i], of) ||
        !checkRole(program, launch, i, of))
      return false;
  if (!checkPageTable(launch, at))
    return false;
  for (size_t i = 0; i < geometry.maps.size(); ++i)
    if (!checkMap(program, launch, geometry.maps[i],
                  at[absl::StrCat("tensor map ", i)]))
      return false;
  return true;
}

bool Verifier::checkMap(const schema::ProgramT &program,
                        const schema::LaunchT &launch,
                        const schema::TensorMap &map, const Place &at) const {
  const TensorMapShape shape = shapeOf(map, plan, program, launch);
  if (const std::string problem = problemOf(shape); !problem.empty())
    return at.wrong("a matrix that can be copied by boxes", problem);
  const schema::Operand &operand = launch.operands[map.operand()];
  uint64_t offset = 0, size = 0;
  switch (operand.kind()) {
  case schema::OperandKind::Arena:
    offset = operand.offset();
    size = program.arenaBytes;
    break;
  case schema::OperandKind::Weight:
    size = packedBytes(*plan.weights[operand.index()]);
    break;
  case schema::OperandKind::Kv:
    size = kvPoolBytes(*plan.kv, operand.index());
    break;
  default:
    return at["operand"].wrong("in the arena, a weight or the KV cache",
                               EnumNameOperandKind(operand.kind()));
  }
  return (offset % 16 == 0 && isInside(offset, shape.bytes(), size)) ||
         at.wrong(absl::StrCat("an aligned place for ", shape.bytes(),
                               " bytes in the operand's ", size),
                  absl::StrCat("offset ", offset));
}

bool Verifier::checkProgram(const schema::ProgramT &program,
                            const Place &at) const {
  if (!at["rows"].isIn(program.maxRows, 1, maxRows) ||
      !at["output rows"].isIn(program.maxOutputRows, 1,
                              static_cast<uint64_t>(program.maxRows)))
    return false;
  if (program.arenaBytes > maxBytes)
    return at["arena"].wrong(absl::StrCat("at most ", maxBytes, " bytes"),
                             program.arenaBytes);
  const auto rows = static_cast<uint64_t>(program.maxOutputRows);
  if (!at["logits"].isInArena(program, program.logitsOffset,
                              rows * static_cast<uint64_t>(config.vocabSize) *
                                  sizeof(float),
                              alignof(float), "an aligned place"))
    return false;
  if (program.tokensOffset != -1 &&
      !at["tokens"].isInArena(
          program, static_cast<uint64_t>(program.tokensOffset),
          rows * sizeof(int32_t), alignof(int32_t), "-1 or an aligned place"))
    return false;
  for (size_t i = 0; i < program.launches.size(); ++i)
    if (const schema::LaunchT &launch = *program.launches[i];
        !checkLaunch(program, launch,
                     at[absl::StrCat("launch ", i, " (", launch.label, ")")]))
      return false;
  return true;
}

bool Verifier::checkPrograms() const {
  if (plan.counterBytes % sizeof(uint32_t) != 0 ||
      plan.counterBytes > maxCounterBytes)
    return root["counters"].wrong(
        absl::StrCat("a multiple of ", sizeof(uint32_t), " bytes and at most ",
                     maxCounterBytes),
        plan.counterBytes);
  if (plan.programs.empty())
    return root["programs"].wrong("at least one", "none");
  int64_t previous = 0;
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    const schema::ProgramT &program = *plan.programs[i];
    const Place at = root[absl::StrCat("program ", i, " (", program.name, ")")];
    if (!checkProgram(program, at))
      return false;
    if (program.maxRows < previous)
      return at["rows"].wrong(
          absl::StrCat("at least the ", previous, " of the program before"),
          program.maxRows);
    previous = program.maxRows;
    const bool samples = plan.programs[0]->tokensOffset != -1;
    if ((program.tokensOffset != -1) != samples)
      return at["tokens"].wrong(samples ? "some, as in the first program"
                                        : "none, as in the first program",
                                program.tokensOffset);
  }
  return checkRings();
}

bool Verifier::checkCode() const {
  for (size_t i = 0; i < plan.code.size(); ++i) {
    const Place at = root[absl::StrCat("code ", i)];
    if (!at["isa"].isText(plan.code[i]->isa) ||
        !checkSection(at["section"], plan.code[i]->section, SectionKind::Code))
      return false;
  }
  return plan.sourceSection == -1 ||
         checkSection(root["source"], plan.sourceSection, SectionKind::Source);
}

bool Verifier::checkTokenizer() const {
  if (!plan.tokenizer)
    return true;
  const schema::TokenizerT &tokenizer = *plan.tokenizer;
  const auto lastId = static_cast<uint64_t>(config.vocabSize - 1);
  const Place at = root["tokenizer"], bos = at["begin of sequence"];
  if (!at["kind"].isText(tokenizer.kind) ||
      !checkSection(at["section"], tokenizer.section, SectionKind::Tokenizer) ||
      !bos.isIn(tokenizer.bos, -1, lastId))
    return false;
  if (tokenizer.addBos && tokenizer.bos < 0)
    return bos.wrong("an id, as it is added", tokenizer.bos);
  return std::ranges::all_of(tokenizer.stopIds, [&](int32_t id) {
    return at["stop id"].isIn(id, 0, lastId);
  });
}

bool Verifier::checkSampling() const {
  if (!plan.sampling)
    return true;
  const schema::SamplingT &sampling = *plan.sampling;
  const Place at = root["sampling"];
  if (!(sampling.temperature >= 0 && std::isfinite(sampling.temperature)))
    return at["temperature"].wrong("a number of at least 0",
                                   sampling.temperature);
  if (!(sampling.topP > 0 && sampling.topP <= 1))
    return at["top_p"].wrong("a number in (0, 1]", sampling.topP);
  return at["top_k"].isIn(sampling.topK, 0, maxSize);
}

absl::Status Verifier::run() {
  const bool isSound = root["producer"].isText(plan.producer) &&
                       root["target"].isText(plan.target) && checkConfig() &&
                       checkSourceFiles() && checkWeights() && checkKv() &&
                       checkKernels() && checkPrograms() && checkCode() &&
                       checkTokenizer() && checkSampling();
  return isSound ? absl::OkStatus() : error;
}

absl::Status verifyPlan(const schema::PlanT &plan,
                        const std::vector<PlanSection> &sections) {
  if (!plan.config || !plan.kv)
    return badPlanError("config and kv: expected both, got one missing");
  return Verifier(plan, sections).run();
}

} // namespace llamac
