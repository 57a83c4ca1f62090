//===- KernelOverride.cpp - Kernels that the user has edited --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/trial/KernelOverride.h"

#include "codegen/sim/SimCompiler.h"
#include "compiler/trial/KernelTrial.h"
#include "ir/kernel/Kernel.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace mlir;

namespace llamac {

absl::StatusOr<KernelOverride> readOverride(const std::string &flag) {
  const auto [kernel, path] = StringRef(flag).split('=');
  if (kernel.empty() || path.empty())
    return usageError(
        absl::StrCat("--override-kernel: expected NAME=FILE.cu, got ", flag));
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return usageError(
        absl::StrCat("--override-kernel: ", path.str(),
                     ": cannot be read: ", file.getError().message()));
  return KernelOverride{kernel.str(), path.str(), (*file)->getBuffer().str()};
}

//===----------------------------------------------------------------------===//
// The source
//===----------------------------------------------------------------------===//

namespace {

/// A kernel's parameters: "const float *input, float *out, int rows".
struct Signature {
  std::string text;
  std::vector<std::string> names;
};

} // namespace

/// The signature with which `source`, which was emitted, defines `kernel`.
static Signature signatureOf(StringRef source, StringRef kernel) {
  Signature signature;
  const StringRef rest =
      source.substr(source.find((kernel + "(").str()) + kernel.size() + 1);
  SmallVector<StringRef> parameters;
  rest.take_front(rest.find(") {")).split(parameters, ',');
  std::vector<std::string> texts;
  for (StringRef parameter : parameters) {
    SmallVector<StringRef> words;
    llvm::SplitString(parameter, words);
    texts.push_back(llvm::join(words, " "));
    signature.names.push_back(words.back().ltrim('*').str());
  }
  signature.text = llvm::join(texts, ", ");
  return signature;
}

/// "kernel.cu:12:3: error: ..." out of what Clang says of a unit.
static std::string firstError(StringRef messages) {
  SmallVector<StringRef> lines;
  messages.split(lines, '\n');
  for (StringRef line : lines)
    if (line.contains(" error: ")) {
      line.consume_front("/kernels/");
      return line.str();
    }
  return lines.front().str();
}

/// `override` as a unit that compiles only when it has the right signature.
static SourceFile unitOf(const KernelOverride &override,
                         const Signature &signature) {
  return {llvm::sys::path::filename(override.path).str(),
          absl::StrCat(override.text, "\nextern \"C\" __global__ void ",
                       override.kernel, "(", signature.text, ");\n")};
}

//===----------------------------------------------------------------------===//
// The check
//===----------------------------------------------------------------------===//

/// Row counts to try: a full tile and a ragged one after it; a tile has 128
/// rows where blocks go from tile to tile. Where a kernel keeps all rows in
/// registers, the most and one less.
static std::vector<int64_t> rowCounts(int64_t rowBlock, int64_t maxRows,
                                      int64_t context) {
  const int64_t most = std::min(maxRows, 2 * context);
  constexpr int64_t mostInRegisters = 8, rowsOfTile = 128;
  if (rowBlock == 0 && most > mostInRegisters)
    return {std::min(most, rowsOfTile + 19)};
  if (rowBlock == 0)
    return most > 1 ? std::vector<int64_t>{most, most - 1}
                    : std::vector<int64_t>{1};
  return {std::min<int64_t>(most, rowBlock == 1 ? 5 : rowBlock + 19)};
}

static absl::StatusOr<std::unique_ptr<SimModule>>
moduleOf(const KernelOverride &override, const Signature &signature,
         SimFlavour flavour) {
  auto undefined = [&] {
    return usageError(absl::StrCat("expected a definition of extern \"C\" ",
                                   override.kernel, "(", signature.text,
                                   "), got none"));
  };
  const absl::StatusOr<std::string> object =
      compileForSim({unitOf(override, signature)}, flavour);
  if (!object.ok()) {
    const std::string error =
        firstError(std::string(object.status().message()));
    const std::string quoted = "'" + override.kernel + "'";
    if (StringRef(error).contains("conflicting types for " + quoted))
      return usageError(absl::StrCat("expected ", override.kernel, "(",
                                     signature.text,
                                     "), got other parameters"));
    if (StringRef(error).contains(quoted + " has a different language linkage"))
      return undefined();
    return usageError(absl::StrCat("does not compile: ", error));
  }
  LLAMAC_ASSIGN_OR_RETURN(
      std::unique_ptr<SimModule> module,
      SimModule::open(
          {reinterpret_cast<const uint8_t *>(object->data()), object->size()},
          override.path));
  if (!module->kernel(override.kernel).ok())
    return undefined();
  return module;
}

/// The names of the parameters of `kernel` in messages; a resident step has
/// those of a table.
static std::vector<std::string> namesOf(plan::KernelOp kernel,
                                        const Signature &signature) {
  if (!kernel.getGeometry().getResident())
    return signature.names;
  std::vector<std::string> names;
  for (size_t i = 0; i < kernel.getParams().size(); ++i)
    names.push_back(absl::StrCat("table.at[", i, "]"));
  return names;
}

/// Checks `override` of `kernel`, which is emitted with `signature`.
static absl::Status checkOverride(const KernelOverride &override,
                                  plan::KernelOp kernel, int64_t context,
                                  const Backend &backend,
                                  const Signature &signature) {
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<SimModule> checked,
                          moduleOf(override, signature, SimFlavour::Checked));
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<SimModule> fast,
                          moduleOf(override, signature, SimFlavour::Fast));
  const int64_t rowBlock = kernel.getGeometry().getRowBlock();
  for (int64_t rows : rowCounts(rowBlock, kernel.getMaxRows(), context)) {
    LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<KernelTrial> trial,
                            KernelTrial::create(kernel,
                                                namesOf(kernel, signature),
                                                rows, context, backend));
    for (SimSchedule schedule : {SimSchedule::Forward, SimSchedule::Random})
      LLAMAC_RETURN_IF_ERROR(trial->run(
          *checked, {.schedule = schedule, .seed = 1, .checked = true}));
    LLAMAC_RETURN_IF_ERROR(trial->run(*fast, {}));
    LLAMAC_RETURN_IF_ERROR(trial->compare());
  }
  return absl::OkStatus();
}

/// Usage error that names the kernels that come nearest to `name`.
static absl::Status unknownKernel(StringRef name, ModuleOp plan) {
  // Names that begin alike come first.
  std::vector<std::tuple<bool, unsigned, std::string>> known;
  for (auto kernel : plan.getOps<plan::KernelOp>()) {
    const StringRef symbol = kernel.getSymName();
    known.emplace_back(!symbol.starts_with(name), name.edit_distance(symbol),
                       symbol.str());
  }
  llvm::sort(known);
  constexpr size_t shown = 3;
  known.resize(std::min(known.size(), shown));
  return usageError(
      absl::StrCat("--override-kernel: the plan has no kernel ", name.str(),
                   "; the nearest are ",
                   absl::StrJoin(known, ", ",
                                 [](std::string *out, const auto &near) {
                                   out->append(std::get<2>(near));
                                 }),
                   "; --emit-source writes a file for each"));
}

absl::Status applyOverrides(ArrayRef<KernelOverride> overrides, ModuleOp plan,
                            int64_t context, const Backend &backend,
                            std::vector<SourceFile> &sources) {
  const std::vector<SourceFile> emitted = sources;
  auto fileOf = [](auto &files, StringRef kernel) {
    return llvm::find_if(files, [&](const SourceFile &file) {
      return file.name == (kernel + ".cu").str();
    });
  };
  std::map<std::string, std::string> paths;
  for (const KernelOverride &override : overrides) {
    const auto [known, isNew] =
        paths.try_emplace(override.kernel, override.path);
    if (!isNew)
      return usageError(absl::StrCat(
          "--override-kernel: expected one file for ", override.kernel,
          ", got ", known->second, " and ", override.path));
    auto file = fileOf(sources, override.kernel);
    if (file == sources.end())
      return unknownKernel(override.kernel, plan);
    file->text = override.text;
  }
  for (const KernelOverride &override : overrides) {
    auto kernel = plan.lookupSymbol<plan::KernelOp>(override.kernel);
    const Signature signature =
        signatureOf(fileOf(emitted, override.kernel)->text, override.kernel);
    LLAMAC_RETURN_IF_ERROR(withContext(
        checkOverride(override, kernel, context, backend, signature),
        absl::StrCat("--override-kernel: ", override.path)));
  }
  return absl::OkStatus();
}

} // namespace llamac
