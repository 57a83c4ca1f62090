//===- Mpi.cpp - Open MPI, opened at run time -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/ranks/Mpi.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <dlfcn.h>

namespace llamac::mpi {

absl::StatusOr<std::unique_ptr<const Library>>
Library::open(const std::string &name) {
  // Its plug-ins look for its symbols among the global ones. The handle stays
  // open: MPI keeps state until the process ends.
  void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle)
    return deviceError(absl::StrCat(
        name, ": expected Open MPI's library, as mpirun has started this "
              "process, got none that opens; add its folder to "
              "LD_LIBRARY_PATH"));
  std::unique_ptr<Library> library(new Library);
  const char *missing = nullptr;
  auto find = [&](const char *symbol) {
    void *found = dlsym(handle, symbol);
    if (!found && !missing)
      missing = symbol;
    return found;
  };
// NOLINTBEGIN(bugprone-macro-parentheses)
#define LLAMAC_MPI_RESOLVE(name, parameters)                                   \
  library->name = reinterpret_cast<int(*) parameters>(find(#name));
  LLAMAC_MPI_FUNCTIONS(LLAMAC_MPI_RESOLVE)
#undef LLAMAC_MPI_RESOLVE
  // NOLINTEND(bugprone-macro-parentheses)
  // Open MPI's handles are the addresses of objects.
  library->world = static_cast<Comm>(find("ompi_mpi_comm_world"));
  library->byte = static_cast<Datatype>(find("ompi_mpi_byte"));
  library->f32 = static_cast<Datatype>(find("ompi_mpi_float"));
  library->sum = static_cast<Operation>(find("ompi_mpi_op_sum"));
  library->noRequest = static_cast<Request>(find("ompi_request_null"));
  if (missing)
    return deviceError(absl::StrCat(name,
                                    ": expected Open MPI 4 or 5, got a library "
                                    "without ",
                                    missing));
  return library;
}

} // namespace llamac::mpi
