//===- LayerGraphs.cpp - The operations of one layer ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/report/Report.h"
#include "ir/llama/OpNames.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace llamac {

std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) {
    if (isa<llama::KVType>(type))
      return "KV cache";
    os << type;
    return text;
  }
  llvm::interleave(
      tensor.getShape(), os,
      [&](int64_t size) {
        if (ShapedType::isDynamic(size))
          os << "rows";
        else
          os << size;
      },
      " x ");
  os << " ";
  if (isa<IntegerType>(tensor.getElementType()))
    os << tensor.getElementType();
  else
    os << llama::elementTypeName(tensor.getElementType());
  return text;
}

namespace {

class GraphCollector {
public:
  GraphCollector(func::FuncOp func, int64_t layer)
      : func(func), prefix("layers." + std::to_string(layer) + "."),
        graph{{"layer", layer},
              {"nodes", Json::array()},
              {"edges", Json::array()}} {}

  Json run() {
    for (Operation &op : func.getBody().front())
      if (labelOf(op.getLoc()).starts_with(prefix) && !isa<llama::WeightOp>(op))
        addOp(&op);
    for (Operation *op : ops)
      addOutputs(op);
    return std::move(graph);
  }

private:
  /// The name of `loc` within the layer.
  std::string localLabel(Location loc) const {
    StringRef local = labelOf(loc);
    local.consume_front(prefix);
    return local.str();
  }

  /// A node of kind "input", "op" or "output"; `type` is that of its (first)
  /// result, `weights` are those that it reads, `text` is the op as IR.
  size_t addNode(const char *kind, StringRef op, StringRef label,
                 const std::string &type, Json weights = Json::array(),
                 const std::string &text = {}) {
    graph["nodes"].push_back({{"kind", kind},
                              {"op", op.str()},
                              {"label", label.str()},
                              {"type", type},
                              {"weights", std::move(weights)},
                              {"text", text}});
    return graph["nodes"].size() - 1;
  }

  void addEdge(size_t from, size_t to, Value value) {
    graph["edges"].push_back(
        {{"from", from}, {"to", to}, {"type", typeText(value.getType())}});
  }

  void addOp(Operation *op) {
    std::string text;
    llvm::raw_string_ostream os(text);
    op->print(os, OpPrintingFlags().useLocalScope().elideLargeElementsAttrs());
    Json weights = Json::array();
    llvm::SetVector<Value> inputs;
    for (Value operand : op->getOperands())
      if (auto weight = operand.getDefiningOp<llama::WeightOp>())
        weights.push_back(localLabel(weight.getLoc()) + " " +
                          typeText(weight.getType()));
      else
        inputs.insert(operand);
    // Inputs are numbered before the op, so that nodes stay in order.
    for (Value input : inputs)
      if (!makers.contains(input))
        makers[input] = addNode("input", "", labelOf(input.getLoc()),
                                typeText(input.getType()));
    const size_t number =
        addNode("op", op->getName().getStringRef(), localLabel(op->getLoc()),
                op->getNumResults() ? typeText(op->getResult(0).getType()) : "",
                std::move(weights), text);
    for (Value input : inputs)
      addEdge(makers.lookup(input), number, input);
    for (Value result : op->getResults())
      makers[result] = number;
    ops.push_back(op);
  }

  /// A node for each result of `op` that others than the layer's ops read.
  void addOutputs(Operation *op) {
    for (Value result : op->getResults()) {
      const auto outside =
          llvm::find_if(result.getUsers(), [&](Operation *user) {
            return !llvm::is_contained(ops, user);
          });
      if (outside != result.getUsers().end())
        addEdge(makers.lookup(result),
                addNode("output", "", labelOf((*outside)->getLoc()),
                        typeText(result.getType())),
                result);
    }
  }

  func::FuncOp func;
  std::string prefix;
  Json graph;
  std::vector<Operation *> ops;
  llvm::DenseMap<Value, size_t> makers; ///< Nodes.
};

} // namespace

Json layerGraph(func::FuncOp func, int64_t layer) {
  return GraphCollector(func, layer).run();
}

} // namespace llamac
