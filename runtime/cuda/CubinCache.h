//===- CubinCache.h - Compiled kernels, kept on disk ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One file for each kernel and GPU in llamac/cubins of the user's cache folder
// (XDG_CACHE_HOME, or ~/.cache), named by a hash of all that decides it: the
// source, the headers, the architecture and the compiler's version. A file that
// is damaged is made again; a folder that cannot be written to is done without.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_CUBINCACHE_H
#define LLAMAC_RUNTIME_CUDA_CUBINCACHE_H

#include "runtime/cuda/Nvrtc.h"
#include "runtime/io/KeptFiles.h"

#include "absl/status/statusor.h"

#include <string>

namespace llamac {

/// The name under which `source` for `architecture`, compiled by NVRTC
/// `version`, is kept.
std::string cubinKey(const CudaSource &source, const std::string &architecture,
                     const std::string &version);

/// Where cubins are kept. Errors: those of cacheFolder().
absl::StatusOr<KeptFiles> cubinFiles();

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_CUBINCACHE_H
