//===- Errors.h - What the compiler reports as a status ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_ERRORS_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_ERRORS_H

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "mlir/IR/Diagnostics.h"

#include <string>

namespace llamac::conformance {

/// Collects the errors that the parser, passes and emitters report.
class Errors {
public:
  explicit Errors(mlir::MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            text += diagnostic.str() + "; ";
        }) {}

  absl::Status status(const std::string &what) const {
    return internalError(absl::StrCat(what, ": ", text));
  }

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_ERRORS_H
