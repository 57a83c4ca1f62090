//===- CudaTarget.h - The cuda target's kernel families ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A family is one record: which ops it implements, the launch geometry, and
// how a kernel of it is written down as a call of its skeleton. The skeletons
// are the headers of codegen/cuda/kernels.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_CUDATARGET_H
#define LLAMAC_CODEGEN_CUDA_CUDATARGET_H

#include "codegen/KernelOps.h"
#include "codegen/SourceText.h"
#include "ir/kernel/Target.h"
#include "ir/kernel/TargetNumerics.h"
#include "runtime/base/DataType.h"
#include "runtime/cuda/GpuSpec.h"

#include "llamac/config.h"

#include <string>
#include <vector>

namespace llamac {

namespace cuda {

/// The element type that a cache of each KvFormat has its name of; blocks of a
/// cache are not those of the type.
inline constexpr DataType kvTypes[] = {DataType::F16, DataType::BF16,
                                       DataType::Q8_0, DataType::FP8};
inline DataType dataTypeOf(KvFormat format) {
  return kvTypes[static_cast<size_t>(format)];
}

} // namespace cuda

/// The options of a plan that decide the cuda kernels. Tile configs are the
/// same for every GPU: the smallest of those that are named has room for them,
/// but for attention of heads that are larger than published models have.
struct CudaTargetOptions {
  GpuSpec gpu = defaultGpuSpec();
  int64_t context = 0;    ///< Tokens a sequence may hold.
  int64_t maxRows = 2048; ///< Rows of the largest step.
  /// Rows of it that may reach lm_head: a row of each sequence that decodes at
  /// once.
  int64_t maxLogitsRows = 256;
  cuda::KvFormat kvFormat = cuda::KvFormat::F16;
  kernel::ResidentSteps resident = kernel::ResidentSteps::Off;
};

/// The format called "f16", "bf16", "q8_0" or "fp8".
std::optional<cuda::KvFormat> parseCudaKvFormat(llvm::StringRef name);

/// Reads the options from `attr`, of target cuda or sim. Failure, with an
/// error, for what the targets do not have.
mlir::FailureOr<CudaTargetOptions>
cudaTargetOptions(kernel::TargetAttr attr, kernel::EmitError emitError);

/// The layout of the KV cache for a model with `kv`.
cuda::KvConfig kvConfig(llama::KVType kv, const CudaTargetOptions &options);

/// "needs 135168 bytes of shared memory, sm_86 has 101376 for a block": the
/// first limit of `gpu` that a launch of `shape` exceeds; empty when it fits.
std::string exceededLimit(const cuda::LaunchShape &shape, const GpuSpec &gpu);

/// Whether kernels for `gpu` use programmatic dependent launch
/// (codegen/cuda/kernels/chain.cuh).
bool overlapsLaunches(const GpuSpec &gpu);

/// A kernel as text: parameters in the order of a launch's arguments, what
/// stands before it, and its body.
struct CudaKernelText {
  struct Parameter {
    std::string type, name;
  };
  std::vector<Parameter> parameters;
  /// Tensor maps, parameters after the others: that of `input` is `inputMap`.
  std::vector<std::string> maps = {};
  std::string parts =
      {}; ///< The config and functors, in the kernel's namespace.
  /// One statement that runs before earlier launches are done: of the
  /// parameters it names weights and their maps only, and the rows.
  std::string prologue = {};
  std::string body = {};       ///< Statements.
  llvm::StringRef header = {}; ///< Header of its skeleton, if not the family's.
  /// A resident step has no parameters but `table`, of so many addresses, and
  /// `steps`; other kernels have 0 here.
  int64_t table = 0;
};

/// How functors of scalar regions read.
inline constexpr FunctorStyle cudaFunctorStyle = {
    "LLAMAC_DEVICE ",
    "F32x2",
    "F32x2",
    "",
    "",
    "loadPair<{1}>({0}, row, column)",
    "loadPair<{1}>({0}, 0, column)",
    "return storePair<{1}>({0}, row, column, {2})",
    /*loadsApart=*/true};

/// The widest row of logits that is sampled: more might weigh more together
/// than 64 bits hold.
inline constexpr int64_t maxSampledWidth = int64_t{1} << 18;

/// One family of kernels; see Families.cpp for the list.
struct CudaFamily {
  llvm::StringRef name;
  llvm::StringRef header; ///< Header of its skeleton: "gemv.cuh".
  bool (*implements)(mlir::Operation *op);
  cuda::LaunchShape (*shape)(mlir::Operation *op, const CudaTargetOptions &);
  /// Makes the text of a kernel that does what `op` says.
  CudaKernelText (*text)(mlir::Operation *op, const CudaTargetOptions &);
  /// Its tensor maps; null: none.
  std::vector<cuda::MapShape> (*maps)(mlir::Operation *op,
                                      const CudaTargetOptions &) = nullptr;
};

llvm::ArrayRef<CudaFamily> cudaFamilies();

/// The cuda target as the passes see it; sim, which runs the same source, has
/// the same numerics.
class CudaTarget : public kernel::Target, public kernel::TargetNumerics {
public:
  explicit CudaTarget(const CudaTargetOptions &options)
      : targetOptions(options) {}

  llvm::StringRef name() const override { return "cuda"; }
  bool samples() const override { return true; }
  bool embedsWithCosSin() const override { return true; }
  bool appendsWholeHeads() const override {
    return hasBlocks(targetOptions.kvFormat);
  }
  bool takesExp(llama::ExpKind kind) const override {
    return kind != llama::ExpKind::Table256; // exp2 is one in hardware.
  }
  std::vector<kernel::RowBucket> rowBuckets() const override;
  mlir::Attribute chooseConfig(mlir::Operation *op,
                               int64_t maxRows) const override;
  bool roundsInputs() const override { return true; }
  bool roundsInput(mlir::Operation *op) const override;
  mlir::Attribute inputEncoding(mlir::Operation *op) const override;
  bool takesSquares(mlir::Operation *op) const override;
  int64_t givesSquares(mlir::Operation *op) const override;
  kernel::ResidentSteps residentSteps() const override {
    return targetOptions.resident;
  }
  std::string whyNotResident(mlir::Operation *op) const override;
  std::vector<mlir::Attribute> otherConfigs(mlir::Operation *op) const override;
  double launchGap() const override;
  double predictedSeconds(mlir::Operation *op,
                          const kernel::CostStep &step) const override;
  std::optional<kernel::Peaks> peaks(mlir::Operation *op) const override;
  mlir::Type weightElement(mlir::Type element) const override;
  int64_t weightBytes(mlir::Type type) const override;
  Tiles tiles(mlir::Operation *op) const override;
  std::vector<std::string> slowPaths(mlir::Operation *op) const override;
  llvm::StringRef familyName(mlir::Operation *op) const override;
  kernel::LaunchGeometry geometry(mlir::Operation *op) const override;

  double tolerance(mlir::Operation *op, unsigned result) const override;
  double cacheTolerance() const override;
  void readKv(llama::KVType kv, const uint8_t *page, int64_t token, float *key,
              float *value) const override;
  void writeKv(llama::KVType kv, const float *key, const float *value,
               int64_t token, uint8_t *page) const override;

  const CudaTargetOptions &options() const { return targetOptions; }

private:
  CudaTargetOptions targetOptions;
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_CUDA_CUDATARGET_H
