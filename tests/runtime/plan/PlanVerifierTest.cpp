//===- PlanVerifierTest.cpp - Is a manifest fit to run? -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Manifests that make no sense, in files whose checksums fit.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "tests/runtime/plan/PlanBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace llamac {
namespace {

using schema::PlanT;
using testing::HasSubstr;

struct Nonsense {
  const char *name;
  std::function<void(PlanT &)> change;
  const char *message;
};

void PrintTo(const Nonsense &nonsense, std::ostream *out) {
  *out << nonsense.name;
}

constexpr int64_t maxOfField = std::numeric_limits<int64_t>::max();
constexpr uint64_t hugeUnsigned = std::numeric_limits<uint64_t>::max();

static schema::LaunchT &firstLaunch(PlanT &p) {
  return *p.programs[1]->launches[0];
}

static void setOperand(PlanT &p, schema::OperandKind kind, uint32_t index,
                       uint64_t offset) {
  firstLaunch(p).operands[2] = schema::Operand(kind, index, offset);
}

/// The geometry of the kernel of the first launch.
static schema::GeometryT &geometry(PlanT &p) { return *p.kernels[0]->geometry; }

static void setPageTable(PlanT &p, uint64_t offset) {
  firstLaunch(p).operands[3] = schema::Operand(
      schema::OperandKind::Input,
      static_cast<uint32_t>(schema::InputRole::PageTable), offset);
}

namespace {
/// A map of operand 2 that is sound: two rows of eight floats.
struct MapParts {
  uint32_t operand = 2;
  uint32_t elementBytes = 4;
  uint64_t columns = 8;
  uint64_t rows = 2;
  uint32_t boxColumns = 8;
  uint32_t boxRows = 2;
  uint32_t swizzleBytes = 32;
};
} // namespace

/// Makes it a plan for sim.
static void setSim(PlanT &p) {
  p.target = "sim";
  for (const auto &kernel : p.kernels)
    kernel->geometry->threads = 32;
}

/// Gives the first kernel, of a plan for sim, a tensor map.
static void setMap(PlanT &p, const MapParts &map) {
  setSim(p);
  for (const auto &program : p.programs)
    for (const auto &launch : program->launches)
      if (launch->kernel == 0)
        launch->operands[2] = schema::Operand(schema::OperandKind::Arena, 0, 0);
  geometry(p).maps.emplace_back(map.operand, map.elementBytes, map.columns,
                                map.rows, map.boxColumns, map.boxRows,
                                map.swizzleBytes);
}

/// Makes the first program, of a plan for sim, one resident launch.
static schema::GeometryT &setResident(PlanT &p) {
  setSim(p);
  schema::ProgramT &program = *p.programs[0];
  program.launches.resize(1);
  p.kernels.push_back(std::make_unique<schema::KernelT>(*p.kernels[0]));
  program.launches[0]->kernel = static_cast<uint32_t>(p.kernels.size() - 1);
  schema::GeometryT &geometry = *p.kernels.back()->geometry;
  geometry.rowBlock = 0;
  geometry.resident = true;
  return geometry;
}

// Makes weight 0 a referenced one that is sound.
static schema::WeightSourceT &refer(PlanT &p) {
  auto file = std::make_unique<schema::SourceFileT>();
  file->path = "model.gguf";
  file->size = 1000;
  file->fingerprint = "f";
  p.sourceFiles.push_back(std::move(file));
  auto source = std::make_unique<schema::WeightSourceT>();
  source->tensor = "t";
  source->type = schema::DataType::F32;
  source->parts = {schema::SourceExtent(0, 100, 384)};
  p.weights[0]->section = -1;
  p.weights[0]->source = std::move(source);
  return *p.weights[0]->source;
}

/// Makes all programs give tokens, number 1 at `offset`.
static void giveTokens(PlanT &p, int64_t offset) {
  for (auto &program : p.programs)
    program->tokensOffset = 0;
  p.programs[1]->tokensOffset = offset;
}

static void rename(PlanT &p, const char *name) { p.weights[0]->name = name; }

const Nonsense all[] = {
    // The whole.
    {"NoProducer", [](PlanT &p) { p.producer = ""; }, "producer: expected"},
    {"NoTarget", [](PlanT &p) { p.target = ""; }, "target: expected a text"},
    {"ContextZero", [](PlanT &p) { p.context = 0; },
     "context: expected 1 to 2147483648, got 0"},
    {"ContextNegative", [](PlanT &p) { p.context = -5; }, "context: expected"},
    {"ContextHuge", [](PlanT &p) { p.context = maxOfField; }, "context: expected"},
    {"NoPrograms", [](PlanT &p) { p.programs.clear(); },
     "programs: expected at least one, got none"},
    // Kernels.
    {"OverlapThatIsNone",
     [](PlanT &p) {
       p.kernels[0]->overlap = static_cast<schema::Overlap>(9);
     },
     "kernel 0: overlap: expected a number below 4, got 9"},
    // Hyperparameters.
    {"DimZero", [](PlanT &p) { p.config->dim = 0; }, "config: dim"},
    {"LayersNegative", [](PlanT &p) { p.config->numLayers = -1; },
     "config: n_layers"},
    {"LayersTooMany", [](PlanT &p) { p.config->numLayers = 1 << 20; },
     "config: n_layers"},
    {"HeadsNoMultiple", [](PlanT &p) { p.config->numKvHeads = 2; },
     "config: n_kv_heads"},
    {"HeadSize", [](PlanT &p) { p.config->headSize = 12; },
     "config: head size"},
    {"VocabHuge", [](PlanT &p) { p.config->vocabSize = maxOfField; },
     "config: vocab_size"},
    {"EpsNoNumber",
     [](PlanT &p) {
       p.config->normEps = std::numeric_limits<double>::quiet_NaN();
     },
     "config: norm_eps"},
    {"RopeFactors", [](PlanT &p) { p.config->ropeFactors = {1, 2, 3}; },
     "config: rope factors"},
    {"RopeScaling",
     [](PlanT &p) {
       p.config->ropeScaling = std::make_unique<schema::RopeScalingT>();
     },
     "config: rope scaling"},
    // Weights.
    {"WeightNoName", [](PlanT &p) { rename(p, ""); },
     "weight 0: name: expected a text"},
    {"WeightTwice", [](PlanT &p) { rename(p, "toy.embedding.1"); },
     "weight 1 (toy.embedding.1): expected a name of its own"},
    {"WeightType",
     [](PlanT &p) { p.weights[0]->type = static_cast<schema::DataType>(200); },
     "weight 0 (toy.embedding.0): type: expected a number below "},
    {"WeightLayout",
     [](PlanT &p) {
       p.weights[0]->layout = static_cast<schema::WeightLayout>(3);
     },
     "layout: expected a number below 3, got 3"},
    {"WeightLayoutOfAnotherTarget",
     [](PlanT &p) { p.weights[0]->layout = schema::WeightLayout::Tiles; },
     "layout: expected Panel16 for cpu, got Tiles"},
    {"WeightRowsZero", [](PlanT &p) { p.weights[0]->rows = 0; },
     "rows: expected 1"},
    {"WeightColsNegative", [](PlanT &p) { p.weights[0]->cols = -96; },
     "cols: expected 1"},
    {"WeightOverflow",
     [](PlanT &p) {
       p.weights[0]->rows = int64_t{1} << 31;
       p.weights[0]->cols = int64_t{1} << 31;
     },
     "shape: expected whole blocks"},
    {"WeightPartOfABlock",
     [](PlanT &p) {
       p.weights[0]->type = schema::DataType::Q8_0;
       p.weights[0]->cols = 97;
     },
     "shape: expected whole blocks"},
    {"WeightBytes", [](PlanT &p) { p.weights[0]->cols = 95; },
     "bytes: expected 380 for [1, 95], got 384"},
    {"WeightPanelBytes",
     [](PlanT &p) { p.weights[0]->layout = schema::WeightLayout::Panel16; },
     "bytes: expected 6144 for [1, 96], got 384"},
    {"WeightPanelDepth",
     [](PlanT &p) {
       p.weights[0]->layout = schema::WeightLayout::Panel16;
       p.weights[0]->cols = 97;
     },
     "cols: expected a multiple of 8, got 97"},
    {"WeightNoSection", [](PlanT &p) { p.weights[0]->section = -1; },
     "expected a section or a source as for all weights or none, got one"},
    {"WeightSectionOutside", [](PlanT &p) { p.weights[0]->section = 6; },
     "section: expected 0 to 5, got 6"},
    {"WeightSectionKind", [](PlanT &p) { p.weights[0]->section = 3; },
     "section: expected a section that holds a weight, got section 3"},
    {"WeightShapeOfItsName", [](PlanT &p) { rename(p, "norm"); },
     "weight 0 (norm): shape: expected [1, 8], got [1, 96]"},
    {"WeightShapeOfALayersName",
     [](PlanT &p) { rename(p, "layers.1.attention.wk"); },
     "shape: expected [8, 8], got [1, 96]"},
    // Ranks.
    {"RanksNone", [](PlanT &p) { p.ranks = 0; }, "ranks: expected 1 to 64"},
    {"RanksMany", [](PlanT &p) { p.ranks = 65; }, "ranks: expected 1 to 64"},
    {"ExchangeHuge", [](PlanT &p) { p.exchangeBytes = hugeUnsigned; },
     "exchange area: expected a number below"},
    {"WeightOfMoreParts", [](PlanT &p) { p.weights[0]->parts = 2; },
     "parts: expected 1 to 1, got 2"},
    {"WeightOfPartsThatDoNotDivide",
     [](PlanT &p) {
       p.ranks = 4;
       p.weights[0]->parts = 3;
     },
     "parts: expected a divisor of 4, got 3"},
    {"WeightOfPartsNowhere", [](PlanT &p) { p.weights[0]->partsDim = 2; },
     "dimension of parts: expected 0 to 1, got 2"},
    {"PeersOfOneRank",
     [](PlanT &p) {
       p.exchangeBytes = 64;
       setOperand(p, schema::OperandKind::Peers, 0, 0);
     },
     "operand 2: expected one that a plan for one rank has, got Peers"},
    {"NumberOfTheOnlyRank",
     [](PlanT &p) { setOperand(p, schema::OperandKind::Input, 6, 0); },
     "operand 2: expected one that a plan for one rank has, got Input"},
    {"PeersOutside",
     [](PlanT &p) {
       p.ranks = 2;
       p.exchangeBytes = 64;
       setOperand(p, schema::OperandKind::Peers, 0, 64);
     },
     "operand 2: offset in the exchange area: expected a number below 64"},
    {"PeersBeyondTheArea",
     [](PlanT &p) {
       p.ranks = 2;
       p.exchangeBytes = 64;
       p.kernels[0]->params[2] = schema::ParamRole::Peers;
       p.programs[0]->launches[0]->operands[2] =
           schema::Operand(schema::OperandKind::Peers, 4096, 0);
     },
     "expected bytes of rows in the exchange area of 64, got 4096 at 0"},
    {"PeersAsAnActivation",
     [](PlanT &p) {
       p.ranks = 2;
       p.exchangeBytes = 64;
       setOperand(p, schema::OperandKind::Peers, 0, 0);
     },
     "expected one for a parameter of role Activation, got Peers"},
    // Weights that are referenced.
    {"SourceAndSection",
     [](PlanT &p) {
       refer(p);
       p.weights[0]->section = 0;
     },
     "expected either a section or a source, got both"},
    {"SourceFileOutside",
     [](PlanT &p) { refer(p).parts = {schema::SourceExtent(1, 0, 384)}; },
     "source file: expected a number below 1, got 1"},
    {"SourcePastTheEnd",
     [](PlanT &p) { refer(p).parts = {schema::SourceExtent(0, 617, 384)}; },
     "extent: expected to end within the 1000 bytes of model.gguf"},
    {"SourceWraps",
     [](PlanT &p) {
       refer(p).parts = {schema::SourceExtent(0, hugeUnsigned - 10, 384)};
     },
     "extent: expected to end within"},
    {"SourceBytes",
     [](PlanT &p) { refer(p).parts = {schema::SourceExtent(0, 0, 380)}; },
     "extents: expected 384 bytes, got 380"},
    {"SourceNoParts", [](PlanT &p) { refer(p).parts.clear(); },
     "extents: expected 384 bytes, got 0"},
    {"SourceOfParts", [](PlanT &p) { refer(p).partsDim = 2; },
     "dimension of parts: expected 0 to 1, got 2"},
    {"SourceHalves", [](PlanT &p) { refer(p).rotaryHalves = 1; },
     "rotary halves: expected an even divisor of 96, got 1"},
    {"SourceAddend", [](PlanT &p) { refer(p).addend = NAN; },
     "addend: expected a finite number, got nan"},
    {"SourceType",
     [](PlanT &p) { refer(p).type = static_cast<schema::DataType>(200); },
     "source type: expected a number below "},
    {"SourceConversion",
     [](PlanT &p) {
       refer(p);
       p.weights[0]->type = schema::DataType::Q4_1;
     },
     "type: expected the source's or one that is written, got q4_1"},
    {"SourceNoPath",
     [](PlanT &p) {
       refer(p);
       p.sourceFiles[0]->path = "";
     },
     "source file 0: path: expected a text"},
    // The KV pool.
    {"KvPageTokens", [](PlanT &p) { p.kv->pageTokens = 0; },
     "kv: tokens of a page: expected 1"},
    {"KvPages", [](PlanT &p) { p.kv->pagesPerSequence = 7; },
     "kv: pages of a sequence: expected 8 for a context of 30, got 7"},
    {"KvPageBytesSmall", [](PlanT &p) { p.kv->pageBytes = 32; },
     "kv: bytes of a page: expected at least 64, got 32"},
    {"KvPageBytesOdd", [](PlanT &p) { p.kv->pageBytes = 100; },
     "kv: bytes of a page: expected a multiple of 64, got 100"},
    {"KvPageBytesHuge", [](PlanT &p) { p.kv->pageBytes = hugeUnsigned - 63; },
     "kv: bytes of a page: expected a number below"},
    {"KvNoSequences", [](PlanT &p) { p.kv->maxSequences = 0; },
     "kv: sequences: expected 1"},
    {"KvTooManySequences", [](PlanT &p) { p.kv->maxSequences = maxOfField; },
     "kv: sequences: expected 1"},
    {"KvPoolHuge",
     [](PlanT &p) {
       p.kv->maxSequences = 1 << 20;
       p.kv->pageBytes = uint64_t{1} << 40;
     },
     "kv: bytes of the pool: expected at most"},
    {"KvNoGroups", [](PlanT &p) { p.kv->groups.clear(); },
     "kv: groups: expected 1 to 2, got 0"},
    {"KvMoreGroupsThanLayers",
     [](PlanT &p) { p.kv->groups.resize(3, schema::KvGroup(0, 8)); },
     "kv: groups: expected 1 to 2, got 3"},
    {"KvWindowNegative",
     [](PlanT &p) { p.kv->groups[0] = schema::KvGroup(-1, 8); },
     "kv: group 0: window: expected 0 to 2147483648, got -1"},
    {"KvGroupWithoutPages",
     [](PlanT &p) { p.kv->groups[0] = schema::KvGroup(5, 0); },
     "kv: group 0: pages: expected 1 to 8, got 0"},
    {"KvRingLongerThanTheContext",
     [](PlanT &p) { p.kv->groups[0] = schema::KvGroup(5, 9); },
     "kv: group 0: pages: expected 1 to 8, got 9"},
    {"KvAllKeysInARing",
     [](PlanT &p) { p.kv->groups[0] = schema::KvGroup(0, 7); },
     "kv: group 0: pages: expected the context's 8, got 7"},
    {"KvRingThatAStepFills",
     [](PlanT &p) { p.kv->groups[0] = schema::KvGroup(6, 3); },
     "kv: group 0: pages: expected at least 4 for a window of 6 and steps of 8 "
     "rows, got 3"},
    {"KvLayersWithoutAGroup", [](PlanT &p) { p.kv->layerGroups.pop_back(); },
     "kv: groups of layers: expected 2, got 1"},
    {"KvLayerGroupOutside", [](PlanT &p) { p.kv->layerGroups[1] = 1; },
     "kv: group of layer 1: expected a number below 1, got 1"},
    // Kernels and programs.
    {"KernelNoSymbol", [](PlanT &p) { p.kernels[0]->symbol = ""; },
     "kernel 0: symbol: expected a text"},
    {"KernelSymbolZero",
     [](PlanT &p) { p.kernels[0]->symbol = std::string("a\0b", 3); },
     "kernel 0: symbol: expected a text, got a zero in it"},
    {"ProgramRowsZero", [](PlanT &p) { p.programs[0]->maxRows = 0; },
     "program 0 (rows1): rows: expected 1"},
    {"ProgramRowsHuge", [](PlanT &p) { p.programs[2]->maxRows = maxOfField; },
     "program 2 (rows8): rows: expected 1"},
    {"ProgramOutputRowsZero", [](PlanT &p) { p.programs[1]->maxOutputRows = 0; },
     "output rows: expected 1 to 4, got 0"},
    {"ProgramOutputRowsMoreThanRows",
     [](PlanT &p) { p.programs[1]->maxOutputRows = 5; },
     "output rows: expected 1 to 4, got 5"},
    {"ProgramsOutOfOrder",
     [](PlanT &p) { std::swap(p.programs[0], p.programs[1]); },
     "program 1 (rows1): rows: expected at least the 4 of the program before"},
    {"WorkspaceOutside",
     [](PlanT &p) {
       p.kernels[1]->params[5] = schema::ParamRole::Workspace;
       p.kernels[1]->resultRowBytes = {};
       p.kernels[1]->geometry->workspaceBytes = 1 << 20;
     },
     "operand 5: expected a place for 1048576 bytes in the arena of"},
    {"ArenaHuge", [](PlanT &p) { p.programs[1]->arenaBytes = hugeUnsigned; },
     "arena: expected at most"},
    {"LogitsPastTheArena", [](PlanT &p) { p.programs[1]->logitsOffset += 4; },
     "logits: expected an aligned place for 768 bytes in the arena of 832"},
    {"LogitsMisaligned", [](PlanT &p) { p.programs[1]->logitsOffset = 62; },
     "logits: expected an aligned place"},
    {"LogitsWrap",
     [](PlanT &p) { p.programs[1]->logitsOffset = hugeUnsigned - 3; },
     "logits: expected an aligned place"},
    {"FeatureLayersMany", [](PlanT &p) { p.featureLayers.assign(17, 0); },
     "feature layers: expected at most 16, got 17"},
    {"FeatureLayerUnknown", [](PlanT &p) { p.featureLayers = {99}; },
     "feature layers: expected 0 to "},
    {"FeaturesMissing", [](PlanT &p) { p.featureLayers = {0}; },
     "features: expected 1, got 0"},
    {"FeaturesPastTheArena",
     [](PlanT &p) {
       p.featureLayers = {0};
       for (auto &program : p.programs)
         program->features = {hugeUnsigned - 3};
     },
     "features: expected an aligned place for"},
    {"FeaturesUnasked", [](PlanT &p) { p.programs[1]->features = {0}; },
     "features: expected 0, got 1"},
    {"FeaturesAsInputOfAModel",
     [](PlanT &p) {
       p.programs[1]->launches[0]->operands[0] = schema::Operand(
           schema::OperandKind::Input,
           static_cast<uint32_t>(schema::InputRole::Features), 0);
     },
     "input: expected one that the plan of a model has, got 7"},
    {"HeadOfWrongTokens",
     [](PlanT &p) {
       p.config->head = std::make_unique<schema::DraftHeadT>();
       p.config->head->layers = {1};
       p.config->head->targetDim = p.config->dim;
       p.config->head->tokens = {static_cast<int32_t>(p.config->vocabSize)};
       p.config->numLayers = 1;
     },
     "tokens of the head: expected ids below"},
    {"TokensPastTheArena", [](PlanT &p) { giveTokens(p, 828); },
     "program 1 (rows4): tokens: expected -1 or an aligned place for 8 bytes "
     "in the arena of 832, got offset 828"},
    {"TokensMisaligned", [](PlanT &p) { giveTokens(p, 2); },
     "tokens: expected -1 or an aligned place"},
    {"TokensBeforeTheArena", [](PlanT &p) { giveTokens(p, -4); },
     "tokens: expected -1 or an aligned place"},
    {"TokensOfOneProgram", [](PlanT &p) { p.programs[0]->tokensOffset = 0; },
     "program 1 (rows4): tokens: expected some, as in the first program, got "
     "-1"},
    {"TokensOfAnotherProgram",
     [](PlanT &p) { p.programs[1]->tokensOffset = 0; },
     "program 1 (rows4): tokens: expected none, as in the first program, got "
     "0"},
    {"LaunchKernel", [](PlanT &p) { firstLaunch(p).kernel = 3; },
     "launch 0 (remember.0): kernel: expected a number below 3, got 3"},
    {"LaunchRows",
     [](PlanT &p) { firstLaunch(p).rows = static_cast<schema::RowSymbol>(2); },
     "rows: expected a number below 2, got 2"},
    {"LaunchItemsZero", [](PlanT &p) { geometry(p).items = 0; },
     "items: expected 1"},
    {"LaunchItemsHuge", [](PlanT &p) { geometry(p).items = maxOfField; },
     "items: expected 1"},
    {"GridItems",
     [](PlanT &p) {
       setSim(p);
       geometry(p).items = int64_t{1} << 31;
     },
     "items: expected 1 to 2147483647, got 2147483648"},
    {"GridRowBlocks",
     [](PlanT &p) {
       setSim(p);
       geometry(p).rowBlock = 1;
       for (const auto &program : p.programs)
         program->maxRows = 65536;
     },
     "row blocks of a grid: expected 1 to 65535, got 65536"},
    {"LaunchItemsTimesBlocks",
     [](PlanT &p) { geometry(p).items = int64_t{1} << 39; },
     "items x row blocks: expected 1"},
    {"LaunchRowBlock", [](PlanT &p) { geometry(p).rowBlock = -1; },
     "row block: expected 0"},
    {"LaunchScratch",
     [](PlanT &p) { geometry(p).scratchBytes = hugeUnsigned; },
     "scratch bytes: expected a number below"},
    {"LaunchThreads", [](PlanT &p) { geometry(p).threads = 1025; },
     "threads of a block: expected 0 to 1024, got 1025"},
    {"LaunchWithoutThreads", [](PlanT &p) { p.target = "sim"; },
     "threads of a block: expected 1 to 1024, got 0"},
    {"LaunchCluster", [](PlanT &p) { geometry(p).cluster = 2; },
     "cluster: expected 1 to 1, got 2"},
    {"LaunchDependent", [](PlanT &p) { geometry(p).dependent = true; },
     "dependent: expected false for target"},
    {"LaunchPartOfACluster",
     [](PlanT &p) {
       setSim(p);
       geometry(p).items = 3;
       geometry(p).cluster = 2;
     },
     "items: expected whole clusters of 2, got 3"},
    // Tensor maps.
    {"MapForCpu",
     [](PlanT &p) {
       setMap(p, {});
       p.target = "cpu";
     },
     "tensor maps: expected none for target cpu, got 1"},
    {"MapOfNoOperand", [](PlanT &p) { setMap(p, {.operand = 9}); },
     "kernel 0: operand of a tensor map: expected a number below 6, got 9"},
    {"MapOfAnInput",
     [](PlanT &p) {
       setMap(p, {});
       setOperand(p, schema::OperandKind::Input, 0, 0);
     },
     "tensor map 0: operand: expected in the arena, a weight or the KV cache, "
     "got Input"},
    {"MapElement", [](PlanT &p) { setMap(p, {.elementBytes = 3}); },
     "elements of 3 bytes, expected 2, 4 or 8"},
    {"MapColumns", [](PlanT &p) { setMap(p, {.columns = 0}); },
     "rows of 0 elements, expected 1 to 2^31 of each"},
    {"MapRows", [](PlanT &p) { setMap(p, {.rows = hugeUnsigned}); },
     "expected 1 to 2^31 of each"},
    {"MapRowsWhoseNumbersAreNegative",
     [](PlanT &p) { setMap(p, {.rows = (uint64_t{1} << 31) + 1}); },
     "2147483649 rows of 8 elements, expected 1 to 2^31 of each"},
    {"MapOfAPoolWhoseRowsAreTooMany",
     [](PlanT &p) {
       setMap(p, {.rows = 0});
       for (const auto &program : p.programs)
         for (const auto &launch : program->launches)
           if (launch->kernel == 0)
             launch->operands[2] =
                 schema::Operand(schema::OperandKind::Kv, 0, 0);
       p.kernels[0]->params[2] = schema::ParamRole::Cache;
       p.kv->pageBytes = uint64_t{1} << 38;
     },
     "expected 1 to 2^31 of each"},
    {"MapRowBytes", [](PlanT &p) { setMap(p, {.columns = 10}); },
     "rows 40 bytes apart, expected a multiple of 16 below 2^40"},
    {"MapBox", [](PlanT &p) { setMap(p, {.boxRows = 257}); },
     "boxes of 257 rows of 8 elements, expected 1 to 256 of each"},
    {"MapBoxBytes", [](PlanT &p) { setMap(p, {.boxColumns = 3}); },
     "boxes with rows of 12 bytes, expected a multiple of 16"},
    {"MapSwizzle", [](PlanT &p) { setMap(p, {.swizzleBytes = 48}); },
     "a swizzle of 48 bytes, expected 0, 32, 64 or 128"},
    {"MapSwizzledBox", [](PlanT &p) { setMap(p, {.swizzleBytes = 64}); },
     "boxes with rows of 32 bytes, expected the 64 of their swizzle"},
    {"MapBeyondTheArena", [](PlanT &p) { setMap(p, {.rows = 27}); },
     "expected an aligned place for 864 bytes in the operand's 448"},
    {"MapMisaligned",
     [](PlanT &p) {
       setMap(p, {});
       setOperand(p, schema::OperandKind::Arena, 0, 8);
     },
     "expected an aligned place for 64 bytes in the operand's 832, got offset "
     "8"},
    // Resident steps.
    {"ResidentOnACpu", [](PlanT &p) { geometry(p).resident = true; },
     "kernel 0: resident: expected false, or blocks of cuda or sim that depend "
     "on no launch, without clusters, row blocks and tensor maps, got true"},
    {"ResidentInClusters",
     [](PlanT &p) {
       schema::GeometryT &geometry = setResident(p);
       geometry.items = geometry.cluster = 2;
     },
     "kernel 3: resident: expected false, or blocks of cuda or sim"},
    {"ResidentInRowBlocks", [](PlanT &p) { setResident(p).rowBlock = 1; },
     "kernel 3: resident: expected false, or blocks of cuda or sim"},
    {"ResidentThatOverlaps", [](PlanT &p) { setResident(p).dependent = true; },
     "kernel 3: resident: expected false, or blocks of cuda or sim"},
    {"ResidentWithVariants",
     [](PlanT &p) {
       setResident(p);
       auto variant = std::make_unique<schema::VariantT>();
       variant->symbol = variant->tiles = variant->source = "other";
       variant->geometry =
           std::make_unique<schema::GeometryT>(*p.kernels[3]->geometry);
       p.kernels[3]->variants.push_back(std::move(variant));
     },
     "kernel 3: variants: expected none of a resident kernel, got 1"},
    {"ResidentVariant",
     [](PlanT &p) {
       setSim(p);
       auto variant = std::make_unique<schema::VariantT>();
       variant->symbol = variant->tiles = variant->source = "resident";
       variant->geometry = std::make_unique<schema::GeometryT>(geometry(p));
       variant->geometry->rowBlock = 0;
       variant->geometry->resident = true;
       p.kernels[0]->variants.push_back(std::move(variant));
     },
     "kernel 0: variant 0: resident: expected false, as of the kernel, got "
     "true"},
    {"ResidentBesideAnother",
     [](PlanT &p) {
       setResident(p);
       p.programs[0]->launches.push_back(
           std::make_unique<schema::LaunchT>(firstLaunch(p)));
     },
     "program 0 (rows1): launches: expected one, as one is resident, got 2"},
    {"ResidentOfOutputRows",
     [](PlanT &p) {
       setResident(p);
       p.programs[0]->launches[0]->rows = schema::RowSymbol::Outputs;
     },
     "program 0 (rows1): launch 0: rows: expected Tokens, as it is resident, "
     "got Outputs"},
    {"ResidentOfManyRows",
     [](PlanT &p) {
       setResident(p);
       p.programs[0]->maxRows = 2;
     },
     "program 0 (rows1): rows: expected 1, as its launch is resident, got 2"},
    {"ResidentOfRanks",
     [](PlanT &p) {
       setResident(p);
       p.ranks = 2;
     },
     "program 0 (rows1): ranks: expected 1, as its launch is resident, got 2"},
    // Operands.
    {"OperandKind",
     [](PlanT &p) { setOperand(p, static_cast<schema::OperandKind>(8), 0, 0); },
     "operand 2: kind: expected 0 to 7, got 8"},
    {"OperandArena",
     [](PlanT &p) { setOperand(p, schema::OperandKind::Arena, 0, 832); },
     "operand 2: arena offset: expected a number below 832, got 832"},
    {"OperandWeight",
     [](PlanT &p) { setOperand(p, schema::OperandKind::Weight, 2, 0); },
     "operand 2: weight: expected a number below 2, got 2"},
    {"OperandKv",
     [](PlanT &p) { setOperand(p, schema::OperandKind::Kv, 2, 0); },
     "operand 2: kv layer: expected a number below 2, got 2"},
    {"OperandInput",
     [](PlanT &p) { setOperand(p, schema::OperandKind::Input, 9, 0); },
     "operand 2: input: expected a number below 9, got 9"},
    {"OperandInputOffset",
     [](PlanT &p) { setOperand(p, schema::OperandKind::Input, 0, 96); },
     "operand 2: offset in the input: expected 0, got 96"},
    {"OperandPageTableOutside", [](PlanT &p) { setPageTable(p, 1); },
     "operand 3: offset in the input: expected a number below 1, got 1"},
    {"OperandPageTableOfAnotherGroup",
     [](PlanT &p) {
       p.kv->groups.emplace_back(5, 3);
       setPageTable(p, 1);
     },
     "page table: expected that of group 0, as layer 0 has, got that of group "
     "1"},
    {"OperandConstantSection",
     [](PlanT &p) { setOperand(p, schema::OperandKind::Constant, 77, 0); },
     "operand 2: constants: expected 0 to 5, got 77"},
    {"OperandConstantKind",
     [](PlanT &p) { setOperand(p, schema::OperandKind::Constant, 3, 0); },
     "operand 2: constants: expected a section that holds a constants"},
    {"OperandConstantOffset",
     [](PlanT &p) { setOperand(p, schema::OperandKind::Constant, 2, 12); },
     "operand 2: offset in constants: expected a number below 12, got 12"},
    {"OperandCountersOfNone",
     [](PlanT &p) { setOperand(p, schema::OperandKind::Counters, 0, 0); },
     "operand 2: offset in counters: expected a number below 0, got 0"},
    {"OperandCountersOffset",
     [](PlanT &p) {
       p.counterBytes = 8;
       setOperand(p, schema::OperandKind::Counters, 0, 8);
     },
     "operand 2: offset in counters: expected a number below 8, got 8"},
    {"CountersHalf", [](PlanT &p) { p.counterBytes = 6; },
     "counters: expected a multiple of 4 bytes"},
    {"CountersHuge", [](PlanT &p) { p.counterBytes = hugeUnsigned / 4 * 4; },
     "counters: expected a multiple of 4 bytes and at most"},
    {"CountersThatNoKernelsNeed",
     [](PlanT &p) { p.counterBytes = uint64_t{1} << 43; },
     "counters: expected a multiple of 4 bytes and at most 268435456, got "
     "8796093022208"},
    // Parameters and their operands.
    {"ParamRole",
     [](PlanT &p) {
       p.kernels[0]->params[0] = static_cast<schema::ParamRole>(9);
     },
     "kernel 0: role of a parameter: expected a number below 9, got 9"},
    {"OperandTooMany",
     [](PlanT &p) { firstLaunch(p).operands.emplace_back(); },
     "operands: expected 6, one for each parameter, got 7"},
    {"OperandForAnActivation",
     [](PlanT &p) { setOperand(p, schema::OperandKind::Weight, 0, 0); },
     "operand 2: expected one for a parameter of role Activation, got Weight"},
    {"OperandForAWeight",
     [](PlanT &p) { p.kernels[0]->params[2] = schema::ParamRole::Weight; },
     "operand 2: expected one for a parameter of role Weight, got Input"},
    {"OperandForACache",
     [](PlanT &p) { p.kernels[0]->params[2] = schema::ParamRole::Cache; },
     "operand 2: expected one for a parameter of role Cache, got Input"},
    {"OperandForAPageTable",
     [](PlanT &p) { p.kernels[0]->params[2] = schema::ParamRole::PageTable; },
     "operand 2: expected one for a parameter of role PageTable, got Input"},
    {"OperandForAResult",
     [](PlanT &p) {
       p.kernels[0]->params[2] = schema::ParamRole::Result;
       p.kernels[0]->resultRowBytes = {4};
     },
     "operand 2: expected one for a parameter of role Result, got Input"},
    {"ResultRowsOfNoResult",
     [](PlanT &p) { p.kernels[0]->resultRowBytes = {4}; },
     "kernel 0: result row bytes: expected 0, one for each result, got 1"},
    {"ResultRowsMissing", [](PlanT &p) { p.kernels[2]->resultRowBytes = {}; },
     "kernel 2: result row bytes: expected 1, one for each result, got 0"},
    {"ResultRowsHuge",
     [](PlanT &p) { p.kernels[1]->resultRowBytes = {hugeUnsigned}; },
     "kernel 1: result row bytes: expected a number below 2147483648, got"},
    {"ResultPastTheArena",
     [](PlanT &p) { p.kernels[2]->resultRowBytes = {1 << 20}; },
     "operand 3: expected a place for 1048576 bytes of results, got offset 64"},
    {"OperandForCounters",
     [](PlanT &p) { p.kernels[0]->params[2] = schema::ParamRole::Counters; },
     "operand 2: expected one for a parameter of role Counters, got Input"},
    {"CountersTooFew",
     [](PlanT &p) {
       p.counterBytes = 8;
       p.kernels[0]->params[2] = schema::ParamRole::Counters;
       geometry(p).counters = 3;
       p.programs[0]->launches[0]->operands[2] =
           schema::Operand(schema::OperandKind::Counters, 0, 0);
     },
     "operand 2: expected 12 bytes of the plan's 8 of counters, got offset 0"},
    {"VariantItems",
     [](PlanT &p) {
       auto variant = std::make_unique<schema::VariantT>();
       variant->symbol = variant->tiles = variant->source = "wide";
       variant->geometry = std::make_unique<schema::GeometryT>();
       p.kernels[0]->variants.push_back(std::move(variant));
     },
     "kernel 0: variant 0: items: expected 1"},
    // Code, source and tokenizer.
    {"CodeNoIsa", [](PlanT &p) { p.code[0]->isa = ""; },
     "code 0: isa: expected a text"},
    {"CodeSection", [](PlanT &p) { p.code[0]->section = 0; },
     "code 0: section: expected a section that holds a code"},
    {"SourceSection", [](PlanT &p) { p.sourceSection = 2; },
     "source: expected a section that holds a source, got section 2"},
    {"SourceSectionNegative", [](PlanT &p) { p.sourceSection = -2; },
     "source: expected 0 to 5, got -2"},
    {"TokenizerSection", [](PlanT &p) { p.tokenizer->section = 99; },
     "tokenizer: section: expected 0 to 5, got 99"},
    {"TokenizerKind", [](PlanT &p) { p.tokenizer->kind = ""; },
     "tokenizer: kind: expected a text"},
    {"TokenizerBos", [](PlanT &p) { p.tokenizer->bos = 96; },
     "tokenizer: begin of sequence: expected -1 to 95, got 96"},
    {"TokenizerBosMissing", [](PlanT &p) { p.tokenizer->bos = -1; },
     "tokenizer: begin of sequence: expected an id, as it is added, got -1"},
    {"TokenizerStopId", [](PlanT &p) { p.tokenizer->stopIds = {1, -7}; },
     "tokenizer: stop id: expected 0 to 95, got -7"},
    {"SamplingTemperatureNotANumber",
     [](PlanT &plan) {
       plan.sampling = std::make_unique<schema::SamplingT>();
       plan.sampling->temperature = std::nan("");
     },
     "sampling: temperature: expected a number of at least 0, got nan"},
    {"SamplingTopPOfNothing",
     [](PlanT &plan) {
       plan.sampling = std::make_unique<schema::SamplingT>();
       plan.sampling->topP = 0;
     },
     "sampling: top_p: expected a number in (0, 1], got 0"},
    {"SamplingTopKNegative",
     [](PlanT &plan) {
       plan.sampling = std::make_unique<schema::SamplingT>();
       plan.sampling->topK = -1;
     },
     "sampling: top_k: expected 0 to 2147483648, got -1"},
};

class PlanVerifierTest : public testing::TestWithParam<Nonsense> {};

TEST_P(PlanVerifierTest, IsFound) {
  toy::ToyPlan toy = toy::makeToyPlan();
  GetParam().change(toy.plan);
  const absl::Status status = readStatus(unsoundPlan(toy));
  EXPECT_EQ(exitCode(status), ExitCode::BadPlan) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("bad.plan: section 6 (manifest): "));
  EXPECT_THAT(message, HasSubstr(GetParam().message));
  EXPECT_THAT(message, HasSubstr("compile it again"));
}

INSTANTIATE_TEST_SUITE_P(Nonsense, PlanVerifierTest, testing::ValuesIn(all),
                         [](const auto &info) { return info.param.name; });

TEST(PlanVerifierTest, TokensInThePlaceOfTheArenaPass) {
  toy::ToyPlan toy = toy::makeToyPlan();
  giveTokens(toy.plan, 824);
  EXPECT_TRUE(readStatus(unsoundPlan(toy)).ok());
}

TEST(PlanVerifierTest, AResidentStepPasses) {
  toy::ToyPlan toy = toy::makeToyPlan();
  setResident(toy.plan);
  EXPECT_TRUE(readStatus(unsoundPlan(toy)).ok());
}

TEST(PlanVerifierTest, ASoundReferencePasses) {
  toy::ToyPlan toy = toy::makeToyPlan();
  refer(toy.plan);
  EXPECT_TRUE(readStatus(unsoundPlan(toy)).ok());
}

} // namespace
} // namespace llamac
