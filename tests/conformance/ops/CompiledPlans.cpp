//===- CompiledPlans.cpp - Plans that the compiler makes ------------------===//
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

#include "tests/conformance/ops/CompiledPlans.h"

#include "ir/llama/OpNames.h"
#include "runtime/base/Status.h"
#include "runtime/io/MappedFile.h"
#include "tests/conformance/ops/Errors.h"

#include "absl/strings/str_cat.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"

#include <fstream>

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
  explicit TargetWithInputs(std::unique_ptr<kernel::Target> target)
      : target(std::move(target)) {}

  StringRef name() const override { return target->name(); }
  std::vector<kernel::RowBucket> rowBuckets() const override {
    return target->rowBuckets();
  }
  Attribute chooseConfig(Operation *op, int64_t maxRows) const override {
    return inputName(op).empty() ? target->chooseConfig(op, maxRows)
                                 : Attribute();
  }
  bool roundsInputs() const override { return target->roundsInputs(); }
  bool roundsInput(Operation *op) const override {
    return target->roundsInput(op);
  }
  Attribute inputEncoding(Operation *op) const override {
    return target->inputEncoding(op);
  }
  bool takesSquares(Operation *op) const override {
    return target->takesSquares(op);
  }
  int64_t givesSquares(Operation *op) const override {
    return target->givesSquares(op);
  }
  StringRef familyName(Operation *op) const override {
    return inputName(op).empty() ? target->familyName(op) : "input";
  }
  kernel::LaunchGeometry geometry(Operation *op) const override {
    return inputName(op).empty() ? target->geometry(op)
                                 : kernel::LaunchGeometry{.items = 1};
  }

private:
  std::unique_ptr<kernel::Target> target;
};

struct WithInputs : kernel::TargetFactory {
  using TargetFactory::TargetFactory;

  std::unique_ptr<kernel::Target>
  create(kernel::TargetAttr attr, kernel::EmitError emitError) const override {
    auto target = createTarget(attr, emitError);
    return target ? std::make_unique<TargetWithInputs>(std::move(target))
                  : nullptr;
  }
};

} // namespace

static void registerTargetsWithInputs(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, kernel::KernelDialect *dialect) {
    dialect->addInterfaces<WithInputs>();
  });
}

/// Takes the launches that stand for inputs out of `module`, with their kernels
/// and weights, and gives their places by program.
static std::map<std::string, MadePlan::Places> takeInputs(ModuleOp module) {
  std::map<std::string, MadePlan::Places> places;
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

/// Where a target has no such cache for a model's programs, they run in f16.
static std::string cacheName(const Model &model, bool isCpu) {
  const CacheFormat format = model.cache;
  if (isCpu ? format == CacheFormat::FP8
            : format == CacheFormat::Q8_0 && !model.apart)
    return "f16";
  switch (format) {
  case CacheFormat::F16:
    return "f16";
  case CacheFormat::BF16:
    return "bf16";
  case CacheFormat::Q8_0:
    return "q8_0";
  case CacheFormat::FP8:
    return "fp8";
  }
  llvm_unreachable("no other format");
}

namespace {

/// Makes one plan.
class PlanBuild {
public:
  PlanBuild(CompileOptions given, const Model &model,
            const std::vector<ProgramUse> &uses, const TemporaryFolder &folder)
      : options(std::move(given)), model(model), uses(uses), folder(folder),
        context(createContext(registerTargetsWithInputs)) {
    options.context = model.context;
    options.kvFormat = cacheName(model, options.target == "cpu");
    attr = targetAttr(*context, options);
    backend = createBackend(attr);
    made->path = folder.file(model.name + ".plan");
  }

  absl::StatusOr<std::unique_ptr<MadePlan>> build();

private:
  ModelConfig config() const;
  absl::StatusOr<std::string> moduleText();
  absl::StatusOr<WeightMap> writeWeights() const;

  CompileOptions options;
  const Model &model;
  const std::vector<ProgramUse> &uses;
  const TemporaryFolder &folder;
  std::unique_ptr<MLIRContext> context;
  kernel::TargetAttr attr;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<MadePlan> made = std::make_unique<MadePlan>();
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
  config.vocabSize = 1;
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
/// them, which go to made->programs.
absl::StatusOr<std::string> PlanBuild::moduleText() {
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
        made->programs[function] = use.program->name;
        text += functionText(*use.program, function, bucket.maxRows,
                             bucket.maxLogitsRows, InputsAs::Launches);
      }
  return text;
}

absl::StatusOr<WeightMap> PlanBuild::writeWeights() const {
  const std::string path = folder.file(model.name + ".weights");
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

absl::StatusOr<std::unique_ptr<MadePlan>> PlanBuild::build() {
  LLAMAC_RETURN_IF_ERROR(backend->checkModel(config()));
  LLAMAC_ASSIGN_OR_RETURN(const std::string text, moduleText());
  Errors errors(context.get());
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(context.get()));
  if (!module)
    return errors.status("the programs do not parse");
  (*module)->setAttr(kernel::KernelDialect::getTargetAttrName(), attr);
  PassManager passes(context.get());
  // Only a whole model samples and makes its cos/sin cache with its embedding.
  addSteps(passes, scheduleSteps(*kernel::targetOf(*module)));
  if (failed(passes.run(*module)))
    return errors.status("the passes failed");
  made->inputs = takeInputs(*module);

  PlanContents contents;
  const SmallVector<plan::KernelOp> kernels(module->getOps<plan::KernelOp>());
  FailureOr<std::vector<SourceFile>> files =
      backend->emit(kernels, {}, SourceLayout::Formatted);
  if (failed(files))
    return errors.status("the kernels are not emitted");
  contents.source =
      backend->planSource(std::move(files).value_or(std::vector<SourceFile>()));
  LLAMAC_ASSIGN_OR_RETURN(contents.code, backend->compile(kernels, {}));
  contents.config = config();
  contents.target = options.target;
  contents.gpu = options.gpu;
  contents.matrixLayout = backend->matrixLayout();
  contents.context = model.context;
  contents.ranks = model.ranks;
  contents.fingerprint = contents.options = "conformance";
  contents.kv = backend->kvLayout(
      llama::KVType::get(context.get(), model.kvHeads, model.headSize));
  contents.kv.maxSequences = maxSequences;
  addKvGroups(*module, /*layers=*/1, contents.kv);
  LLAMAC_ASSIGN_OR_RETURN(const WeightMap weights, writeWeights());
  LLAMAC_RETURN_IF_ERROR(writePlan(*module, contents, weights, made->path, {}));
  return std::move(made);
}

absl::StatusOr<const MadePlan *>
CompiledPlans::get(const Model &model,
                   const std::vector<ProgramUse> &programs) {
  auto it = plans.find(model.name);
  if (it == plans.end())
    it = plans
             .emplace(model.name,
                      PlanBuild(options, model, programs, folder).build())
             .first;
  if (!it->second.ok())
    return it->second.status();
  return it->second->get();
}

} // namespace llamac::conformance
