//===- ModelsCommands.cpp - llamac pull, list, show and rm ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/llamac/Commands.h"
#include "compiler/models/Library.h"
#include "compiler/models/Pull.h"
#include "frontends/Families.h"
#include "frontends/PulledNames.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/JsonText.h"
#include "text/tokenizer/Tokenizer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace llamac {

/// An argument that is the name of a pulled model.
static void addName(CLI::App &verb, std::string &name, const char *text) {
  verb.add_option("NAME", name, text)->required();
}

void addPullCommand(CLI::App &app, absl::Status &status) {
  struct Command {
    std::string name;
    bool quiet = false;
  };
  auto command = std::make_shared<Command>();
  CLI::App *verb = app.add_subcommand("pull", "Fetch a model");
  addName(
      *verb, command->name,
      "OWNER/REPO of a model server, with :FILE for one of several .gguf "
      "files, such as :Q4_K_M, and @REVISION for another than the main "
      "branch; or the URL of a .gguf file, #sha256=... to have it verified");
  const OptionGroup group{*verb};
  group.addFlag("-q,--quiet", command->quiet, "Print no progress");
  verb->footer("Examples:\n"
               "  llamac pull OWNER/REPO\n"
               "  llamac pull OWNER/REPO:Q4_K_M\n"
               "  llamac pull https://example.org/model.gguf\n\n"
               "What was interrupted goes on where it ended. HF_TOKEN is the "
               "token that models\nwhich are not for everybody need, "
               "HF_ENDPOINT another server, LLAMAC_MODELS the\nfolder of "
               "models.");
  verb->callback([command, &status] {
    status = pullModel(command->name, command->quiet);
  });
}

static std::string dateOf(int64_t seconds) {
  return absl::FormatTime("%Y-%m-%d %H:%M", absl::FromUnixSeconds(seconds),
                          absl::LocalTimeZone());
}

namespace {

struct ListCommand {
  bool asJson = false;
  bool namesAlone = false;
};

} // namespace

static absl::Status listModels(const ListCommand &command) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<PulledModel> models,
                          pulledModels());
  LLAMAC_ASSIGN_OR_RETURN(const std::string folder, modelsFolder());
  size_t width = 4;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const PulledModel &model : models) {
    width = std::max(width, model.name.size());
    json.push_back({{"name", model.name},
                    {"bytes", model.bytes()},
                    {"format", model.format()},
                    {"pulled", model.pulled},
                    {"source", model.source},
                    {"revision", model.revision},
                    {"path", absl::StrCat(folder, "/", model.name)}});
  }
  if (command.namesAlone) {
    for (const PulledModel &model : models)
      absl::PrintF("%s\n", model.name);
    return absl::OkStatus();
  }
  if (command.asJson) {
    absl::PrintF("%s\n", jsonText(json, 2));
    return absl::OkStatus();
  }
  absl::PrintF("%-*s  %10s  %-11s  %s\n", width, "name", "size", "format",
               "pulled");
  for (const PulledModel &model : models)
    absl::PrintF("%-*s  %10s  %-11s  %s\n", width, model.name,
                 formatBytes(model.bytes()), model.format(),
                 dateOf(model.pulled));
  if (models.empty())
    std::fprintf(stderr, "no models in %s; llamac pull fetches one\n",
                 printable(folder).c_str());
  return absl::OkStatus();
}

void addListCommand(CLI::App &app, absl::Status &status) {
  auto command = std::make_shared<ListCommand>();
  CLI::App *verb = app.add_subcommand("list", "List the pulled models");
  const OptionGroup group{*verb};
  group.addFlag("--json", command->asJson, "Print one JSON array");
  group.addFlag("-q,--quiet", command->namesAlone, "Print the names alone")
      ->excludes("--json");
  verb->callback([command, &status] { status = listModels(*command); });
}

void addRmCommand(CLI::App &app, absl::Status &status) {
  auto name = std::make_shared<std::string>();
  CLI::App *verb = app.add_subcommand("rm", "Remove a pulled model");
  addName(*verb, *name,
          "A name that llamac list shows, or of a model that is "
          "not complete");
  verb->footer(
      "Plans that were compiled of it stay in the cache until they are "
      "evicted.");
  verb->callback([name, &status] {
    const auto removed = removePulled(*name);
    status = removed.status();
    if (removed.ok())
      absl::PrintF("removed %s, %s\n", printable(removed->name),
                   formatBytes(removed->bytes));
  });
}

//===----------------------------------------------------------------------===//
// show
//===----------------------------------------------------------------------===//

static std::string describeWeights(const Checkpoint &checkpoint) {
  std::map<DataType, uint64_t> bytes;
  for (const WeightSource &weight : checkpoint.weights.weights())
    bytes[weight.type] += dataTypeBytes(
        weight.type, static_cast<uint64_t>(weight.rows * weight.cols));
  std::vector<std::pair<uint64_t, DataType>> sorted;
  for (const auto &[type, size] : bytes)
    sorted.emplace_back(size, type);
  std::ranges::sort(sorted, std::greater());
  return absl::StrJoin(sorted, ", ", [](std::string *out, const auto &entry) {
    absl::StrAppend(out, dataTypeName(entry.second), " ",
                    formatBytes(entry.first));
  });
}

static std::string describeParameters(const Checkpoint &checkpoint) {
  double count = 0;
  for (const WeightSource &weight : checkpoint.weights.weights())
    count += static_cast<double>(weight.rows * weight.cols);
  return count < 999.5e6 ? absl::StrFormat("%.0f million", count / 1e6)
                         : absl::StrFormat("%.2f billion", count / 1e9);
}

static std::string describeSampling(const GenerationDefaults &generation) {
  std::vector<std::string> parts;
  if (generation.temperature)
    parts.push_back(absl::StrCat("temperature ", *generation.temperature));
  if (generation.topK)
    parts.push_back(absl::StrCat("top_k ", *generation.topK));
  if (generation.topP)
    parts.push_back(absl::StrCat("top_p ", *generation.topP));
  return parts.empty() ? "none" : absl::StrJoin(parts, ", ");
}

static absl::Status showModel(const std::string &name) {
  LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, openModelOrConfig(name));
  const ModelConfig &config = checkpoint.config;
  const auto print = [](absl::string_view key, const absl::AlphaNum &value) {
    absl::PrintF("%-14s %s\n", key, printable(value.Piece()));
  };
  print("name", checkpoint.name);
  print("path", checkpoint.path);
  if (const auto pulled = readManifest(checkpoint.path); pulled.ok()) {
    print("source",
          absl::StrCat(pulled->source, pulled->revision.empty() ? "" : " at ",
                       pulled->revision.substr(0, 12)));
    print("pulled",
          absl::StrCat(dateOf(pulled->pulled), ", ", pulled->describeSize()));
  }
  print("format", checkpointFormatName(checkpoint.format));
  print("family", checkpoint.family ? checkpoint.family->modelType : "llama");
  if (!checkpoint.weights.weights().empty())
    print("parameters", describeParameters(checkpoint));
  print("context", absl::StrCat(config.maxContext, " tokens"));
  print("layers", absl::StrCat(config.numLayers, ", ", config.dim,
                               " wide; feed-forward ", config.ffnDim));
  print("heads", absl::StrCat(config.numHeads, " of ", config.headSize, "; ",
                              config.numKvHeads, " of keys and values"));
  print("vocabulary", absl::StrCat(config.vocabSize, " tokens",
                                   config.tiedEmbeddings
                                       ? "; the output matrix is the embedding"
                                       : ""));
  if (!checkpoint.weights.weights().empty())
    print("weights", describeWeights(checkpoint));
  print("tokenizer", tokenizerFormatName(checkpoint.tokenizer.kind));
  LLAMAC_ASSIGN_OR_RETURN(const std::string blob, tokenizerBlob(checkpoint));
  if (!blob.empty()) {
    LLAMAC_ASSIGN_OR_RETURN(const TokenizerBlob parsed,
                            TokenizerBlob::parse(blob));
    print("chat template", parsed.chatTemplates().empty() ? "no" : "yes");
  }
  print("sampling", describeSampling(checkpoint.generation));
  if (!checkpoint.weights.weights().empty()) {
    LLAMAC_ASSIGN_OR_RETURN(const std::string plan,
                            cachedPlan(checkpoint, CompileOptions()));
    print("plan", plan.empty() ? "none is cached: the first run compiles it"
                               : "cached at " + plan);
  }
  return absl::OkStatus();
}

void addShowCommand(CLI::App &app, absl::Status &status) {
  auto name = std::make_shared<std::string>();
  CLI::App *verb = app.add_subcommand("show", "Say what a model is");
  verb->add_option("MODEL", *name, "A model; llamac inspect shows more")
      ->required();
  verb->callback([name, &status] { status = showModel(*name); });
}

} // namespace llamac
