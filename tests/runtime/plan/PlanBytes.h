//===- PlanBytes.h - Plan files made by hand --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The writer makes only sound plans; these functions make any.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_RUNTIME_PLAN_PLANBYTES_H
#define LLAMAC_TESTS_RUNTIME_PLAN_PLANBYTES_H

#include "runtime/plan/PlanReader.h"
#include "tests/TemporaryFolder.h"
#include "tests/engine/toy/ToyModel.h"

#include <string>

namespace llamac {

std::string readBytes(const std::string &path);
void writeBytes(const std::string &path, const std::string &bytes);

/// The parts of a plan file before its hashes are made.
struct PlanParts {
  PlanHeader header;
  std::vector<SectionEntry> entries;
  std::string sections; ///< From the end of the header to the table.
  std::vector<PlanHash> hashes;

  /// The file, with the checksum of header and table that fits them.
  std::string bytes() const;
};

/// The parts of a sound file.
PlanParts splitPlan(const std::string &bytes);

/// The flatbuffer of `plan`.
std::string manifestOf(const schema::PlanT &plan);

/// The manifest of the toy plan with numbers of eight bytes at an odd multiple
/// of four.
std::string misalignedManifest();

/// The toy plan as a file, whatever its manifest says; `manifest` replaces the
/// flatbuffer.
std::string unsoundPlan(const toy::ToyPlan &toy,
                        const std::string &manifest = "");

/// The status that PlanReader gives for `bytes` in a file called "bad.plan".
absl::Status readStatus(const std::string &bytes,
                        const PlanReadOptions &options = {});

} // namespace llamac

#endif // LLAMAC_TESTS_RUNTIME_PLAN_PLANBYTES_H
