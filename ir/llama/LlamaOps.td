//===- LlamaOps.td - The ops of the llama dialect -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which a step uses them: weights and embedding, row-wise ops,
// rotary embedding, KV cache, attention, selection of rows.
//
// The result types of all ops but llama.weight follow from their operands and
// attributes (InferTypeOpInterface), so that a pass may make rows static and
// infer the rest again. Where two operands share a dimension that one of them
// knows, the result knows it too.
//
// Canonical graphs have their scales directly on the scores: scales move there
// from the query, the keys or the masked scores, and two become one.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_IR_LLAMA_LLAMAOPS_TD
#define LLAMAC_IR_LLAMA_LLAMAOPS_TD

include "ir/llama/LlamaDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Type constraints
//===----------------------------------------------------------------------===//

def Llama_WeightElement
    : AnyTypeOf<[F32, F16, BF16, Llama_Quant],
                "f32, f16, bf16 or a block format">;
def Llama_Weight
    : RankedTensorOf<[Llama_WeightElement],
                     [HasAnyRankOfPred<[1, 2]>, HasStaticShapePred],
                     "statically shaped 1D/2D tensor">;
def Llama_Vector
    : RankedTensorOf<[Llama_WeightElement],
                     [HasAnyRankOfPred<[1]>, HasStaticShapePred],
                     "statically shaped 1D tensor">;
def Llama_Matrix
    : RankedTensorOf<[Llama_WeightElement],
                     [HasAnyRankOfPred<[2]>, HasStaticShapePred],
                     "statically shaped 2D tensor">;

def Llama_Indices : 1DTensorOf<[I32]>;  // tokens, positions, sequences, rows
def Llama_Rows : 2DTensorOf<[F32]>;     // [N, width]
def Llama_Heads : 3DTensorOf<[F32]>;    // [N, heads, h]
def Llama_Scores : 3DTensorOf<[F32]>;   // [H, N, T]
def Llama_Mask : 2DTensorOf<[F32]>;     // [N, T]
def Llama_Table : 3DTensorOf<[F32]>;    // [N, h/2, 2]
def Llama_Values : RankedTensorOf<[F32]>;
def Llama_RowsOrHeads : AnyTypeOf<[Llama_Rows, Llama_Heads]>;
def Llama_Gatherable : AnyTypeOf<[Llama_Indices, Llama_Rows, Llama_Heads]>;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

def RowWiseOpInterface : OpInterface<"RowWiseOpInterface"> {
  let description = [{
    Row n of the result is made of row n of some operands and of no other row,
    so that it can be computed for some rows alone.
  }];
  let cppNamespace = "::llamac::llama";
  let methods = [InterfaceMethod<"The operands of which row n is read.",
      "::llvm::SmallVector<::mlir::Value>", "getRowOperands", (ins), [{}],
      [{ return ::llvm::SmallVector<::mlir::Value>($_op->getOperands()); }]>];
}

/// How an op treats rows, which each op says.
class Llama_RowKind<list<Trait> traitList> {
  list<Trait> traits = traitList;
}
/// Row by row of all operands.
def Llama_RowWise : Llama_RowKind<[RowWiseOpInterface]>;
/// Row by row of those that getRowOperands gives.
def Llama_RowWiseOfSome
    : Llama_RowKind<[DeclareOpInterfaceMethods<RowWiseOpInterface,
                                              ["getRowOperands"]>]>;
/// Other rows count, or every row is needed.
def Llama_AllRows : Llama_RowKind<[]>;

class Llama_Op<string opMnemonic, Llama_RowKind rows, list<Trait> traits = []>
    : Op<Llama_Dialect, opMnemonic, !listconcat([Pure], rows.traits, traits)>;

/// An op whose result types infer() gives.
class Llama_InferredOp<string opMnemonic, Llama_RowKind rows,
                       list<Trait> traits = []>
    : Llama_Op<opMnemonic, rows, !listconcat([InferTypeOpAdaptor], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    static void infer(::llamac::llama::ShapeInference &shapes, Adaptor op);
  }];
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, std::optional<::mlir::Location> location,
        Adaptor op, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      ::llamac::llama::ShapeInference shapes(context, location,
                                             getOperationName(), types);
      infer(shapes, op);
      return ::llvm::failure(shapes.failed);
    }
  }];
}

def Llama_Positive
    : ConfinedAttr<F64Attr, [AttrConstraint<
          CPred<"::llvm::cast<::mlir::FloatAttr>($_self).getValue().isFinite() "
                "&& ::llvm::cast<::mlir::FloatAttr>($_self).getValueAsDouble() "
                "> 0">, "that is positive and finite">]>;

/// How many keys a row sees, its own included.
def Llama_Window : ConfinedAttr<I64Attr, [IntPositive]>;

def Llama_NamesResults
    : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;

//===----------------------------------------------------------------------===//
// Weights and embedding
//===----------------------------------------------------------------------===//

def Llama_WeightOp : Llama_Op<"weight", Llama_AllRows, [Llama_NamesResults]> {
  let summary = "a weight of the checkpoint";
  let description = [{
    The weight with the canonical name `name`: Meta's names without ".weight",
    such as `tok_embeddings`, `norm`, `output`, `layers.3.attention.wq` or
    `layers.3.feed_forward.w1`. Two ops with one name are the same value. With
    `shard`, it is the rank's part of the weight.

    ```mlir
    %wq = llama.weight "layers.0.attention.wq" : tensor<576x576x!llama.quant<q4_1>>
    ```
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<Llama_Shard>:$shard);
  let builders = [OpBuilder<(ins "::mlir::Type":$type,
                                 "::mlir::StringAttr":$name), [{
    build($_builder, $_state, type, name, ShardAttr());
  }]>];
  let results = (outs Llama_Weight:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Llama_EmbeddingOp : Llama_InferredOp<"embedding", Llama_AllRows> {
  let summary = "rows of the embedding table";
  let description = [{
    `result[n, :] = table[tokens[n], :]`, widened to f32. A token outside the
    table is an error of the caller.

    With `rank`, `table` is a rank's part of the whole: its first row is that of
    token `rank[0]` times the part's rows. A token that another rank holds gives
    zeros, so that the sum over the ranks is the embedding.

    ```mlir
    %x = llama.embedding %tokens, %table
        : (tensor<?xi32>, tensor<49152x576xbf16>) -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llama_Indices:$tokens, Llama_Matrix:$table,
                       Optional<Llama_Indices>:$rank);
  let results = (outs Llama_Rows:$result);
}

//===----------------------------------------------------------------------===//
// Row-wise ops and products
//===----------------------------------------------------------------------===//

def Llama_RMSNormOp : Llama_InferredOp<"rms_norm", Llama_RowWiseOfSome> {
  let summary = "root mean square normalisation of rows";
  let description = [{
    `result[n, i] = x[n, i] / sqrt(mean(x[n, :]^2) + eps) * weight[i]`; of heads
    [N, heads, h] each head is a row of h.

    ```mlir
    %y = llama.rms_norm %x, %w eps = 1.000000e-05
        : (tensor<?x576xf32>, tensor<576xf32>) -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llama_RowsOrHeads:$x, Llama_Vector:$weight,
                       Llama_Positive:$eps);
  let results = (outs Llama_RowsOrHeads:$result);
  let assemblyFormat = [{
    $x `,` $weight `eps` `=` $eps attr-dict `:` functional-type(operands, results)
  }];
}

def Llama_Leaves
    : ConfinedAttr<I64Attr, [IntMinValue<2>, AttrConstraint<
          CPred<"::llvm::isPowerOf2_64(::llvm::cast<::mlir::IntegerAttr>($_self)"
                ".getValue().getZExtValue())">, "that is a power of two">]>;

def Llama_LinearOp : Llama_InferredOp<"linear", Llama_RowWiseOfSome> {
  let summary = "product of rows with a weight";
  let description = [{
    `result[n, m] = sum over k of x[n, k] * weight[m, k]`, with weights of shape
    [M, K] as the checkpoint stores them.

    ```mlir
    %q = llama.linear %y, %wq
        : (tensor<?x576xf32>, tensor<576x576xbf16>) -> tensor<?x576xf32>
    ```

    With `leaves`, equal runs of k in their order are summed apart, and these
    sums by a binary tree over neighbours, so that a rank that has a subtree of
    them gives the same bits as all of them do in one product:

    ```mlir
    %o1 = llama.linear %o, %wo {leaves = 4 : i64}
        : (tensor<?x512xf32>, tensor<512x512xbf16>) -> tensor<?x512xf32>
    ```
  }];
  let arguments = (ins Llama_Rows:$x, Llama_Matrix:$weight,
                       OptionalAttr<Llama_Leaves>:$leaves);
  let results = (outs Llama_Rows:$result);
}

def Llama_BiasOp : Llama_InferredOp<"bias", Llama_RowWiseOfSome> {
  let summary = "a vector added to every row";
  let description = [{
    `result[n, i] = x[n, i] + weight[i]`

    ```mlir
    %q1 = llama.bias %q, %bq : (tensor<?x576xf32>, tensor<576xf32>) -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llama_Rows:$x, Llama_Vector:$weight);
  let results = (outs Llama_Rows:$result);
}

def Llama_SplitHeadsOp : Llama_InferredOp<"split_heads", Llama_RowWise> {
  let summary = "rows as heads";
  let description = [{
    [N, heads * h] -> [N, heads, h]: `result[n, j, i] = x[n, j * h + i]`.

    ```mlir
    %q3 = llama.split_heads %q heads = 9 : (tensor<?x576xf32>) -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Llama_Rows:$x, I64Attr:$heads);
  let results = (outs Llama_Heads:$result);
  let assemblyFormat = [{
    $x `heads` `=` $heads attr-dict `:` functional-type(operands, results)
  }];
  let hasCanonicalizeMethod = 1;
  let hasFolder = 1;
}

def Llama_MergeHeadsOp : Llama_InferredOp<"merge_heads", Llama_RowWise> {
  let summary = "heads as rows";
  let description = [{
    [N, heads, h] -> [N, heads * h], the inverse of `llama.split_heads`.

    ```mlir
    %o = llama.merge_heads %o3 : (tensor<?x9x64xf32>) -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llama_Heads:$x);
  let results = (outs Llama_Rows:$result);
  let hasCanonicalizeMethod = 1;
  let hasFolder = 1;
}

class Llama_BinaryOp<string opMnemonic>
    : Llama_InferredOp<opMnemonic, Llama_RowWise, [Commutative]> {
  let arguments = (ins Llama_Values:$lhs, Llama_Values:$rhs);
  let results = (outs Llama_Values:$result);
}

def Llama_AddOp : Llama_BinaryOp<"add"> {
  let summary = "element-wise sum";
  let description = [{
    `lhs + rhs` of equal shapes: the residual stream.
  }];
}

def Llama_MulOp : Llama_BinaryOp<"mul"> {
  let summary = "element-wise product";
  let description = [{
    `lhs * rhs` of equal shapes: the gate of the feed-forward.
  }];
}

def Llama_SiluOp : Llama_InferredOp<"silu", Llama_RowWise> {
  let summary = "x * sigmoid(x)";
  let description = [{
    `x / (1 + exp(-x))`, element by element.
  }];
  let arguments = (ins Llama_Values:$x);
  let results = (outs Llama_Values:$result);
}

def Llama_GeluTanhOp : Llama_InferredOp<"gelu_tanh", Llama_RowWise> {
  let summary = "GELU by its approximation with tanh";
  let description = [{
    `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`, element by
    element.
  }];
  let arguments = (ins Llama_Values:$x);
  let results = (outs Llama_Values:$result);
}

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

def Llama_RopeTableOp : Llama_InferredOp<"rope_table", Llama_AllRows,
                                         [Llama_NamesResults]> {
  let summary = "cosines and sines of the rotary angles";
  let description = [{
    `angle = positions[n] * frequencies[i]`; `result[n, i, 0] = cos(angle)` and
    `result[n, i, 1] = sin(angle)`. The h/2 frequencies are in radians per
    position and hold every scaling; the angle is computed in f64. Frequencies
    of 0 rotate nothing: the table of layers without RoPE.

    ```mlir
    %rope = llama.rope_table %positions frequencies = dense<[1.0, 0.1]> : tensor<2xf64>
        : (tensor<?xi32>) -> tensor<?x2x2xf32>
    ```
  }];
  // Dense elements, not a dense array: the text form of an array of f64 keeps
  // seven digits only.
  let arguments = (ins Llama_Indices:$positions, F64ElementsAttr:$frequencies);
  let results = (outs Llama_Table:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$positions,
                                 "::llvm::ArrayRef<double>":$frequencies)>];
  let assemblyFormat = [{
    $positions `frequencies` `=` $frequencies attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

// The launch that rotates the query rotates the keys too and appends them, and
// keys are appended for every row.
def Llama_RopeOp : Llama_InferredOp<"rope", Llama_AllRows> {
  let summary = "rotates the pairs of each head by their angles";
  let description = [{
    With (c, s) = table[n, i, :], pair (a, b) = (x[n, j, 2i], x[n, j, 2i + 1])
    becomes (a * c - b * s, a * s + b * c): Meta's interleaved pairs.

    ```mlir
    %q4 = llama.rope %q3, %rope
        : (tensor<?x9x64xf32>, tensor<?x32x2xf32>) -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Llama_Heads:$x, Llama_Table:$table);
  let results = (outs Llama_Heads:$result);
  let hasCanonicalizeMethod = 1;
}

//===----------------------------------------------------------------------===//
// KV cache
//===----------------------------------------------------------------------===//

def Llama_CacheAppendOp : Llama_InferredOp<"cache_append", Llama_AllRows,
                                           [Llama_NamesResults]> {
  let summary = "a layer's cache with the step's rows";
  let description = [{
    Row n of `key` and `value` becomes the row of (sequences[n], positions[n]),
    in place of the one that was there, if any. A sequence has no holes: a
    position is at most the number of rows the sequence holds by then. No
    (sequence, position) occurs twice in a step.

    ```mlir
    %kv1 = llama.cache_append %kv, %k, %v, %positions, %sequences
        : (!llama.kv<heads = 3, size = 64>, tensor<?x3x64xf32>, tensor<?x3x64xf32>,
           tensor<?xi32>, tensor<?xi32>) -> !llama.kv<heads = 3, size = 64>
    ```
  }];
  let arguments = (ins Llama_KV:$kv, Llama_Heads:$key, Llama_Heads:$value,
                       Llama_Indices:$positions, Llama_Indices:$sequences);
  let results = (outs Llama_KV:$result);
}

def Llama_CacheReadOp : Llama_InferredOp<"cache_read", Llama_AllRows,
                                         [Llama_NamesResults]> {
  let summary = "the cached keys and values of a layer";
  let description = [{
    All rows that `kv` holds, in ascending order of (sequence, position):
    tensors [T, G, h]. The rows of every sequence are read, those without a row
    in the step too; the causal mask hides them.

    ```mlir
    %keys, %values = llama.cache_read %kv1
        : (!llama.kv<heads = 3, size = 64>) -> (tensor<?x3x64xf32>, tensor<?x3x64xf32>)
    ```
  }];
  let arguments = (ins Llama_KV:$kv);
  let results = (outs Llama_Heads:$keys, Llama_Heads:$values);
}

def Llama_CacheIndexOp : Llama_InferredOp<"cache_index", Llama_AllRows, [Llama_NamesResults]> {
  let summary = "positions and sequences of the rows a read will give";
  let description = [{
    The (sequence, position) pairs of `kv` together with those of the step's
    rows, each once, in ascending order of (sequence, position). `kv` is the
    cache of any layer at the start of the step; row t of the results describes
    row t of `llama.cache_read` of every layer after that layer's append, so all
    layers share one index and one mask.

    ```mlir
    %keyPositions, %keySequences = llama.cache_index %kv, %positions, %sequences
        : (!llama.kv<heads = 3, size = 64>, tensor<?xi32>, tensor<?xi32>)
       -> (tensor<?xi32>, tensor<?xi32>)
    ```
  }];
  let arguments = (ins Llama_KV:$kv, Llama_Indices:$positions,
                       Llama_Indices:$sequences);
  let results = (outs Llama_Indices:$keyPositions, Llama_Indices:$keySequences);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Llama_CausalMaskOp : Llama_InferredOp<"causal_mask", Llama_AllRows, [Llama_NamesResults]> {
  let summary = "which cached rows a row may see";
  let description = [{
    `result[n, t]` is 0 where `keySequences[t] == sequences[n]` and
    `keyPositions[t] <= positions[n]`, and minus infinity elsewhere. With a
    window of W tokens it is so too where `keyPositions[t] <= positions[n] - W`.

    ```mlir
    %mask = llama.causal_mask %positions, %sequences, %keyPositions, %keySequences
        : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins Llama_Indices:$positions, Llama_Indices:$sequences,
                       Llama_Indices:$keyPositions, Llama_Indices:$keySequences,
                       OptionalAttr<Llama_Window>:$window);
  let results = (outs Llama_Mask:$result);
}

def Llama_AttentionScoresOp : Llama_InferredOp<"attention_scores", Llama_AllRows> {
  let summary = "products of queries and keys";
  let description = [{
    q [N, H, h], k [T, G, h] -> [H, N, T]:
    `result[j, n, t] = sum over i of q[n, j, i] * k[t, j / (H / G), i]`; query
    head j reads key/value head j / (H / G) (grouped-query attention).

    ```mlir
    %s = llama.attention_scores %q, %keys
        : (tensor<?x9x64xf32>, tensor<?x3x64xf32>) -> tensor<9x?x?xf32>
    ```
  }];
  let arguments = (ins Llama_Heads:$query, Llama_Heads:$keys);
  let results = (outs Llama_Scores:$result);
  let hasCanonicalizeMethod = 1;
}

def Llama_ScaleOp : Llama_InferredOp<"scale", Llama_RowWise> {
  let summary = "product with a constant";
  let description = [{
    `x * factor`, element by element. A factor of 1 folds away, and a scale of
    a scale becomes one by the product of the factors.

    ```mlir
    %t = llama.scale %s by 1.250000e-01 : (tensor<9x?x?xf32>) -> tensor<9x?x?xf32>
    ```
  }];
  let arguments = (ins Llama_Values:$x, Llama_Positive:$factor);
  let results = (outs Llama_Values:$result);
  let assemblyFormat = [{
    $x `by` $factor attr-dict `:` functional-type(operands, results)
  }];
  let hasCanonicalizeMethod = 1;
  let hasFolder = 1;
}

def Llama_AddMaskOp : Llama_InferredOp<"add_mask", Llama_AllRows> {
  let summary = "scores with the hidden rows at minus infinity";
  let description = [{
    `result[j, n, t] = scores[j, n, t] + mask[n, t]`, and minus infinity where
    the mask is, whatever the score. The causal mask of masked scores folds
    away when it is the same.

    ```mlir
    %m = llama.add_mask %t, %mask
        : (tensor<9x?x?xf32>, tensor<?x?xf32>) -> tensor<9x?x?xf32>
    ```
  }];
  let arguments = (ins Llama_Scores:$scores, Llama_Mask:$mask);
  let results = (outs Llama_Scores:$result);
  let hasFolder = 1;
}

def Llama_SoftmaxOp : Llama_InferredOp<"softmax", Llama_AllRows> {
  let summary = "softmax over the last dimension";
  let description = [{
    `e = exp(scores[j, n, t] - max over t of scores[j, n, t])`, divided by the
    sum of e over t. Every row sees at least itself, so the maximum is finite.

    ```mlir
    %p = llama.softmax %m : (tensor<9x?x?xf32>) -> tensor<9x?x?xf32>
    ```
  }];
  let arguments = (ins Llama_Scores:$scores);
  let results = (outs Llama_Scores:$result);
}

def Llama_AttentionValuesOp : Llama_InferredOp<"attention_values", Llama_AllRows> {
  let summary = "values weighted by probabilities";
  let description = [{
    p [H, N, T], v [T, G, h] -> [N, H, h]:
    `result[n, j, i] = sum over t of p[j, n, t] * v[t, j / (H / G), i]`. A row
    whose probability is 0 takes no part, whatever its value.

    ```mlir
    %o = llama.attention_values %p, %values
        : (tensor<9x?x?xf32>, tensor<?x3x64xf32>) -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Llama_Scores:$probabilities, Llama_Heads:$values);
  let results = (outs Llama_Heads:$result);
}

def Llama_AttentionOp : Llama_InferredOp<"attention", Llama_RowWiseOfSome> {
  let summary = "attention of the step's rows over a layer's cache";
  let description = [{
    The fused form of `llama.cache_read`, `llama.attention_scores`,
    `llama.scale` by `scale`, `llama.add_mask` with the causal mask,
    `llama.softmax` and `llama.attention_values`: `kv` is the layer's cache after
    its append, and scores are never a tensor. A scaled query becomes part of
    `scale`, and the mask's window is the op's. With
    `approximation`, the result may be as far off as that says.

    ```mlir
    %o = llama.attention %q, %kv1, %positions, %sequences scale = 1.250000e-01
        : (tensor<?x9x64xf32>, !llama.kv<heads = 3, size = 64>,
           tensor<?xi32>, tensor<?xi32>) -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Llama_Heads:$query, Llama_KV:$kv,
                       Llama_Indices:$positions, Llama_Indices:$sequences,
                       Llama_Positive:$scale,
                       OptionalAttr<Llama_Window>:$window,
                       OptionalAttr<Llama_Approximation>:$approximation);
  let results = (outs Llama_Heads:$result);
  let assemblyFormat = [{
    operands `scale` `=` $scale attr-dict `:`
    functional-type(operands, results)
  }];
  let hasCanonicalizeMethod = 1;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

def Llama_Ranks
    : ConfinedAttr<I64Attr, [IntMinValue<2>, IntMaxValue<64>]>;

class Llama_CollectiveOp<string opMnemonic>
    : Llama_InferredOp<opMnemonic, Llama_RowWise> {
  let arguments = (ins Llama_Rows:$x, Llama_Ranks:$ranks);
  let results = (outs Llama_Rows:$result);
  let assemblyFormat = [{
    $x `over` $ranks attr-dict `:` functional-type(operands, results)
  }];
}

def Llama_AllReduceOp : Llama_CollectiveOp<"all_reduce"> {
  let summary = "the sum of what the ranks have";
  let description = [{
    `result[n, i] = sum over ranks r of x_r[n, i]`, summed in the order of the
    ranks, so that all of them have the same bits. With `tree`, which a power of
    two of ranks can have, by a binary tree over neighbours: the upper part of
    that which the leaves of a `llama.linear` begin.

    ```mlir
    %y = llama.all_reduce %partial over 2 : (tensor<?x576xf32>) -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llama_Rows:$x, Llama_Ranks:$ranks, UnitAttr:$tree);
}

def Llama_AllGatherOp : Llama_CollectiveOp<"all_gather"> {
  let summary = "the columns of all ranks, side by side";
  let description = [{
    x [N, w] -> [N, ranks * w]: `result[n, r * w + i] = x_r[n, i]` of rank r.

    ```mlir
    %logits = llama.all_gather %part over 2 : (tensor<?x64xf32>) -> tensor<?x128xf32>
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Selection of rows
//===----------------------------------------------------------------------===//

def Llama_GatherRowsOp : Llama_InferredOp<"gather_rows", Llama_AllRows> {
  let summary = "some rows of a tensor";
  let description = [{
    `result[i, ...] = x[rows[i], ...]`: the logits rows of activations,
    heads, or positions and sequences. A row outside x is an error of the
    caller.

    ```mlir
    %last = llama.gather_rows %x, %logits_rows
        : (tensor<?x576xf32>, tensor<?xi32>) -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Llama_Gatherable:$x, Llama_Indices:$rows);
  let results = (outs Llama_Gatherable:$result);
  let hasCanonicalizeMethod = 1;
}

#endif // LLAMAC_IR_LLAMA_LLAMAOPS_TD
