//===- RecordedPlans.cpp - Plans kept for where no compiler is ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/RecordedPlans.h"

#include "runtime/base/Status.h"
#include "tests/conformance/ops/Cases.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace llamac::conformance {

using Json = nlohmann::json;

absl::Status recordPlans(PlanLibrary &library, const std::string &folder,
                         const std::vector<std::string> &tests) {
  std::set<std::string> chosen;
  for (const std::string &test : tests)
    chosen.insert(
        caseNamed(std::string(absl::StripPrefix(test, rowsPrefix))).name);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::set<std::string> done;
  for (const OpCase &test : opCases()) {
    const Model &model = test.program->model;
    if (!done.insert(model.name).second)
      continue;
    const std::string stem = absl::StrCat(folder, "/", model.name);
    const std::vector<ProgramUse> uses = programsOf(model.name, chosen);
    if (uses.empty())
      continue;
    const auto made = library.get(model, uses);
    Json json;
    if (made.ok()) {
      std::filesystem::copy_file(
          (*made)->path, stem + ".plan",
          std::filesystem::copy_options::overwrite_existing, error);
      json = {{"inputs", (*made)->inputs}, {"programs", (*made)->programs}};
    } else {
      json = {{"error", made.status().message()}};
    }
    std::ofstream(stem + ".json") << json.dump(1) << "\n";
  }
  return error ? badFileError(absl::StrCat(folder, ": ", error.message()))
               : absl::OkStatus();
}

absl::StatusOr<const MadePlan *>
RecordedPlans::get(const Model &model, const std::vector<ProgramUse> &) {
  const auto known = plans.find(model.name);
  if (known != plans.end())
    return &known->second;
  const std::string stem = absl::StrCat(folder, "/", model.name);
  std::ifstream file(stem + ".json");
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return badFileError(absl::StrCat(stem,
                                     ".json: expected what the conformance "
                                     "suite recorded; record it again"));
  if (json.contains("error"))
    return internalError(json["error"].get<std::string>());
  return &plans
              .emplace(model.name, MadePlan{stem + ".plan", json["inputs"],
                                            json["programs"]})
              .first->second;
}

} // namespace llamac::conformance
