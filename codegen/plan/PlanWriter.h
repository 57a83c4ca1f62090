//===- PlanWriter.h - Writes a plan file ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan is written as a stream, section by section, to an AtomicFile; finish()
// makes it durable and gives it its name in one step. Whatever fails or kills
// the writer before that leaves an older plan of the same name as it was.
//
//   LLAMAC_ASSIGN_OR_RETURN(auto writer, PlanWriter::create("model.plan"));
//   LLAMAC_ASSIGN_OR_RETURN(uint32_t code,
//                           writer->addSection(SectionKind::Code, elf));
//   LLAMAC_ASSIGN_OR_RETURN(uint32_t weight, writer->addSection(
//       SectionKind::Weight, [&](PlanWriter &out) -> absl::Status {
//         for (...)
//           LLAMAC_RETURN_IF_ERROR(out.append(panel));
//         return absl::OkStatus();
//       }));
//   ... plan.weights[i]->section = weight ...
//   return writer->finish(plan);
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_PLAN_PLANWRITER_H
#define LLAMAC_CODEGEN_PLAN_PLANWRITER_H

#include "runtime/io/AtomicFile.h"
#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/plan_generated.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include <memory>
#include <string>
#include <vector>

namespace llamac {

class PlanWriter {
public:
  /// Errors: those of AtomicFile::create().
  static absl::StatusOr<std::unique_ptr<PlanWriter>>
  create(absl::string_view path, FileCalls calls = FileCalls::system());

  PlanWriter(const PlanWriter &) = delete;
  PlanWriter &operator=(const PlanWriter &) = delete;

  /// Removes the temporary file, unless finish() succeeded.
  ~PlanWriter();

  /// Adds a section that holds `bytes`; its number is for the manifest.
  /// Errors of this and the functions below: memory when the disk is full,
  /// device for any other failure; the writer is unusable afterwards.
  absl::StatusOr<uint32_t> addSection(SectionKind kind,
                                      absl::Span<const uint8_t> bytes);

  /// Adds a section whose bytes `fill` gives by calls of append(). An error of
  /// `fill` is passed on.
  absl::StatusOr<uint32_t>
  addSection(SectionKind kind,
             absl::FunctionRef<absl::Status(PlanWriter &)> fill);

  /// The next bytes of the section being filled.
  absl::Status append(absl::Span<const uint8_t> bytes);

  /// Bytes written so far.
  uint64_t bytesWritten() const { return file->size(); }

  /// Writes the manifest, the table and the header, waits until they are on
  /// the disk, and renames the file. A plan that PlanReader would refuse is an
  /// internal error.
  absl::Status finish(const schema::PlanT &plan);

private:
  struct HashState;

  PlanWriter(std::string path, std::unique_ptr<AtomicFile> file);

  std::string path;
  std::unique_ptr<AtomicFile> file;
  std::vector<PlanSection> sections;
  std::unique_ptr<HashState> hash; ///< The running hash of the piece being
                                   ///< filled.
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_PLAN_PLANWRITER_H
