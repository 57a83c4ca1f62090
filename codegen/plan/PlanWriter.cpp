//===- PlanWriter.cpp - Writes a plan file --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/plan/PlanWriter.h"

#include "runtime/base/Status.h"
#include "runtime/plan/PlanVerifier.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <xxhash.h>

namespace llamac {

/// The running hash of the piece being filled.
struct PlanWriter::HashState {
  XXH3_state_t *state = XXH3_createState();
  uint64_t bytes = 0;

  HashState() { XXH3_128bits_reset(state); }
  ~HashState() { XXH3_freeState(state); }
  HashState(const HashState &) = delete;
  HashState &operator=(const HashState &) = delete;

  void update(absl::Span<const uint8_t> data) {
    XXH3_128bits_update(state, data.data(), data.size());
    bytes += data.size();
  }
  PlanHash finishPiece() {
    const XXH128_hash_t digest = XXH3_128bits_digest(state);
    XXH3_128bits_reset(state);
    bytes = 0;
    return {digest.low64, digest.high64};
  }
};

absl::StatusOr<std::unique_ptr<PlanWriter>>
PlanWriter::create(absl::string_view path, FileCalls calls) {
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file,
                          AtomicFile::create(path, std::move(calls)));
  // The header's place; its bytes are written last.
  LLAMAC_RETURN_IF_ERROR(
      file->write(std::vector<uint8_t>(sizeof(PlanHeader), 0)));
  return std::unique_ptr<PlanWriter>(
      new PlanWriter(std::string(path), std::move(file)));
}

PlanWriter::PlanWriter(std::string path, std::unique_ptr<AtomicFile> file)
    : path(std::move(path)), file(std::move(file)),
      hash(std::make_unique<HashState>()) {}

PlanWriter::~PlanWriter() = default;

absl::Status PlanWriter::append(absl::Span<const uint8_t> bytes) {
  LLAMAC_RETURN_IF_ERROR(file->write(bytes));
  PlanSection &section = sections.back();
  section.size += bytes.size();
  while (!bytes.empty()) {
    const auto part = bytes.subspan(
        0, std::min<uint64_t>(bytes.size(), planPieceBytes - hash->bytes));
    hash->update(part);
    bytes.remove_prefix(part.size());
    if (hash->bytes == planPieceBytes)
      section.pieces.push_back(hash->finishPiece());
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t>
PlanWriter::addSection(SectionKind kind,
                       absl::FunctionRef<absl::Status(PlanWriter &)> fill) {
  LLAMAC_RETURN_IF_ERROR(file->alignTo(alignmentOf(kind)));
  sections.push_back({kind, bytesWritten(), 0, {}});
  LLAMAC_RETURN_IF_ERROR(fill(*this));
  if (hash->bytes != 0)
    sections.back().pieces.push_back(hash->finishPiece());
  return static_cast<uint32_t>(sections.size() - 1);
}

absl::StatusOr<uint32_t>
PlanWriter::addSection(SectionKind kind, absl::Span<const uint8_t> bytes) {
  return addSection(kind, [&](PlanWriter &out) { return out.append(bytes); });
}

absl::Status PlanWriter::finish(const schema::PlanT &plan) {
  if (absl::Status status = verifyPlan(plan, sections); !status.ok())
    return internalError(absl::StrCat(
        path, ": the compiler made an invalid plan: ", status.message()));
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishPlanBuffer(builder, schema::Plan::Pack(builder, &plan));
  LLAMAC_RETURN_IF_ERROR(
      addSection(SectionKind::Manifest,
                 absl::Span<const uint8_t>(builder.GetBufferPointer(),
                                           builder.GetSize()))
          .status());

  const uint64_t tableOffset = bytesWritten();
  const std::vector<uint8_t> table = makePlanTable(sections);
  const PlanHeader header = makePlanHeader(
      table, static_cast<uint32_t>(sections.size()), tableOffset);
  LLAMAC_RETURN_IF_ERROR(file->write(table));
  LLAMAC_RETURN_IF_ERROR(file->overwrite(
      0, {reinterpret_cast<const uint8_t *>(&header), sizeof header}));
  return file->commit();
}

} // namespace llamac
