//===- Reproducer.cpp - Files that show a wrong pass or kernel ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/check/Reproducer.h"

#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"
#include "tools/LogitsCommand.h"

#include "absl/strings/str_cat.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>

using namespace mlir;

namespace llamac {

absl::StatusOr<Reproducer> Reproducer::create(const std::string &folder,
                                              const std::string &stem) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return usageError(
        absl::StrCat(folder, ": cannot be made: ", error.message()));
  return Reproducer((std::filesystem::path(folder) / stem).string());
}

absl::Status Reproducer::writeModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().enableDebugInfo());
  return writeText("mlir", text);
}

absl::Status Reproducer::writeText(const std::string &ending,
                                   const std::string &text) {
  files.push_back(absl::StrCat(stem, ".", ending));
  return writeFileAtomically(files.back(), text);
}

absl::Status Reproducer::writeNpy(const std::string &name, int64_t rows,
                                  absl::Span<const float> values) {
  if (rows == 0 || values.empty())
    return absl::OkStatus();
  files.push_back(absl::StrCat(stem, ".", name, ".npy"));
  LLAMAC_ASSIGN_OR_RETURN(
      NpyWriter writer,
      NpyWriter::create(files.back(), rows,
                        static_cast<int64_t>(values.size()) / rows));
  LLAMAC_RETURN_IF_ERROR(writer.writeRow(values));
  return writer.finish();
}

} // namespace llamac
