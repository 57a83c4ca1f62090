//===- CudaLibrary.h - Where libraries of CUDA are --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_CUDALIBRARY_H
#define LLAMAC_RUNTIME_CUDA_CUDALIBRARY_H

#include "absl/types/span.h"

#include <string>
#include <vector>

namespace llamac::cuda {

/// A library beside the driver, which is opened at run time.
struct Library {
  const char *folderVariable;           ///< "LLAMAC_NVRTC_PATH"
  std::vector<const char *> sonames;    ///< The best first.
  std::vector<const char *> pipFolders; ///< In `nvidia/`, of its packages.
};

/// Where `library` is looked for, in order: the folder that its variable names,
/// such as the one that its package of Python has; the loader's own search;
/// CUDA_HOME and CUDA_PATH; the usual folder of an installation; its packages
/// beside those of a wheel that this code is in, in Python's environment, the
/// user's home and the system.
std::vector<std::string> searchPaths(const Library &library);

struct OpenedLibrary {
  void *handle = nullptr; ///< Null where none opens. It stays open.
  std::string path;       ///< The file, or the name by which it was found.
};

/// The first of `paths` that opens.
OpenedLibrary openFirst(absl::Span<const std::string> paths);

} // namespace llamac::cuda

#endif // LLAMAC_RUNTIME_CUDA_CUDALIBRARY_H
