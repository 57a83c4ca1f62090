//===- PlanJson.cpp - Programs and their memory as JSON -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PlanJson.h"

#include "ir/llama/OpNames.h"
#include "passes/schedule/LiveRanges.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llamac {

using Json = nlohmann::ordered_json;

Json arenaJson(plan::ProgramOp program) {
  const std::vector<LiveRange> ranges = liveRanges(program);
  int64_t sum = 0;
  Json buffers = Json::array();
  for (const LiveRange &range : ranges) {
    sum += range.bytes;
    plan::BufferOp op = range.op;
    plan::LaunchOp maker = range.maker;
    buffers.push_back({{"offset", op.getOffset().value_or(0)},
                       {"bytes", range.bytes},
                       {"first_interval", range.first},
                       {"last_interval", range.last},
                       {"maker", labelOf(maker.getLoc()).str()},
                       {"kernel", maker.getKernel().str()}});
  }
  return {{"arena", program.getArenaBytes().value_or(0)},
          {"without_reuse", sum},
          {"lower_bound", mostLive(ranges)},
          {"buffers", std::move(buffers)}};
}

/// The memory that an argument of a launch points at.
static Json memoryJson(Value memory) {
  return llvm::TypeSwitch<Operation *, Json>(memory.getDefiningOp())
      .Case([](plan::BufferOp op) {
        return Json{{"arena", op.getOffset().value_or(0)},
                    {"bytes", op.getBytes()}};
      })
      .Case([](plan::WeightOp op) {
        return Json{{"weight", op.getName().str()}};
      })
      .Case(
          [](plan::CountersOp op) { return Json{{"counters", op.getBytes()}}; })
      .Case([](plan::ExchangeOp op) {
        return Json{{"exchange", op.getHalf()}, {"bytes", op.getBytes()}};
      })
      .Case([](plan::PeersOp op) { return memoryJson(op.getExchange()); })
      .Case([](plan::KvOp op) { return Json{{"kv_layer", op.getLayer()}}; })
      .Case([](plan::InputOp op) {
        return Json{{"input", plan::stringifyInputRole(op.getRole()).str()}};
      });
}

static Json launchJson(plan::LaunchOp launch) {
  plan::KernelOp kernel = launch.getKernelOp();
  Json args = Json::array();
  for (auto [i, arg] : llvm::enumerate(launch.getArgs())) {
    Json json = {{"role", plan::stringifyParamRole(kernel.getRole(i)).str()}};
    json.update(memoryJson(arg));
    args.push_back(std::move(json));
  }
  return {{"kernel", launch.getKernel().str()},
          {"label", labelOf(launch.getLoc()).str()},
          {"rows", plan::stringifyRowSymbol(launch.getRows()).str()},
          {"barrier", launch.getBarrier()},
          {"args", std::move(args)}};
}

Json kernelsJson(ModuleOp module) {
  Json kernels = Json::array();
  for (auto kernel : module.getOps<plan::KernelOp>()) {
    Json roles = Json::array();
    for (StringRef role : kernel.getRoles().getAsValueRange<StringAttr>())
      roles.push_back(role.str());
    const plan::GeometryAttr geometry = kernel.getGeometry();
    kernels.push_back({{"name", kernel.getSymName().str()},
                       {"family", kernel.getFamily().str()},
                       {"roles", std::move(roles)},
                       {"items", geometry.getItems()},
                       {"row_block", geometry.getRowBlock()},
                       {"scratch", geometry.getScratch()}});
  }
  return kernels;
}

Json planJson(ModuleOp module) {
  Json json = {{"kernels", kernelsJson(module)}, {"programs", Json::array()}};
  for (auto program : module.getOps<plan::ProgramOp>()) {
    Json launches = Json::array();
    for (auto launch : program.getBody().front().getOps<plan::LaunchOp>())
      launches.push_back(launchJson(launch));
    const auto tokens = program.getBody().front().getOps<plan::TokensOp>();
    json["programs"].push_back({{"name", program.getSymName().str()},
                                {"max_rows", program.getMaxRows()},
                                {"max_logits_rows", program.getMaxLogitsRows()},
                                {"samples", !tokens.empty()},
                                {"memory", arenaJson(program)},
                                {"launches", std::move(launches)}});
  }
  return json;
}

} // namespace llamac
