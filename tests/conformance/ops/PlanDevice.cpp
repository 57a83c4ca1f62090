//===- PlanDevice.cpp - Programs as plans, on a device --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All programs of a model become one plan: a function for each program and each
// range of row counts of the target that the program is run for. An input is a
// kernel.embed in the IR, so that the passes give it a place; its launch is
// taken out before kernels are emitted, and the test writes to the place.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/PlanDevice.h"

#include "compiler/driver/Compiler.h"
#include "ir/llama/OpNames.h"
#include "runtime/base/Status.h"
#include "runtime/engine/WeightLoader.h"
#include "runtime/io/MappedFile.h"
#include "tests/conformance/ops/Errors.h"

#include "absl/strings/str_cat.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace mlir;

namespace llamac::conformance {

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// The name of the input that `op` stands for; empty when it is none.
static std::string inputName(Operation *op) {
  StringRef name = labelOf(op->getLoc());
  return name.consume_front("input.") ? name.str() : "";
}

namespace {

/// A target that also takes the launches which stand for inputs.
class TargetWithInputs final : public kernel::Target {
public:
  explicit TargetWithInputs(const kernel::Target &target) : target(target) {}

  StringRef name() const override { return target.name(); }
  std::vector<kernel::RowBucket> rowBuckets() const override {
    return target.rowBuckets();
  }
  Attribute chooseConfig(Operation *op, int64_t maxRows) const override {
    return inputName(op).empty() ? target.chooseConfig(op, maxRows)
                                 : Attribute();
  }
  StringRef familyName(Operation *op) const override {
    return inputName(op).empty() ? target.familyName(op) : "input";
  }
  kernel::LaunchGeometry geometry(Operation *op) const override {
    return inputName(op).empty() ? target.geometry(op)
                                 : kernel::LaunchGeometry{.items = 1};
  }

private:
  const kernel::Target &target;
};

/// Where the inputs of one plan's program lie in its arena, by name.
using InputPlaces = std::map<std::string, uint64_t>;

/// A temporary folder, gone with the object.
class Folder {
public:
  Folder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "conformance-XXXXXX")
            .string();
    path = ::mkdtemp(name.data());
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  std::string file(const std::string &name) const {
    return (path / name).string();
  }

private:
  std::filesystem::path path;
};

} // namespace

/// Takes the launches that stand for inputs out of `module`, with their kernels
/// and weights, and gives their places by program.
static std::map<std::string, InputPlaces> takeInputs(ModuleOp module) {
  std::map<std::string, InputPlaces> places;
  for (auto program : module.getOps<plan::ProgramOp>())
    for (auto launch :
         llvm::make_early_inc_range(program.getBody().getOps<plan::LaunchOp>()))
      if (std::string name = inputName(launch); !name.empty()) {
        auto buffer = launch.getArgs().back().getDefiningOp<plan::BufferOp>();
        places[program.getSymName().str()][name] =
            buffer.getOffset().value_or(0);
        Operation *weight = launch.getArgs()[1].getDefiningOp();
        launch.erase();
        weight->erase();
      }
  for (auto kernel :
       llvm::make_early_inc_range(module.getOps<plan::KernelOp>()))
    if (kernel.getFamily() == "input")
      kernel.erase();
  return places;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

namespace {

/// What a plan was made of and where its parts are.
struct BuiltPlan {
  std::string path;
  std::map<std::string, InputPlaces> inputs;   ///< By the plan's program.
  std::map<std::string, std::string> programs; ///< The one it was made from.
};

class PlanBuild {
public:
  PlanBuild(const PlanTarget &target, const Model &model,
            const std::vector<ProgramUse> &uses, const Folder &folder)
      : model(model), uses(uses), folder(folder), targetName(target.name),
        backend(target.backend(model)), withInputs(backend->target()),
        context(createContext()) {}

  absl::StatusOr<BuiltPlan> build();

private:
  ModelConfig config() const;
  absl::StatusOr<std::string> moduleText(BuiltPlan &built) const;
  absl::StatusOr<WeightMap> writeWeights() const;

  const Model &model;
  const std::vector<ProgramUse> &uses;
  const Folder &folder;
  std::string targetName;
  std::unique_ptr<Backend> backend;
  TargetWithInputs withInputs;
  std::unique_ptr<MLIRContext> context;
};

} // namespace

/// The smallest config with the model's cache. No weight of a program has a
/// name that the config knows, and one number a row passes as logits.
ModelConfig PlanBuild::config() const {
  ModelConfig config;
  config.dim = model.queryWidth();
  config.numLayers = 1;
  config.numHeads = model.heads;
  config.numKvHeads = model.kvHeads;
  config.headSize = model.headSize;
  config.ffnDim = config.dim;
  config.vocabSize = 2;
  config.maxContext = model.context;
  config.normEps = 1e-5;
  config.ropeTheta = 10000;
  return config;
}

/// The first range of row counts that holds `rows`.
static const kernel::RowBucket *
bucketFor(const std::vector<kernel::RowBucket> &buckets, int64_t rows) {
  const auto it = llvm::find_if(
      buckets, [&](const auto &bucket) { return rows <= bucket.maxRows; });
  return it == buckets.end() ? nullptr : &*it;
}

/// The functions of all programs, in ascending order of rows as a plan wants
/// them, which go to built.programs.
absl::StatusOr<std::string> PlanBuild::moduleText(BuiltPlan &built) const {
  std::string text;
  const std::vector<kernel::RowBucket> buckets = backend->target().rowBuckets();
  for (const ProgramUse &use : uses)
    for (int64_t rows : use.rows)
      if (!bucketFor(buckets, rows))
        return internalError(
            absl::StrCat("no program of the target holds ", rows, " rows"));
  for (const kernel::RowBucket &bucket : buckets)
    for (const ProgramUse &use : uses)
      if (llvm::any_of(use.rows, [&](int64_t rows) {
            return bucketFor(buckets, rows) == &bucket;
          })) {
        const std::string function =
            absl::StrCat(use.program->name, "_", bucket.name.str());
        built.programs[function] = use.program->name;
        text += functionText(*use.program, function, bucket.maxRows,
                             bucket.maxWanted, InputsAs::Launches);
      }
  return text;
}

absl::StatusOr<WeightMap> PlanBuild::writeWeights() const {
  const std::string path = folder.file("weights");
  std::vector<WeightSource> sources;
  std::ofstream out(path, std::ios::binary);
  uint64_t offset = 0;
  // The file is not empty even where no program has a weight.
  out << "none";
  offset += 4;
  for (const ProgramUse &use : uses)
    for (const StoredWeight &weight : use.program->weights) {
      out.write(reinterpret_cast<const char *>(weight.bytes.data()),
                static_cast<std::streamsize>(weight.bytes.size()));
      WeightSource source;
      source.name = source.tensor = use.program->weightName(weight);
      source.type = weight.type;
      source.rows = weight.rows;
      source.cols = weight.cols;
      source.parts = {{0, offset, weight.bytes.size()}};
      sources.push_back(std::move(source));
      offset += weight.bytes.size();
    }
  out.close();
  WeightMap weights;
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  weights.addFile(std::move(file));
  for (WeightSource &source : sources)
    LLAMAC_RETURN_IF_ERROR(weights.add(std::move(source)));
  return weights;
}

absl::StatusOr<BuiltPlan> PlanBuild::build() {
  LLAMAC_RETURN_IF_ERROR(backend->checkModel(config()));
  BuiltPlan built;
  built.path = folder.file("plan");
  LLAMAC_ASSIGN_OR_RETURN(const std::string text, moduleText(built));
  Errors errors(context.get());
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(context.get()));
  if (!module)
    return errors.status("the programs do not parse");
  PassManager passes(context.get());
  addSteps(passes, scheduleSteps(withInputs));
  if (failed(passes.run(*module)))
    return errors.status("the passes failed");
  built.inputs = takeInputs(*module);

  PlanContents contents;
  const SmallVector<plan::KernelOp> kernels(module->getOps<plan::KernelOp>());
  FailureOr<std::vector<SourceFile>> files = backend->emit(kernels, {});
  if (failed(files))
    return errors.status("the kernels are not emitted");
  for (const SourceFile &file :
       std::move(files).value_or(std::vector<SourceFile>()))
    contents.source += file.text;
  LLAMAC_ASSIGN_OR_RETURN(contents.code, backend->compile(kernels, {}));
  contents.config = config();
  contents.target = targetName;
  contents.context = model.context;
  contents.fingerprint = contents.options = "conformance";
  contents.kv = backend->kvLayout(
      llama::KVType::get(context.get(), 1, model.kvHeads, model.headSize));
  contents.kv.maxSequences = maxSequences;
  LLAMAC_ASSIGN_OR_RETURN(const WeightMap weights, writeWeights());
  LLAMAC_RETURN_IF_ERROR(writePlan(*module, contents, weights, built.path, {}));
  return built;
}

//===----------------------------------------------------------------------===//
// Running it
//===----------------------------------------------------------------------===//

namespace {

class PlanPrograms final : public LoadedPrograms {
public:
  explicit PlanPrograms(const PlanTarget &target) : target(target) {}

  absl::Status load(const Model &model, const std::vector<ProgramUse> &uses);
  absl::Status reset() override;
  absl::StatusOr<std::vector<float>> run(const Program &program,
                                         const Step &step) override;

private:
  absl::Status writeIndices(schema::InputRole role,
                            const std::vector<int32_t> &values);
  absl::StatusOr<std::vector<float>> readArena(uint64_t offset, size_t count);

  /// The program of the plan for a step.
  absl::StatusOr<size_t> find(const Program &program, const Step &step) const;

  PlanTarget target;
  Folder folder;
  BuiltPlan built;
  std::shared_ptr<Device> device;
  std::shared_ptr<const PlanReader> reader;
  std::unique_ptr<LoadedCode> code;
  std::vector<std::unique_ptr<Buffer>> weights;
  std::unique_ptr<Buffer> arena, pool;
  std::vector<std::unique_ptr<Buffer>> inputs; ///< By schema::InputRole.
  bool oneByOne = false;                       ///< How the last step ran.
};

} // namespace

template <typename T>
static absl::Span<const uint8_t> bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const uint8_t *>(values.data()),
          values.size() * sizeof(T)};
}

absl::Status PlanPrograms::load(const Model &model,
                                const std::vector<ProgramUse> &uses) {
  LLAMAC_ASSIGN_OR_RETURN(built,
                          PlanBuild(target, model, uses, folder).build());
  LLAMAC_ASSIGN_OR_RETURN(reader, PlanReader::open(built.path));
  LLAMAC_ASSIGN_OR_RETURN(device, target.device());
  LLAMAC_ASSIGN_OR_RETURN(code, device->loadCode(reader));
  LLAMAC_ASSIGN_OR_RETURN(weights, loadWeights(*reader, *device));
  return reset();
}

/// What no step has written is a NaN in every format.
static std::vector<uint8_t> noNumbers(uint64_t bytes) {
  return std::vector<uint8_t>(bytes, 0xff);
}

absl::Status PlanPrograms::reset() {
  oneByOne = false;
  const schema::PlanT &plan = reader->plan();
  const int64_t pages = plan.kv->pagesPerSequence * maxSequences;
  const uint64_t poolBytes = static_cast<uint64_t>(pages) * plan.kv->pageBytes;
  LLAMAC_ASSIGN_OR_RETURN(pool, device->allocate(poolBytes));
  if (!target.seesUndefined)
    LLAMAC_RETURN_IF_ERROR(device->write(*pool, 0, noNumbers(poolBytes)));

  int64_t maxRows = 0;
  for (const auto &program : plan.programs)
    maxRows = std::max(maxRows, program->maxRows);
  inputs.clear();
  for (int role = 0; role <= static_cast<int>(schema::InputRole::MAX); ++role) {
    const int64_t entries =
        role == static_cast<int>(schema::InputRole::PageTable) ? pages
                                                               : maxRows;
    LLAMAC_ASSIGN_OR_RETURN(
        inputs.emplace_back(),
        device->allocate(static_cast<uint64_t>(entries) * sizeof(int32_t)));
  }
  // Every sequence has all its pages, which lie in disorder.
  std::vector<int32_t> table(pages);
  for (int64_t i = 0; i < pages; ++i)
    table[i] = static_cast<int32_t>(
        pages - 1 - (i % maxSequences) * plan.kv->pagesPerSequence -
        i / maxSequences);
  return writeIndices(schema::InputRole::PageTable, table);
}

absl::Status PlanPrograms::writeIndices(schema::InputRole role,
                                        const std::vector<int32_t> &values) {
  return device->write(*inputs[static_cast<size_t>(role)], 0, bytesOf(values));
}

absl::StatusOr<std::vector<float>> PlanPrograms::readArena(uint64_t offset,
                                                           size_t count) {
  std::vector<uint8_t> staging;
  LLAMAC_ASSIGN_OR_RETURN(
      const absl::Span<const uint8_t> bytes,
      device->read(*arena, offset, count * sizeof(float), staging));
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

absl::StatusOr<size_t> PlanPrograms::find(const Program &program,
                                          const Step &step) const {
  const auto &programs = reader->plan().programs;
  for (size_t i = 0; i < programs.size(); ++i)
    if (built.programs.at(programs[i]->name) == program.name &&
        step.rows() <= programs[i]->maxRows &&
        static_cast<int64_t>(step.wanted.size()) <= programs[i]->maxWanted)
      return i;
  return internalError(absl::StrCat("the plan has no program for ", step.rows(),
                                    " rows of ", program.name));
}

absl::StatusOr<std::vector<float>> PlanPrograms::run(const Program &program,
                                                     const Step &step) {
  LLAMAC_ASSIGN_OR_RETURN(const size_t number, find(program, step));
  const schema::ProgramT &planned = *reader->plan().programs[number];
  LLAMAC_ASSIGN_OR_RETURN(arena, device->allocateDense(planned.arenaBytes));
  if (!target.seesUndefined)
    LLAMAC_RETURN_IF_ERROR(
        device->write(*arena, 0, noNumbers(planned.arenaBytes)));
  for (const ProgramInput &input : program.inputs)
    LLAMAC_RETURN_IF_ERROR(
        device->write(*arena, built.inputs.at(planned.name).at(input.name),
                      bytesOf(step.inputs.at(input.name))));
  for (auto [role, values] :
       {std::pair(schema::InputRole::Tokens, &step.tokens),
        std::pair(schema::InputRole::Positions, &step.positions),
        std::pair(schema::InputRole::Sequences, &step.sequences),
        std::pair(schema::InputRole::Wanted, &step.wanted)})
    LLAMAC_RETURN_IF_ERROR(writeIndices(role, *values));

  ProgramBindings bindings;
  bindings.arena = arena->address();
  for (const auto &weight : weights)
    bindings.weights.push_back(weight->address());
  bindings.kv = {pool->address()};
  for (const auto &input : inputs)
    bindings.inputs.push_back(input->address());
  bindings.constants.resize(reader->sections().size());
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedProgram> prepared,
                          code->prepare(number, bindings));
  const auto wanted = static_cast<int64_t>(step.wanted.size());
  // One by one, launches do what all of them do at once: every second step.
  oneByOne = !oneByOne;
  if (oneByOne)
    for (size_t launch = 0; launch < planned.launches.size(); ++launch)
      LLAMAC_RETURN_IF_ERROR(
          prepared->runLaunch(launch, {step.rows(), wanted}));
  else
    LLAMAC_RETURN_IF_ERROR(prepared->run({step.rows(), wanted}));

  const int64_t rows = program.wanted ? wanted : step.rows();
  const int64_t maxRows = program.wanted ? planned.maxWanted : planned.maxRows;
  const auto width = static_cast<size_t>(program.outWidth);
  LLAMAC_ASSIGN_OR_RETURN(std::vector<float> out,
                          readArena(planned.logitsOffset, rows * width));
  // Behind the result of one launch there is nothing else's memory.
  if (!target.seesUndefined && planned.launches.size() == 1) {
    LLAMAC_ASSIGN_OR_RETURN(
        const std::vector<float> behind,
        readArena(planned.logitsOffset + rows * width * sizeof(float),
                  (maxRows - rows) * width));
    const std::vector<uint8_t> none = noNumbers(behind.size() * sizeof(float));
    if (std::memcmp(behind.data(), none.data(), none.size()) != 0)
      return internalError(
          absl::StrCat("rows past the step's ", rows, " were written"));
  }
  return out;
}

absl::StatusOr<std::unique_ptr<LoadedPrograms>>
loadOnPlan(const PlanTarget &target, const Model &model,
           const std::vector<ProgramUse> &programs) {
  auto loaded = std::make_unique<PlanPrograms>(target);
  LLAMAC_RETURN_IF_ERROR(loaded->load(model, programs));
  return loaded;
}

} // namespace llamac::conformance
