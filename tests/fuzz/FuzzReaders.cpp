//===- FuzzReaders.cpp - libFuzzer target of every reader -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever reads bytes that others may have made, one function for each format;
// LLAMAC_FUZZ_READER names the one to run. A reader may refuse its input by any
// error but an internal one; what it accepts must be fit for use. With
// LLAMAC_FUZZ_SEEDS set the binary writes seeds to that folder instead, for the
// formats that run_fuzzer.py does not write.
//
//===----------------------------------------------------------------------===//

#include "engine/cache/PrefixFile.h"
#include "engine/sampling/Sampler.h"
#include "frontends/Checkpoint.h"
#include "frontends/TensorFiles.h"
#include "frontends/TokenizerSources.h"
#include "frontends/gguf/GgufReader.h"
#include "frontends/meta/PickleReader.h"
#include "runtime/base/Status.h"
#include "runtime/io/JsonReader.h"
#include "runtime/plan/PlanReader.h"
#include "runtime/tuned/TuningStore.h"
#include "tests/TemporaryFolder.h"
#include "tests/frontends/tokenizer/SentencePieceTraining.h"
#include "tests/frontends/tokenizer/TokenizerFixtures.h"
#include "tests/fuzz/FuzzServer.h"
#include "tests/runtime/plan/PlanBytes.h"
#include "text/grammar/JsonSchema.h"
#include "text/request/RequestJson.h"
#include "text/templates/ChatTemplate.h"
#include "text/tokenizer/Tokenizer.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_split.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace llamac {
namespace {

using Bytes = absl::string_view;

void require(bool holds, const char *what, const std::string &message = "") {
  if (holds)
    return;
  std::fprintf(stderr, "expected %s: %s\n", what, message.c_str());
  std::abort();
}

/// Whether there is a result.
bool check(const absl::Status &status) {
  require(exitCode(status) != ExitCode::Internal, "no internal error",
          std::string(status.message()));
  return status.ok();
}

/// The path of a file of the one folder that all inputs are written to.
std::string pathOf(const std::string &name) {
  static const TemporaryFolder folder;
  return folder.file(name);
}

std::string asFile(const std::string &name, Bytes bytes) {
  writeBytes(pathOf(name), std::string(bytes));
  return pathOf(name);
}

std::shared_ptr<MappedFile> mapped(const std::string &name, Bytes bytes) {
  auto file = MappedFile::open(asFile(name, bytes));
  require(file.ok(), "a file that was just written");
  return *file;
}

/// The texts of an input for a format of several files: the last ones may be
/// missing.
std::vector<Bytes> parts(Bytes bytes) { return absl::StrSplit(bytes, '\0'); }

template <typename Tensors>
void checkExtents(const MappedFile &file, const Tensors &tensors) {
  for (const auto &tensor : tensors)
    require(file.slice(tensor.offset, tensor.size).ok(), "extents in the file");
}

/// Uses a vocabulary that was accepted.
void checkVocabulary(const absl::StatusOr<std::string> &blob) {
  if (!check(blob.status()))
    return;
  const auto tokenizer = loadTokenizer(*blob);
  require(tokenizer.ok(), "a blob that can be loaded");
  for (const bool special : {false, true}) {
    const auto ids =
        (*tokenizer)
            ->encode("Hi <s> <|eot_id|>\n  it's 123 \xe2\x82\xac\xff",
                     {.special = special});
    if (check(ids.status()))
      check((*tokenizer)->decode(*ids).status());
  }
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

void gguf(Bytes bytes) {
  const auto file = mapped("fuzz.gguf", bytes);
  const auto reader = GgufReader::open(file);
  if (!check(reader.status()))
    return;
  checkExtents(*file, (*reader)->tensors());
  for (const GgufValue &value : (*reader)->values()) {
    check((*reader)->optionalInt(value.key).status());
    check((*reader)->optionalString(value.key).status());
    check((*reader)->strings(value.key).status());
    check((*reader)->ints(value.key).status());
    check((*reader)->floats(value.key).status());
  }
  check(openCheckpoint(file->path()).status());
}

void safetensors(Bytes bytes) {
  const auto file = mapped("fuzz.safetensors", bytes);
  const auto tensors = readSafetensors(*file);
  if (check(tensors.status()))
    checkExtents(*file, *tensors);
}

/// config.json, hf_quant_config.json, or nothing without it, and
/// model.safetensors of a quantised model, of which all rows are read.
void quantized(Bytes bytes) {
  static const char *const names[] = {"config.json", "hf_quant_config.json",
                                      "model.safetensors"};
  const std::vector<Bytes> files =
      absl::StrSplit(bytes, absl::MaxSplits('\0', 2));
  for (size_t i = 0; i < std::size(names); ++i)
    if (i < files.size() && !files[i].empty())
      asFile(names[i], files[i]);
    else
      std::filesystem::remove(pathOf(names[i]));
  const auto model = openCheckpoint(pathOf(""));
  if (!check(model.status()))
    return;
  for (const WeightSource &weight : model->weights.weights()) {
    std::vector<float> row(weight.cols);
    for (int64_t i = 0; i < weight.rows; ++i)
      check(model->weights.readRowsAsF32(weight, i, 1, row.data()));
  }
}

void torch(Bytes bytes) {
  const auto file = mapped("fuzz.pth", bytes);
  const auto tensors = readTorchFile(*file);
  if (check(tensors.status()))
    checkExtents(*file, *tensors);
}

void pickle(Bytes bytes) {
  check(readPickledStateDict(
            "fuzz",
            {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}, 0)
            .status());
}

//===----------------------------------------------------------------------===//
// Configurations
//===----------------------------------------------------------------------===//

void jsonSchema(Bytes bytes) {
  GrammarWork work(10, int64_t{256} << 20);
  const absl::StatusOr<std::string> rules = jsonSchemaGrammar(bytes, work);
  if (check(rules.status()))
    require(rules->starts_with("root ::= "), "rules with a root", *rules);
}

/// Calls `use` with the object that `bytes` are, if they are one.
void withObject(Bytes bytes, absl::FunctionRef<void(const JsonObject &)> use) {
  const auto document = parseJson("fuzz", bytes);
  if (!check(document.status()))
    return;
  const auto root = JsonObject::root(*document);
  if (!check(root.status()))
    return;
  use(*root);
}

void json(Bytes bytes) {
  withObject(bytes, [](const JsonObject &root) {
    for (const auto &[key, unused] : root.raw().items()) {
      check(root.optionalInt(key).status());
      check(root.optionalNumber(key).status());
      check(root.optionalString(key).status());
      check(root.intOrInts(key).status());
      check(root.strings(key).status());
      check(root.optionalObject(key).status());
    }
  });
}

void params(Bytes bytes) {
  check(openConfig(asFile("params.json", bytes)).status());
}

/// config.json, generation_config.json and the index of the shards.
void config(Bytes bytes) {
  static const char *const names[] = {"config.json", "generation_config.json",
                                      "model.safetensors.index.json"};
  const std::vector<Bytes> files = parts(bytes);
  for (size_t i = 0; i < std::size(names); ++i)
    asFile(names[i], i < files.size() ? files[i] : "{}");
  asFile("empty.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
  check(openConfig(pathOf("config.json")).status());
  check(openCheckpoint(pathOf("")).status());
}

//===----------------------------------------------------------------------===//
// Vocabularies
//===----------------------------------------------------------------------===//

void ggufVocabulary(Bytes bytes) {
  const auto reader = GgufReader::open(mapped("vocabulary.gguf", bytes));
  if (check(reader.status()))
    checkVocabulary(buildGgufBlob(**reader));
}

/// Reads a model of tiktoken or SentencePiece.
void tokenizerModel(Bytes bytes) {
  checkVocabulary(buildTokenizerModelBlob({"tokenizer.model", bytes}));
}

/// tokenizer.json, tokenizer_config.json and generation_config.json.
void tokenizerJson(Bytes bytes) {
  const std::vector<Bytes> files = parts(bytes);
  auto file = [&](size_t i, const char *name) {
    return i < files.size() ? std::optional(NamedText{name, files[i]})
                            : std::nullopt;
  };
  checkVocabulary(buildHuggingFaceBlob(
      {.tokenizer = {"tokenizer.json", files[0]},
       .tokenizerConfig = file(1, "tokenizer_config.json"),
       .generationConfig = file(2, "generation_config.json")}));
  check(
      readChatTemplates({.tokenizerConfig = file(1, "config.json")}).status());
}

void tokenizerBlob(Bytes bytes) {
  if (check(loadTokenizer(bytes).status()))
    checkVocabulary(std::string(bytes));
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

void plan(Bytes bytes) {
  const auto reader = PlanReader::open(asFile("fuzz.plan", bytes));
  if (check(reader.status()))
    check(openSourceFiles(**reader).status());
}

/// A manifest with right checksums, among the sections of the toy plan.
void planManifest(Bytes bytes) {
  static const toy::ToyPlan toy = toy::makeToyPlan();
  plan(unsoundPlan(toy, std::string(bytes)));
}

//===----------------------------------------------------------------------===//
// Prefix caches
//===----------------------------------------------------------------------===//

const PrefixFileLayout prefixLayout = {"fuzz", 2, {16, 8}};

void checkPrefixFile(Bytes bytes) {
  const auto file =
      PrefixFile::open(asFile("fuzz.prefixes", bytes), prefixLayout);
  if (!check(file.status()))
    return;
  for (size_t i = 0; i < (*file)->size(); ++i) {
    require((*file)->node(i).parent < static_cast<int64_t>(i),
            "parents before their children");
    for (size_t group = 0; group < 2; ++group)
      if ((*file)->has(i, group))
        check((*file)->page(i, group).status());
  }
}

/// Reads a file as it is, and with the checksum of a header and of a table up
/// to anywhere: the first byte says where.
void prefixFile(Bytes bytes) {
  checkPrefixFile(bytes);
  if (bytes.size() < 65)
    return;
  const size_t end = 65 + static_cast<uint8_t>(bytes[0]);
  std::string sealed(bytes.substr(1));
  const std::string hashed = sealed.substr(0, 48) + sealed.substr(64, end - 65);
  const PlanHash hash = hashBytes(
      {reinterpret_cast<const uint8_t *>(hashed.data()), hashed.size()});
  std::memcpy(sealed.data() + 48, &hash, sizeof(hash));
  checkPrefixFile(sealed);
}

//===----------------------------------------------------------------------===//
// Tunings
//===----------------------------------------------------------------------===//

void tuning(Bytes bytes) {
  const auto imported = importTuning(asFile("tuning.json", bytes));
  if (check(imported.status())) {
    const std::string copy = pathOf("copy.json");
    check(exportTuning(*imported, copy));
    const auto again = importTuning(copy);
    require(again.ok() && *again == *imported, "an export that reads back");
  }
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

void checkRequest(const JsonObject &root, Bytes bytes) {
  Request request;
  check(readRequestFields(root, bytes, promptFields(), request));
  const auto encode = [](Bytes text) {
    return absl::StatusOr<std::vector<int32_t>>(
        std::vector<int32_t>(text.begin(), text.end()));
  };
  // Conversations have a reader of their own.
  if (!check(
          readPrompt(root, bytes, encode, usageError("no template"), request)))
    return;
  for (const int32_t id : request.options.stopIds)
    require(id >= 0, "ids that are not negative");
  check(Sampler::create(request.options.sampling, request.options.stopIds, 300)
            .status());
}

void request(Bytes bytes) {
  withObject(bytes,
             [bytes](const JsonObject &root) { checkRequest(root, bytes); });
}

//===----------------------------------------------------------------------===//
// Chat templates
//===----------------------------------------------------------------------===//

/// A template and, after a zero byte, messages. The limits keep what is allowed
/// within the seconds that an input has.
void chatTemplate(Bytes bytes) {
  const std::vector<Bytes> texts = parts(bytes);
  const auto parsed = ChatTemplate::parse(
      texts[0], {.steps = 200'000, .memoryBytes = uint64_t{16} << 20});
  if (!check(parsed.status()))
    return;
  ChatTemplateInputs inputs;
  inputs.messages =
      texts.size() > 1
          ? std::string(texts[1])
          : R"([{"role":"user","content":"Hi"},{"role":"tool","a":[1,2.5]}])";
  inputs.bosToken = "<s>";
  const auto text = parsed->render(inputs);
  if (check(text.status()))
    require(text->size() <= uint64_t{16} << 20, "a text within its limit");
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

using Seeds = std::vector<std::string>;

Seeds none() { return {}; }

Seeds jsonSchemas() {
  return {R"({"type":"object","properties":{"a":{"minimum":-1},"b":{"anyOf":[)"
          R"({"$ref":"#/$defs/c"},{"enum":[1,"x"],"type":["string","integer"]})"
          R"(]}},"required":["a","d"],"$defs":{"c":{"prefixItems":[true],)"
          R"("maxItems":3,"items":{"pattern":"^a+$"}}}})"};
}

Seeds tokenizerModels() {
  return {test::joinLines(test::tiktokenLines()),
          test::trainSentencePiece({"she sells sea shells by the sea shore",
                                    "the shells she sells are sea shells"},
                                   290)};
}

Seeds tokenizerJsons() {
  const std::string json = test::huggingFaceJson().dump();
  const std::string bos =
      R"({"bos_token": "<|start|>", "add_bos_token": true, "chat_template": )"
      R"([{"name": "default", "template": "x"}]})";
  return {json, json + '\0' + bos + '\0' + R"({"eos_token_id": [266]})",
          test::piecesJson().dump()};
}

Seeds tokenizerBlobs() {
  test::GgufFixture fixture;
  fixture.chatTemplates = {{"default", "{{ messages }}"}, {"tool_use", "t"}};
  Seeds seeds = {*buildGgufBlob(fixture.vocabulary()),
                 *buildGgufBlob(test::scoredPieces().vocabulary())};
  const std::string pieces = test::piecesJson().dump();
  seeds.push_back(*buildHuggingFaceBlob(
      {{"tokenizer.json", pieces}, std::nullopt, std::nullopt}));
  for (const std::string &model : tokenizerModels())
    seeds.push_back(*buildTokenizerModelBlob({"tokenizer.model", model}));
  return seeds;
}

Seeds requests() {
  return {
      R"({"prompt": "a b", "max_tokens": 9, "stop": ["a", "b"], "n": 2,
          "logit_bias": {"5": -1.5}, "temperature": 0.5, "seed": 3})",
      R"({"tokens": [1, 2], "ignore_eos": true, "min_tokens": 2, "top_k": 5,
          "logprobs": 1, "stop_token_ids": [4], "repetition_penalty": 1.1})",
      R"({"messages": [{"role": "user", "content": "a"}], "tools": [{}]})"};
}

Seeds chatTemplates() {
  const std::string messages =
      R"([{"role": "user", "content": "Hi", "x": [1, 2.5, null, {"a": "b"}]}])";
  const char *const templates[] = {
      "{{ bos_token }}{% for m in messages if m.role != 'x' -%} {{ loop.index "
      "~ "
      "m['content'] | trim }}{% else %}{{ raise_exception('none') }}{% endfor "
      "%}",
      "{% set ns = namespace(a=0) %}{% macro f(x, y=[1, 2][::-1]) %}{{ x ~ y "
      "}}{% endmacro %}{% set ns.a = ns.a + 1 %}{{ f(2) }}{# c #}{% "
      "generation %}{{ ns.a % 2 }}{% endgeneration %}",
      "{% set x %}{{ messages | tojson(indent=2) }}{% endset %}{{ x.split('E', "
      "1)[1:3] | map('lower') | join(', ') }}{{ '<{}>'.format(x) }}{% filter "
      "replace('a', 'b') %}a{% endfilter %}{{ strftime_now('%d %b') }}",
      "{% for a in [[1, [2]], [3]] %}{{ a | unique | list if a is iterable "
      "else a }}{% break %}{% endfor %}{{ {'a': 1} | dictsort }}{{ range(9) | "
      "list }}{{ messages | selectattr('role', 'equalto', 'user') | first }}"};
  Seeds seeds;
  for (const char *text : templates)
    seeds.push_back(std::string(text) + '\0' + messages);
  return seeds;
}

Seeds prefixFiles() {
  static constexpr int32_t tokens[] = {1, 2, 3, 4};
  const absl::Span<const int32_t> all = tokens;
  const std::string path = pathOf("seed.prefixes");
  const PrefixFileNode nodes[] = {{-1, all.first(2)}, {0, all.last(2)}};
  const auto fill = [](size_t, size_t group, std::vector<uint8_t> &to) {
    to.insert(to.end(), prefixLayout.pageBytes[group], uint8_t{7});
    return absl::StatusOr<bool>(true);
  };
  require(writePrefixFile(path, prefixLayout, nodes, fill).ok(), "a file");
  const std::string file((*MappedFile::open(path))->text());
  // Its table: of two groups, two nodes of two tokens, and the identity.
  constexpr char tableBytes = 2 * 8 + 2 * 24 + 4 * 4 + 2 * 2 + 4;
  return {file, tableBytes + file};
}

Seeds plans() { return {unsoundPlan(toy::makeToyPlan())}; }

Seeds manifests() {
  return {manifestOf(toy::makeToyPlan().plan), misalignedManifest()};
}

Seeds tunings() {
  TuningEntry measured = {.device = "cpu",
                          .generator = "0123",
                          .kernel = "gemv",
                          .config = "rows=4",
                          .seconds = 1e-6,
                          .defaultSeconds = 2e-6};
  TuningEntry imported = measured;
  imported.kernel = "gemm";
  imported.imported = true;
  const std::string json = pathOf("tuning.json");
  require(exportTuning({measured, imported}, json).ok(), "an export");
  return {std::string((*MappedFile::open(json))->text())};
}

struct Reader {
  const char *name;
  void (*run)(Bytes);
  Seeds (*seeds)();
};

// CMake takes the names from here, one a line.
const Reader readers[] = {
    {"chat-request", fuzzChatRequest, chatRequestSeeds},
    {"chat-template", chatTemplate, chatTemplates},
    {"config", config, none},
    {"gguf", gguf, none},
    {"gguf-vocabulary", ggufVocabulary, none},
    {"http", fuzzHttp, httpSeeds},
    {"json", json, none},
    {"json-schema", jsonSchema, jsonSchemas},
    {"params", params, none},
    {"pickle", pickle, none},
    {"plan", plan, plans},
    {"plan-manifest", planManifest, manifests},
    {"prefix-file", prefixFile, prefixFiles},
    {"quantized", quantized, none},
    {"request", request, requests},
    {"safetensors", safetensors, none},
    {"tokenizer-blob", tokenizerBlob, tokenizerBlobs},
    {"tokenizer-json", tokenizerJson, tokenizerJsons},
    {"tokenizer-model", tokenizerModel, tokenizerModels},
    {"tool-calls", fuzzToolCalls, toolCallSeeds},
    {"torch", torch, none},
    {"tuning", tuning, tunings},
};

const Reader *chosen() {
  const char *name = std::getenv("LLAMAC_FUZZ_READER");
  for (const Reader &reader : readers)
    if (name && std::string(name) == reader.name)
      return &reader;
  std::fprintf(stderr, "LLAMAC_FUZZ_READER names no reader: %s\n",
               name ? name : "");
  std::exit(2);
}

} // namespace
} // namespace llamac

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
  const llamac::Reader *reader = llamac::chosen();
  const char *folder = std::getenv("LLAMAC_FUZZ_SEEDS");
  if (!folder)
    return 0;
  int number = 0;
  for (const std::string &seed : reader->seeds())
    llamac::writeBytes(std::string(folder) + "/seed" + std::to_string(number++),
                       seed);
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const llamac::Reader *const reader = llamac::chosen();
  reader->run({reinterpret_cast<const char *>(data), size});
  return 0;
}
