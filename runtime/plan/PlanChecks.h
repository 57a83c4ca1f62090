//===- PlanChecks.h - The checks of a manifest ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of PlanVerifier.h: PlanVerifier.cpp has the order of the checks and
// the small ones, PlanWeightChecks.cpp those of weights, and
// PlanProgramChecks.cpp those of kernels and programs.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PLAN_PLANCHECKS_H
#define LLAMAC_RUNTIME_PLAN_PLANCHECKS_H

#include "runtime/base/Status.h"
#include "runtime/io/CheckedMath.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/plan/PlanVerifier.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// A place in the manifest. Its checks tell whether the place is sound, and
/// keep the error, which is the first since checks end with it.
class PlanPlace {
public:
  PlanPlace(absl::Status &error, std::string name)
      : error(error), name(std::move(name)) {}

  /// A part of this place.
  PlanPlace operator[](const absl::AlphaNum &part) const {
    return {error,
            name.empty() ? absl::StrCat(part) : absl::StrCat(name, ": ", part)};
  }

  bool wrong(const absl::AlphaNum &expected, const absl::AlphaNum &got) const {
    error = badPlanError(
        absl::StrCat(name, ": expected ", expected, ", got ", got));
    return false;
  }

  bool isIn(int64_t value, int64_t low, uint64_t high) const {
    return (value >= low &&
            (value < 0 || static_cast<uint64_t>(value) <= high)) ||
           wrong(absl::StrCat(low, " to ", high), value);
  }
  bool isBelow(uint64_t value, uint64_t limit) const {
    return value < limit ||
           wrong(absl::StrCat("a number below ", limit), value);
  }
  template <typename Enum> bool isOneOf(Enum value) const {
    return isBelow(static_cast<uint64_t>(value),
                   static_cast<uint64_t>(Enum::MAX) + 1);
  }
  bool isText(const std::string &text) const {
    return (!text.empty() && text.find('\0') == std::string::npos) ||
           wrong("a text", text.empty() ? "none" : "a zero in it");
  }
  /// Bytes [offset, offset + size) of an arena, at a multiple of `alignment`.
  bool isInArena(const schema::ProgramT &program, uint64_t offset,
                 uint64_t size, uint64_t alignment, const char *what) const {
    return (offset % alignment == 0 &&
            isInside(offset, size, program.arenaBytes)) ||
           wrong(absl::StrCat(what, " for ", size, " bytes in the arena of ",
                              program.arenaBytes),
                 absl::StrCat("offset ", static_cast<int64_t>(offset)));
  }

private:
  absl::Status &error;
  std::string name;
};

/// The checks of one manifest; each member checks one table of the schema.
class PlanChecks {
public:
  PlanChecks(const schema::PlanT &plan,
             const std::vector<PlanSection> &sections)
      : plan(plan), sections(sections), config(fromPlan(*plan.config)) {}

  absl::Status run();

private:
  // Far above any valid plan; they bound what a damaged one can ask for.
  static constexpr uint64_t maxRows = uint64_t{1} << 20;
  static constexpr uint64_t maxSize = uint64_t{1} << 31;
  static constexpr uint64_t maxBytes = uint64_t{1} << 44;

  bool checkConfig();
  bool checkSourceFiles() const;
  bool checkWeights() const;
  bool checkWeight(const schema::WeightT &weight, const PlanPlace &at) const;
  bool checkSource(const schema::WeightT &weight, const PlanPlace &at) const;
  bool checkWeightShape(const schema::WeightT &weight,
                        const PlanPlace &at) const;
  bool checkKv() const;
  bool checkKvGroups() const;
  bool checkRings() const;
  bool checkKernels() const;
  bool checkGeometry(const schema::KernelT &kernel,
                     const schema::GeometryT &geometry,
                     const PlanPlace &at) const;
  bool checkPrograms() const;
  bool checkProgram(const schema::ProgramT &program, const PlanPlace &at) const;
  bool checkFeatures(const schema::ProgramT &program,
                     const PlanPlace &at) const;
  bool checkFeatureLayers() const;
  bool checkResident(const schema::ProgramT &program,
                     const PlanPlace &at) const;
  bool checkMap(const schema::ProgramT &program, const schema::LaunchT &launch,
                const schema::TensorMap &map, const PlanPlace &at) const;
  bool checkLaunch(const schema::ProgramT &program,
                   const schema::LaunchT &launch, const PlanPlace &at) const;
  bool checkOperand(const schema::ProgramT &program,
                    const schema::Operand &operand, const PlanPlace &at) const;
  bool checkRole(const schema::ProgramT &program, const schema::LaunchT &launch,
                 size_t number, const PlanPlace &at) const;
  bool checkPageTable(const schema::LaunchT &launch, const PlanPlace &at) const;
  bool checkCode() const;
  bool checkTokenizer() const;
  bool checkSampling() const;
  bool checkSection(const PlanPlace &at, int64_t number,
                    SectionKind kind) const;

  const schema::PlanT &plan;
  const std::vector<PlanSection> &sections;
  const ModelConfig config;
  absl::Status error;
  const PlanPlace root = {error, ""};
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_PLAN_PLANCHECKS_H
