//===- Nccl.h - NVIDIA's collectives, opened at run time --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NCCL is not needed to build, like the driver: types and numbers of nccl.h
// that are used stand here.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_NCCL_H
#define LLAMAC_RUNTIME_CUDA_NCCL_H

#include "runtime/cuda/Driver.h"

#include "absl/status/statusor.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace llamac::cuda {

using NcclResult = int;                        // ncclResult_t; 0 is success.
using Communicator = struct CommunicatorTag *; // ncclComm_t

/// ncclUniqueId
struct NcclId {
  char bytes[128];
};

/// ncclUint8
inline constexpr int ncclUint8 = 1;

/// Every function that is used: name, result, parameters. A cudaStream_t is a
/// stream of the driver.
#define LLAMAC_NCCL_FUNCTIONS(X)                                               \
  X(ncclGetVersion, NcclResult, (int *))                                       \
  X(ncclGetErrorString, const char *, (NcclResult))                            \
  X(ncclGetUniqueId, NcclResult, (NcclId *))                                   \
  X(ncclGroupStart, NcclResult, ())                                            \
  X(ncclGroupEnd, NcclResult, ())                                              \
  X(ncclCommInitRank, NcclResult, (Communicator *, int, NcclId, int))          \
  X(ncclAllGather, NcclResult,                                                 \
    (const void *, void *, size_t, int, Communicator, Stream))                 \
  X(ncclCommGetAsyncError, NcclResult, (Communicator, NcclResult *))           \
  X(ncclCommAbort, NcclResult, (Communicator))                                 \
  X(ncclCommDestroy, NcclResult, (Communicator))

/// The functions of an opened libnccl, each by its own name.
class Nccl {
public:
  /// Opens the file `path`, or, when it is empty, the first that opens of
  /// libncclSearchPaths(). Device error, with what to install, where none
  /// opens, or one that lacks a function or is too old.
  static absl::StatusOr<std::shared_ptr<const Nccl>>
  open(const std::string &path = "");

  /// "2.32.3".
  const std::string &version() const { return versionText; }

  /// The file it came from, or the name by which the loader found it.
  const std::string &path() const { return libraryPath; }

  /// OK for success; else a device error with `what` was done, and NCCL's
  /// words for it.
  absl::Status check(NcclResult result, const std::string &what) const;

// NOLINTBEGIN(bugprone-macro-parentheses, readability-identifier-naming)
#define LLAMAC_NCCL_MEMBER(name, result, parameters)                           \
  result(*name) parameters = nullptr;
  LLAMAC_NCCL_FUNCTIONS(LLAMAC_NCCL_MEMBER)
#undef LLAMAC_NCCL_MEMBER
  // NOLINTEND(bugprone-macro-parentheses, readability-identifier-naming)

private:
  Nccl() = default;

  std::string libraryPath;
  std::string versionText;
};

/// Where libnccl is looked for, in order; see searchPaths().
std::vector<std::string> libncclSearchPaths();

} // namespace llamac::cuda

#endif // LLAMAC_RUNTIME_CUDA_NCCL_H
