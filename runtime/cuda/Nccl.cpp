//===- Nccl.cpp - NVIDIA's collectives, opened at run time ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Nccl.h"

#include "runtime/base/Status.h"
#include "runtime/cuda/CudaLibrary.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <dlfcn.h>

namespace llamac::cuda {

/// The first with CUDA graphs, by its release notes. A version is 10000 * major
/// + 100 * minor + patch.
static constexpr int oldestNccl = 20906;

std::vector<std::string> libncclSearchPaths() {
  return searchPaths({.folderVariable = "LLAMAC_NCCL_PATH",
                      .sonames = {"libnccl.so.2"},
                      .pipFolders = {"nccl"}});
}

absl::StatusOr<std::shared_ptr<const Nccl>>
Nccl::open(const std::string &path) {
  constexpr absl::string_view advice =
      "; pip install nvidia-nccl-cu13, or set LLAMAC_NCCL_PATH to the folder "
      "of libnccl.so.2";
  const std::vector<std::string> paths =
      path.empty() ? libncclSearchPaths() : std::vector<std::string>{path};
  const auto [handle, opened] = openFirst(paths);
  if (!handle)
    return deviceError(
        absl::StrCat("libnccl, by which the ranks of a plan speak to each "
                     "other: expected a library that can be opened, got none "
                     "at ",
                     absl::StrJoin(paths, ", "), advice));
  std::shared_ptr<Nccl> nccl(new Nccl);
  const char *missing = nullptr;
// NOLINTBEGIN(bugprone-macro-parentheses)
#define LLAMAC_NCCL_RESOLVE(name, result, parameters)                          \
  nccl->name = reinterpret_cast<result(*) parameters>(dlsym(handle, #name));   \
  if (!nccl->name && !missing)                                                 \
    missing = #name;
  LLAMAC_NCCL_FUNCTIONS(LLAMAC_NCCL_RESOLVE)
#undef LLAMAC_NCCL_RESOLVE
  // NOLINTEND(bugprone-macro-parentheses)
  if (missing)
    return deviceError(absl::StrCat(
        opened, ": expected NCCL, got a library without ", missing, advice));
  int version = 0;
  LLAMAC_RETURN_IF_ERROR(
      nccl->check(nccl->ncclGetVersion(&version), "ncclGetVersion"));
  if (version < oldestNccl)
    return deviceError(absl::StrCat(
        opened, ": expected NCCL ", oldestNccl / 10000, ".",
        oldestNccl / 100 % 100, " or newer, got version ", version, advice));
  nccl->libraryPath = opened;
  nccl->versionText = absl::StrCat(version / 10000, ".", version / 100 % 100,
                                   ".", version % 100);
  return nccl;
}

absl::Status Nccl::check(NcclResult result, const std::string &what) const {
  if (result == 0)
    return absl::OkStatus();
  const char *words = ncclGetErrorString(result);
  return deviceError(absl::StrCat(what, ": NCCL says ",
                                  words ? words : absl::StrCat(result),
                                  "; set NCCL_DEBUG=WARN to see more"));
}

} // namespace llamac::cuda
