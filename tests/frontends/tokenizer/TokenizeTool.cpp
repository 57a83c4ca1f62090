//===- TokenizeTool.cpp - Encodes many texts in one process ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests against other tokenizers:
//
//   tokenize_tool KIND PATH [--special] [--bos]
//
// KIND is tiktoken, huggingface, sentencepiece, gguf or directory. Texts come
// on standard input, each a u32 length and its bytes. For each one goes to
// standard output the number of ids (u32), the ids (i32), and what they decode
// to as a u32 length and bytes. The tokenizer goes through its blob, as in a
// plan. On standard error: bytes and nanoseconds of all encoding, and the
// nanoseconds of loading the blob.
//
//   tokenize_tool stops KIND PATH
//
// writes the ids that end an answer.
//
//   tokenize_tool classes
//
// writes the CharClass of every code point as a byte; 4 is added where it
// counts as upper case, 8 where it counts as lower case.
//
//===----------------------------------------------------------------------===//

#include "frontends/TokenizerSources.h"
#include "frontends/gguf/GgufReader.h"
#include "runtime/io/MappedFile.h"
#include "text/tokenizer/Tokenizer.h"

#include <chrono>
#include <cstdio>
#include <iostream>

using namespace llamac;

static absl::StatusOr<std::string> buildBlob(const std::string &kind,
                                             const std::string &path) {
  if (kind == "directory") {
    LLAMAC_ASSIGN_OR_RETURN(std::optional<std::string> blob,
                            buildDirectoryBlob(path));
    if (!blob)
      return usageError("the directory holds no tokenizer");
    return *std::move(blob);
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  const NamedText text = {path, file->text()};
  if (kind == "tiktoken")
    return buildTiktokenBlob(text);
  if (kind == "sentencepiece")
    return buildSentencePieceBlob(text);
  if (kind == "huggingface")
    return buildHuggingFaceBlob({text, std::nullopt, std::nullopt});
  if (kind == "gguf") {
    LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const GgufReader> reader,
                            GgufReader::open(file));
    return buildGgufBlob(*reader);
  }
  return usageError("unknown kind of tokenizer: " + kind);
}

static void writeU32(size_t value) {
  const uint32_t number = static_cast<uint32_t>(value);
  std::cout.write(reinterpret_cast<const char *>(&number), sizeof(number));
}

static bool readText(std::string &text) {
  uint32_t length = 0;
  if (!std::cin.read(reinterpret_cast<char *>(&length), sizeof(length)))
    return false;
  text.resize(length);
  return static_cast<bool>(std::cin.read(text.data(), length));
}

static int64_t nanosecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now() - begin)
      .count();
}

static absl::Status encodeAll(const Tokenizer &tokenizer,
                              EncodeOptions options) {
  size_t bytes = 0;
  int64_t time = 0;
  for (std::string text; readText(text);) {
    const auto begin = std::chrono::steady_clock::now();
    LLAMAC_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                            tokenizer.encode(text, options));
    time += nanosecondsSince(begin);
    bytes += text.size();
    LLAMAC_ASSIGN_OR_RETURN(const std::string decoded, tokenizer.decode(ids));
    writeU32(ids.size());
    std::cout.write(reinterpret_cast<const char *>(ids.data()),
                    static_cast<std::streamsize>(ids.size() * sizeof(ids[0])));
    writeU32(decoded.size());
    std::cout.write(decoded.data(),
                    static_cast<std::streamsize>(decoded.size()));
  }
  std::cerr << "encoded " << bytes << " bytes in " << time << " ns\n";
  return absl::OkStatus();
}

static absl::Status run(const std::vector<std::string> &args) {
  if (args.size() == 1 && args[0] == "classes") {
    const CharClasses classes;
    for (uint32_t codepoint = 0; codepoint < 0x110000; ++codepoint)
      std::cout.put(static_cast<char>(static_cast<int>(classes[codepoint]) +
                                      (classes.isUpper(codepoint) ? 4 : 0) +
                                      (classes.isLower(codepoint) ? 8 : 0)));
    return absl::OkStatus();
  }
  if (args.size() == 3 && args[0] == "stops") {
    LLAMAC_ASSIGN_OR_RETURN(const std::string bytes,
                            buildBlob(args[1], args[2]));
    LLAMAC_ASSIGN_OR_RETURN(const TokenizerBlob blob,
                            TokenizerBlob::parse(bytes));
    for (const int32_t id : blob.stopIds())
      std::cout << id << "\n";
    return absl::OkStatus();
  }
  if (args.size() < 2)
    return usageError("usage: tokenize_tool KIND PATH [--special] [--bos]");
  EncodeOptions options;
  for (size_t i = 2; i < args.size(); ++i) {
    options.special |= args[i] == "--special";
    options.addBos |= args[i] == "--bos";
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::string blob, buildBlob(args[0], args[1]));
  const auto begin = std::chrono::steady_clock::now();
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                          loadTokenizer(absl::string_view(blob)));
  std::cerr << "loaded " << blob.size() << " bytes in "
            << nanosecondsSince(begin) << " ns\n";
  return encodeAll(*tokenizer, options);
}

int main(int argc, char **argv) {
  const absl::Status status = run({argv + 1, argv + argc});
  if (status.ok())
    return 0;
  std::cerr << status.message() << "\n";
  return static_cast<int>(exitCode(status));
}
