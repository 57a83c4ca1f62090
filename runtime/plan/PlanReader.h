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
  /// The rank whose part of the weights is verified, and so read; none: all.
  std::optional<int64_t> rank = {};
  /// Threads that verify.
  int threads = 2;
  /// Sequences that the cache shall hold; 0 for the plan's own number.
  int64_t sequences = 0;
  /// Whether a plan for cuda is read for as many as one step may choose tokens
  /// for, in place of `sequences`.
  bool fillsGpu = false;
};

/// The config of a kernel: its default, or that of one of its variants; and,
/// where a device does not compile the variant's source, an ELF shared object
/// that defines its symbol.
struct KernelConfig {
  std::optional<size_t> variant = {};
  std::shared_ptr<const std::string> code = {};
};

/// Configs in place of a plan's defaults.
struct SelectedConfigs {
  std::vector<KernelConfig> kernels;     ///< Configs by the plan's number of
                                         ///< the kernel.
  std::vector<schema::Overlap> overlaps; ///< Overlaps by program.
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

  /// The hash of the header and the table, and so of all the file has.
  PlanHash hash() const;

  /// The plan with other configs: the manifest has the variants' symbols and
  /// geometry, and copies of kernels for other overlaps. Errors: internal for
  /// variants that it does not have, badPlan for an invalid result.
  absl::StatusOr<std::shared_ptr<const PlanReader>>
  withConfigs(const SelectedConfigs &selected) const;

  /// The plan without the programs of these numbers, in ascending order, which
  /// are not all; its kernels stay. Errors: internal for numbers that it does
  /// not have, badPlan for an invalid result.
  absl::StatusOr<std::shared_ptr<const PlanReader>>
  withoutPrograms(absl::Span<const size_t> numbers) const;

  /// The variant that kernel `number` is; null when it has its default config.
  const schema::VariantT *variantOf(size_t number) const {
    if (number >= configs.size() || !configs[number].variant)
      return nullptr;
    return manifest.kernels[number]->variants[*configs[number].variant].get();
  }

  /// Its code, where the config came with some; else null.
  const std::string *codeOf(size_t number) const {
    return number < configs.size() ? configs[number].code.get() : nullptr;
  }

  /// The bytes of section `number`, in the map.
  absl::Span<const uint8_t> bytes(uint32_t number) const {
    return file->span().subspan(table[number].offset, table[number].size);
  }

private:
  PlanReader() = default;

  absl::Status readManifest(const PlanReadOptions &options);
  absl::Status verifyChanged() const;
  absl::Status verifyChecksums(const std::vector<bool> &isVerified,
                               int threads) const;
  std::vector<bool> sectionsOf(std::optional<int64_t> rank) const;
  absl::Status checkPiece(size_t section, size_t piece) const;

  std::shared_ptr<MappedFile> file;
  std::vector<PlanSection> table;
  schema::PlanT manifest;
  std::vector<KernelConfig> configs; ///< Configs by kernel; empty: all
                                     ///< defaults.
};

/// Checks that the source files of `plan` are the ones it was compiled from
/// and maps them, in order. Errors: badPlan naming the file that is missing,
/// changed in size or changed in content.
absl::StatusOr<std::vector<std::shared_ptr<MappedFile>>>
openSourceFiles(const PlanReader &plan);

} // namespace llamac

#endif // LLAMAC_RUNTIME_PLAN_PLANREADER_H
