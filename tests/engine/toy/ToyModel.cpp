//===- ToyModel.cpp - Plans of the toy model ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/engine/toy/ToyModel.h"

#include "runtime/base/Status.h"
#include "text/tokenizer/TokenizerBlob.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace llamac::toy {

template <typename T> static std::string bytesOf(const std::vector<T> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(T));
}

static std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string tokenText(int id) {
  if (id == 0)
    return "<s>";
  if (id == 1)
    return "</s>";
  if (id < 28)
    return std::string(1, static_cast<char>('a' + id - 2));
  switch (id) {
  case 28:
    return " ";
  case 29:
    return "\xe2\x82"; // The first two bytes of the euro sign,
  case 30:
    return "\xac"; // its last,
  case 31:
    return "\xf0"; // and a face in two parts.
  case 32:
    return "\x9f\x99\x82";
  default:
    return "w" + std::to_string(id);
  }
}

static std::string tokenizerBlob() {
  TokenizerData data;
  data.preTokenizer = PreTokenizerKind::Gpt2;
  for (int id = 0; id < vocab; ++id) {
    data.tokens.push_back(tokenText(id));
    data.types.push_back(id < 2 ? TokenType::Control : TokenType::Normal);
  }
  data.bosId = 0;
  data.eosId = 1;
  return *writeTokenizerBlob(std::move(data), "toy");
}

static schema::Operand operand(schema::OperandKind kind, uint32_t index,
                               uint64_t offset = 0) {
  return schema::Operand(kind, index, offset);
}

static schema::Operand input(schema::InputRole role) {
  return operand(schema::OperandKind::Input, static_cast<uint32_t>(role));
}

static std::unique_ptr<schema::LaunchT>
launch(uint32_t kernel, std::string label, schema::RowSymbol rows, bool barrier,
       std::vector<schema::Operand> operands) {
  auto out = std::make_unique<schema::LaunchT>();
  out->kernel = kernel;
  out->label = std::move(label);
  out->rows = rows;
  out->barrier = barrier;
  out->operands = std::move(operands);
  return out;
}

static std::unique_ptr<schema::ProgramT> program(uint32_t number,
                                                 int64_t maxRows,
                                                 int64_t maxOutputRows,
                                                 uint32_t constants) {
  using schema::InputRole;
  using schema::OperandKind;
  using schema::RowSymbol;
  auto out = std::make_unique<schema::ProgramT>();
  out->name = "rows" + std::to_string(maxRows);
  out->maxRows = maxRows;
  out->maxOutputRows = maxOutputRows;
  out->logitsOffset = 64;
  out->arenaBytes = 64 + static_cast<uint64_t>(maxOutputRows) * vocab * 4;
  for (uint32_t layer = 0; layer < 2; ++layer)
    out->launches.push_back(launch(
        0, "remember." + std::to_string(layer), RowSymbol::Tokens, layer == 0,
        {input(InputRole::Tokens), input(InputRole::Positions),
         input(InputRole::Sequences), input(InputRole::PageTable),
         operand(OperandKind::Kv, layer),
         operand(OperandKind::Weight, layer)}));
  out->launches.push_back(
      launch(1, "hash", RowSymbol::Tokens, true,
             {input(InputRole::Positions), input(InputRole::Sequences),
              input(InputRole::PageTable), operand(OperandKind::Kv, 0),
              operand(OperandKind::Kv, 1), operand(OperandKind::Arena, 0, 0)}));
  out->launches.push_back(
      launch(2, "logits", RowSymbol::Outputs, true,
             {operand(OperandKind::Arena, 0, 0), input(InputRole::OutputRows),
              operand(OperandKind::Constant, constants, 4 * number),
              operand(OperandKind::Arena, 0, 64)}));
  return out;
}

static std::unique_ptr<schema::ModelConfigT> toyConfig() {
  auto config = std::make_unique<schema::ModelConfigT>();
  config->dim = dim;
  config->numLayers = 2;
  config->numHeads = 1;
  config->numKvHeads = 1;
  config->headSize = 8;
  config->ffnDim = 8;
  config->vocabSize = vocab;
  config->maxContext = context;
  config->normEps = 1e-5;
  config->ropeTheta = 10000;
  return config;
}

static std::unique_ptr<schema::WeightT> embeddingWeight(int layer) {
  auto weight = std::make_unique<schema::WeightT>();
  weight->name = "toy.embedding." + std::to_string(layer);
  weight->type = schema::DataType::F32;
  weight->rows = 1;
  weight->cols = vocab;
  weight->section = layer;
  return weight;
}

/// Adds a kernel, with `rowBytes` of a row of its result if it has one; gives
/// its number.
static uint32_t addKernel(ToyPlan &toy, const char *symbol,
                          std::vector<schema::ParamRole> params,
                          std::vector<uint64_t> rowBytes, int64_t items = 1) {
  auto kernel = std::make_unique<schema::KernelT>();
  kernel->symbol = symbol;
  kernel->family = "toy";
  kernel->params = std::move(params);
  kernel->resultRowBytes = std::move(rowBytes);
  kernel->geometry = std::make_unique<schema::GeometryT>();
  kernel->geometry->items = items;
  kernel->geometry->rowBlock = 1;
  kernel->geometry->scratchBytes = logitsBlock * sizeof(float);
  toy.plan.kernels.push_back(std::move(kernel));
  return static_cast<uint32_t>(toy.plan.kernels.size() - 1);
}

ToyPlan makeToyPlan() {
  ToyPlan toy;
  for (int layer = 0; layer < 2; ++layer) {
    std::vector<float> embedding;
    for (int token = 0; token < vocab; ++token)
      embedding.push_back(static_cast<float>(embed(layer, token)));
    toy.sections.push_back({SectionKind::Weight, bytesOf(embedding)});
    toy.plan.weights.push_back(embeddingWeight(layer));
  }
  toy.sections.push_back(
      {SectionKind::Constants, bytesOf(std::vector<float>{0, 1, 2})});
  toy.sections.push_back({SectionKind::Code, readFile(LLAMAC_TOY_KERNELS)});
  toy.sections.push_back({SectionKind::Tokenizer, tokenizerBlob()});
  toy.sections.push_back({SectionKind::Source, "// The toy model."});

  schema::PlanT &plan = toy.plan;
  plan.producer = "test";
  plan.target = "cpu";
  plan.config = toyConfig();
  plan.context = context;
  plan.modelFingerprint = "toy";
  plan.rowsAreAlike = true;
  plan.options = "none";
  plan.kv = std::make_unique<schema::KvLayoutT>();
  plan.kv->pageTokens = pageTokens;
  plan.kv->pageBytes = pageBytes;
  plan.kv->pagesPerSequence = pagesPerSequence;
  plan.kv->maxSequences = maxSequences;
  plan.kv->groups = {schema::KvGroup(0, pagesPerSequence)};
  plan.kv->layerGroups = {0, 0};
  using enum schema::ParamRole;
  addKernel(
      toy, "toyRemember",
      {Activation, Activation, Activation, PageTable, AppendedCache, Weight},
      {});
  addKernel(toy, "toyHash",
            {Activation, Activation, PageTable, Cache, Cache, Result}, {4});
  addKernel(toy, "toyLogits", {Activation, Activation, Activation, Result},
            {vocab * sizeof(float)}, vocab / logitsBlock);
  plan.programs.push_back(program(0, 1, 1, 2));
  plan.programs.push_back(program(1, 4, 2, 2));
  plan.programs.push_back(program(2, 8, 3, 2));
  auto code = std::make_unique<schema::CodeObjectT>();
  code->isa = "portable";
  code->section = 3;
  plan.code.push_back(std::move(code));
  plan.sourceSection = 5;
  plan.tokenizer = std::make_unique<schema::TokenizerT>();
  plan.tokenizer->kind = "gguf";
  plan.tokenizer->section = 4;
  plan.tokenizer->bos = 0;
  plan.tokenizer->addBos = true;
  plan.tokenizer->stopIds = {1};
  return toy;
}

void addKinds(ToyPlan &toy) {
  using schema::OperandKind;
  using enum schema::ParamRole;
  constexpr uint32_t constants = 2;
  toy.plan.rowsAreAlike = false;
  toy.plan.programs[1] = program(1, 7, 7, constants);
  const uint32_t kernel =
      addKernel(toy, "toyRememberKind",
                {Activation, Activation, Activation, PageTable, AppendedCache,
                 Weight, Activation},
                {});
  for (uint32_t number = 0; number < toy.plan.programs.size(); ++number)
    for (auto &launch : toy.plan.programs[number]->launches)
      if (launch->kernel == 0) {
        launch->kernel = kernel;
        launch->operands.push_back(
            operand(OperandKind::Constant, constants, 4 * number));
      }
}

void addWindow(ToyPlan &toy) {
  using schema::InputRole;
  using schema::OperandKind;
  schema::KvLayoutT &kv = *toy.plan.kv;
  kv.groups.push_back(schema::KvGroup(window, ringPages));
  kv.layerGroups[1] = 1;
  const schema::Operand table =
      operand(OperandKind::Input, static_cast<uint32_t>(InputRole::PageTable),
              /*offset=*/1);
  using enum schema::ParamRole;
  const uint32_t kernel =
      addKernel(toy, "toyHashWindow",
                {Activation, Activation, PageTable, Cache, Result}, {4});
  for (auto &program : toy.plan.programs) {
    program->launches[1]->operands[3] = table;
    // The hash of the first layer alone, then that of the window.
    program->launches[2]->operands[4] = operand(OperandKind::Kv, 0);
    program->launches.insert(
        program->launches.begin() + 3,
        launch(kernel, "hash window", schema::RowSymbol::Tokens, true,
               {input(InputRole::Positions), input(InputRole::Sequences), table,
                operand(OperandKind::Kv, 1),
                operand(OperandKind::Arena, 0, 0)}));
  }
}

void addSampling(ToyPlan &toy) {
  using schema::OperandKind;
  using enum schema::ParamRole;
  const uint32_t kernel =
      addKernel(toy, "toySample", {Activation, Activation, Result}, {4});
  for (auto &program : toy.plan.programs) {
    const uint64_t place = program->arenaBytes;
    program->tokensOffset = static_cast<int64_t>(place);
    program->arenaBytes += static_cast<uint64_t>(program->maxOutputRows) * 4;
    program->launches.push_back(
        launch(kernel, "sample", schema::RowSymbol::Outputs, true,
               {operand(OperandKind::Arena, 0, program->logitsOffset),
                input(schema::InputRole::SamplingParams),
                operand(OperandKind::Arena, 0, place)}));
  }
}

absl::Status writeToyPlan(const ToyPlan &toy, const std::string &path,
                          FileCalls calls) {
  LLAMAC_ASSIGN_OR_RETURN(auto writer,
                          PlanWriter::create(path, std::move(calls)));
  for (const ToySection &section : toy.sections)
    LLAMAC_RETURN_IF_ERROR(
        writer
            ->addSection(section.kind, {reinterpret_cast<const uint8_t *>(
                                            section.bytes.data()),
                                        section.bytes.size()})
            .status());
  return writer->finish(toy.plan);
}

ToyPlanFile::ToyPlanFile(const std::function<void(ToyPlan &)> &change) {
  std::string pattern =
      std::filesystem::temp_directory_path() / "llamac-toy-XXXXXX";
  folder = mkdtemp(pattern.data());
  name = folder + "/toy.plan";
  ToyPlan toy = makeToyPlan();
  if (change)
    change(toy);
  const absl::Status status = writeToyPlan(toy, name);
  EXPECT_TRUE(status.ok()) << status;
}

ToyPlanFile::~ToyPlanFile() { std::filesystem::remove_all(folder); }

unsigned hashOf(const std::vector<int> &tokens) {
  unsigned hash = hashStart;
  for (int token : tokens)
    for (int layer = 0; layer < 2; ++layer)
      hash = mixHash(hash, embed(layer, token));
  return hash;
}

unsigned windowHashOf(const std::vector<int> &tokens) {
  unsigned hash = hashStart;
  for (int token : tokens)
    for (int twice = 0; twice < 2; ++twice)
      hash = mixHash(hash, embed(0, token));
  for (size_t i = tokens.size() > window ? tokens.size() - window : 0;
       i < tokens.size(); ++i)
    hash = mixHash(hash, embed(1, tokens[i]));
  return hash;
}

int argmaxAfter(const std::vector<int> &tokens) {
  return static_cast<int>(hashOf(tokens) % (vocab - 1));
}

std::vector<int> greedyAfter(std::vector<int> prompt, int count) {
  std::vector<int> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(argmaxAfter(prompt));
    prompt.push_back(ids.back());
  }
  return ids;
}

bool isPoisoned(const std::vector<int> &tokens) {
  std::vector<int> beginning;
  for (int token : tokens) {
    beginning.push_back(token);
    if (hashOf(beginning) % poison == 0)
      return true;
  }
  return false;
}

std::vector<int> cleanTokens(int size, int first, int more) {
  for (int step = 1; step < vocab; ++step) {
    std::vector<int> tokens;
    for (int i = 0; i < size; ++i)
      tokens.push_back(2 + (first + i * step) % (vocab - 3));
    std::vector<int> all = tokens;
    const std::vector<int> answer = greedyAfter(tokens, more);
    all.insert(all.end(), answer.begin(), answer.end());
    if (!isPoisoned(all) &&
        std::find(answer.begin(), answer.end(), 1) == answer.end())
      return tokens;
  }
  ADD_FAILURE() << "no clean tokens of " << size << " from " << first;
  return {};
}

} // namespace llamac::toy
