//===- Collect.h - Gathers the report of a model or plan --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REPORT_COLLECT_H
#define LLAMAC_COMPILER_REPORT_COLLECT_H

#include "compiler/driver/Compiler.h"
#include "compiler/report/Report.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llamac {

struct ReportOptions {
  /// Keys of the last row of the steps that costs are of; 0: 512, or the
  /// compiled context where that is less.
  int64_t costContext = 0;
  MachinePeaks peaks;
};

/// The facts of a configuration, for the head of a report.
std::vector<std::pair<std::string, std::string>>
configFacts(const ModelConfig &config);

/// Compiles `checkpoint` up to the kernels' source and reports on the way
/// there. Usage error for a cost context that the compiled one does not hold.
absl::StatusOr<Report> collectModel(const Checkpoint &checkpoint,
                                    const CompileOptions &compile,
                                    const ReportOptions &options);

/// Reports what the plan file at `path` knows: no passes, graphs or costs.
absl::StatusOr<Report> collectPlan(absl::string_view path,
                                   const ReportOptions &options);

} // namespace llamac

#endif // LLAMAC_COMPILER_REPORT_COLLECT_H
