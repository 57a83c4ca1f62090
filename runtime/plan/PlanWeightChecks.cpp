//===- PlanWeightChecks.cpp - Checks of a manifest's weights --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/formats/Dequantize.h"
#include "runtime/plan/PlanChecks.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

#include <cmath>
#include <optional>
#include <set>

namespace llamac {

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
      {"output", config.logitsSize(), config.dim},
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

bool PlanChecks::checkWeightShape(const schema::WeightT &weight,
                                  const PlanPlace &at) const {
  using schema::WeightLayout;
  if (!at["type"].isOneOf(weight.type) ||
      !at["layout"].isOneOf(weight.layout) ||
      !at["rows"].isIn(weight.rows, 1, maxSize) ||
      !at["cols"].isIn(weight.cols, 1, maxSize))
    return false;
  if (weight.layout != WeightLayout::RowMajor) {
    const WeightLayout packed =
        plan.target == "cpu" ? WeightLayout::Panel16 : WeightLayout::Tiles;
    if (weight.layout != packed)
      return at["layout"].wrong(
          absl::StrCat(EnumNameWeightLayout(packed), " for ", plan.target),
          EnumNameWeightLayout(weight.layout));
    if (weight.cols % 8 != 0)
      return at["cols"].wrong("a multiple of 8", weight.cols);
  }
  if (!at["dimension of parts"].isIn(weight.partsDim, 0, 1) ||
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

bool PlanChecks::checkSource(const schema::WeightT &weight,
                             const PlanPlace &at) const {
  const schema::WeightSourceT &source = *weight.source;
  if (!at["tensor"].isText(source.tensor) ||
      !at["source type"].isOneOf(source.type))
    return false;
  if (weight.type != source.type && !canQuantizeTo(fromPlan(weight.type)))
    return at["type"].wrong("the source's or one that is written",
                            dataTypeName(fromPlan(weight.type)));
  const PlanPlace halves = at["rotary halves"];
  const int64_t rotated = weight.rows == 1 ? weight.cols : weight.rows;
  if (!at["dimension of parts"].isIn(source.partsDim, 0, 1) ||
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

bool PlanChecks::checkWeight(const schema::WeightT &weight,
                             const PlanPlace &at) const {
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

bool PlanChecks::checkWeights() const {
  std::set<absl::string_view> names;
  for (size_t i = 0; i < plan.weights.size(); ++i) {
    const schema::WeightT &weight = *plan.weights[i];
    if (!root[absl::StrCat("weight ", i, ": name")].isText(weight.name))
      return false;
    const PlanPlace at =
        root[absl::StrCat("weight ", i, " (", weight.name, ")")];
    if (!names.insert(weight.name).second)
      return at.wrong("a name of its own", "one used before");
    if (!checkWeight(weight, at))
      return false;
  }
  return true;
}

} // namespace llamac
