//===- Mpi.h - Open MPI, opened at run time ---------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing of MPI is needed to build: the functions that are used stand here,
// with the handles of Open MPI (4 and 5), and libmpi is opened where mpirun
// has started the process.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_RANKS_MPI_H
#define LLAMAC_RUNTIME_RANKS_MPI_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <memory>
#include <string>

namespace llamac::mpi {

using Comm = struct CommTag *;
using Datatype = struct DatatypeTag *;
using Request = struct RequestTag *;
using Status = struct StatusTag *;
using Operation = struct OperationTag *;

/// MPI_THREAD_SERIALIZED: one thread at a time calls.
inline constexpr int threadsInTurn = 2;

/// MPI_STATUS_IGNORE
inline constexpr Status ignored = nullptr;

/// Every function of MPI that is used: name, parameters. Each gives an error,
/// 0 for none; by default MPI ends all ranks instead.
#define LLAMAC_MPI_FUNCTIONS(X)                                                \
  X(MPI_Init_thread, (int *, char ***, int, int *))                            \
  X(MPI_Finalize, ())                                                          \
  X(MPI_Comm_rank, (Comm, int *))                                              \
  X(MPI_Comm_size, (Comm, int *))                                              \
  X(MPI_Send, (const void *, int, Datatype, int, int, Comm))                   \
  X(MPI_Recv, (void *, int, Datatype, int, int, Comm, Status))                 \
  X(MPI_Isend, (const void *, int, Datatype, int, int, Comm, Request *))       \
  X(MPI_Irecv, (void *, int, Datatype, int, int, Comm, Request *))             \
  X(MPI_Test, (Request *, int *, Status))                                      \
  X(MPI_Iprobe, (int, int, Comm, int *, Status))                               \
  X(MPI_Allreduce, (const void *, void *, int, Datatype, Operation, Comm))

/// The functions of an opened library, each by its own name, and the handles of
/// what is predefined.
class Library {
public:
  /// Opens `name`. Device error when it cannot be opened or is another MPI.
  static absl::StatusOr<std::unique_ptr<const Library>>
  open(const std::string &name = "libmpi.so.40");

// NOLINTBEGIN(bugprone-macro-parentheses, readability-identifier-naming)
#define LLAMAC_MPI_MEMBER(name, parameters) int(*name) parameters = nullptr;
  LLAMAC_MPI_FUNCTIONS(LLAMAC_MPI_MEMBER)
#undef LLAMAC_MPI_MEMBER
  // NOLINTEND(bugprone-macro-parentheses, readability-identifier-naming)

  Comm world = nullptr;        ///< MPI_COMM_WORLD
  Datatype byte = nullptr;     ///< MPI_BYTE
  Datatype f32 = nullptr;      ///< MPI_FLOAT
  Operation sum = nullptr;     ///< MPI_SUM
  Request noRequest = nullptr; ///< MPI_REQUEST_NULL

private:
  Library() = default;
};

} // namespace llamac::mpi

#endif // LLAMAC_RUNTIME_RANKS_MPI_H
