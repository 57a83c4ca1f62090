//===- TokenizeCommand.cpp - llamac tokenize --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#include "compiler/driver/PlanCache.h"
#include "compiler/llamac/Commands.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanReader.h"
#include "text/tokenizer/Tokenizer.h"
#include "tools/AnswerOptions.h"
#include "tools/RunCommand.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <cstdio>
#include <optional>

namespace llamac {

namespace {

struct TokenizeCommand {
  std::string model;
  std::optional<std::string> text, file;
  bool special = false, decode = false, bos = false;

  absl::StatusOr<std::unique_ptr<Tokenizer>> load() const {
    std::string blob;
    if (namesPlan(model)) {
      LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<const PlanReader> plan,
                              PlanReader::open(model));
      if (plan->plan().tokenizer) {
        const auto bytes = plan->bytes(plan->plan().tokenizer->section);
        blob.assign(bytes.begin(), bytes.end());
      }
    } else {
      LLAMAC_ASSIGN_OR_RETURN(Checkpoint checkpoint, openCheckpoint(model));
      LLAMAC_ASSIGN_OR_RETURN(blob, tokenizerBlob(checkpoint));
    }
    if (blob.empty())
      return usageError(absl::StrCat(model, ": has no tokenizer"));
    return loadTokenizer(std::move(blob));
  }

  absl::Status run() {
    LLAMAC_RETURN_IF_ERROR(takeText(text, file, /*hasElse=*/false, stdin,
                                    "text", "TEXT or -f FILE"));
    LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, load());
    if (decode)
      return printText(*tokenizer);
    LLAMAC_ASSIGN_OR_RETURN(
        std::vector<int32_t> encoded,
        tokenizer->encode(*text, {.special = special, .addBos = bos}));
    std::printf("%s\n", absl::StrJoin(encoded, " ").c_str());
    return absl::OkStatus();
  }

  absl::Status printText(const Tokenizer &tokenizer) const {
    LLAMAC_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                            parseTokenIds(*text, "--decode"));
    LLAMAC_ASSIGN_OR_RETURN(std::string decoded, tokenizer.decode(ids));
    std::fwrite(decoded.data(), 1, decoded.size(), stdout);
    std::fputc('\n', stdout);
    return absl::OkStatus();
  }
};

} // namespace

void addTokenizeCommand(CLI::App &app, absl::Status &status) {
  auto command = std::make_shared<TokenizeCommand>();
  CLI::App *verb =
      app.add_subcommand("tokenize", "Print the token ids of a text");
  addModelArgument(*verb, command->model, "A model or plan")->required();
  CLI::Option *text = verb->add_option(
      "TEXT", command->text,
      "Text, or with --decode token ids; -, or none: read from stdin, without "
      "the last line feed");
  const OptionGroup group{*verb};
  group
      .add("-f,--file", command->file, "FILE",
           "File with the text, without its last line feed; -: stdin")
      ->excludes(text);
  group.addFlag("--special", command->special,
                "Read names of special tokens in the text as those tokens");
  group.addFlag("--bos", command->bos, "Put the begin-of-sequence token first");
  group.addFlag("--decode", command->decode, "Print the text of ids instead");
  verb->footer("Examples:\n"
               "  llamac tokenize model.gguf \"Hello, world\"\n"
               "  llamac tokenize model.gguf -f text.txt\n"
               "  llamac tokenize model.gguf --decode 1,2,3");
  verb->callback([command, &status] { status = command->run(); });
}

} // namespace llamac
