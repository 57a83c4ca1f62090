//===- PlanProgramChecks.cpp - Checks of kernels and programs -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanChecks.h"
#include "runtime/plan/TensorMap.h"

#include <algorithm>

namespace llamac {

// Like those of PlanChecks, far above any valid plan.
static constexpr uint64_t maxCounterBytes = uint64_t{1} << 28;
static constexpr uint64_t maxScratch = uint64_t{1} << 30;
static constexpr uint64_t maxItems = uint64_t{1} << 40;
static constexpr uint64_t maxBlockThreads = 1024;
// Limits of the CUDA driver for a grid of blocks; kernels have 32-bit integers.
static constexpr uint64_t maxGridItems = (uint64_t{1} << 31) - 1;
static constexpr uint64_t maxGridRowBlocks = 65535;
static constexpr uint64_t maxCluster = 8; // Every GPU with clusters has these.

static bool isPageTable(const schema::Operand &operand) {
  return operand.kind() == schema::OperandKind::Input &&
         operand.index() == static_cast<uint32_t>(schema::InputRole::PageTable);
}

bool PlanChecks::checkKernels() const {
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const schema::KernelT &kernel = *plan.kernels[i];
    const PlanPlace at = root[absl::StrCat("kernel ", i)];
    if (!at["symbol"].isText(kernel.symbol) ||
        !at["family"].isText(kernel.family) ||
        !at["overlap"].isOneOf(kernel.overlap) ||
        !checkGeometry(kernel, *kernel.geometry, at))
      return false;
    for (schema::ParamRole role : kernel.params)
      if (!at["role of a parameter"].isOneOf(role))
        return false;
    if (const auto results =
            std::ranges::count(kernel.params, schema::ParamRole::Result);
        kernel.resultRowBytes.size() != static_cast<size_t>(results))
      return at["result row bytes"].wrong(
          absl::StrCat(results, ", one for each result"),
          kernel.resultRowBytes.size());
    for (const uint64_t bytes : kernel.resultRowBytes)
      if (!at["result row bytes"].isBelow(bytes, maxSize))
        return false;
    if (kernel.geometry->resident && !kernel.variants.empty())
      return at["variants"].wrong("none of a resident kernel",
                                  kernel.variants.size());
    for (size_t v = 0; v < kernel.variants.size(); ++v) {
      const schema::VariantT &variant = *kernel.variants[v];
      const PlanPlace of = at[absl::StrCat("variant ", v)];
      if (!of["symbol"].isText(variant.symbol) ||
          !of["tiles"].isText(variant.tiles) ||
          !of["source"].isText(variant.source) ||
          !checkGeometry(kernel, *variant.geometry, of))
        return false;
      if (variant.geometry->resident)
        return of["resident"].wrong("false, as of the kernel", "true");
    }
  }
  return true;
}

/// Checks the geometry for any number of rows; checkLaunch() has the rest.
bool PlanChecks::checkGeometry(const schema::KernelT &kernel,
                               const schema::GeometryT &geometry,
                               const PlanPlace &at) const {
  const bool hasBlocks = plan.target == "cuda" || plan.target == "sim";
  if (!at["row block"].isIn(geometry.rowBlock, 0, maxRows) ||
      !at["items"].isIn(geometry.items, 1,
                        hasBlocks ? maxGridItems : maxItems) ||
      !at["scratch bytes"].isBelow(geometry.scratchBytes, maxScratch + 1) ||
      !at["threads of a block"].isIn(geometry.threads, hasBlocks ? 1 : 0,
                                     maxBlockThreads) ||
      !at["cluster"].isIn(geometry.cluster, 1, hasBlocks ? maxCluster : 1) ||
      !at["workspace bytes of a row"].isBelow(geometry.workspaceBytes,
                                              maxSize) ||
      !at["counters of a row"].isBelow(geometry.counters, maxCounterBytes))
    return false;
  if (geometry.items % geometry.cluster != 0)
    return at["items"].wrong(
        absl::StrCat("whole clusters of ", geometry.cluster), geometry.items);
  if (geometry.dependent && !hasBlocks)
    return at["dependent"].wrong(absl::StrCat("false for target ", plan.target),
                                 "true");
  if (geometry.resident &&
      (!hasBlocks || !geometry.maps.empty() || geometry.cluster != 1 ||
       geometry.rowBlock != 0 || geometry.dependent))
    return at["resident"].wrong(
        "false, or blocks of cuda or sim that depend on no launch, without "
        "clusters, row blocks and tensor maps",
        "true");
  if (!hasBlocks && !geometry.maps.empty())
    return at["tensor maps"].wrong(
        absl::StrCat("none for target ", plan.target), geometry.maps.size());
  for (const schema::TensorMap &map : geometry.maps)
    if (!at["operand of a tensor map"].isBelow(map.operand(),
                                               kernel.params.size()))
      return false;
  return true;
}

/// Whether only a plan for several ranks has such an operand.
static bool isOfRanks(const schema::Operand &operand) {
  return operand.kind() == schema::OperandKind::Exchange ||
         operand.kind() == schema::OperandKind::Peers ||
         (operand.kind() == schema::OperandKind::Input &&
          operand.index() == static_cast<uint32_t>(schema::InputRole::Rank));
}

/// Whether only a plan of a draft head has such an operand.
static bool isOfHead(const schema::Operand &operand) {
  return operand.kind() == schema::OperandKind::Input &&
         (operand.index() ==
              static_cast<uint32_t>(schema::InputRole::Features) ||
          operand.index() ==
              static_cast<uint32_t>(schema::InputRole::HeadState));
}

bool PlanChecks::checkOperand(const schema::ProgramT &program,
                              const schema::Operand &operand,
                              const PlanPlace &at) const {
  if (plan.ranks == 1 && isOfRanks(operand))
    return at.wrong("one that a plan for one rank has",
                    EnumNameOperandKind(operand.kind()));
  if (!config.head && isOfHead(operand))
    return at["input"].wrong("one that the plan of a model has",
                             operand.index());
  switch (operand.kind()) {
  case schema::OperandKind::Arena:
    return at["arena offset"].isBelow(operand.offset(), program.arenaBytes);
  case schema::OperandKind::Weight:
    return at["weight"].isBelow(operand.index(), plan.weights.size());
  case schema::OperandKind::Kv:
    return at["kv layer"].isBelow(operand.index(),
                                  static_cast<uint64_t>(config.numLayers));
  case schema::OperandKind::Input: {
    if (!at["input"].isBelow(operand.index(),
                             static_cast<uint64_t>(schema::InputRole::MAX) + 1))
      return false;
    const PlanPlace of = at["offset in the input"];
    return isPageTable(operand)
               ? of.isBelow(operand.offset(), plan.kv->groups.size())
               : operand.offset() == 0 || of.wrong("0", operand.offset());
  }
  case schema::OperandKind::Constant:
    return checkSection(at["constants"], operand.index(),
                        SectionKind::Constants) &&
           at["offset in constants"].isBelow(operand.offset(),
                                             sections[operand.index()].size);
  case schema::OperandKind::Counters:
    return at["offset in counters"].isBelow(operand.offset(),
                                            plan.counterBytes);
  case schema::OperandKind::Exchange:
  case schema::OperandKind::Peers:
    return at["offset in the exchange area"].isBelow(operand.offset(),
                                                     plan.exchangeBytes);
  }
  return at["kind"].wrong(
      absl::StrCat("0 to ", static_cast<int>(schema::OperandKind::MAX)),
      static_cast<int>(operand.kind()));
}

/// The pools of a launch and the page table are of one group.
bool PlanChecks::checkPageTable(const schema::LaunchT &launch,
                                const PlanPlace &at) const {
  for (const schema::Operand &table : launch.operands) {
    if (!isPageTable(table))
      continue;
    const uint64_t group = table.offset();
    for (const schema::Operand &pool : launch.operands)
      if (pool.kind() == schema::OperandKind::Kv &&
          plan.kv->layerGroups[pool.index()] != group)
        return at["page table"].wrong(
            absl::StrCat("that of group ", plan.kv->layerGroups[pool.index()],
                         ", as layer ", pool.index(), " has"),
            absl::StrCat("that of group ", group));
  }
  return true;
}

/// Operand `number` of `launch` is one for a parameter of its role.
bool PlanChecks::checkRole(const schema::ProgramT &program,
                           const schema::LaunchT &launch, size_t number,
                           const PlanPlace &at) const {
  using schema::OperandKind, schema::ParamRole;
  const schema::KernelT &kernel = *plan.kernels[launch.kernel];
  const schema::Operand &operand = launch.operands[number];
  const OperandKind kind = operand.kind();
  const ParamRole role = kernel.params[number];
  const auto rows = static_cast<uint64_t>(maxRowsOf(launch, program));
  bool fits = false;
  switch (role) {
  case ParamRole::Activation:
    fits = kind == OperandKind::Arena || kind == OperandKind::Constant ||
           (kind == OperandKind::Input && !isPageTable(operand));
    break;
  case ParamRole::Weight:
    fits = kind == OperandKind::Weight;
    break;
  case ParamRole::Cache:
  case ParamRole::AppendedCache:
    fits = kind == OperandKind::Kv;
    break;
  case ParamRole::PageTable:
    fits = isPageTable(operand);
    break;
  case ParamRole::Result:
    fits = kind == OperandKind::Arena || kind == OperandKind::Exchange;
    if (const uint64_t bytes = resultRowBytes(kernel, number) * rows;
        fits && !isInside(operand.offset(), bytes,
                          kind == OperandKind::Arena ? program.arenaBytes
                                                     : plan.exchangeBytes))
      return at.wrong(absl::StrCat("a place for ", bytes, " bytes of results"),
                      absl::StrCat("offset ", operand.offset()));
    break;
  case ParamRole::Peers:
    fits = kind == OperandKind::Peers;
    if (const uint64_t bytes = operand.index() * rows;
        fits &&
        (bytes == 0 || !isInside(operand.offset(), bytes, plan.exchangeBytes)))
      return at.wrong(absl::StrCat("bytes of rows in the exchange area of ",
                                   plan.exchangeBytes),
                      absl::StrCat(bytes, " at ", operand.offset()));
    break;
  case ParamRole::Workspace:
    fits = kind == OperandKind::Arena;
    if (fits && !at.isInArena(program, operand.offset(),
                              kernel.geometry->workspaceBytes * rows,
                              /*alignment=*/1, "a place"))
      return false;
    break;
  case ParamRole::Counters:
    fits = kind == OperandKind::Counters;
    if (const uint64_t bytes =
            kernel.geometry->counters * rows * sizeof(uint32_t);
        fits && !isInside(operand.offset(), bytes, plan.counterBytes))
      return at.wrong(absl::StrCat(bytes, " bytes of the plan's ",
                                   plan.counterBytes, " of counters"),
                      absl::StrCat("offset ", operand.offset()));
    break;
  }
  return fits || at.wrong(absl::StrCat("one for a parameter of role ",
                                       EnumNameParamRole(role)),
                          EnumNameOperandKind(kind));
}

bool PlanChecks::checkLaunch(const schema::ProgramT &program,
                             const schema::LaunchT &launch,
                             const PlanPlace &at) const {
  if (!at["kernel"].isBelow(launch.kernel, plan.kernels.size()) ||
      !at["rows"].isOneOf(launch.rows))
    return false;
  const schema::KernelT &kernel = *plan.kernels[launch.kernel];
  const schema::GeometryT &geometry = *kernel.geometry;
  const int64_t blocks =
      geometry.rowBlock == 0
          ? 1
          : (maxRowsOf(launch, program) - 1) / geometry.rowBlock + 1;
  if (!at["items x row blocks"].isIn(geometry.items * blocks, 1, maxItems))
    return false;
  if (geometry.threads != 0 &&
      !at["row blocks of a grid"].isIn(blocks, 1, maxGridRowBlocks))
    return false;
  if (launch.operands.size() != kernel.params.size())
    return at["operands"].wrong(
        absl::StrCat(kernel.params.size(), ", one for each parameter"),
        launch.operands.size());
  for (size_t i = 0; i < launch.operands.size(); ++i)
    if (const PlanPlace of = at[absl::StrCat("operand ", i)];
        !checkOperand(program, launch.operands[i], of) ||
        !checkRole(program, launch, i, of))
      return false;
  if (!checkPageTable(launch, at))
    return false;
  for (size_t i = 0; i < geometry.maps.size(); ++i)
    if (!checkMap(program, launch, geometry.maps[i],
                  at[absl::StrCat("tensor map ", i)]))
      return false;
  return true;
}

bool PlanChecks::checkMap(const schema::ProgramT &program,
                          const schema::LaunchT &launch,
                          const schema::TensorMap &map,
                          const PlanPlace &at) const {
  const TensorMapShape shape = shapeOf(map, plan, program, launch);
  if (const std::string problem = problemOf(shape); !problem.empty())
    return at.wrong("a matrix that can be copied by boxes", problem);
  const schema::Operand &operand = launch.operands[map.operand()];
  uint64_t offset = 0, size = 0;
  switch (operand.kind()) {
  case schema::OperandKind::Arena:
    offset = operand.offset();
    size = program.arenaBytes;
    break;
  case schema::OperandKind::Weight:
    size = packedBytes(*plan.weights[operand.index()]);
    break;
  case schema::OperandKind::Kv:
    size = kvPoolBytes(*plan.kv, operand.index());
    break;
  default:
    return at["operand"].wrong("in the arena, a weight or the KV cache",
                               EnumNameOperandKind(operand.kind()));
  }
  return (offset % 16 == 0 && isInside(offset, shape.bytes(), size)) ||
         at.wrong(absl::StrCat("an aligned place for ", shape.bytes(),
                               " bytes in the operand's ", size),
                  absl::StrCat("offset ", offset));
}

/// A resident launch is the whole step of one row, on one rank.
bool PlanChecks::checkResident(const schema::ProgramT &program,
                               const PlanPlace &at) const {
  const bool hasResident =
      std::ranges::any_of(program.launches, [&](const auto &launch) {
        return plan.kernels[launch->kernel]->geometry->resident;
      });
  if (!hasResident)
    return true;
  if (program.launches.size() != 1)
    return at["launches"].wrong("one, as one is resident",
                                program.launches.size());
  if (program.launches.front()->rows != schema::RowSymbol::Tokens)
    return at["launch 0"]["rows"].wrong("Tokens, as it is resident", "Outputs");
  if (program.maxRows != 1) // Then it has one output row.
    return at["rows"].wrong("1, as its launch is resident", program.maxRows);
  return plan.ranks == 1 ||
         at["ranks"].wrong("1, as its launch is resident", plan.ranks);
}

bool PlanChecks::checkFeatures(const schema::ProgramT &program,
                               const PlanPlace &at) const {
  const size_t count = config.head ? 1 : plan.featureLayers.size();
  if (program.features.size() != count)
    return at["features"].wrong(absl::StrCat(count), program.features.size());
  const auto rows = static_cast<uint64_t>(config.head ? program.maxOutputRows
                                                      : program.maxRows);
  const uint64_t bytes =
      rows * static_cast<uint64_t>(config.dim) * sizeof(float);
  return std::ranges::all_of(program.features, [&](uint64_t offset) {
    return at["features"].isInArena(program, offset, bytes, alignof(float),
                                    "an aligned place");
  });
}

/// The layers that give features.
bool PlanChecks::checkFeatureLayers() const {
  const PlanPlace at = root["feature layers"];
  if (plan.featureLayers.size() > mostFeatures)
    return at.wrong(absl::StrCat("at most ", mostFeatures),
                    plan.featureLayers.size());
  if (config.head && !plan.featureLayers.empty())
    return at.wrong("none of a draft head", plan.featureLayers.size());
  return std::ranges::all_of(plan.featureLayers, [&](int64_t layer) {
    return at.isIn(layer, 0, static_cast<uint64_t>(config.numLayers));
  });
}

bool PlanChecks::checkProgram(const schema::ProgramT &program,
                              const PlanPlace &at) const {
  if (!at["rows"].isIn(program.maxRows, 1, maxRows) ||
      !at["output rows"].isIn(program.maxOutputRows, 1,
                              static_cast<uint64_t>(program.maxRows)))
    return false;
  if (program.arenaBytes > maxBytes)
    return at["arena"].wrong(absl::StrCat("at most ", maxBytes, " bytes"),
                             program.arenaBytes);
  const auto rows = static_cast<uint64_t>(program.maxOutputRows);
  if (!at["logits"].isInArena(
          program, program.logitsOffset,
          rows * static_cast<uint64_t>(config.logitsSize()) * sizeof(float),
          alignof(float), "an aligned place"))
    return false;
  if (program.tokensOffset != -1 &&
      !at["tokens"].isInArena(
          program, static_cast<uint64_t>(program.tokensOffset),
          rows * sizeof(int32_t), alignof(int32_t), "-1 or an aligned place"))
    return false;
  if (!checkFeatures(program, at))
    return false;
  for (size_t i = 0; i < program.launches.size(); ++i)
    if (const schema::LaunchT &launch = *program.launches[i];
        !checkLaunch(program, launch,
                     at[absl::StrCat("launch ", i, " (", launch.label, ")")]))
      return false;
  return checkResident(program, at);
}

bool PlanChecks::checkPrograms() const {
  if (plan.counterBytes % sizeof(uint32_t) != 0 ||
      plan.counterBytes > maxCounterBytes)
    return root["counters"].wrong(
        absl::StrCat("a multiple of ", sizeof(uint32_t), " bytes and at most ",
                     maxCounterBytes),
        plan.counterBytes);
  if (plan.programs.empty())
    return root["programs"].wrong("at least one", "none");
  if (!checkFeatureLayers())
    return false;
  int64_t previous = 0;
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    const schema::ProgramT &program = *plan.programs[i];
    const PlanPlace at =
        root[absl::StrCat("program ", i, " (", program.name, ")")];
    if (!checkProgram(program, at))
      return false;
    if (program.maxRows < previous)
      return at["rows"].wrong(
          absl::StrCat("at least the ", previous, " of the program before"),
          program.maxRows);
    previous = program.maxRows;
    const bool samples = plan.programs[0]->tokensOffset != -1;
    if ((program.tokensOffset != -1) != samples)
      return at["tokens"].wrong(samples ? "some, as in the first program"
                                        : "none, as in the first program",
                                program.tokensOffset);
  }
  return checkRings();
}

} // namespace llamac
