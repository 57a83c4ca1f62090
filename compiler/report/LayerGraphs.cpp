//===- LayerGraphs.cpp - The operations of one layer ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/report/LayerGraphs.h"

#include "ir/llama/Llama.h"
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
      : func(func), prefix("layers." + std::to_string(layer) + ".") {
    graph.layer = layer;
  }

  LayerGraph run() {
    for (Operation &op : func.getBody().front())
      if (isOfLayer(&op) && !isa<llama::WeightOp>(op))
        addOp(&op);
    for (Operation *op : ops)
      addOutputs(op);
    return std::move(graph);
  }

private:
  bool isOfLayer(Operation *op) const {
    return labelOf(op->getLoc()).starts_with(prefix);
  }

  /// The name of `loc` within the layer.
  std::string localLabel(Location loc) const {
    StringRef local = labelOf(loc);
    local.consume_front(prefix);
    return local.str();
  }

  uint32_t addNode(GraphNode node) {
    graph.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(graph.nodes.size() - 1);
  }

  void addOp(Operation *op) {
    GraphNode node;
    node.op = op->getName().getStringRef().str();
    node.label = localLabel(op->getLoc());
    if (op->getNumResults())
      node.type = typeText(op->getResult(0).getType());
    llvm::raw_string_ostream os(node.text);
    op->print(os, OpPrintingFlags().useLocalScope().elideLargeElementsAttrs());
    llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
    for (Value operand : operands)
      if (auto weight = operand.getDefiningOp<llama::WeightOp>())
        node.weights.push_back(localLabel(weight.getLoc()) + " " +
                               typeText(weight.getType()));
    // Inputs are numbered before the op, so that nodes stay in order.
    for (Value operand : operands)
      if (!operand.getDefiningOp<llama::WeightOp>())
        if (!makers.contains(operand))
          addInput(operand);
    const uint32_t number = addNode(std::move(node));
    for (Value operand : operands)
      if (!operand.getDefiningOp<llama::WeightOp>())
        graph.edges.push_back(
            {makers.lookup(operand), number, typeText(operand.getType())});
    for (Value result : op->getResults())
      makers[result] = number;
    ops.push_back(op);
  }

  void addInput(Value value) {
    GraphNode node;
    node.kind = GraphNode::Kind::Input;
    node.label = labelOf(value.getLoc()).str();
    node.type = typeText(value.getType());
    makers[value] = addNode(std::move(node));
  }

  /// A node for each result of `op` that others than the layer's ops read.
  void addOutputs(Operation *op) {
    for (Value result : op->getResults()) {
      auto isOutside = [&](Operation *user) {
        return !llvm::is_contained(ops, user);
      };
      const auto outside = llvm::find_if(result.getUsers(), isOutside);
      if (outside == result.getUsers().end())
        continue;
      GraphNode node;
      node.kind = GraphNode::Kind::Output;
      node.label = labelOf((*outside)->getLoc()).str();
      node.type = typeText(result.getType());
      const uint32_t from = makers.lookup(result);
      graph.edges.push_back({from, addNode(std::move(node)), {}});
      graph.edges.back().type = typeText(result.getType());
    }
  }

  func::FuncOp func;
  std::string prefix;
  LayerGraph graph;
  std::vector<Operation *> ops;
  llvm::DenseMap<Value, uint32_t> makers;
};

} // namespace

LayerGraph layerGraph(func::FuncOp func, int64_t layer) {
  return GraphCollector(func, layer).run();
}

} // namespace llamac
