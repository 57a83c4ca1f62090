//===- Report.h - What a report of a model or plan says ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The report as data. A collector fills it from a compilation or from a plan
// file; the page shows it.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REPORT_REPORT_H
#define LLAMAC_COMPILER_REPORT_REPORT_H

#include "ir/kernel/Cost.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

/// Texts of the IR share their lines.
struct IrVersion {
  std::vector<uint32_t> lines; ///< Numbers in PassHistory::lines.
};

/// A step of the pipeline: the import, or one pass on all its functions.
struct PassStep {
  std::string phase, name;
  double seconds = 0;
  int64_t opsBefore = 0, opsAfter = 0; ///< See countOps().
  int64_t linesRemoved = 0, linesAdded = 0;
  uint32_t before = 0, after = 0; ///< Versions; the same when nothing changed.
  std::string signs; ///< The diff from one to the other, as diffSigns() says.
};

struct PassHistory {
  std::vector<std::string> lines;
  std::vector<IrVersion> versions;
  std::vector<PassStep> steps;
};

//===----------------------------------------------------------------------===//
// The graph of a layer
//===----------------------------------------------------------------------===//

struct GraphNode {
  enum class Kind { Input, Op, Output };
  Kind kind = Kind::Op;
  std::string op;    ///< "llama.rms_norm"; empty for inputs and outputs.
  std::string label; ///< What it is in the model: "attention_norm".
  std::string type;  ///< Of its (first) result.
  std::vector<std::string> weights; ///< That it reads: "attention.wq q4_1 ...".
  std::string text;                 ///< The op as IR.
};

/// A value made by node `from` and read by node `to`.
struct GraphEdge {
  uint32_t from = 0, to = 0;
  std::string type;
};

struct LayerGraph {
  int64_t layer = 0;
  std::vector<GraphNode> nodes; ///< Operations in their order of execution.
  std::vector<GraphEdge> edges;
};

//===----------------------------------------------------------------------===//
// Kernels and programs
//===----------------------------------------------------------------------===//

struct KernelFacts {
  std::string name, family;
  std::string config; ///< The tile config; empty where there is none.
  std::string shape;  ///< "1536 x 576 q4_1, twice; norm".
  std::vector<std::string> serves;
};

/// The launches of one kernel in a program that cost the same. Those of a
/// plan, which knows no costs, are one use.
struct KernelUse {
  uint32_t kernel = 0;
  int64_t rows = 0; ///< That `cost` is for; 0 without one.
  int64_t launches = 0;
  int64_t weightBytes = 0;          ///< Of the weights that all launches name.
  std::optional<kernel::Cost> cost; ///< Of one launch; a plan has none.
};

struct LaunchFacts {
  uint32_t kernel = 0;
  int64_t phase = 0; ///< Launches of one phase may run at a time.
  std::string label;
  std::vector<uint64_t> arenaOffsets; ///< That it touches; only of plans.
};

struct ProgramFacts {
  std::string name;
  int64_t maxRows = 0, maxWanted = 0;
  int64_t arenaBytes = 0;
  std::vector<LaunchFacts> launches;
  std::vector<KernelUse> uses;
  nlohmann::ordered_json arena; ///< As arenaJson() gives it; null for plans.
};

/// The step that costs are of; see kernel::CostStep.
struct CostBasis {
  int64_t context = 0; ///< Keys of a step's last row; 0: there are no costs.
  int64_t wanted = 1;  ///< Rows whose logits are asked for.
  int64_t kvTokenBytes = 0;
};

/// Peaks of a machine, which only the user can say.
struct MachinePeaks {
  std::optional<double> gigabytes; ///< Each second, from memory.
  std::optional<double> gigaflops; ///< Each second.
};

/// Weights of one element type.
struct WeightFormat {
  std::string type;
  int64_t tensors = 0, bytes = 0;
};

struct Report {
  std::string kind; ///< "model" or "plan".
  std::string name;
  std::vector<std::pair<std::string, std::string>> facts; ///< For the head.
  std::optional<PassHistory> passes;
  std::optional<LayerGraph> imported, fused;
  std::vector<KernelFacts> kernels;
  std::vector<ProgramFacts> programs;
  CostBasis basis;
  MachinePeaks peaks;
  std::vector<WeightFormat> weights;
  std::string source; ///< Of the kernels.
};

} // namespace llamac

#endif // LLAMAC_COMPILER_REPORT_REPORT_H
