//===- CpuTarget.h - The cpu target's kernel families -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A family is one record: which ops it implements, the launch geometry, and
// how a kernel of it is written down as a call of its skeleton. The skeletons
// are the headers of codegen/cpu/kernels.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CPU_CPUTARGET_H
#define LLAMAC_CODEGEN_CPU_CPUTARGET_H

#include "codegen/Tiles.h"
#include "codegen/cpu/Processor.h"
#include "ir/kernel/Kernel.h"
#include "ir/kernel/Target.h"

#include "llamac/cpu/config.h"

#include "llvm/Support/raw_ostream.h"

namespace llamac {

/// What of a plan's options decides the cpu kernels.
struct CpuTargetOptions {
  int64_t context = 0;      ///< Tokens a sequence may hold.
  int64_t maxPrefill = 512; ///< Rows of the largest step.
  int64_t maxWanted = 64;   ///< Rows of it that may reach lm_head.
  cpu::KvFormat kvFormat = cpu::KvFormat::F16;
  Processor tuneFor = Processor::Generic; ///< Decides tiles, and no result.
};

/// The format called "f32", "f16", "bf16" or "q8_0".
std::optional<cpu::KvFormat> parseCpuKvFormat(llvm::StringRef name);

/// What `attr`, of the cpu target, says of them. Failure, with an error, for
/// what the target does not have.
mlir::FailureOr<CpuTargetOptions> cpuTargetOptions(kernel::TargetAttr attr,
                                                   kernel::EmitError emitError);

/// The layout of the KV cache for a model with `kv`.
cpu::KvConfig kvConfig(llama::KVType kv, const CpuTargetOptions &options);

/// What the panels of `weight` hold.
PanelFormat panelFormatOf(mlir::Value weight);

/// One family of kernels; see Families.cpp for the list.
struct CpuFamily {
  llvm::StringRef name;
  llvm::StringRef header; ///< Of its skeleton: "matmul.h".
  bool (*implements)(mlir::Operation *op);
  cpu::LaunchShape (*shape)(mlir::Operation *op, const CpuTargetOptions &);
  /// Writes the kernel named `symbol` that does what `op` says.
  void (*emit)(mlir::Operation *op, llvm::StringRef symbol,
               const CpuTargetOptions &, llvm::raw_ostream &);
  /// Sizes of kernels/config.h to choose from, beside those that the op has;
  /// null: there are none.
  std::vector<Tiles> (*tiles)(mlir::Operation *op,
                              const CpuTargetOptions &) = nullptr;
};

llvm::ArrayRef<CpuFamily> cpuFamilies();

/// The family that implements `op`; null when none does, as for a product or
/// attention whose config has not been chosen.
const CpuFamily *cpuFamilyOf(mlir::Operation *op);

class CpuTarget : public kernel::Target {
public:
  explicit CpuTarget(const CpuTargetOptions &options)
      : targetOptions(options) {}

  llvm::StringRef name() const override { return "cpu"; }
  std::vector<kernel::RowBucket> rowBuckets() const override;
  mlir::Attribute chooseConfig(mlir::Operation *op,
                               int64_t maxRows) const override;
  std::vector<mlir::Attribute> otherConfigs(mlir::Operation *op) const override;
  bool otherConfigsAreExact() const override { return true; }
  llvm::StringRef familyName(mlir::Operation *op) const override;
  kernel::LaunchGeometry geometry(mlir::Operation *op) const override;

  const CpuTargetOptions &options() const { return targetOptions; }

private:
  CpuTargetOptions targetOptions;
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_CPU_CPUTARGET_H
