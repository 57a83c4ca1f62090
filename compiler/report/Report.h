//===- Report.h - The report of a model or plan -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A report is one JSON object, as the page's script reads it. A collector fills
// it from a compilation or from a plan file; reportPage() makes one HTML file
// of it. What a plan file does not know is null.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REPORT_REPORT_H
#define LLAMAC_COMPILER_REPORT_REPORT_H

#include "compiler/driver/Compiler.h"
#include "runtime/device/Device.h"
#include "runtime/plan/plan_generated.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace llamac {

using Json = nlohmann::ordered_json;

struct ReportOptions {
  /// Keys of the last row of the step to count costs of; 0: 512, or the
  /// compiled context where that is less.
  int64_t costContext = 0;
  /// Peaks of the machine, each second.
  std::optional<double> gigabytes, gigaflops;
  /// Measures this machine, for code of processors where `gigabytes` is not
  /// given; null: no limits.
  std::function<absl::StatusOr<std::optional<DeviceLimits>>()> hostLimits = {};
};

/// Compiles `checkpoint` up to the kernels' source and reports on the way
/// there. Usage error for a cost context that the compiled one does not hold.
absl::StatusOr<Json> collectModel(const Checkpoint &checkpoint,
                                  const CompileOptions &compile,
                                  const ReportOptions &options);

/// Reports what the plan file at `path` knows: no passes, graphs, slow paths or
/// expected times. Usage error likewise.
absl::StatusOr<Json> collectPlan(absl::string_view path,
                                 const ReportOptions &options);

/// The bytes and operations of a launch of `kernel` of `rows` rows in a step of
/// one sequence whose last row attends to `context` tokens, by the coefficients
/// that plans keep: so a plan and its model have the same figures.
Json launchCost(const schema::KernelT &kernel, int64_t rows, int64_t context);

/// The works that the file at `path` holds, a line of llamac bench --kernels
/// --json each. Bad file error for any other line, or none.
absl::StatusOr<Json> readMeasured(const std::string &path);

/// A report of kind "model" or "plan" of code for `target`, with nothing in it
/// but the peaks that `options` give or measure.
Json emptyReport(absl::string_view kind, absl::string_view name,
                 absl::string_view target, const ReportOptions &options);

/// The facts of a configuration, for the head of a report.
Json configFacts(const ModelConfig &config);

/// The fact that a plan or model was compiled with `options`, a text as
/// CompileOptions::describe(), but for those without a value.
Json optionsFact(absl::string_view options);

/// Tensors and bytes of each element type, as a report has them.
Json weightsJson(
    const std::map<std::string, std::pair<int64_t, int64_t>> &formats);

/// The files that joinSources() made `text` of.
Json sourceJson(const std::string &text);

/// Keeps the IR after every step, and the diff that the step made. Texts of the
/// IR share their lines; diffs are run lengths: [signs, lengths] with one of
/// " -+" for each run.
class PassRecorder : public PassObserver {
public:
  void stepDone(llvm::StringRef phase, llvm::StringRef name,
                mlir::ModuleOp module, double seconds) override;

  Json take() { return std::move(history); }

private:
  size_t addVersion(llvm::StringRef text);

  Json history = {{"lines", Json::array()},
                  {"versions", Json::array()},
                  {"steps", Json::array()}};
  llvm::StringMap<size_t> lineNumbers;
  std::string lastText;
};

/// The operations of `func` whose location names layer `layer` first, with
/// nodes for the values that enter and leave the layer. Weights are no nodes
/// but stand with the operations that read them.
Json layerGraph(mlir::func::FuncOp func, int64_t layer);

/// A tensor's type for people, "rows x 576 f32"; "KV cache" for the cache.
std::string typeText(mlir::Type type);

/// `json` in ASCII, fit to stand in a script element: with no '<', '>' or '&',
/// whatever its strings hold. Bytes that are not UTF-8 become U+FFFD.
std::string scriptJson(const Json &json);

/// One HTML file that holds `report` and all it needs to be shown: it loads
/// nothing, and says so to the browser in a content security policy.
std::string reportPage(const Json &report);

} // namespace llamac

#endif // LLAMAC_COMPILER_REPORT_REPORT_H
