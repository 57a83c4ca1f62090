//===- PlanLibrary.h - Plans of programs ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_PLANLIBRARY_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_PLANLIBRARY_H

#include "codegen/Backend.h"
#include "tests/conformance/ops/OpDevice.h"

#include <filesystem>

namespace llamac::conformance {

/// A folder that goes with the object.
class TemporaryFolder {
public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder();

  std::string file(const std::string &name) const {
    return (path / name).string();
  }

private:
  std::filesystem::path path;
};

/// A plan file and where its parts are.
struct MadePlan {
  /// Where the inputs of a program lie in its arena, by name.
  using Places = std::map<std::string, uint64_t>;

  TemporaryFolder folder;
  std::map<std::string, Places> inputs;        ///< By the plan's program.
  std::map<std::string, std::string> programs; ///< The one it was made from.

  std::string path() const { return folder.file("plan"); }
};

/// The plans that a target of the compiler makes, one for each model, each made
/// when it is first asked for.
class PlanLibrary {
public:
  using MakeBackend =
      std::function<std::unique_ptr<Backend>(const Model &model)>;

  /// `target` is what the plans say they are for.
  PlanLibrary(std::string target, MakeBackend backend)
      : target(std::move(target)), backend(std::move(backend)) {}

  /// The plan of `programs`, all of `model`: compiled as users' plans are, by
  /// the target's passes, its backend and the writer of plan files.
  absl::StatusOr<const MadePlan *> get(const Model &model,
                                       const std::vector<ProgramUse> &programs);

private:
  std::string target;
  MakeBackend backend;
  std::map<std::string, absl::StatusOr<std::unique_ptr<MadePlan>>> plans;
};

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_PLANLIBRARY_H
