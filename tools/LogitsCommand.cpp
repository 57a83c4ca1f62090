//===- LogitsCommand.cpp - Writes logits to a file ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/LogitsCommand.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "tools/RunCommand.h"

#include "absl/strings/str_cat.h"

namespace llamac {

// NumPy's format: magic, version, length of the header, and a Python literal
// padded with spaces so that the data begins at a multiple of 64 bytes.
static std::string npyHeader(int64_t rows, int64_t cols) {
  std::string text =
      absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows,
                   ", ", cols, "), }");
  constexpr size_t fixed = 10;
  const size_t total = (fixed + text.size() + 1 + 63) / 64 * 64;
  text.append(total - fixed - text.size() - 1, ' ');
  text.push_back('\n');
  std::string header("\x93NUMPY\x01\x00", 8);
  header.push_back(static_cast<char>(text.size() & 0xff));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

absl::StatusOr<NpyWriter> NpyWriter::create(const std::string &path,
                                            int64_t rows, int64_t cols) {
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file,
                          AtomicFile::createOrOpen(path));
  LLAMAC_RETURN_IF_ERROR(file->write(npyHeader(rows, cols)));
  return NpyWriter(std::move(file));
}

absl::Status NpyWriter::writeRow(absl::Span<const float> values) {
  return file->write(
      absl::string_view(reinterpret_cast<const char *>(values.data()),
                        values.size() * sizeof(float)));
}

absl::Status logitsCommand(const std::shared_ptr<const Model> &model,
                           const LogitsOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                          parseTokenIds(options.tokens));
  const auto count = static_cast<int64_t>(tokens.size());
  if (options.chunk < 0)
    return usageError(
        absl::StrCat("--chunk: expected 0 or more, got ", options.chunk));
  if (count > model->context())
    return contextError(model->context(), absl::StrCat(count));
  LLAMAC_ASSIGN_OR_RETURN(
      const std::unique_ptr<Engine> engine,
      Engine::create(model, {.batchInvariant = options.batchInvariant}));
  LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine->newSequence());
  LLAMAC_ASSIGN_OR_RETURN(
      NpyWriter writer,
      NpyWriter::create(options.output, count, model->config().vocabSize));
  const int64_t chunk = options.chunk == 0 ? count : options.chunk;
  for (int64_t first = 0; first < count; first += chunk) {
    const auto part = absl::MakeConstSpan(tokens).subspan(first, chunk);
    LLAMAC_RETURN_IF_ERROR(engine->step(
        {{&sequence, part, OutputRows::All}},
        [&](const LogitsRow &row) { return writer.writeRow(row.values); }));
  }
  return writer.finish();
}

} // namespace llamac
