//===- PlanVerifier.cpp - Is a manifest fit to run? -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanVerifier.h"

#include "runtime/plan/PlanChecks.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace llamac {

bool PlanChecks::checkSection(const PlanPlace &at, int64_t number,
                              SectionKind kind) const {
  if (!at.isIn(number, 0, sections.empty() ? 0 : sections.size() - 1))
    return false;
  return (static_cast<uint64_t>(number) < sections.size() &&
          sections[number].kind == kind) ||
         at.wrong(
             absl::StrCat("a section that holds a ", sectionKindName(kind)),
             absl::StrCat("section ", number));
}

bool PlanChecks::checkConfig() {
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

bool PlanChecks::checkSourceFiles() const {
  for (size_t i = 0; i < plan.sourceFiles.size(); ++i) {
    const PlanPlace at = root[absl::StrCat("source file ", i)];
    if (!at["path"].isText(plan.sourceFiles[i]->path) ||
        !at["fingerprint"].isText(plan.sourceFiles[i]->fingerprint))
      return false;
  }
  return true;
}

bool PlanChecks::checkKv() const {
  const schema::KvLayoutT &kv = *plan.kv;
  const PlanPlace at = root["kv"], pageBytes = at["bytes of a page"];
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

bool PlanChecks::checkKvGroups() const {
  const schema::KvLayoutT &kv = *plan.kv;
  const PlanPlace at = root["kv"];
  const auto layers = static_cast<uint64_t>(config.numLayers);
  if (!at["groups"].isIn(static_cast<int64_t>(kv.groups.size()), 1, layers))
    return false;
  for (size_t i = 0; i < kv.groups.size(); ++i) {
    const schema::KvGroup &group = kv.groups[i];
    const PlanPlace of = at[absl::StrCat("group ", i)];
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
bool PlanChecks::checkRings() const {
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

bool PlanChecks::checkCode() const {
  for (size_t i = 0; i < plan.code.size(); ++i) {
    const PlanPlace at = root[absl::StrCat("code ", i)];
    if (!at["isa"].isText(plan.code[i]->isa) ||
        !checkSection(at["section"], plan.code[i]->section, SectionKind::Code))
      return false;
  }
  return plan.sourceSection == -1 ||
         checkSection(root["source"], plan.sourceSection, SectionKind::Source);
}

bool PlanChecks::checkTokenizer() const {
  if (!plan.tokenizer)
    return true;
  const schema::TokenizerT &tokenizer = *plan.tokenizer;
  const auto lastId = static_cast<uint64_t>(config.vocabSize - 1);
  const PlanPlace at = root["tokenizer"], bos = at["begin of sequence"];
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

bool PlanChecks::checkSampling() const {
  if (!plan.sampling)
    return true;
  const schema::SamplingT &sampling = *plan.sampling;
  const PlanPlace at = root["sampling"];
  if (!(sampling.temperature >= 0 && std::isfinite(sampling.temperature)))
    return at["temperature"].wrong("a number of at least 0",
                                   sampling.temperature);
  if (!(sampling.topP > 0 && sampling.topP <= 1))
    return at["top_p"].wrong("a number in (0, 1]", sampling.topP);
  return at["top_k"].isIn(sampling.topK, 0, maxSize);
}

absl::Status PlanChecks::run() {
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
  return PlanChecks(plan, sections).run();
}

} // namespace llamac
