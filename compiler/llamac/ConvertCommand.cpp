//===- ConvertCommand.cpp - llamac convert ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#include "compiler/driver/PlanCache.h"
#include "compiler/llamac/Commands.h"
#include "frontends/Checkpoint.h"
#include "frontends/Convert.h"
#include "frontends/TokenizerSources.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"
#include "tools/CommandTree.h"

#include "absl/strings/str_cat.h"

#include <cstdio>
#include <filesystem>

namespace llamac {

/// Copies the files of a directory's tokenizer, or writes those of a GGUF's.
static absl::Status writeTokenizerFiles(const TokenizerSource &tokenizer,
                                        const std::string &directory) {
  if (tokenizer.kind == TokenizerFormat::Gguf) {
    absl::Status status = writeHuggingFaceTokenizer(*tokenizer.gguf, directory);
    if (exitCode(status) != ExitCode::Unsupported)
      return status;
    // The weights are of use without it, to whoever has the tokenizer's file.
    printWarning(absl::StrCat("no tokenizer is written: ", status.message()));
    return absl::OkStatus();
  }
  if (tokenizer.paths.empty())
    return absl::OkStatus();
  const auto from = std::filesystem::path(tokenizer.paths[0]).parent_path();
  for (const std::string &path : tokenizer.paths) {
    LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                            MappedFile::open(path));
    const auto to = directory / std::filesystem::path(path).lexically_relative(
                                    from); // Templates may be in a folder.
    std::error_code error;                 // Writing says what is wrong.
    std::filesystem::create_directories(to.parent_path(), error);
    LLAMAC_RETURN_IF_ERROR(writeFileAtomically(to.string(), file->text()));
  }
  return absl::OkStatus();
}

namespace {

struct ConvertCommand {
  std::string model, output, form;
  std::string typeName; ///< Empty: what the format has unless told.
  bool quiet = false;

  absl::Status run() const {
    const bool toGguf = form == "gguf";
    ConvertOptions options;
    options.type = parseDataType(typeName);
    if (!typeName.empty() &&
        (!options.type || !(toGguf ? isGgufOutput(*options.type)
                                   : !isBlockFormat(*options.type))))
      return usageError(absl::StrCat(
          "--type: expected f32, f16",
          toGguf ? ", bf16, q8_0 or q4_0" : " or bf16", ", got ", typeName));
    LLAMAC_RETURN_IF_ERROR(checkNotInput("-o", output, model));
    LLAMAC_RETURN_IF_ERROR(checkNoPlan(model));
    LLAMAC_ASSIGN_OR_RETURN(Checkpoint checkpoint, openCheckpoint(model));
    Progress progress(quiet);
    options.progress = [&](uint64_t done, uint64_t total) {
      progress.update("writing weights", done, total);
    };
    options.writeTokenizer = [&](const std::string &folder) {
      return writeTokenizerFiles(checkpoint.tokenizer, folder);
    };
    LLAMAC_RETURN_IF_ERROR(
        toGguf           ? convertToGguf(checkpoint, output, options)
        : form == "meta" ? convertToMeta(checkpoint, output, options)
                         : convertToHuggingFace(checkpoint, output, options));
    progress.finish();
    if (!quiet)
      printWritten(output);
    return absl::OkStatus();
  }
};

} // namespace

void addConvertCommand(CLI::App &app, absl::Status &status) {
  auto command = std::make_shared<ConvertCommand>();
  CLI::App *verb =
      app.add_subcommand("convert", "Write a model in another format");
  addModelArgument(*verb, command->model, "A model directory or .gguf file")
      ->required();
  const OptionGroup group{*verb};
  group
      .add("-o,--output", command->output, "FILE",
           "File to write with --to gguf, else the directory, which must be "
           "empty or not exist")
      ->required()
      ->check(outputFile());
  group
      .add("--to", command->form, "FORMAT",
           "Format to write: meta, huggingface or gguf")
      ->required()
      ->check(CLI::IsMember({"meta", "huggingface", "gguf"}));
  group
      .add("--type", command->typeName, "TYPE",
           "Type that quantised weights are converted to: f32, f16 or bf16 "
           "(default bf16); to gguf that of all matrices, also q8_0 or q4_0 "
           "(default as they are)")
      ->transform(knownValues("f32, f16, bf16, q8_0, q4_0"));
  group.addFlag("-q,--quiet", command->quiet, "Print no progress");
  verb->footer("Examples:\n"
               "  llamac convert model.gguf -o model --to huggingface\n"
               "  llamac convert model -o model.gguf --to gguf --type q8_0");
  verb->callback([command, &status] { status = command->run(); });
}

} // namespace llamac
