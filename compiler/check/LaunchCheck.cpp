//===- LaunchCheck.cpp - Every launch against the reference ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/check/LaunchCheck.h"

#include "compiler/check/Check.h"
#include "compiler/check/Reproducer.h"
#include "compiler/driver/ReferenceTarget.h"
#include "compiler/trial/LaunchReference.h"
#include "engine/step/Engine.h"
#include "engine/tuner/ModelRun.h"
#include "ir/llama/OpNames.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace mlir;

namespace llamac {

using schema::Operand, schema::OperandKind;

//===----------------------------------------------------------------------===//
// The steps
//===----------------------------------------------------------------------===//

namespace {

struct PlannedStep {
  int64_t rows;
  RowKind kind;
  bool allLogits; ///< Logits of every row; else of the last one.
};

} // namespace

/// Steps for at most `tokens` tokens: a prompt that ends short of a page's end,
/// steps for each smaller program, which go beyond it, a second
/// prompt of more rows than a block of a product has, and single tokens that
/// have more keys than attention takes at a time. Short lists of tokens are two
/// thirds prompt, the rest the smaller programs in turn.
static std::vector<PlannedStep> planSteps(int64_t tokens,
                                          const schema::PlanT &plan) {
  const int64_t prompt = plan.kv->pageTokens - 4, more = 136, last = 2;
  const int64_t maxLogitsRows = plan.programs.back()->maxOutputRows;
  std::vector<PlannedStep> steps;
  int64_t left = tokens;
  auto add = [&](int64_t rows, RowKind kind = RowKind::Decode) {
    rows = std::min(rows, left);
    left -= rows;
    if (rows > 0)
      steps.push_back({rows, kind, rows <= maxLogitsRows});
  };
  // The fewest and the most rows that come to each of the smaller programs; the
  // fewest alone of those of many sequences.
  std::vector<int64_t> few;
  int64_t largest = 0;
  for (const auto &program : plan.programs)
    if (program != plan.programs.back()) {
      const int64_t least = largest + 1;
      largest = program->maxRows;
      if (least < largest || program->decodeOnly)
        few.push_back(least);
      if (!program->decodeOnly)
        few.push_back(largest);
    }
  constexpr int64_t overPageEnd = 8;
  const int64_t inTurn = std::max(
      overPageEnd, std::accumulate(few.begin(), few.end(), int64_t{0}));
  if (few.empty() || tokens < prompt + inTurn + more + last) {
    add((2 * tokens + 2) / 3, RowKind::Prompt);
    while (left > 0 && !few.empty())
      for (int64_t rows : few)
        add(rows);
    add(left);
    return steps;
  }
  add(prompt, RowKind::Prompt);
  for (int64_t rest = inTurn; rest > 0;)
    for (int64_t rows : few) {
      add(std::min(rows, rest));
      rest -= std::min(rows, rest);
    }
  add(more, RowKind::Prompt);
  for (int64_t i = 0; i < last; ++i)
    add(1);
  return steps;
}

/// The most tokens of all steps, unless the user gives tokens.
static constexpr int64_t defaultTokens = 376;

//===----------------------------------------------------------------------===//
// The observer
//===----------------------------------------------------------------------===//

namespace {

class LaunchChecker final : public LaunchObserver {
public:
  LaunchChecker(const std::shared_ptr<const Model> &model,
                const Backend &backend, LaunchReference &reference,
                const CheckOptions &options)
      : model(model), backend(backend), numerics(backend.numerics()),
        reference(reference), options(options) {}

  /// Checks that the plan's launches are those of the ops.
  absl::Status matchPlan() const;
  absl::Status run(absl::Span<const int32_t> tokens);

  absl::Status before(const LaunchSite &site, StepMemory &memory) override;
  absl::Status after(const LaunchSite &site, StepMemory &memory) override;

  LaunchCheckResult result;

private:
  /// A launch and the op that says what it computes.
  struct Pair {
    const schema::ProgramT &program;
    const schema::LaunchT &launch;
    const schema::KernelT &kernel;
    Operation *op;

    /// Number `number` of the operands for parameters of one of `roles`.
    const Operand &operandFor(ArrayRef<schema::ParamRole> roles,
                              int64_t number) const;
    /// Where result number `number`, no cache, lies.
    const Operand &resultOperand(unsigned number) const;
    /// Where result number `number`, a cache, lies: caches come in one order.
    const Operand &cacheOperand(unsigned number) const {
      return operandFor(
          {schema::ParamRole::Cache, schema::ParamRole::AppendedCache},
          llvm::count_if(op->getResults().take_front(number), isCache));
    }
  };

  Pair pairAt(const LaunchSite &site) const;
  const std::string &symbolOf(const schema::LaunchT &launch) const {
    return model->plan().kernels[launch.kernel]->symbol;
  }
  size_t programFor(const PlannedStep &step) const;

  absl::Status feedCache(const Operand &pool, Value before, int64_t poisoned,
                         StepMemory &memory);
  absl::StatusOr<std::vector<float>> readCache(const Operand &pool, Value state,
                                               StepMemory &memory);
  absl::Status forEachCached(
      const Operand &pool, int64_t count, StepMemory &memory,
      absl::FunctionRef<void(int64_t position, int64_t token, uint8_t *page)>
          visit,
      bool writesBack);
  absl::StatusOr<std::vector<float>> readResult(const Pair &pair, unsigned i,
                                                StepMemory &memory);
  std::string kernelNames(const Pair &pair) const;
  void note(const CheckedKernel &launch);
  absl::Status reproduce(const Pair &pair, unsigned result,
                         absl::Span<const float> got, Culprit &culprit) const;

  std::shared_ptr<const Model> model;
  const Backend &backend;
  const kernel::TargetNumerics &numerics;
  LaunchReference &reference;
  const CheckOptions &options;
  llvm::StringMap<size_t> numbers; ///< Places of kernels in result.kernels.
  std::vector<uint8_t> staging;
};

} // namespace

using schema::ParamRole;

static constexpr ParamRole opOperands[] = {ParamRole::Activation,
                                           ParamRole::Weight, ParamRole::Cache,
                                           ParamRole::AppendedCache};

const Operand &LaunchChecker::Pair::operandFor(ArrayRef<ParamRole> roles,
                                               int64_t number) const {
  for (const auto &[operand, role] : llvm::zip(launch.operands, kernel.params))
    if (llvm::is_contained(roles, role) && number-- == 0)
      return operand;
  llvm_unreachable("matchPlan() has counted them");
}

const Operand &LaunchChecker::Pair::resultOperand(unsigned number) const {
  return operandFor(
      ParamRole::Result,
      llvm::count_if(op->getResults().take_front(number),
                     [](Value value) { return !isCache(value); }));
}

absl::Status LaunchChecker::matchPlan() const {
  const schema::PlanT &plan = model->plan();
  for (const auto &program : plan.programs) {
    ArrayRef<Operation *> ops = reference.launches(program->name);
    if (ops.size() != program->launches.size())
      return internalError(absl::StrCat(
          model->name(), ": program ", program->name, ": expected ", ops.size(),
          " launches, one for each kernel op, got ", program->launches.size()));
    for (auto [op, launch] : llvm::zip(ops, program->launches)) {
      const std::string name = labelOf(op->getLoc()).str();
      const std::string family = backend.target().familyName(op).str();
      const std::string &label = name.empty() ? launch->label : name;
      const schema::KernelT &kernel = *plan.kernels[launch->kernel];
      const auto operands = llvm::count_if(kernel.params, [](ParamRole role) {
        return llvm::is_contained(opOperands, role);
      });
      const auto results = llvm::count(kernel.params, ParamRole::Result) +
                           llvm::count_if(op->getResults(), isCache);
      if (kernel.family != family || launch->label != label ||
          operands != op->getNumOperands() || results != op->getNumResults())
        return internalError(absl::StrCat(
            model->name(), ": program ", program->name,
            ": expected a launch of family ", family, " for ", label, " with ",
            op->getNumOperands(), " operands and ", op->getNumResults(),
            " results, got ", kernel.family, " for ", launch->label, " with ",
            operands, " and ", results));
    }
  }
  return absl::OkStatus();
}

/// The first program that holds the step, as the engine chooses.
size_t LaunchChecker::programFor(const PlannedStep &step) const {
  return llamac::programFor(model->plan(), step.rows,
                            step.allLogits ? step.rows : 1,
                            step.kind == RowKind::Prompt);
}

absl::Status LaunchChecker::run(absl::Span<const int32_t> tokens) {
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                          Engine::create(model, {.observer = this}));
  LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine->newSequence());
  const schema::PlanT &plan = model->plan();
  const auto count = static_cast<int64_t>(tokens.size());
  int64_t first = 0;
  for (const PlannedStep &step : planSteps(count, plan)) {
    std::vector<int32_t> logitsRows(step.allLogits ? step.rows : 1);
    std::iota(logitsRows.begin(), logitsRows.end(),
              static_cast<int32_t>(step.allLogits ? 0 : step.rows - 1));
    const absl::Span<const int32_t> part = tokens.subspan(first, step.rows);
    LLAMAC_RETURN_IF_ERROR(reference.step(plan.programs[programFor(step)]->name,
                                          part, logitsRows));
    const absl::Status status = engine->step(
        {{&sequence, part, step.allLogits ? OutputRows::All : OutputRows::Last,
          step.kind}},
        [](const LogitsRow &) { return absl::OkStatus(); });
    // The launch that gave NaN logits has been found.
    if (!status.ok() && exitCode(status) != ExitCode::Accuracy)
      return status;
    first += step.rows;
  }
  return absl::OkStatus();
}

LaunchChecker::Pair LaunchChecker::pairAt(const LaunchSite &site) const {
  const schema::PlanT &plan = model->plan();
  const schema::ProgramT &program = *plan.programs[site.program];
  const schema::LaunchT &launch = *program.launches[site.launch];
  return {program, launch, *plan.kernels[launch.kernel],
          reference.launches(program.name)[site.launch]};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Visits those of the first `count` positions of the step's sequence that the
/// cache keeps with their page in `pool` and their number in it; pages are
/// written back where asked for.
absl::Status LaunchChecker::forEachCached(
    const Operand &pool, int64_t count, StepMemory &memory,
    absl::FunctionRef<void(int64_t, int64_t, uint8_t *)> visit,
    bool writesBack) {
  const schema::KvLayoutT &layout = *model->plan().kv;
  const uint32_t group = layout.layerGroups[pool.index()];
  auto readNumber = [&](schema::InputRole role, uint64_t offset,
                        int64_t index) -> absl::StatusOr<int32_t> {
    LLAMAC_ASSIGN_OR_RETURN(
        const absl::Span<const uint8_t> bytes,
        memory.read(
            Operand(OperandKind::Input, static_cast<uint32_t>(role), offset),
            index * sizeof(int32_t), sizeof(int32_t), staging));
    int32_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  };
  LLAMAC_ASSIGN_OR_RETURN(const int32_t slot,
                          readNumber(schema::InputRole::Sequences, 0, 0));
  const int64_t begin = std::max<int64_t>(
      count - layout.groups[group].pages() * layout.pageTokens, 0);
  for (int64_t first = begin / layout.pageTokens * layout.pageTokens;
       first < count; first += layout.pageTokens) {
    LLAMAC_ASSIGN_OR_RETURN(
        const int32_t number,
        readNumber(schema::InputRole::PageTable, group,
                   slot * layout.pagesPerSequence + first / layout.pageTokens));
    const uint64_t offset = number * layout.pageBytes;
    LLAMAC_ASSIGN_OR_RETURN(
        const absl::Span<const uint8_t> bytes,
        memory.read(pool, offset, layout.pageBytes, staging));
    std::vector<uint8_t> page(bytes.begin(), bytes.end());
    const int64_t end = std::min(count, first + layout.pageTokens);
    for (int64_t position = std::max(begin, first); position < end; ++position)
      visit(position, position - first, page.data());
    if (writesBack)
      LLAMAC_RETURN_IF_ERROR(memory.write(pool, offset, page));
  }
  return absl::OkStatus();
}

/// Writes the cache that a launch reads, and NaN behind it, up to `length` rows
/// in all.
absl::Status LaunchChecker::feedCache(const Operand &pool, Value before,
                                      int64_t length, StepMemory &memory) {
  const auto &state = std::get<reference::KvState>(reference.value(before));
  const std::vector<float> rows = state.numbers();
  const int64_t width = state.rowSize();
  const int64_t known = state.length(0);
  const std::vector<float> unset(width, std::nanf(""));
  const auto kv = cast<llama::KVType>(before.getType());
  return forEachCached(
      pool, std::max(known, length), memory,
      [&](int64_t position, int64_t token, uint8_t *page) {
        const bool isKnown = position < known;
        const float *key =
            isKnown ? rows.data() + position * width : unset.data();
        const float *value =
            isKnown ? rows.data() + (known + position) * width : unset.data();
        numerics.writeKv(kv, key, value, token, page);
      },
      /*writesBack=*/true);
}

/// The rows that `state`, the cache after a launch, should hold, as the target
/// has them; those that it does not keep as they should be.
absl::StatusOr<std::vector<float>>
LaunchChecker::readCache(const Operand &pool, Value state, StepMemory &memory) {
  const auto &expected = std::get<reference::KvState>(reference.value(state));
  const int64_t width = expected.rowSize();
  const int64_t length = expected.length(0);
  const auto kv = cast<llama::KVType>(state.getType());
  std::vector<float> rows = expected.numbers();
  LLAMAC_RETURN_IF_ERROR(forEachCached(
      pool, length, memory,
      [&](int64_t position, int64_t token, uint8_t *page) {
        numerics.readKv(kv, page, token, rows.data() + position * width,
                        rows.data() + (length + position) * width);
      },
      /*writesBack=*/false));
  return rows;
}

absl::Status LaunchChecker::before(const LaunchSite &site, StepMemory &memory) {
  const Pair pair = pairAt(site);
  // Results begin as NaN, so that elements that a launch does not write show; a
  // result may lie where an operand does, so operands come after.
  int64_t cacheLength = 0;
  for (OpResult value : pair.op->getResults()) {
    const reference::Value &expected = reference.value(value);
    if (const auto *state = std::get_if<reference::KvState>(&expected)) {
      cacheLength = state->length(0);
      continue;
    }
    if (numerics.isPrivate(value))
      continue;
    // Every float of this is NaN.
    const std::vector<uint8_t> unset(
        storedNumbers(value.getType(), expected).size(), 0xff);
    LLAMAC_RETURN_IF_ERROR(
        memory.write(pair.resultOperand(value.getResultNumber()), 0, unset));
  }
  for (OpOperand &operand : pair.op->getOpOperands()) {
    const Operand &place =
        pair.operandFor(opOperands, operand.getOperandNumber());
    const Value value = operand.get();
    if (isCache(value)) {
      LLAMAC_RETURN_IF_ERROR(feedCache(place, value, cacheLength, memory));
      continue;
    }
    // Weights and inputs are there; what is private, a launch just made.
    if (place.kind() != OperandKind::Arena || numerics.isPrivate(value))
      continue;
    LLAMAC_RETURN_IF_ERROR(memory.write(
        place, 0, storedNumbers(value.getType(), reference.value(value))));
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

absl::StatusOr<std::vector<float>>
LaunchChecker::readResult(const Pair &pair, unsigned i, StepMemory &memory) {
  const Value value = pair.op->getResult(i);
  const reference::Value &expected = reference.value(value);
  if (isCache(value))
    return readCache(pair.cacheOperand(i), value, memory);
  LLAMAC_ASSIGN_OR_RETURN(
      const absl::Span<const uint8_t> bytes,
      memory.read(pair.resultOperand(i), 0,
                  storedNumbers(value.getType(), expected).size(), staging));
  return numbersIn(value.getType(), bytes);
}

/// The kernel's symbol, after those of the launches whose private results it
/// reads: they are compared together.
std::string LaunchChecker::kernelNames(const Pair &pair) const {
  std::vector<std::string> names;
  ArrayRef<Operation *> ops = reference.launches(pair.program.name);
  for (Value operand : pair.op->getOperands())
    if (numerics.isPrivate(operand)) {
      const size_t maker =
          llvm::find(ops, operand.getDefiningOp()) - ops.begin();
      names.push_back(symbolOf(*pair.program.launches[maker]));
    }
  names.push_back(symbolOf(pair.launch));
  return absl::StrJoin(names, " + ");
}

/// Counts the launch, and keeps it when it is the worst of its kernel.
void LaunchChecker::note(const CheckedKernel &launch) {
  auto [it, isNew] = numbers.try_emplace(launch.kernel, result.kernels.size());
  if (isNew)
    result.kernels.push_back(launch);
  CheckedKernel &known = result.kernels[it->second];
  const int64_t launches = known.launches + 1;
  std::optional<ApproximationUse> approximation = launch.approximation;
  if (approximation && known.approximation)
    approximation = {
        std::max(approximation->error, known.approximation->error),
        std::max(approximation->dropped, known.approximation->dropped)};
  if (launch.errorRatio() > known.errorRatio())
    known = launch;
  known.approximation = approximation;
  known.launches = launches;
}

absl::Status LaunchChecker::after(const LaunchSite &site, StepMemory &memory) {
  const Pair pair = pairAt(site);
  std::optional<CheckedKernel> worst;
  unsigned worstResult = 0;
  std::vector<float> worstValues;
  for (OpResult value : pair.op->getResults()) {
    if (numerics.isPrivate(value))
      continue;
    const unsigned i = value.getResultNumber();
    LLAMAC_ASSIGN_OR_RETURN(std::vector<float> got,
                            readResult(pair, i, memory));
    CheckedKernel launch =
        compareResult(value, got, numerics, [&](Value other) -> const auto & {
          return reference.value(other);
        });
    if (worst && launch.errorRatio() <= worst->errorRatio())
      continue;
    worst = std::move(launch);
    worstResult = i;
    worstValues = std::move(got);
  }
  if (!worst)
    return absl::OkStatus();
  worst->kernel = kernelNames(pair);
  worst->op = pair.op->getName().getStringRef().str();
  worst->program = pair.program.name;
  worst->location = llvm::join(namesOf(pair.op->getLoc()), ", ");
  worst->layer = layerOf(labelOf(pair.op->getLoc()));
  note(*worst);
  if (worst->passed() || result.culprit)
    return absl::OkStatus();

  Culprit culprit;
  culprit.kernel = worst->kernel;
  culprit.op = worst->op;
  culprit.location = worst->location;
  culprit.layer = worst->layer;
  culprit.difference = worst->difference;
  culprit.where = absl::StrCat("program ", worst->program, ", ", worst->where);
  if (options.bisect)
    LLAMAC_RETURN_IF_ERROR(reproduce(pair, worstResult, worstValues, culprit));
  result.culprit = std::move(culprit);
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The reproducer
//===----------------------------------------------------------------------===//

/// Writes the op alone, what it read, what result number `number` should have
/// been and was, and the kernel's source.
absl::Status LaunchChecker::reproduce(const Pair &pair, unsigned number,
                                      absl::Span<const float> got,
                                      Culprit &culprit) const {
  const std::string &symbol = symbolOf(pair.launch);
  LLAMAC_ASSIGN_OR_RETURN(Reproducer files,
                          Reproducer::create(options.reproducerFolder, symbol));
  const OwningOpRef<ModuleOp> alone = isolateLaunch(pair.op, numerics);
  LLAMAC_RETURN_IF_ERROR(files.writeModule(*alone));
  auto write = [&](const std::string &name, const reference::Value &value,
                   absl::Span<const float> numbers) -> absl::Status {
    const auto width = static_cast<size_t>(widthOf(value));
    const auto rows = static_cast<int64_t>(numbers.size() / width);
    if (!std::holds_alternative<reference::KvState>(value))
      return files.writeNpy(name, rows, numbers);
    const size_t half = numbers.size() / 2;
    LLAMAC_RETURN_IF_ERROR(
        files.writeNpy(name + ".keys", rows / 2, numbers.first(half)));
    return files.writeNpy(name + ".values", rows / 2, numbers.subspan(half));
  };
  for (OpOperand &operand : pair.op->getOpOperands()) {
    const reference::Value &value = reference.value(operand.get());
    if (!std::holds_alternative<reference::Weight>(value) &&
        !numerics.isPrivate(operand.get()))
      LLAMAC_RETURN_IF_ERROR(
          write(absl::StrCat("operand", operand.getOperandNumber()), value,
                numbersOf(value)));
  }
  const reference::Value &expected =
      reference.value(pair.op->getResult(number));
  const std::string stem = absl::StrCat("result", number);
  LLAMAC_RETURN_IF_ERROR(
      write(stem + ".expected", expected, numbersOf(expected)));
  LLAMAC_RETURN_IF_ERROR(write(stem + ".got", expected, got));
  const SourceFile source = backend.kernelSource(model->source(), symbol);
  LLAMAC_RETURN_IF_ERROR(files.writeText(
      StringRef(source.name).rsplit('.').second.str(), source.text));
  culprit.files = files.takeFiles();
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The check
//===----------------------------------------------------------------------===//

absl::StatusOr<LaunchCheckResult> checkLaunches(
    const Checkpoint &checkpoint, const CompileOptions &compileOptions,
    const std::shared_ptr<const Model> &model, const CheckOptions &options) {
  LLAMAC_ASSIGN_OR_RETURN(const CompileOptions resolved,
                          resolveOptions(compileOptions, checkpoint.config));
  const std::unique_ptr<MLIRContext> context = createContext();
  const std::unique_ptr<Backend> backend =
      createBackend(targetAttr(*context, resolved));
  LLAMAC_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module,
                          importGraph(*context, checkpoint, resolved));
  PassManager pm(context.get());
  for (const PipelineStep &step : checkableSteps(resolved, backend->target()))
    step.addTo(pm);
  if (failed(pm.run(*module)))
    return internalError("the passes before lower-to-plan failed");

  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<LaunchReference> reference,
                          LaunchReference::create(*module,
                                                  checkpointReader(checkpoint),
                                                  backend->numerics(),
                                                  model->plan().kv->pageBytes));
  LaunchChecker checker(model, *backend, *reference, options);
  LLAMAC_RETURN_IF_ERROR(checker.matchPlan());
  std::vector<int32_t> tokens = options.tokens;
  if (tokens.empty())
    tokens = spreadTokens(std::min(defaultTokens, model->context()),
                          checkpoint.config.vocabSize);
  LLAMAC_RETURN_IF_ERROR(checker.run(tokens));
  return std::move(checker.result);
}

} // namespace llamac
