//===- InspectCommand.cpp - llamac inspect ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
// Gathers what is known of a model or plan as one JSON document, which is
// printed as it is or as tables for people.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compiler.h"
#include "compiler/driver/PlanCache.h"
#include "compiler/driver/PlanJson.h"
#include "compiler/driver/TextTable.h"
#include "compiler/llamac/Commands.h"
#include "compiler/report/Report.h"
#include "ir/plan/Plan.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/JsonText.h"
#include "runtime/load/MemoryNeeds.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/plan/PlanReader.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

namespace llamac {

using Json = nlohmann::ordered_json;

static Json configJson(const ModelConfig &config) {
  Json json = {{"dim", config.dim},
               {"layers", config.numLayers},
               {"heads", config.numHeads},
               {"kv_heads", config.numKvHeads},
               {"head_size", config.headSize},
               {"ffn_dim", config.ffnDim},
               {"vocabulary", config.vocabSize},
               {"max_context", config.maxContext},
               {"norm_eps", config.normEps},
               {"rope_theta", config.ropeTheta},
               {"tied_embeddings", config.tiedEmbeddings}};
  if (config.ropeScaling)
    json["rope_scaling"] = {
        {"factor", config.ropeScaling->factor},
        {"low_freq_factor", config.ropeScaling->lowFreqFactor},
        {"high_freq_factor", config.ropeScaling->highFreqFactor},
        {"old_context", config.ropeScaling->oldContext}};
  if (!config.ropeFactors.empty())
    json["rope_factors"] = config.ropeFactors;
  return json;
}

static Json tensorJson(absl::string_view name, DataType type, int64_t rows,
                       int64_t cols) {
  return {{"name", std::string(name)},
          {"type", std::string(dataTypeName(type))},
          {"rows", rows},
          {"cols", cols},
          {"bytes", dataTypeBytes(type, static_cast<uint64_t>(rows * cols))}};
}

/// How often each op occurs in the functions of `module`.
static Json graphJson(mlir::ModuleOp module) {
  std::map<std::string, int64_t> counts;
  module.walk([&](mlir::Operation *op) {
    if (!llvm::isa<mlir::ModuleOp, mlir::func::FuncOp, mlir::func::ReturnOp>(
            op))
      ++counts[op->getName().getStringRef().str()];
  });
  return counts;
}

static Json memoryJson(const schema::PlanT &plan) {
  const schema::KvLayoutT &kv = *plan.kv;
  const auto layers = static_cast<int64_t>(kv.layerGroups.size());
  return {{"weights", memoryNeeds(plan).weights},
          {"kv_per_token", layers * kvTokenBytes(kv)},
          {"kv_per_sequence", kvPoolBytes(kv) / kv.maxSequences},
          {"context", plan.context},
          {"workspace", arenaBytes(plan)}};
}

static Json programsJson(const schema::PlanT &plan) {
  Json programs = Json::array();
  for (const auto &program : plan.programs)
    programs.push_back({{"name", program->name},
                        {"max_rows", program->maxRows},
                        {"launches", program->launches.size()},
                        {"barriers", llvm::count_if(program->launches,
                                                    [](const auto &launch) {
                                                      return launch->barrier;
                                                    })},
                        {"workspace", program->arenaBytes}});
  return programs;
}

/// With `arenas`, also where in its arena each program keeps what.
static absl::StatusOr<Json> inspectModel(const std::string &path,
                                         const CompileOptions &options,
                                         bool arenas) {
  LLAMAC_ASSIGN_OR_RETURN(Checkpoint checkpoint, openModelOrConfig(path));
  Json json = {{"kind", "model"},
               {"name", checkpoint.name},
               {"format", std::string(checkpointFormatName(checkpoint.format))},
               {"tokenizer",
                std::string(tokenizerFormatName(checkpoint.tokenizer.kind))},
               {"config", configJson(checkpoint.config)},
               {"tensors", Json::array()}};
  for (const WeightSource &weight : checkpoint.weights.weights())
    json["tensors"].push_back(
        tensorJson(weight.name, weight.type, weight.rows, weight.cols));
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Compilation> compilation,
                          Compilation::create(checkpoint, options));
  warnOfLongContext(compilation->options().context,
                    checkpoint.config.maxContext);
  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Import));
  json["graph"] = graphJson(compilation->module());
  LLAMAC_RETURN_IF_ERROR(compilation->runTo(Phase::Schedule));
  json["kernels"] = kernelsJson(compilation->module());
  LLAMAC_ASSIGN_OR_RETURN(const schema::PlanT plan, compilation->manifest());
  json["programs"] = programsJson(plan);
  json["memory"] = memoryJson(plan);
  if (arenas)
    for (auto program : compilation->module().getOps<plan::ProgramOp>())
      json["memory"]["arenas"][program.getSymName().str()] = arenaJson(program);
  return json;
}

static absl::StatusOr<Json> inspectPlan(const std::string &path) {
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<const PlanReader> reader,
                          PlanReader::open(path));
  const schema::PlanT &plan = reader->plan();
  Json json = {{"kind", "plan"},
               {"producer", plan.producer},
               {"target", plan.target},
               {"ranks", plan.ranks}, // The other members describe each rank.
               {"options", plan.options},
               {"model_fingerprint", plan.modelFingerprint},
               {"tokenizer", plan.tokenizer ? plan.tokenizer->kind : "none"},
               {"config", configJson(fromPlan(*plan.config))}};
  for (const auto &weight : plan.weights)
    json["tensors"].push_back(tensorJson(weight->name, fromPlan(weight->type),
                                         weight->rows, weight->cols));
  for (const auto &kernel : plan.kernels)
    json["kernels"].push_back(
        {{"name", kernel->symbol}, {"family", kernel->family}});
  json["programs"] = programsJson(plan);
  for (const auto &code : plan.code)
    json["code"].push_back(
        {{"isa", code->isa}, {"bytes", reader->bytes(code->section).size()}});
  json["memory"] = memoryJson(plan);
  return json;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static std::string cellText(const Json &value) {
  if (!value.is_array())
    return value.is_string() ? printable(value.get<std::string>())
                             : value.dump();
  std::vector<std::string> texts;
  for (const Json &part : value)
    texts.push_back(cellText(part));
  return absl::StrJoin(texts, ", ");
}

/// "key  value" lines.
static void printFields(const char *title, const Json &fields) {
  size_t width = 18;
  for (const auto &[key, value] : fields.items())
    width = std::max(width, key.size());
  std::printf("%s\n", title);
  for (const auto &[key, value] : fields.items())
    if (const std::string text = cellText(value); !text.empty())
      std::printf("  %-*s %s\n", static_cast<int>(width), key.c_str(),
                  text.c_str());
}

/// Rows of objects with equal keys, in columns.
static void printRows(const char *title, const Json &rows) {
  if (rows.empty())
    return;
  std::vector<TextTable::Column> columns;
  for (const auto &[key, value] : rows[0].items())
    columns.push_back({key, value.is_number()});
  TextTable table(std::move(columns));
  for (const Json &row : rows) {
    std::vector<std::string> cells;
    for (const Json &value : row)
      cells.push_back(cellText(value));
    table.addRow(std::move(cells));
  }
  std::printf("%s\n%s", title, table.text().c_str());
}

/// Tensors that differ in the layer only, as one row with their number.
static Json tensorSummary(const Json &tensors) {
  Json rows = Json::array();
  std::map<std::string, size_t> seen;
  for (const Json &tensor : tensors) {
    std::string role = tensor["name"].get<std::string>();
    if (role.rfind("layers.", 0) == 0)
      role = absl::StrCat("layers.*", role.substr(role.find('.', 7)));
    const std::string shape = absl::StrCat(tensor["rows"].get<int64_t>(), " x ",
                                           tensor["cols"].get<int64_t>());
    const std::string type = tensor["type"].get<std::string>();
    const auto [it, isNew] = seen.try_emplace(
        absl::StrCat(role, " ", type, " ", shape), rows.size());
    if (isNew)
      rows.push_back({{"tensor", role},
                      {"type", type},
                      {"shape", shape},
                      {"count", 0},
                      {"bytes", uint64_t{0}}});
    Json &row = rows[it->second];
    row["count"] = row["count"].get<int64_t>() + 1;
    row["bytes"] =
        row["bytes"].get<uint64_t>() + tensor["bytes"].get<uint64_t>();
  }
  for (Json &row : rows)
    row["bytes"] = formatBytes(row["bytes"].get<uint64_t>());
  return rows;
}

/// The map of a program's arena, in the order of the addresses.
static void printArena(const std::string &name, const Json &arena) {
  printFields(absl::StrCat("arena of ", name).c_str(),
              {{"bytes", arena["arena"]},
               {"without reuse", arena["without_reuse"]},
               {"live at once", arena["lower_bound"]}});
  std::vector<Json> buffers = arena["buffers"];
  auto place = [](const Json &buffer) {
    return std::make_pair(buffer["offset"].get<int64_t>(),
                          buffer["first_interval"].get<int64_t>());
  };
  llvm::sort(buffers,
             [&](const Json &a, const Json &b) { return place(a) < place(b); });
  printRows(absl::StrCat("buffers of ", name).c_str(), buffers);
}

static void printTables(const Json &json) {
  Json head = Json::object();
  for (const auto &[key, value] : json.items())
    if (value.is_primitive())
      head[key] = value;
  printFields("summary", head);
  printFields("config", json["config"]);
  printRows("tensors", tensorSummary(json["tensors"]));
  if (json.contains("graph"))
    printFields("graph", json["graph"]);
  printRows("kernels", json["kernels"]);
  printRows("programs", json["programs"]);
  if (json.contains("code"))
    printRows("code", json["code"]);
  Json memory = Json::object();
  for (const auto &[key, value] : json["memory"].items())
    if (value.is_primitive())
      memory[key] = key == "context" ? value : Json(formatBytes(value));
  printFields("memory", memory);
  if (json["memory"].contains("arenas"))
    for (const auto &[name, arena] : json["memory"]["arenas"].items())
      printArena(name, arena);
}

namespace {

struct InspectCommand {
  std::string path;
  CompileFlags flags;
  bool asJson = false;
  bool memory = false;
  std::string html; ///< The report to write, if any.
  std::string measured;
  std::string before, beforeMeasured; ///< The report to compare with, if any.
  ReportOptions report;

  absl::Status run() const {
    if (namesPlan(path))
      LLAMAC_RETURN_IF_ERROR(flags.checkPlan(path));
    return html.empty() ? print() : writeReport();
  }

  absl::Status writeReport() const {
    if (asJson || memory)
      return usageError("--html: expected neither --json nor --memory");
    if (before.empty() && !beforeMeasured.empty())
      return usageError("--compare-measured: expected --compare as well");
    for (const std::string &input : {path, measured, before, beforeMeasured})
      LLAMAC_RETURN_IF_ERROR(checkNotInput("--html", html, input));
    ReportOptions own = report;
    if (measured.empty() && flags.isForThisMachine())
      own.hostLimits = &hostLimits;
    LLAMAC_ASSIGN_OR_RETURN(Json data, collect(path, measured, own));
    if (!before.empty()) {
      LLAMAC_ASSIGN_OR_RETURN(data["before"],
                              collect(before, beforeMeasured, report));
      // Parts that are not compared would double the page.
      for (const char *part : {"passes", "imported", "fused", "source"})
        data["before"].erase(part);
    }
    LLAMAC_RETURN_IF_ERROR(writeFileAtomically(html, reportPage(data)));
    printWritten(html);
    return absl::OkStatus();
  }

  /// The report of the model or plan `name`, with the times in the file
  /// `times`, if any.
  absl::StatusOr<Json> collect(const std::string &name,
                               const std::string &times,
                               const ReportOptions &options) const {
    Json data;
    if (namesPlan(name)) {
      LLAMAC_ASSIGN_OR_RETURN(data, collectPlan(name, options));
    } else {
      LLAMAC_ASSIGN_OR_RETURN(const CompileOptions compile, flags.parse());
      LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                              openModelOrConfig(name));
      LLAMAC_ASSIGN_OR_RETURN(data, collectModel(checkpoint, compile, options));
    }
    if (!times.empty()) {
      LLAMAC_ASSIGN_OR_RETURN(data["measured"], readMeasured(times));
    }
    return data;
  }

  absl::Status print() const {
    Json json;
    if (namesPlan(path)) {
      if (memory)
        return usageError(absl::StrCat(
            "--memory: ", path,
            " is a plan, which has no live ranges; expected a model"));
      LLAMAC_ASSIGN_OR_RETURN(json, inspectPlan(path));
    } else {
      LLAMAC_ASSIGN_OR_RETURN(CompileOptions options, flags.parse());
      LLAMAC_ASSIGN_OR_RETURN(json, inspectModel(path, options, memory));
    }
    if (asJson)
      std::printf("%s\n", jsonText(json, 2).c_str());
    else
      printTables(json);
    return absl::OkStatus();
  }
};

} // namespace

void addInspectCommand(CLI::App &app, absl::Status &status) {
  auto command = std::make_shared<InspectCommand>();
  CLI::App *verb = app.add_subcommand(
      "inspect", "Show the configuration, tensors, graph, kernels and memory");
  addModelArgument(*verb, command->path, "A model or plan")->required();
  const OptionGroup group{*verb};
  group.addFlag("--json", command->asJson, "Print one JSON object");
  group.addFlag("--memory", command->memory,
                "Print also each program's arena: which launch writes each "
                "buffer, and when it is live");
  const OptionGroup page{*verb, "A report to look at in a browser"};
  CLI::Option *html =
      page.add("--html", command->html, "FILE",
               "Write one HTML file: passes, graphs, kernels, memory")
          ->check(outputFile());
  for (CLI::Option *option :
       {page.add("--measured", command->measured, "FILE",
                 "Show the times that llamac bench --kernels --json printed to "
                 "FILE"),
        page.add("--compare", command->before, "MODEL",
                 "Also show what changed from this model or plan; of a model, "
                 "with the same options"),
        page.add("--compare-measured", command->beforeMeasured, "FILE",
                 "Times of that model or plan, as --measured"),
        page.add("--cost-context", command->report.costContext, "N",
                 "Tokens in the cache at the step whose bytes and FLOPs are "
                 "counted (default: 512, or the context if that is less)")
            ->check(CLI::PositiveNumber),
        page.add("--peak-gbs", command->report.gigabytes, "GB/S",
                 "Memory bandwidth of the machine, for the roofline")
            ->check(CLI::PositiveNumber),
        page.add("--peak-gflops", command->report.gigaflops, "GFLOP/S",
                 "Peak rate of the machine, for the roofline")
            ->check(CLI::PositiveNumber)})
    option->needs(html);
  command->flags.addTo(*verb);
  command->flags.addReportsTo(*verb);
  verb->footer(
      "Examples:\n"
      "  llamac inspect model.plan\n"
      "  llamac inspect model.gguf --html report.html\n"
      "  llamac inspect new.plan --html report.html --compare old.plan" +
      command->flags.footer());
  verb->callback([command, &status] { status = command->run(); });
}

} // namespace llamac
