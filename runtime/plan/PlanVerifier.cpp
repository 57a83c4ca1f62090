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
#include <utility>

namespace llamac {

// Limits no honest plan comes near; they bound what a damaged one can ask for.
static constexpr uint64_t maxRows = uint64_t{1} << 20;
static constexpr uint64_t maxSize = uint64_t{1} << 31;
static constexpr uint64_t maxBytes = uint64_t{1} << 44;
static constexpr uint64_t maxCounterBytes = uint64_t{1} << 24;
static constexpr uint64_t maxScratch = uint64_t{1} << 30;
static constexpr uint64_t maxItems = uint64_t{1} << 40;
static constexpr uint64_t maxBlockThreads = 1024;
static constexpr uint64_t maxCluster = 8; // That every GPU with clusters has.

template <typename Expected, typename Got>
static absl::Status wrong(absl::string_view field, const Expected &expected,
                          const Got &got) {
  return badPlanError(
      absl::StrCat(field, ": expected ", expected, ", got ", got));
}

// `value` as a number in [low, high].
static absl::Status checkRange(absl::string_view field, int64_t value,
                               int64_t low, uint64_t high) {
  if (value >= low && (value < 0 || static_cast<uint64_t>(value) <= high))
    return absl::OkStatus();
  return wrong(field, absl::StrCat(low, " to ", high), value);
}

static absl::Status checkBelow(absl::string_view field, uint64_t value,
                               uint64_t limit) {
  if (value < limit)
    return absl::OkStatus();
  return wrong(field, absl::StrCat("a number below ", limit), value);
}

template <typename Enum>
static absl::Status checkEnum(absl::string_view field, Enum value) {
  return checkBelow(field, static_cast<uint64_t>(value),
                    static_cast<uint64_t>(Enum::MAX) + 1);
}

static absl::Status checkText(absl::string_view field,
                              const std::string &text) {
  if (!text.empty() && text.find('\0') == std::string::npos)
    return absl::OkStatus();
  return wrong(field, "a text", text.empty() ? "none" : "a zero in it");
}

namespace {

/// The checks of one manifest; each member checks one table of the schema.
class Verifier {
public:
  Verifier(const schema::PlanT &plan, const std::vector<PlanSection> &sections)
      : plan(plan), sections(sections), config(fromPlan(*plan.config)) {}

  absl::Status run() const;

private:
  absl::Status checkConfig() const;
  absl::Status checkSourceFiles() const;
  absl::Status checkWeights() const;
  absl::Status checkWeight(const schema::WeightT &weight,
                           const std::string &field) const;
  absl::Status checkSource(const schema::WeightT &weight,
                           const std::string &field) const;
  absl::Status checkWeightShape(const schema::WeightT &weight,
                                const std::string &field) const;
  absl::Status checkKv() const;
  absl::Status checkKernels() const;
  static absl::Status checkKernel(const schema::KernelT &kernel,
                                  const std::string &field);
  static absl::Status checkVariant(const schema::VariantT &variant,
                                   const std::string &field);
  absl::Status checkPrograms() const;
  absl::Status checkProgram(const schema::ProgramT &program,
                            const std::string &field) const;
  absl::Status checkMap(const schema::ProgramT &program,
                        const schema::LaunchT &launch,
                        const schema::TensorMap &map,
                        const std::string &field) const;
  absl::Status checkLaunch(const schema::ProgramT &program,
                           const schema::LaunchT &launch,
                           const std::string &field) const;
  absl::Status checkOperand(const schema::ProgramT &program,
                            const schema::Operand &operand,
                            const std::string &field) const;
  absl::Status checkCode() const;
  absl::Status checkTokenizer() const;
  absl::Status checkSampling() const;
  absl::Status checkSection(absl::string_view field, int64_t number,
                            SectionKind kind) const;

  const schema::PlanT &plan;
  const std::vector<PlanSection> &sections;
  const ModelConfig config;
};

} // namespace

absl::Status Verifier::checkSection(absl::string_view field, int64_t number,
                                    SectionKind kind) const {
  LLAMAC_RETURN_IF_ERROR(
      checkRange(field, number, 0, sections.empty() ? 0 : sections.size() - 1));
  if (static_cast<uint64_t>(number) < sections.size() &&
      sections[number].kind == kind)
    return absl::OkStatus();
  return wrong(field,
               absl::StrCat("a section that holds a ", sectionKindName(kind)),
               absl::StrCat("section ", number));
}

absl::Status Verifier::checkConfig() const {
  if (absl::Status status = validateModelConfig(config); !status.ok())
    return badPlanError(absl::StrCat("config: ", status.message()));
  if (config.ropeScaling)
    for (double value :
         {config.ropeScaling->factor, config.ropeScaling->lowFreqFactor,
          config.ropeScaling->highFreqFactor, config.ropeScaling->oldContext})
      if (!(value > 0) || !std::isfinite(value))
        return wrong("config: rope scaling", "positive numbers", value);
  return checkRange("context", plan.context, 1, maxSize);
}

absl::Status Verifier::checkSourceFiles() const {
  for (size_t i = 0; i < plan.sourceFiles.size(); ++i) {
    const std::string field = absl::StrCat("source file ", i);
    LLAMAC_RETURN_IF_ERROR(
        checkText(absl::StrCat(field, ": path"), plan.sourceFiles[i]->path));
    LLAMAC_RETURN_IF_ERROR(checkText(absl::StrCat(field, ": fingerprint"),
                                     plan.sourceFiles[i]->fingerprint));
  }
  return absl::OkStatus();
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

absl::Status Verifier::checkWeightShape(const schema::WeightT &weight,
                                        const std::string &field) const {
  LLAMAC_RETURN_IF_ERROR(checkEnum(absl::StrCat(field, ": type"), weight.type));
  LLAMAC_RETURN_IF_ERROR(
      checkEnum(absl::StrCat(field, ": layout"), weight.layout));
  LLAMAC_RETURN_IF_ERROR(
      checkRange(absl::StrCat(field, ": rows"), weight.rows, 1, maxSize));
  LLAMAC_RETURN_IF_ERROR(
      checkRange(absl::StrCat(field, ": cols"), weight.cols, 1, maxSize));
  const schema::WeightLayout packed = plan.target == "cpu"
                                          ? schema::WeightLayout::Panel16
                                          : schema::WeightLayout::Planes;
  if (weight.layout != schema::WeightLayout::RowMajor &&
      weight.layout != packed)
    return wrong(absl::StrCat(field, ": layout"),
                 absl::StrCat(schema::EnumNameWeightLayout(packed), " for ",
                              plan.target),
                 schema::EnumNameWeightLayout(weight.layout));
  if (weight.layout != schema::WeightLayout::RowMajor && weight.cols % 8 != 0)
    return wrong(absl::StrCat(field, ": cols"), "a multiple of 8", weight.cols);
  const auto expected = expectedShape(config, weight.name);
  if (expected && *expected != std::pair(weight.rows, weight.cols))
    return wrong(
        absl::StrCat(field, ": shape"),
        absl::StrCat("[", expected->first, ", ", expected->second, "]"),
        absl::StrCat("[", weight.rows, ", ", weight.cols, "]"));
  return absl::OkStatus();
}

absl::Status Verifier::checkSource(const schema::WeightT &weight,
                                   const std::string &field) const {
  const schema::WeightSourceT &source = *weight.source;
  LLAMAC_RETURN_IF_ERROR(
      checkText(absl::StrCat(field, ": tensor"), source.tensor));
  LLAMAC_RETURN_IF_ERROR(
      checkEnum(absl::StrCat(field, ": source type"), source.type));
  if (weight.type != source.type && !canQuantizeTo(fromPlan(weight.type)))
    return wrong(absl::StrCat(field, ": type"),
                 "the source's or one that is written",
                 dataTypeName(fromPlan(weight.type)));
  LLAMAC_RETURN_IF_ERROR(checkRange(absl::StrCat(field, ": split dimension"),
                                    source.splitDim, 0, 1));
  LLAMAC_RETURN_IF_ERROR(checkRange(absl::StrCat(field, ": rotary halves"),
                                    source.rotaryHalves, 0, weight.rows));
  if (source.rotaryHalves != 0 &&
      (source.rotaryHalves % 2 != 0 || weight.rows % source.rotaryHalves != 0))
    return wrong(absl::StrCat(field, ": rotary halves"),
                 absl::StrCat("an even divisor of ", weight.rows),
                 source.rotaryHalves);
  uint64_t total = 0;
  for (const schema::SourceExtent &part : source.parts) {
    LLAMAC_RETURN_IF_ERROR(checkBelow(absl::StrCat(field, ": source file"),
                                      part.file(), plan.sourceFiles.size()));
    const schema::SourceFileT &file = *plan.sourceFiles[part.file()];
    if (!isInside(part.offset(), part.size(), file.size))
      return wrong(absl::StrCat(field, ": extent"),
                   absl::StrCat("to end within the ", file.size, " bytes of ",
                                file.path),
                   absl::StrCat(part.size(), " bytes from ", part.offset()));
    const std::optional<uint64_t> sum = checkedAdd(total, part.size());
    if (!sum)
      return wrong(absl::StrCat(field, ": extents"), "a sum of 64 bits",
                   "more");
    total = *sum;
  }
  const std::optional<uint64_t> bytes =
      checkedTensorBytes(fromPlan(source.type), weight.rows, weight.cols);
  if (!bytes || *bytes != total)
    return wrong(absl::StrCat(field, ": extents"),
                 bytes ? absl::StrCat(*bytes, " bytes") : "whole blocks",
                 absl::StrCat(total, " bytes for [", weight.rows, ", ",
                              weight.cols, "]"));
  return absl::OkStatus();
}

absl::Status Verifier::checkWeight(const schema::WeightT &weight,
                                   const std::string &field) const {
  LLAMAC_RETURN_IF_ERROR(checkWeightShape(weight, field));
  const std::optional<uint64_t> bytes =
      checkedTensorBytes(fromPlan(weight.type), weight.rows, weight.cols);
  if (!bytes || *bytes > maxBytes)
    return wrong(absl::StrCat(field, ": shape"),
                 absl::StrCat("whole blocks and at most ", maxBytes, " bytes"),
                 absl::StrCat("[", weight.rows, ", ", weight.cols, "]"));
  auto isBare = [](const schema::WeightT &other) {
    return other.section < 0 && !other.source;
  };
  if (weight.section >= 0 && weight.source)
    return wrong(field, "either a section or a source", "both");
  if (isBare(weight) != isBare(*plan.weights.front()))
    return wrong(field, "a section or a source as for all weights or none",
                 isBare(weight) ? "neither" : "one");
  if (isBare(weight))
    return absl::OkStatus();
  if (weight.source)
    return checkSource(weight, field);
  LLAMAC_RETURN_IF_ERROR(checkSection(absl::StrCat(field, ": section"),
                                      weight.section, SectionKind::Weight));
  const uint64_t size = sections[weight.section].size;
  if (size != packedBytes(weight))
    return wrong(absl::StrCat(field, ": bytes"),
                 absl::StrCat(packedBytes(weight), " for [", weight.rows, ", ",
                              weight.cols, "]"),
                 size);
  return absl::OkStatus();
}

absl::Status Verifier::checkWeights() const {
  std::set<absl::string_view> names;
  for (size_t i = 0; i < plan.weights.size(); ++i) {
    const schema::WeightT &weight = *plan.weights[i];
    LLAMAC_RETURN_IF_ERROR(
        checkText(absl::StrCat("weight ", i, ": name"), weight.name));
    const std::string field =
        absl::StrCat("weight ", i, " (", weight.name, ")");
    if (!names.insert(weight.name).second)
      return wrong(field, "a name of its own", "one used before");
    LLAMAC_RETURN_IF_ERROR(checkWeight(weight, field));
  }
  return absl::OkStatus();
}

absl::Status Verifier::checkKv() const {
  const schema::KvLayoutT &kv = *plan.kv;
  LLAMAC_RETURN_IF_ERROR(
      checkRange("kv: tokens of a page", kv.pageTokens, 1, maxSize));
  const int64_t pages = (plan.context - 1) / kv.pageTokens + 1;
  if (kv.pagesPerSequence != pages)
    return wrong("kv: pages of a sequence",
                 absl::StrCat(pages, " for a context of ", plan.context),
                 kv.pagesPerSequence);
  LLAMAC_RETURN_IF_ERROR(
      checkRange("kv: sequences", kv.maxSequences, 1, maxRows));
  // A page holds at least a byte for each element of K and of V.
  const std::optional<uint64_t> least =
      checkedProduct({2, static_cast<uint64_t>(kv.pageTokens),
                      static_cast<uint64_t>(config.numKvHeads),
                      static_cast<uint64_t>(config.headSize)});
  if (!least || kv.pageBytes < *least)
    return wrong("kv: bytes of a page",
                 least ? absl::StrCat("at least ", *least) : "64 bits",
                 kv.pageBytes);
  if (kv.pageBytes % 64 != 0)
    return wrong("kv: bytes of a page", "a multiple of 64", kv.pageBytes);
  LLAMAC_RETURN_IF_ERROR(
      checkBelow("kv: bytes of a page", kv.pageBytes, maxBytes));
  const std::optional<uint64_t> poolPages = checkedMul(
      static_cast<uint64_t>(pages), static_cast<uint64_t>(kv.maxSequences));
  if (!poolPages || *poolPages >= maxSize)
    return wrong("kv: pages", absl::StrCat("fewer than ", maxSize),
                 absl::StrCat(pages, " x ", kv.maxSequences));
  const std::optional<uint64_t> bytes = checkedProduct(
      {*poolPages, kv.pageBytes, static_cast<uint64_t>(config.numLayers)});
  if (!bytes || *bytes > maxBytes)
    return wrong("kv: bytes of the pool", absl::StrCat("at most ", maxBytes),
                 bytes ? absl::StrCat(*bytes) : "more than 64 bits hold");
  return absl::OkStatus();
}

// What a launch of it has is checked when one is launched.
absl::Status Verifier::checkVariant(const schema::VariantT &variant,
                                    const std::string &field) {
  LLAMAC_RETURN_IF_ERROR(
      checkText(absl::StrCat(field, ": symbol"), variant.symbol));
  LLAMAC_RETURN_IF_ERROR(
      checkText(absl::StrCat(field, ": tiles"), variant.tiles));
  return checkText(absl::StrCat(field, ": source"), variant.source);
}

absl::Status Verifier::checkKernel(const schema::KernelT &kernel,
                                   const std::string &field) {
  LLAMAC_RETURN_IF_ERROR(
      checkText(absl::StrCat(field, ": symbol"), kernel.symbol));
  LLAMAC_RETURN_IF_ERROR(
      checkText(absl::StrCat(field, ": family"), kernel.family));
  LLAMAC_RETURN_IF_ERROR(
      checkEnum(absl::StrCat(field, ": overlap"), kernel.overlap));
  for (size_t v = 0; v < kernel.variants.size(); ++v)
    LLAMAC_RETURN_IF_ERROR(checkVariant(*kernel.variants[v],
                                        absl::StrCat(field, ": variant ", v)));
  return absl::OkStatus();
}

absl::Status Verifier::checkKernels() const {
  for (size_t i = 0; i < plan.kernels.size(); ++i)
    LLAMAC_RETURN_IF_ERROR(
        checkKernel(*plan.kernels[i], absl::StrCat("kernel ", i)));
  return absl::OkStatus();
}

absl::Status Verifier::checkOperand(const schema::ProgramT &program,
                                    const schema::Operand &operand,
                                    const std::string &field) const {
  switch (operand.kind()) {
  case schema::OperandKind::Arena:
    return checkBelow(absl::StrCat(field, ": arena offset"), operand.offset(),
                      program.arenaBytes);
  case schema::OperandKind::Weight:
    return checkBelow(absl::StrCat(field, ": weight"), operand.index(),
                      plan.weights.size());
  case schema::OperandKind::Kv:
    return checkBelow(absl::StrCat(field, ": kv layer"), operand.index(),
                      static_cast<uint64_t>(config.numLayers));
  case schema::OperandKind::Input:
    return checkBelow(absl::StrCat(field, ": input"), operand.index(),
                      static_cast<uint64_t>(schema::InputRole::MAX) + 1);
  case schema::OperandKind::Constant: {
    LLAMAC_RETURN_IF_ERROR(checkSection(absl::StrCat(field, ": constants"),
                                        operand.index(),
                                        SectionKind::Constants));
    return checkBelow(absl::StrCat(field, ": offset in constants"),
                      operand.offset(), sections[operand.index()].size);
  }
  case schema::OperandKind::Counters:
    return checkBelow(absl::StrCat(field, ": offset in counters"),
                      operand.offset(), plan.counterBytes);
  }
  return wrong(
      absl::StrCat(field, ": kind"),
      absl::StrCat("0 to ", static_cast<int>(schema::OperandKind::MAX)),
      static_cast<int>(operand.kind()));
}

absl::Status Verifier::checkLaunch(const schema::ProgramT &program,
                                   const schema::LaunchT &launch,
                                   const std::string &field) const {
  LLAMAC_RETURN_IF_ERROR(checkBelow(absl::StrCat(field, ": kernel"),
                                    launch.kernel, plan.kernels.size()));
  LLAMAC_RETURN_IF_ERROR(checkEnum(absl::StrCat(field, ": rows"), launch.rows));
  LLAMAC_RETURN_IF_ERROR(checkRange(absl::StrCat(field, ": row block"),
                                    launch.rowBlock, 0, maxRows));
  LLAMAC_RETURN_IF_ERROR(
      checkRange(absl::StrCat(field, ": items"), launch.items, 1, maxItems));
  const int64_t rows = launch.rows == schema::RowSymbol::Tokens
                           ? program.maxRows
                           : program.maxWanted;
  const int64_t blocks =
      launch.rowBlock == 0 ? 1 : (rows - 1) / launch.rowBlock + 1;
  LLAMAC_RETURN_IF_ERROR(checkRange(absl::StrCat(field, ": items x row blocks"),
                                    launch.items * blocks, 1, maxItems));
  LLAMAC_RETURN_IF_ERROR(checkBelow(absl::StrCat(field, ": scratch bytes"),
                                    launch.scratchBytes, maxScratch + 1));
  const bool hasBlocks = plan.target == "cuda" || plan.target == "sim";
  LLAMAC_RETURN_IF_ERROR(checkRange(absl::StrCat(field, ": threads of a block"),
                                    launch.threads, hasBlocks ? 1 : 0,
                                    maxBlockThreads));
  LLAMAC_RETURN_IF_ERROR(checkRange(absl::StrCat(field, ": cluster"),
                                    launch.cluster, 1,
                                    hasBlocks ? maxCluster : 1));
  if (launch.items % launch.cluster != 0)
    return wrong(absl::StrCat(field, ": items"),
                 absl::StrCat("whole clusters of ", launch.cluster),
                 launch.items);
  if (launch.dependent && !hasBlocks)
    return wrong(absl::StrCat(field, ": dependent"),
                 absl::StrCat("false for target ", plan.target), "true");
  for (size_t i = 0; i < launch.operands.size(); ++i)
    LLAMAC_RETURN_IF_ERROR(checkOperand(program, launch.operands[i],
                                        absl::StrCat(field, ": operand ", i)));
  if (!isInside(launch.workspaceOffset, launch.workspaceBytes,
                program.arenaBytes))
    return wrong(absl::StrCat(field, ": workspace"),
                 absl::StrCat("a place for ", launch.workspaceBytes,
                              " bytes in the arena of ", program.arenaBytes),
                 absl::StrCat("offset ", launch.workspaceOffset));
  if (!hasBlocks && !launch.maps.empty())
    return wrong(absl::StrCat(field, ": tensor maps"),
                 absl::StrCat("none for target ", plan.target),
                 launch.maps.size());
  for (size_t i = 0; i < launch.maps.size(); ++i)
    LLAMAC_RETURN_IF_ERROR(checkMap(program, launch, launch.maps[i],
                                    absl::StrCat(field, ": tensor map ", i)));
  return absl::OkStatus();
}

absl::Status Verifier::checkMap(const schema::ProgramT &program,
                                const schema::LaunchT &launch,
                                const schema::TensorMap &map,
                                const std::string &field) const {
  LLAMAC_RETURN_IF_ERROR(checkBelow(absl::StrCat(field, ": operand"),
                                    map.operand(), launch.operands.size()));
  const TensorMapShape shape = shapeOf(map);
  if (const std::string problem = problemOf(shape); !problem.empty())
    return wrong(field, "a matrix that can be copied by boxes", problem);
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
    size = static_cast<uint64_t>(plan.kv->pagesPerSequence) *
           static_cast<uint64_t>(plan.kv->maxSequences) * plan.kv->pageBytes;
    break;
  default:
    return wrong(absl::StrCat(field, ": operand"),
                 "in the arena, a weight or the KV cache",
                 schema::EnumNameOperandKind(operand.kind()));
  }
  if (offset % 16 != 0 || !isInside(offset, shape.bytes(), size))
    return wrong(field,
                 absl::StrCat("an aligned place for ", shape.bytes(),
                              " bytes in the operand's ", size),
                 absl::StrCat("offset ", offset));
  return absl::OkStatus();
}

absl::Status Verifier::checkProgram(const schema::ProgramT &program,
                                    const std::string &field) const {
  LLAMAC_RETURN_IF_ERROR(
      checkRange(absl::StrCat(field, ": rows"), program.maxRows, 1, maxRows));
  LLAMAC_RETURN_IF_ERROR(checkRange(absl::StrCat(field, ": wanted rows"),
                                    program.maxWanted, 1,
                                    static_cast<uint64_t>(program.maxRows)));
  if (program.arenaBytes > maxBytes)
    return wrong(absl::StrCat(field, ": arena"),
                 absl::StrCat("at most ", maxBytes, " bytes"),
                 program.arenaBytes);
  const uint64_t logits = static_cast<uint64_t>(program.maxWanted) *
                          static_cast<uint64_t>(config.vocabSize) *
                          sizeof(float);
  if (program.logitsOffset % alignof(float) != 0 ||
      !isInside(program.logitsOffset, logits, program.arenaBytes))
    return wrong(absl::StrCat(field, ": logits"),
                 absl::StrCat("an aligned place for ", logits,
                              " bytes in the arena of ", program.arenaBytes),
                 absl::StrCat("offset ", program.logitsOffset));
  const uint64_t tokens =
      static_cast<uint64_t>(program.maxWanted) * sizeof(int32_t);
  const auto tokensOffset = static_cast<uint64_t>(program.tokensOffset);
  if (program.tokensOffset != -1 &&
      (tokensOffset % alignof(int32_t) != 0 ||
       !isInside(tokensOffset, tokens, program.arenaBytes)))
    return wrong(absl::StrCat(field, ": tokens"),
                 absl::StrCat("-1 or an aligned place for ", tokens,
                              " bytes in the arena of ", program.arenaBytes),
                 absl::StrCat("offset ", program.tokensOffset));
  for (size_t i = 0; i < program.launches.size(); ++i)
    LLAMAC_RETURN_IF_ERROR(
        checkLaunch(program, *program.launches[i],
                    absl::StrCat(field, ": launch ", i, " (",
                                 program.launches[i]->label, ")")));
  return absl::OkStatus();
}

absl::Status Verifier::checkPrograms() const {
  if (plan.counterBytes % sizeof(uint32_t) != 0 ||
      plan.counterBytes > maxCounterBytes)
    return wrong("counters",
                 absl::StrCat("a multiple of ", sizeof(uint32_t),
                              " bytes and at most ", maxCounterBytes),
                 plan.counterBytes);
  if (plan.programs.empty())
    return wrong("programs", "at least one", "none");
  int64_t previous = 0;
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    const schema::ProgramT &program = *plan.programs[i];
    const std::string field =
        absl::StrCat("program ", i, " (", program.name, ")");
    LLAMAC_RETURN_IF_ERROR(checkProgram(program, field));
    if (program.maxRows < previous)
      return wrong(
          absl::StrCat(field, ": rows"),
          absl::StrCat("at least the ", previous, " of the program before"),
          program.maxRows);
    previous = program.maxRows;
    const bool samples = plan.programs[0]->tokensOffset != -1;
    if ((program.tokensOffset != -1) != samples)
      return wrong(absl::StrCat(field, ": tokens"),
                   samples ? "some, as in the first program"
                           : "none, as in the first program",
                   program.tokensOffset);
  }
  return absl::OkStatus();
}

absl::Status Verifier::checkCode() const {
  for (size_t i = 0; i < plan.code.size(); ++i) {
    const std::string field = absl::StrCat("code ", i);
    LLAMAC_RETURN_IF_ERROR(
        checkText(absl::StrCat(field, ": isa"), plan.code[i]->isa));
    LLAMAC_RETURN_IF_ERROR(checkSection(absl::StrCat(field, ": section"),
                                        plan.code[i]->section,
                                        SectionKind::Code));
  }
  if (plan.sourceSection != -1)
    LLAMAC_RETURN_IF_ERROR(
        checkSection("source", plan.sourceSection, SectionKind::Source));
  return absl::OkStatus();
}

absl::Status Verifier::checkTokenizer() const {
  if (!plan.tokenizer)
    return absl::OkStatus();
  const schema::TokenizerT &tokenizer = *plan.tokenizer;
  const auto lastId = static_cast<uint64_t>(config.vocabSize - 1);
  LLAMAC_RETURN_IF_ERROR(checkText("tokenizer: kind", tokenizer.kind));
  LLAMAC_RETURN_IF_ERROR(checkSection("tokenizer: section", tokenizer.section,
                                      SectionKind::Tokenizer));
  LLAMAC_RETURN_IF_ERROR(
      checkRange("tokenizer: begin of sequence", tokenizer.bos, -1, lastId));
  if (tokenizer.addBos && tokenizer.bos < 0)
    return wrong("tokenizer: begin of sequence", "an id, as it is added",
                 tokenizer.bos);
  for (int32_t id : tokenizer.stopIds)
    LLAMAC_RETURN_IF_ERROR(checkRange("tokenizer: stop id", id, 0, lastId));
  return absl::OkStatus();
}

absl::Status Verifier::checkSampling() const {
  if (!plan.sampling)
    return absl::OkStatus();
  const schema::SamplingT &sampling = *plan.sampling;
  if (!(sampling.temperature >= 0 && std::isfinite(sampling.temperature)))
    return wrong("sampling: temperature", "a number of at least 0",
                 sampling.temperature);
  if (!(sampling.topP > 0 && sampling.topP <= 1))
    return wrong("sampling: top_p", "a number in (0, 1]", sampling.topP);
  return checkRange("sampling: top_k", sampling.topK, 0, maxSize);
}

absl::Status Verifier::run() const {
  LLAMAC_RETURN_IF_ERROR(checkText("producer", plan.producer));
  LLAMAC_RETURN_IF_ERROR(checkText("target", plan.target));
  LLAMAC_RETURN_IF_ERROR(checkConfig());
  LLAMAC_RETURN_IF_ERROR(checkSourceFiles());
  LLAMAC_RETURN_IF_ERROR(checkWeights());
  LLAMAC_RETURN_IF_ERROR(checkKv());
  LLAMAC_RETURN_IF_ERROR(checkKernels());
  LLAMAC_RETURN_IF_ERROR(checkPrograms());
  LLAMAC_RETURN_IF_ERROR(checkCode());
  LLAMAC_RETURN_IF_ERROR(checkTokenizer());
  return checkSampling();
}

absl::Status verifyPlan(const schema::PlanT &plan,
                        const std::vector<PlanSection> &sections) {
  if (!plan.config || !plan.kv)
    return wrong("config and kv", "both", "one missing");
  return Verifier(plan, sections).run();
}

} // namespace llamac
