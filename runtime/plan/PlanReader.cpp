//===- PlanReader.cpp - Opens a plan file ---------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanReader.h"

#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/plan/PlanVerifier.h"
#include "runtime/threads/ParallelFor.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

namespace llamac {

absl::StatusOr<std::shared_ptr<const PlanReader>>
PlanReader::open(absl::string_view path, const PlanReadOptions &options) {
  std::shared_ptr<PlanReader> reader(new PlanReader);
  LLAMAC_ASSIGN_OR_RETURN(reader->file,
                          MappedFile::open(path, ExitCode::BadPlan));
  LLAMAC_ASSIGN_OR_RETURN(reader->table,
                          parsePlanTable(path, reader->file->span()));
  // The manifest's own checksum comes before its contents.
  std::vector<bool> verified(reader->table.size());
  verified.back() = true;
  LLAMAC_RETURN_IF_ERROR(reader->verifyChecksums(verified, /*threads=*/1));
  LLAMAC_RETURN_IF_ERROR(reader->readManifest(options));
  if (options.verify)
    LLAMAC_RETURN_IF_ERROR(reader->verifyChecksums(
        reader->sectionsOf(options.rank), options.threads));
  return reader;
}

PlanHash PlanReader::hash() const {
  PlanHeader header;
  std::memcpy(&header, file->data(), sizeof(header));
  return header.hash;
}

/// FlatBuffers verifies that vectors begin at multiples of four, not that
/// elements of eight bytes lie at multiples of eight. Those that are structs
/// are copied as bytes.
static bool numbersAreAligned(const schema::Plan &plan) {
  return std::all_of(
      plan.kernels()->begin(), plan.kernels()->end(),
      [](const schema::Kernel *kernel) {
        const flatbuffers::Vector<uint64_t> *numbers = kernel->resultRowBytes();
        return !numbers || reinterpret_cast<uintptr_t>(numbers->Data()) %
                                   alignof(uint64_t) ==
                               0;
      });
}

absl::Status PlanReader::readManifest(const PlanReadOptions &options) {
  const uint32_t number = static_cast<uint32_t>(table.size() - 1);
  const absl::Span<const uint8_t> buffer = bytes(number);
  flatbuffers::Verifier::Options limits;
  limits.max_depth = 16;
  limits.max_tables = 16u << 20;
  const std::string where =
      absl::StrCat(path(), ": section ", number, " (manifest)");
  if (buffer.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return badPlanError(absl::StrCat(where,
                                     ": size: expected less than 2 GiB, "
                                     "got ",
                                     buffer.size(), "; compile it again"));
  flatbuffers::Verifier verifier(buffer.data(), buffer.size(), limits);
  if (!schema::VerifyPlanBuffer(verifier) ||
      !numbersAreAligned(*schema::GetPlan(buffer.data())))
    return badPlanError(absl::StrCat(
        where, ": expected a flatbuffer of this version's schema, got ",
        buffer.size(), " bytes of other data; compile it again"));
  schema::GetPlan(buffer.data())->UnPackTo(&manifest);
  const std::vector<PlanSection> before(table.begin(), table.end() - 1);
  if (absl::Status status = verifyPlan(manifest, before); !status.ok())
    return badPlanError(
        absl::StrCat(where, ": ", status.message(), "; compile it again"));
  const int64_t sequences = options.fillsGpu && manifest.target == "cuda"
                                ? maxSampledRows(manifest)
                                : options.sequences;
  if (sequences == 0)
    return absl::OkStatus();
  manifest.kv->maxSequences = sequences;
  if (absl::Status status = verifyPlan(manifest, before); !status.ok())
    return usageError(status.message());
  return absl::OkStatus();
}

/// Sets the overlap of the launches of program number `program`. It is compiled
/// into kernels, or part of their geometry: `plan` gets copies of them, with
/// the `configs` of the originals.
static void setOverlap(schema::Overlap overlap, size_t program,
                       schema::PlanT &plan,
                       std::vector<KernelConfig> &configs) {
  std::map<uint32_t, uint32_t> copies; // Copies by the number of the original.
  for (const auto &launch : plan.programs[program]->launches) {
    const schema::KernelT &kernel = *plan.kernels[launch->kernel];
    if (!kernel.geometry->dependent)
      continue;
    const auto [copy, isNew] = copies.try_emplace(
        launch->kernel, static_cast<uint32_t>(plan.kernels.size()));
    if (isNew) {
      auto other = std::make_unique<schema::KernelT>(kernel);
      if (overlap == schema::Overlap::None)
        other->geometry->dependent = false;
      else
        other->overlap = overlap;
      plan.kernels.push_back(std::move(other));
      configs.push_back(KernelConfig(configs[launch->kernel]));
    }
    launch->kernel = copy->second;
  }
}

absl::StatusOr<std::shared_ptr<const PlanReader>>
PlanReader::withConfigs(const SelectedConfigs &selected) const {
  if (selected.kernels.size() != manifest.kernels.size() ||
      selected.overlaps.size() != manifest.programs.size() || !configs.empty())
    return internalError("configs are not one for each kernel and program of "
                         "a plan as made");
  std::shared_ptr<PlanReader> reader(new PlanReader(*this));
  schema::PlanT &plan = reader->manifest;
  reader->configs = selected.kernels;
  for (size_t i = 0; i < selected.kernels.size(); ++i) {
    schema::KernelT &kernel = *plan.kernels[i];
    const std::optional<size_t> &number = selected.kernels[i].variant;
    if (!number)
      continue;
    if (*number >= kernel.variants.size())
      return internalError(
          absl::StrCat("kernel ", kernel.symbol, " has no such variant"));
    const schema::VariantT &variant = *kernel.variants[*number];
    kernel.symbol = variant.symbol;
    *kernel.geometry = *variant.geometry;
  }
  for (size_t i = 0; i < selected.overlaps.size(); ++i)
    if (selected.overlaps[i] != schema::Overlap::FromStart)
      setOverlap(selected.overlaps[i], i, plan, reader->configs);
  LLAMAC_RETURN_IF_ERROR(reader->verifyChanged());
  return reader;
}

absl::StatusOr<std::shared_ptr<const PlanReader>>
PlanReader::withoutPrograms(absl::Span<const size_t> numbers) const {
  std::shared_ptr<PlanReader> reader(new PlanReader(*this));
  auto &programs = reader->manifest.programs;
  for (size_t i = numbers.size(); i-- > 0;) {
    if (numbers[i] >= programs.size())
      return internalError(
          absl::StrCat(path(), " has no program ", numbers[i]));
    programs.erase(programs.begin() + static_cast<ptrdiff_t>(numbers[i]));
  }
  LLAMAC_RETURN_IF_ERROR(reader->verifyChanged());
  return reader;
}

absl::Status PlanReader::verifyChanged() const {
  const std::vector<PlanSection> before(table.begin(), table.end() - 1);
  return withContext(verifyPlan(manifest, before), path());
}

absl::Status PlanReader::checkPiece(size_t section, size_t piece) const {
  const absl::Span<const uint8_t> all = bytes(static_cast<uint32_t>(section));
  const absl::Span<const uint8_t> part =
      all.subspan(piece * planPieceBytes, planPieceBytes);
  const PlanHash &expected = table[section].pieces[piece];
  const PlanHash got = hashBytes(part);
  if (got == expected)
    return absl::OkStatus();
  return badPlanError(absl::StrCat(
      path(), ":", table[section].offset + piece * planPieceBytes, ": section ",
      section, " (", sectionKindName(table[section].kind), "): checksum of ",
      part.size(), " bytes: expected ", hashText(expected), ", got ",
      hashText(got), "; the file is damaged, compile it again"));
}

/// Which sections that rank reads; without one, all.
std::vector<bool> PlanReader::sectionsOf(std::optional<int64_t> rank) const {
  std::vector<bool> isRead(table.size(), true);
  if (!rank)
    return isRead;
  for (const auto &weight : manifest.weights)
    for (int64_t part = 0; weight->section >= 0 && part < weight->parts; ++part)
      isRead[static_cast<size_t>(weight->section + part)] =
          part == partOf(*weight, *rank, manifest.ranks);
  return isRead;
}

// Threads take pieces in turn; the error of the earliest bad piece is given,
// so that a damaged file always gets the same message.
absl::Status PlanReader::verifyChecksums(const std::vector<bool> &isVerified,
                                         int threads) const {
  std::vector<std::pair<size_t, size_t>> pieces;
  for (size_t section = 0; section < table.size(); ++section)
    for (size_t piece = 0;
         isVerified[section] && piece < table[section].pieces.size(); ++piece)
      pieces.emplace_back(section, piece);

  std::atomic<size_t> firstBad{pieces.size()};
  parallelFor(threads, pieces.size(), [&](size_t i) {
    if (checkPiece(pieces[i].first, pieces[i].second).ok())
      return;
    size_t known = firstBad.load();
    while (i < known && !firstBad.compare_exchange_weak(known, i))
      ;
  });
  if (firstBad == pieces.size())
    return absl::OkStatus();
  return checkPiece(pieces[firstBad].first, pieces[firstBad].second);
}

absl::StatusOr<std::vector<std::shared_ptr<MappedFile>>>
openSourceFiles(const PlanReader &plan) {
  std::vector<std::shared_ptr<MappedFile>> files;
  auto stale = [&](const std::string &path, absl::string_view what) {
    return badPlanError(absl::StrCat(plan.path(),
                                     ": the plan refers to the weights in ",
                                     path, ": ", what, "; compile it again"));
  };
  for (const auto &source : plan.plan().sourceFiles) {
    auto file = MappedFile::open(source->path);
    if (exitCode(file.status()) == ExitCode::Memory)
      return file.status();
    if (!file.ok())
      return stale(source->path, file.status().message());
    if ((*file)->size() != source->size)
      return stale(source->path, absl::StrCat("size: expected ", source->size,
                                              ", got ", (*file)->size()));
    LLAMAC_ASSIGN_OR_RETURN(const std::string fingerprint,
                            fingerprintFiles({*file}));
    if (fingerprint != source->fingerprint)
      return stale(source->path,
                   absl::StrCat("fingerprint: expected ", source->fingerprint,
                                ", got ", fingerprint));
    files.push_back(*std::move(file));
  }
  return files;
}

} // namespace llamac
