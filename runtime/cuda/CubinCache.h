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

#include "absl/status/status.h"

#include <optional>
#include <string>

namespace llamac {

/// The name under which `source` for `architecture`, compiled by NVRTC
/// `version`, is kept.
std::string cubinKey(const CudaSource &source, const std::string &architecture,
                     const std::string &version);

/// The image that was kept; none when there is none, or a damaged one.
std::optional<std::string> findCubin(const std::string &key);

/// Keeps `image`. An error says why it cannot be kept; nothing else is lost.
absl::Status keepCubin(const std::string &key, const std::string &image);

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_CUBINCACHE_H
