//===- RankFollower.h - The other ranks of several processes ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_LOAD_RANKFOLLOWER_H
#define LLAMAC_RUNTIME_LOAD_RANKFOLLOWER_H

#include "runtime/ranks/RankWorld.h"

#include <string>

namespace llamac {

/// Runs the steps that rank 0 runs (RankLeader.h) until it says that all is
/// done. Errors of what is answered go there; others end the process.
void followRanks(RankWorld &world);

/// The build id of the program or library that this is part of.
std::string buildOfRanks();

} // namespace llamac

#endif // LLAMAC_RUNTIME_LOAD_RANKFOLLOWER_H
