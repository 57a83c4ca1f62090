//===- CubinCache.cpp - Compiled kernels, kept on disk --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CubinCache.h"

#include "runtime/base/Status.h"
#include "runtime/io/CacheFolder.h"

#include <utility>
#include <vector>

namespace llamac {

std::string cubinKey(const CudaSource &source, const std::string &architecture,
                     const std::string &version) {
  std::vector<absl::string_view> parts = {architecture, version, source.name,
                                          source.text};
  for (const SourceHeader &header : source.headers) {
    parts.emplace_back(header.name);
    parts.emplace_back(header.text);
  }
  return keyOf(parts);
}

absl::StatusOr<KeptFiles> cubinFiles() {
  LLAMAC_ASSIGN_OR_RETURN(std::string folder, cacheFolder("cubins"));
  return KeptFiles(std::move(folder), ".cubin");
}

} // namespace llamac
