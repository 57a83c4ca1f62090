//===- PlanReader.cpp - Opens a plan file ---------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanReader.h"

#include "runtime/base/ParallelFor.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanVerifier.h"

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
  // The manifest's own checksum comes before anything it says is believed.
  LLAMAC_RETURN_IF_ERROR(reader->verifyChecksums(reader->table.size() - 1, 1));
  LLAMAC_RETURN_IF_ERROR(reader->readManifest());
  if (options.verify)
    LLAMAC_RETURN_IF_ERROR(reader->verifyChecksums(0, options.threads));
  return reader;
}

absl::Status PlanReader::readManifest() {
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
  if (!schema::VerifyPlanBuffer(verifier))
    return badPlanError(absl::StrCat(
        where, ": expected a flatbuffer of this version's schema, got ",
        buffer.size(), " bytes that are none; compile it again"));
  schema::GetPlan(buffer.data())->UnPackTo(&manifest);
  const std::vector<PlanSection> before(table.begin(), table.end() - 1);
  if (absl::Status status = verifyPlan(manifest, before); !status.ok())
    return badPlanError(
        absl::StrCat(where, ": ", status.message(), "; compile it again"));
  return absl::OkStatus();
}

/// A map of a variant, for a launch of at most `rows` rows.
static schema::TensorMap boundMap(const schema::TensorMap &map, int64_t rows) {
  return {map.operand(),  map.elementBytes(),
          map.columns(),  map.rows() ? map.rows() : static_cast<uint64_t>(rows),
          map.rowBytes(), map.boxColumns(),
          map.boxRows(),  map.swizzleBytes()};
}

/// Gives `launch`, of at most `rows` rows, the geometry of `variant`.
static void take(const schema::VariantT &variant, int64_t rows,
                 schema::LaunchT &launch) {
  launch.items = variant.items;
  launch.rowBlock = variant.rowBlock;
  launch.scratchBytes = variant.scratchBytes;
  launch.threads = variant.threads;
  launch.cluster = variant.cluster;
  // What must not overlap stays so.
  launch.dependent = launch.dependent && variant.dependent;
  launch.maps.clear();
  for (const schema::TensorMap &map : variant.maps)
    launch.maps.push_back(boundMap(map, rows));
}

std::shared_ptr<PlanReader> PlanReader::copy() const {
  std::shared_ptr<PlanReader> reader(new PlanReader);
  reader->file = file;
  reader->table = table;
  reader->manifest = manifest;
  return reader;
}

absl::Status PlanReader::verifyCopy() const {
  const std::vector<PlanSection> before(table.begin(), table.end() - 1);
  if (absl::Status status = verifyPlan(manifest, before); !status.ok())
    return withContext(status, path());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const PlanReader>>
PlanReader::withPicks(absl::Span<const KernelPick> picks) const {
  if (picks.size() != manifest.kernels.size() || !picked.empty())
    return internalError("picks are not one for each kernel of a plan as made");
  std::shared_ptr<PlanReader> reader = copy();
  reader->picked.assign(picks.begin(), picks.end());
  for (size_t i = 0; i < picks.size(); ++i) {
    schema::KernelT &kernel = *reader->manifest.kernels[i];
    const std::optional<size_t> &pick = picks[i].variant;
    if (!pick)
      continue;
    if (*pick >= kernel.variants.size())
      return internalError(
          absl::StrCat("kernel ", kernel.symbol, " has no such variant"));
    const schema::VariantT &variant = *kernel.variants[*pick];
    kernel.symbol = variant.symbol;
    for (const auto &program : reader->manifest.programs)
      for (const auto &launch : program->launches)
        if (launch->kernel == i)
          take(variant,
               launch->rows == schema::RowSymbol::Tokens ? program->maxRows
                                                         : program->maxWanted,
               *launch);
  }
  LLAMAC_RETURN_IF_ERROR(reader->verifyCopy());
  return reader;
}

/// Gives `program` the launches that `schedule` has in their place; its own
/// kernels stand in the plan from number `firstKernel` on, not behind the
/// `ownKernels` that the plan was made with. False when it has none.
static bool takeLaunches(const schema::ScheduleT &schedule, size_t ownKernels,
                         size_t firstKernel, schema::ProgramT &program) {
  const auto other = std::find_if(
      schedule.programs.begin(), schedule.programs.end(),
      [&](const auto &other) { return other->name == program.name; });
  if (other == schedule.programs.end())
    return false;
  const std::string tuning = program.tuning;
  program = **other;
  program.tuning = tuning;
  for (const auto &launch : program.launches)
    if (launch->kernel >= ownKernels)
      launch->kernel += static_cast<uint32_t>(firstKernel - ownKernels);
  return true;
}

/// Makes the launches of `program` overlap as `overlap` says. Kernels that let
/// the next launch begin elsewhere are others: `plan` gets copies.
static void takeOverlap(schema::Overlap overlap, schema::PlanT &plan,
                        schema::ProgramT &program) {
  std::map<uint32_t, uint32_t> copies; // By the number of the original.
  for (const auto &launch : program.launches) {
    if (!launch->dependent)
      continue;
    if (overlap == schema::Overlap::None) {
      launch->dependent = false;
      continue;
    }
    const auto [copy, isNew] = copies.try_emplace(
        launch->kernel, static_cast<uint32_t>(plan.kernels.size()));
    if (isNew) {
      plan.kernels.push_back(
          std::make_unique<schema::KernelT>(*plan.kernels[launch->kernel]));
      plan.kernels.back()->overlap = overlap;
    }
    launch->kernel = copy->second;
  }
}

absl::StatusOr<std::shared_ptr<const PlanReader>>
PlanReader::withSchedules(absl::Span<const ProgramPick> picks) const {
  if (picks.size() != manifest.programs.size() || !picked.empty())
    return internalError(
        "picks are not one for each program of a plan as made");
  std::shared_ptr<PlanReader> reader = copy();
  schema::PlanT &plan = reader->manifest;
  std::map<size_t, size_t> firstKernels; // By schedule.
  for (size_t i = 0; i < picks.size(); ++i) {
    if (const std::optional<size_t> number = picks[i].schedule) {
      if (*number >= manifest.schedules.size())
        return internalError("a plan has no such schedule");
      const schema::ScheduleT &schedule = *manifest.schedules[*number];
      const auto [first, isNew] =
          firstKernels.try_emplace(*number, plan.kernels.size());
      if (isNew)
        for (const auto &kernel : schedule.kernels)
          plan.kernels.push_back(std::make_unique<schema::KernelT>(*kernel));
      if (!takeLaunches(schedule, manifest.kernels.size(), first->second,
                        *plan.programs[i]))
        return internalError(absl::StrCat("schedule ", schedule.name,
                                          " has no program ",
                                          plan.programs[i]->name));
    }
    if (picks[i].overlap != schema::Overlap::FromStart)
      takeOverlap(picks[i].overlap, plan, *plan.programs[i]);
  }
  // What was chosen is the plan's; there is no choice left.
  plan.schedules.clear();
  LLAMAC_RETURN_IF_ERROR(reader->verifyCopy());
  return reader;
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

// Threads take pieces in turn; the error of the earliest bad piece is given,
// so that a damaged file always gets the same message.
absl::Status PlanReader::verifyChecksums(size_t firstSection,
                                         int threads) const {
  std::vector<std::pair<size_t, size_t>> pieces;
  for (size_t section = firstSection; section < table.size(); ++section)
    for (size_t piece = 0; piece < table[section].pieces.size(); ++piece)
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
