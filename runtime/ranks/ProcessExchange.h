//===- ProcessExchange.h - Exchanges between processes ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_RANKS_PROCESSEXCHANGE_H
#define LLAMAC_RUNTIME_RANKS_PROCESSEXCHANGE_H

#include "runtime/device/Device.h"
#include "runtime/ranks/RankWorld.h"

#include <memory>

namespace llamac {

/// The exchange areas of ranks that are processes.
class ProcessExchange : public RankExchange {
public:
  /// Where this process sees the area of `rank`.
  virtual uint8_t *area(int rank) const = 0;
};

/// A file without a name, in memory, that the processes of a machine map.
struct SharedFile {
  int process = 0;
  int descriptor = -1; ///< The file's, in that process.
};

/// Areas of `size` bytes in one file that all processes map: nothing is copied.
/// Rank 0 makes the file and says where it is; the others give that. Memory
/// error where it cannot be made or mapped.
absl::StatusOr<std::unique_ptr<ProcessExchange>>
shareAreas(const RankWorld &world, uint64_t size, SharedFile &file);

/// Areas of `size` bytes in a copy that each process has: MPI brings what the
/// others have written. Memory error.
absl::StatusOr<std::unique_ptr<ProcessExchange>>
copyAreas(const RankWorld &world, uint64_t size);

} // namespace llamac

#endif // LLAMAC_RUNTIME_RANKS_PROCESSEXCHANGE_H
