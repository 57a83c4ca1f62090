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

#include "codegen/KernelOps.h"
#include "codegen/cpu/Processor.h"
#include "ir/kernel/Target.h"
#include "ir/kernel/TargetNumerics.h"
#include "runtime/packing/PanelPacking.h"

#include "llamac/cpu/config.h"

namespace llamac {

namespace cpu {

/// The element type of a cache of `format`.
DataType dataTypeOf(KvFormat format);

} // namespace cpu

/// The options of a plan that decide the cpu kernels.
struct CpuTargetOptions {
  int64_t context = 0;        ///< Tokens a sequence may hold.
  int64_t maxPrefill = 512;   ///< Rows of the largest step.
  int64_t maxLogitsRows = 64; ///< Rows of it that may reach lm_head.
  cpu::KvFormat kvFormat = cpu::KvFormat::F16;
  Processor tuneFor = Processor::Generic; ///< Decides tiles, and no result.
  bool exact = false;                     ///< Whether activations stay in f32.
};

/// The format called "f32", "f16", "bf16" or "q8_0".
std::optional<cpu::KvFormat> parseCpuKvFormat(llvm::StringRef name);

/// Reads the options from `attr`, of the cpu target. Failure, with an error,
/// for what the target does not have.
mlir::FailureOr<CpuTargetOptions> cpuTargetOptions(kernel::TargetAttr attr,
                                                   kernel::EmitError emitError);

/// The layout of the KV cache for a model with `kv`.
cpu::KvConfig kvConfig(llama::KVType kv, const CpuTargetOptions &options);

/// The format of the panels of `weight`.
inline PanelFormat panelFormatOf(mlir::Value weight) {
  return panelFormat(llama::dataTypeOf(weight));
}

/// A kernel as text: the config and functors, in a namespace of its own, and
/// the call of its skeleton.
struct CpuKernelText {
  std::string parts;
  std::string body;
};

/// One family of kernels; see Families.cpp for the list.
struct CpuFamily {
  llvm::StringRef name;
  llvm::StringRef header; ///< Header of its skeleton: "matmul.h".
  bool (*implements)(mlir::Operation *op);
  cpu::LaunchShape (*shape)(mlir::Operation *op, const CpuTargetOptions &);
  CpuKernelText (*text)(mlir::Operation *op, const CpuTargetOptions &);
  /// Sizes of kernels/config.h to choose from, beside those that the op has;
  /// null: there are none.
  std::vector<Tiles> (*tiles)(mlir::Operation *op,
                              const CpuTargetOptions &) = nullptr;
};

llvm::ArrayRef<CpuFamily> cpuFamilies();

class CpuTarget : public kernel::Target, public kernel::TargetNumerics {
public:
  explicit CpuTarget(const CpuTargetOptions &options)
      : targetOptions(options) {}

  llvm::StringRef name() const override { return "cpu"; }
  std::vector<kernel::RowBucket> rowBuckets() const override;
  mlir::Attribute chooseConfig(mlir::Operation *op,
                               int64_t maxRows) const override;
  std::vector<mlir::Attribute> otherConfigs(mlir::Operation *op) const override;
  bool otherConfigsAreExact() const override { return true; }
  int64_t mostTopK() const override;
  bool rowsAreAlike() const override { return true; }
  llvm::StringRef familyName(mlir::Operation *op) const override;
  kernel::LaunchGeometry geometry(mlir::Operation *op) const override;
  bool hasInt8Products(mlir::Operation *op) const override;

  double tolerance(mlir::Operation *op, unsigned result) const override;
  double cacheTolerance() const override;
  void readKv(llama::KVType kv, const uint8_t *page, int64_t token, float *key,
              float *value) const override;
  void writeKv(llama::KVType kv, const float *key, const float *value,
               int64_t token, uint8_t *page) const override;

  const CpuTargetOptions &options() const { return targetOptions; }

private:
  CpuTargetOptions targetOptions;
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_CPU_CPUTARGET_H
