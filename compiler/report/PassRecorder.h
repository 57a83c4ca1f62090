//===- PassRecorder.h - What every pass did to the IR -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REPORT_PASSRECORDER_H
#define LLAMAC_COMPILER_REPORT_PASSRECORDER_H

#include "compiler/driver/PassReports.h"
#include "compiler/report/Report.h"

#include "llvm/ADT/StringMap.h"

namespace llamac {

/// The operations that stand in the functions and programs of `module`:
/// launches once there are programs. Weights, memory and what stands in
/// kernels' regions are not counted, nor are ends of functions.
int64_t countOps(mlir::ModuleOp module);

/// Keeps the IR after every step, and the diff that the step made.
class PassRecorder : public PassObserver {
public:
  void stepDone(llvm::StringRef phase, llvm::StringRef name,
                mlir::ModuleOp module, double seconds) override;

  PassHistory take() { return std::move(history); }

private:
  uint32_t addVersion(llvm::StringRef text);

  PassHistory history;
  llvm::StringMap<uint32_t> lineNumbers;
  std::string lastText;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_REPORT_PASSRECORDER_H
