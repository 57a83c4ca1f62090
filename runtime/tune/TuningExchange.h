//===- TuningExchange.h - Tuning results as a JSON file ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How tuned entries travel between machines: one JSON object with
//
//   format   "llamac-tuning"
//   version  1; a reader refuses any other
//   entries  an array of objects with the members device, generator, kernel,
//            tiles, seconds, first_seconds, predicted, runner_up,
//            runner_up_seconds, origin ("modelled", "imported" or "measured")
//            and time, which have the meaning of TuningStore.h. All are
//            required; others are passed over.
//
// Machine code does not travel: a file from elsewhere is never executed.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_TUNINGEXCHANGE_H
#define LLAMAC_RUNTIME_TUNE_TUNINGEXCHANGE_H

#include "runtime/tune/TuningStore.h"

#include <string>
#include <vector>

namespace llamac {

/// The text of such a file.
std::string tuningToJson(const std::vector<KeptTuning> &entries);

/// The entries of the file at `path`, of at most 64 MiB, as they stand there,
/// each with numbers and sizes that a store takes. Errors are those of
/// runtime/io/JsonReader.h; another version is an unsupported one.
absl::StatusOr<std::vector<KeptTuning>> readTuningJson(const std::string &path);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_TUNINGEXCHANGE_H
