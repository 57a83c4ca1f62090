//===- PlanReader.h - Opens a plan file -------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PLAN_PLANREADER_H
#define LLAMAC_RUNTIME_PLAN_PLANREADER_H

#include "runtime/io/MappedFile.h"
#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/plan_generated.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

struct PlanReadOptions {
  /// Whether the checksums of all sections are verified: the whole file is
  /// read. The header, the table and the manifest are always checked.
  bool verify = true;
  /// Threads that verify.
  int threads = 2;
};

/// Which of its variants a kernel is: none, or one by its number; and, where
/// the plan has no machine code of it but its device needs some, an ELF shared
/// object that defines its symbol.
struct KernelPick {
  std::optional<size_t> variant = {};
  std::shared_ptr<const std::string> code = {};
};

/// How the steps of a program run: by one of the plan's schedules, or as the
/// plan has them; and how their launches overlap.
struct ProgramPick {
  std::optional<size_t> schedule = {};
  schema::Overlap overlap = schema::Overlap::FromStart;

  friend bool operator==(const ProgramPick &, const ProgramPick &) = default;
};

/// A plan file, mapped; what it gives lives as long as it does.
class PlanReader {
public:
  /// Maps and checks the plan at `path`. Errors: badFile when there is no such
  /// file; badPlan, naming the section, what was expected and what was found,
  /// when it is damaged, truncated, of another version or makes no sense.
  static absl::StatusOr<std::shared_ptr<const PlanReader>>
  open(absl::string_view path, const PlanReadOptions &options = {});

  const std::string &path() const { return file->path(); }
  uint64_t fileBytes() const { return file->size(); }

  /// The manifest, which verifyPlan() has found sound.
  const schema::PlanT &plan() const { return manifest; }

  const std::vector<PlanSection> &sections() const { return table; }

  /// The same plan with its kernels as `picks`, by the kernels' numbers, says:
  /// the manifest has the variants' symbols and geometry. Errors: internal for
  /// variants that it does not have, badPlan for what makes no sense.
  absl::StatusOr<std::shared_ptr<const PlanReader>>
  withPicks(absl::Span<const KernelPick> picks) const;

  /// The same plan with its programs as `picks`, by their numbers, says.
  /// Kernels that only these launch follow the plan's own in the manifest, and
  /// need code by withPicks() where a device does not compile their source.
  /// Errors: internal for a schedule that does not have the program, badPlan
  /// for what makes no sense.
  absl::StatusOr<std::shared_ptr<const PlanReader>>
  withSchedules(absl::Span<const ProgramPick> picks) const;

  /// The variant that kernel `number` is; null when it is the plan's own.
  const schema::VariantT *variantOf(size_t number) const {
    if (number >= picked.size())
      return nullptr;
    const std::optional<size_t> &variant = picked[number].variant;
    return variant ? manifest.kernels[number]->variants[*variant].get()
                   : nullptr;
  }

  /// Its code, where the pick came with some; else null.
  const std::string *codeOf(size_t number) const {
    return number < picked.size() ? picked[number].code.get() : nullptr;
  }

  /// The bytes of section `number`, in the map.
  absl::Span<const uint8_t> bytes(uint32_t number) const {
    return file->span().subspan(table[number].offset, table[number].size);
  }

private:
  PlanReader() = default;

  std::shared_ptr<PlanReader> copy() const;
  absl::Status readManifest();
  absl::Status verifyCopy() const;
  absl::Status verifyChecksums(size_t firstSection, int threads) const;
  absl::Status checkPiece(size_t section, size_t piece) const;

  std::shared_ptr<MappedFile> file;
  std::vector<PlanSection> table;
  schema::PlanT manifest;
  std::vector<KernelPick> picked; ///< By kernel; empty: all are the plan's own.
};

/// Checks that the source files of `plan` are the ones it was compiled from
/// and maps them, in order. Errors: badPlan naming the file that is missing,
/// changed in size or changed in content.
absl::StatusOr<std::vector<std::shared_ptr<MappedFile>>>
openSourceFiles(const PlanReader &plan);

} // namespace llamac

#endif // LLAMAC_RUNTIME_PLAN_PLANREADER_H
