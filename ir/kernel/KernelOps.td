//===- KernelOps.td - Launches as typed ops ----------------*- tablegen -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One op per launch. An op is an anchor (the loop nest that a kernel family
// implements) with typed operands, an optional tile config, and, where the
// family allows it, a scalar epilogue: a region that is rendered into the
// kernel and turns the accumulators of one output element into its value.
//
// Values are tensors as in the llama dialect; memory is assigned later, by
// the plan dialect.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_IR_KERNEL_KERNELOPS_TD
#define LLAMAC_IR_KERNEL_KERNELOPS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def KernelDialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::llamac::kernel";
  let summary = "One op per kernel launch";
  let description = [{
    A function of kernel ops is the list of launches of one step, in order.
    Each op names what is computed and how it is tiled; nothing here says where
    values lie in memory.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The name of the module attribute that holds the TargetAttr.
    static constexpr ::llvm::StringLiteral getTargetAttrName() {
      return ::llvm::StringLiteral("kernel.target");
    }
  }];
  let dependentDialects = ["::llamac::llama::LlamaDialect",
                           "::mlir::arith::ArithDialect"];
}

class Kernel_Op<string mnemonic, list<Trait> traits = []>
    : Op<KernelDialect, mnemonic, traits>;

def AnchorOpInterface : OpInterface<"AnchorOpInterface"> {
  let description = "A launch.";
  let cppNamespace = "::llamac::kernel";
  let methods = [InterfaceMethod<
      "What one launch, of an op that verifies, moves and computes. Cost.cpp "
      "has the formulas.",
      "::llamac::kernel::Cost", "cost",
      (ins "const ::llamac::kernel::CostStep &":$step)>];
}

/// A launch: an op that does not say what it costs does not link. Its sizes are
/// checked before anything is computed from them.
class Kernel_AnchorOp<string mnemonic, list<Trait> traits = []>
    : Kernel_Op<mnemonic,
                !listconcat([Pure, DeclareOpInterfaceMethods<
                                       AnchorOpInterface>], traits)> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Verifies the rest of an op all of whose sizes are known and positive.
    ::llvm::LogicalResult verifySized();
  }];
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      return ::llvm::failed(::llamac::kernel::checkSized(*this))
                 ? ::llvm::failure()
                 : verifySized();
    }
  }];
}

def ScalarOpInterface : OpInterface<"ScalarOpInterface"> {
  let description = "An op on scalars, in the regions of others.";
  let cppNamespace = "::llamac::kernel";
  let methods = [InterfaceMethod<
      "How many of the operations that Cost.h counts it is.", "int64_t",
      "flops">];
}

/// An op on scalars that counts as `flopCount` operations.
class Kernel_ScalarOp<string mnemonic, int flopCount>
    : Kernel_Op<mnemonic, [Pure, SameOperandsAndResultType,
                           ScalarOpInterface]> {
  let extraClassDeclaration = [{
    int64_t flops() { return }] # flopCount # [{; }
  }];
}

def NextNormOpInterface : OpInterface<"NextNormOpInterface"> {
  let description = [{
    An op that may make the rows of a norm that comes next. With the weights [N]
    of that norm it has two more results: its first one times them, in bf16, and
    the squares, [rows, parts]: sums of squares of equal parts of each row of the
    first. A product that reads the one and has the other as its norm needs no
    launch in between.
  }];
  let cppNamespace = "::llamac::kernel";
  let methods = [
    InterfaceMethod<"The norm's weights; null: it gives nothing for one.",
                    "::mlir::Value", "getNextNorm">,
    InterfaceMethod<"The same, to be set.", "::mlir::MutableOperandRange",
                    "getNextNormMutable">,
    InterfaceMethod<"The two results, or none.", "::mlir::ResultRange",
                    "getForNextNorm">,
    InterfaceMethod<"The first of them, or null.", "::mlir::Value",
                    "getRounded", (ins), "", [{
      return $_op.getNextNorm() ? $_op.getForNextNorm()[0] : ::mlir::Value();
    }]>,
    InterfaceMethod<"The second, or null.", "::mlir::Value", "getSquares",
                    (ins), "", [{
      return $_op.getNextNorm() ? $_op.getForNextNorm()[1] : ::mlir::Value();
    }]>];
}

class Kernel_Attr<string name, string attrMnemonic> : AttrDef<KernelDialect, name> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Type constraints
//===----------------------------------------------------------------------===//

def Kernel_WeightElement
    : Type<CPred<"::llvm::isa<::mlir::Float32Type, ::mlir::Float16Type, "
                 "::mlir::BFloat16Type, ::llamac::llama::QuantType>($_self)">,
           "f32, f16, bf16 or a block format">;
def Kernel_Matrix
    : RankedTensorOf<[Kernel_WeightElement],
                     [HasAnyRankOfPred<[2]>, HasStaticShapePred],
                     "statically shaped 2D tensor">;
def Kernel_KV : Type<CPred<"::llvm::isa<::llamac::llama::KVType>($_self)">,
                     "!llama.kv", "::llamac::llama::KVType">;
def Kernel_Indices : 1DTensorOf<[I32]>;         // tokens, positions, sequences, rows
def Kernel_SamplingParams : 2DTensorOf<[I32]>;  // [rows, 4]
def Kernel_Vector
    : RankedTensorOf<[F32], [HasAnyRankOfPred<[1]>, HasStaticShapePred],
                     "statically shaped 1D tensor">;
def Kernel_Rows : 2DTensorOf<[F32]>;            // [rows, width]
// Inputs that products on tensor cores would round by themselves may come in
// bf16.
def Kernel_InputRows : 2DTensorOf<[F32, BF16]>;
def Kernel_RowsOrVector : AnyTypeOf<[Kernel_Rows, Kernel_Vector]>;
// A product has the weights of its input's norm, [K], or, where the input has
// them already, the sums of squares of the parts of each row, [rows, parts].
def Kernel_Norm : AnyTypeOf<[Kernel_Vector, Kernel_Rows]>;
def Kernel_CosSin : 3DTensorOf<[F32]>;          // [rows, h/2, 2]
def Kernel_Partials : 4DTensorOf<[F32]>;        // [rows, H, splits, partial]
/// How many keys a row sees, its own included.
def Kernel_Window : ConfinedAttr<I64Attr, [IntPositive]>;
def Kernel_Approximation
    : Attr<CPred<"::llvm::isa<::llamac::llama::ApproximationAttr>($_self)">,
           "a #llama.approximation"> {
  let storageType = "::llamac::llama::ApproximationAttr";
  let returnType = "::llamac::llama::ApproximationAttr";
  let convertFromStorage = "$_self";
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

def Kernel_ResidentSteps : I32EnumAttr<"ResidentSteps",
    "Whether the step of one row is one launch", [
      I32EnumAttrCase<"Off", 0, "off">,
      I32EnumAttrCase<"Auto", 1, "auto">,
      I32EnumAttrCase<"On", 2, "on">]> {
  let cppNamespace = "::llamac::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_TargetAttr : Kernel_Attr<"Target", "target"> {
  let summary = "What a module is compiled for";
  let description = [{
    Stands on the module as `kernel.target`. The driver sets it when it imports
    a model, `attach-target` for other IR, and passes ask it for whatever
    depends on the target, so that any of them can go on from IR in a file.

    `context_size` is the tokens that a sequence may hold, `kv_type` the type of the
    cache. Of cuda and sim, `gpu` is whose kernels they are, and `resident` says
    whether the step of one row is one launch: `auto`, where that should be
    faster. Of cpu, `tune_cpu`
    is the CPU to tune for, which changes no result, and activations may be
    `exact`, in f32. `isa` is what code there shall be: of cpu its levels, comma
    separated, of sim `fast`, which is the default, `checked` or
    `hostile-rounding`.

    ```mlir
    module attributes {kernel.target =
      #kernel.target<name = "cuda", context_size = 2048, gpu = "sm_90a">}
    ```
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$context_size,
                        StringRefParameter<"", [{"f16"}]>:$kv_type,
                        StringRefParameter<"", [{""}]>:$gpu,
                        StringRefParameter<"", [{""}]>:$tune_cpu,
                        StringRefParameter<"", [{""}]>:$isa,
                        DefaultValuedParameter<"bool", "false">:$exact,
                        DefaultValuedParameter<"ResidentSteps",
                                               "ResidentSteps::Off">:$resident);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Tile configs
//===----------------------------------------------------------------------===//

def Kernel_MatmulFamily : I32EnumAttr<"MatmulFamily",
    "How a matrix product walks its operands", [
      I32EnumAttrCase<"Gemv", 0, "gemv">,
      I32EnumAttrCase<"Gemm", 1, "gemm">,
      I32EnumAttrCase<"Wgmma", 2, "wgmma">]> {
  let cppNamespace = "::llamac::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_MatmulConfigAttr : Kernel_Attr<"MatmulConfig", "matmul_config"> {
  let summary = "Family and tile sizes of a matrix product";
  let description = [{
    `gemv` reads each weight once for all of a step's few rows; `gemm` blocks
    rows, so that a weight panel is read once for each block; `wgmma` is `gemm`
    by the warpgroups of NVIDIA's sm_90a. On the cpu `rowBlock` is the size of a
    block, on GPUs the most rows of a launch. `tiles` are sizes
    that a target would choose otherwise, by the names it has for them.
  }];
  let parameters = (ins EnumParameter<Kernel_MatmulFamily>:$family,
                        "int64_t":$rowBlock,
                        OptionalParameter<"::mlir::DictionaryAttr">:$tiles);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Kernel_LaneOrderAttr : Kernel_Attr<"LaneOrder", "lane_order"> {
  let summary = "Columns as the lanes of a tensor core's operand have them";
  let description = [{
    The encoding of rows in bf16 that are multiplied by packed weights, of which
    lane t of four has columns 4t to 4t + 3 of each 16
    (`runtime/packing/TileLayout.h`). An operand of the instruction has columns
    2t, 2t + 1, 2t + 8 and 2t + 9 there, so that of each 16 columns 4t and
    4t + 1 lie at 2t, and 4t + 2 and 4t + 3 at 2t + 8.
  }];
}

def Kernel_AttentionFamily : I32EnumAttr<"AttentionFamily",
    "How attention walks the keys", [
      I32EnumAttrCase<"Unsplit", 0, "unsplit">,
      I32EnumAttrCase<"SplitKv", 1, "split_kv">,
      I32EnumAttrCase<"Merged", 2, "merged">]> {
  let cppNamespace = "::llamac::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_AttentionConfigAttr : Kernel_Attr<"AttentionConfig", "attention_config"> {
  let summary = "Family and tile sizes of an attention kernel";
  let description = [{
    `unsplit` walks all keys of a row in turn. `split_kv` cuts the keys of the
    longest context into `splits` parts and leaves for each a partial result of
    `partial` numbers, which `kernel.attention_merge` merges. `merged` cuts them
    likewise, and the launch merges the parts itself, in ascending order. Where
    its grid or its memory follows from the most rows of a launch, `rows` are
    these.
    `tiles` are sizes that a target would choose otherwise.
  }];
  let parameters = (ins EnumParameter<Kernel_AttentionFamily>:$family,
                        "int64_t":$splits, "int64_t":$partial,
                        DefaultValuedParameter<"int64_t", "0">:$rows,
                        OptionalParameter<"::mlir::DictionaryAttr">:$tiles);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Anchors
//===----------------------------------------------------------------------===//

def Kernel_EmbedOp : Kernel_AnchorOp<"embed", [AttrSizedOperandSegments]> {
  let summary = "Rows of the embedding table, as fp32";
  let description = [{
    `result[r, :] = table[tokens[r], :]`, dequantised. With positions and
    frequencies the second result is what `kernel.rope_table` makes of them.
    With `rank` the table is that rank's part of the whole, as that of
    `llama.embedding`.

    ```mlir
    %x, %t = kernel.embed %tokens, %table cos_sin(%positions)
               {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>}
      : (tensor<?xi32>, tensor<104x64xbf16>, tensor<?xi32>)
      -> (tensor<?x64xf32>, tensor<?x2x2xf32>)
    ```
  }];
  let arguments = (ins Kernel_Indices:$tokens, Kernel_Matrix:$table,
                       Optional<Kernel_Indices>:$positions,
                       Optional<Kernel_Indices>:$rank,
                       OptionalAttr<F64ElementsAttr>:$frequencies);
  let results = (outs Kernel_Rows:$result, Optional<Kernel_CosSin>:$cosSin);
  let assemblyFormat = [{
    $tokens `,` $table (`cos_sin` `(` $positions^ `)`)?
    (`rank` `(` $rank^ `)`)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def Kernel_RopeTableOp : Kernel_AnchorOp<"rope_table"> {
  let summary = "Cosine and sine of every rotary angle of the step";
  let description = [{
    `result[r, i, 0] = cos(positions[r] * frequencies[i])` and
    `result[r, i, 1]` its sine; frequencies in radians per position.
  }];
  let arguments = (ins Kernel_Indices:$positions, F64ElementsAttr:$frequencies);
  let results = (outs Kernel_CosSin:$result);
  let assemblyFormat = [{
    $positions attr-dict `:` functional-type(operands, results)
  }];
}

def Kernel_RmsNormOp
    : Kernel_AnchorOp<"rms_norm", [AllShapesMatch<["input", "result"]>,
                                   AttrSizedOperandSegments, IsolatedFromAbove,
                                   NextNormOpInterface]> {
  let summary = "x / sqrt(mean(x^2) + eps) * w, row by row";
  let description = [{
    A row of the input is one or more parts, heads, of the weight's size, which
    are normalised each. The epilogue, where there is one, turns the normalised
    element and those of the extra operands into the result's, as that of
    `kernel.matmul` does, and so does `nextNorm`.

    ```mlir
    %x1 = kernel.rms_norm %y, %w extras(%x) epilogue {
    ^bb0(%normed: f32, %residual: f32):
      %0 = arith.addf %residual, %normed : f32
      kernel.yield %0
    } {eps = 1.0e-5 : f64}
      : (tensor<?x576xf32>, tensor<576xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Kernel_Rows:$input, Kernel_Vector:$weight,
                       Optional<Kernel_Vector>:$nextNorm,
                       Variadic<Kernel_RowsOrVector>:$extras, F64Attr:$eps);
  let results = (outs Kernel_InputRows:$result,
                      Variadic<Kernel_InputRows>:$forNextNorm);
  let regions = (region AnyRegion:$epilogue);
  let assemblyFormat = [{
    $input `,` $weight (`next_norm` `(` $nextNorm^ `)`)?
    (`extras` `(` $extras^ `)`)? (`epilogue` $epilogue^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def Kernel_GatherRowsOp : Kernel_AnchorOp<"gather_rows"> {
  let summary = "result[r, :] = input[rows[r], :]";
  let description = [{
    The input is [rows, width] in f32, or [rows] in i32: positions and
    sequences.
  }];
  let arguments = (ins AnyTypeOf<[Kernel_Rows, Kernel_Indices]>:$input,
                       Kernel_Indices:$rows);
  let results = (outs AnyTypeOf<[Kernel_Rows, Kernel_Indices]>:$result);
  let assemblyFormat = [{
    $input `,` $rows attr-dict `:` functional-type(operands, results)
  }];
}

def Kernel_Leaves
    : ConfinedAttr<I64Attr, [IntMinValue<2>, AttrConstraint<
          CPred<"::llvm::isPowerOf2_64(::llvm::cast<::mlir::IntegerAttr>($_self)"
                ".getValue().getZExtValue())">, "that is a power of two">]>;

def Kernel_MatmulOp
    : Kernel_AnchorOp<"matmul", [AttrSizedOperandSegments, IsolatedFromAbove,
                                 NextNormOpInterface]> {
  let summary = "One or two products that share their input, with an epilogue";
  let description = [{
    For every row r and output column n, `acc_i = sum_k f(input)[r, k] *
    weights_i[n, k]`, and the epilogue turns the accumulators and the element
    [r, n] of each extra operand, or [n] of a vector, into the result's element.
    f is the identity, or RMSNorm when `norm`, its weights [K], and `eps` are
    given. `leaves` are those of `llama.linear`. Input and result may be in bf16,
    the latter rounded to nearest even.

    A norm may be shared by the op that makes its rows and the product that reads
    it. With the norm's weights [N] as `nextNorm` an op has two more results: its
    result times them in bf16, and the squares, [rows, parts]: sums of squares of
    equal parts of each row of its result. The product reads the one, and the
    other is its `norm`: f(x)[r, k] = x[r, k] / sqrt(sum_i norm[r, i] / K + eps).

    ```mlir
    %h = kernel.matmul %x, %w1, %w3 norm(%w) epilogue {
    ^bb0(%gate: f32, %up: f32):
      %0 = kernel.silu %gate
      %1 = arith.mulf %0, %up : f32
      kernel.yield %1
    } {eps = 1.0e-5 : f64}
      : (tensor<?x576xf32>, tensor<1536x576xbf16>, tensor<1536x576xbf16>,
         tensor<576xf32>) -> tensor<?x1536xf32>
    %y, %z, %squares = kernel.matmul %h, %w2 next_norm(%w) extras(%x) epilogue {
    ^bb0(%acc: f32, %residual: f32):
      %0 = arith.addf %residual, %acc : f32
      kernel.yield %0
    } : (tensor<?x1536xbf16>, tensor<576x1536xbf16>, tensor<576xf32>,
         tensor<?x576xf32>)
      -> (tensor<?x576xf32>, tensor<?x576xbf16>, tensor<?x36xf32>)
    ```
  }];
  let arguments = (ins Kernel_InputRows:$input,
                       Variadic<Kernel_Matrix>:$weights,
                       Optional<Kernel_Norm>:$norm,
                       Optional<Kernel_Vector>:$nextNorm,
                       Variadic<Kernel_RowsOrVector>:$extras,
                       OptionalAttr<F64Attr>:$eps,
                       OptionalAttr<Kernel_Leaves>:$leaves,
                       OptionalAttr<Kernel_MatmulConfigAttr>:$config);
  let results = (outs Kernel_InputRows:$result,
                      Variadic<Kernel_InputRows>:$forNextNorm);
  let regions = (region SizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    $input `,` $weights (`norm` `(` $norm^ `)`)?
    (`next_norm` `(` $nextNorm^ `)`)? (`extras` `(` $extras^ `)`)?
    `epilogue` $epilogue attr-dict `:` functional-type(operands, results)
  }];
}

def Kernel_RopeAppendOp
    : Kernel_AnchorOp<"rope_append", [AllTypesMatch<["query", "rotated"]>,
                                      AllTypesMatch<["kv", "newKv"]>]> {
  let summary = "Rotate q and k by their rotary angles and append k and v";
  let description = [{
    q is [rows, H * h], k and v are [rows, G * h]; pairs are (2i, 2i + 1) of
    each head. The rotated q is the first result; the rotated k and v go to
    the layer's cache at each row's sequence and position. With two
    `norms`, weights of q and of k, and `eps`, q and k are normalised first as
    `kernel.rms_norm` does it; the weights are those of one or more heads.
  }];
  let arguments = (ins Kernel_Rows:$query, Kernel_Rows:$key, Kernel_Rows:$value,
                       Kernel_CosSin:$table, Kernel_KV:$kv,
                       Kernel_Indices:$positions, Kernel_Indices:$sequences,
                       Variadic<Kernel_Vector>:$norms,
                       OptionalAttr<F64Attr>:$eps);
  let results = (outs Kernel_Rows:$rotated, Kernel_KV:$newKv);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $table `into` $kv `at` $positions `,`
    $sequences (`norms` `(` $norms^ `)`)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def Kernel_QkvOp
    : Kernel_AnchorOp<"qkv", [AllTypesMatch<["kv", "newKv"]>,
                              AttrSizedOperandSegments]> {
  let summary = "Query, key and value of a layer, rotated and appended";
  let description = [{
    Three products of one input, each [rows, K] x [N_i, K]: the query is rotated
    by the angles of `table` and is the first result; the key is rotated
    likewise and goes, with the value, to the layer's cache at each row's
    sequence and position. The input is normalised first, as that of
    `kernel.matmul`, when `norm` and `eps` are given, and each product gets its
    bias when there are three of them. It is what `kernel.rope_append` does
    behind three `kernel.matmul`; weights may differ in type.

    ```mlir
    %q, %kv1 = kernel.qkv %x, %wq, %wk, %wv norm(%w) rotated by %table into %kv
                 at %positions, %sequences {eps = 1.0e-5 : f64}
      : (...) -> (tensor<?x576xf32>, !llama.kv<heads = 3, size = 64>)
    ```
  }];
  let arguments = (ins Kernel_InputRows:$input, Kernel_Matrix:$queryWeight,
                       Kernel_Matrix:$keyWeight, Kernel_Matrix:$valueWeight,
                       Optional<Kernel_Norm>:$norm,
                       Variadic<Kernel_Vector>:$biases, Kernel_CosSin:$table,
                       Kernel_KV:$kv, Kernel_Indices:$positions,
                       Kernel_Indices:$sequences, OptionalAttr<F64Attr>:$eps,
                       OptionalAttr<Kernel_MatmulConfigAttr>:$config);
  let results = (outs Kernel_Rows:$rotated, Kernel_KV:$newKv);
  let assemblyFormat = [{
    $input `,` $queryWeight `,` $keyWeight `,` $valueWeight
    (`norm` `(` $norm^ `)`)? (`bias` `(` $biases^ `)`)?
    `rotated` `by` $table `into` $kv `at`
    $positions `,` $sequences attr-dict `:` functional-type(operands, results)
  }];
}

def Kernel_QkvProductsOp : Kernel_AnchorOp<"qkv_products"> {
  let summary = "Query, key and value of a layer as they are";
  let description = [{
    Three products of one input, as `kernel.qkv` makes them, without what it
    does with the results: norms of whole heads, say, stand between them and
    the append. The results are [rows, N_i].

    ```mlir
    %q, %k, %v = kernel.qkv_products %x, %wq, %wk, %wv norm(%w) {eps = 1.0e-5 : f64}
      : (...) -> (tensor<?x576xf32>, tensor<?x192xf32>, tensor<?x192xf32>)
    ```
  }];
  let arguments = (ins Kernel_InputRows:$input, Kernel_Matrix:$queryWeight,
                       Kernel_Matrix:$keyWeight, Kernel_Matrix:$valueWeight,
                       Optional<Kernel_Norm>:$norm,
                       OptionalAttr<F64Attr>:$eps,
                       OptionalAttr<Kernel_MatmulConfigAttr>:$config);
  let results = (outs Kernel_Rows:$query, Kernel_Rows:$key, Kernel_Rows:$value);
  let assemblyFormat = [{
    $input `,` $queryWeight `,` $keyWeight `,` $valueWeight
    (`norm` `(` $norm^ `)`)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def Kernel_AttentionOp : Kernel_AnchorOp<"attention"> {
  let summary = "Causal attention of query rows over the paged cache";
  let description = [{
    Each row of `query` [rows, H * h] attends to positions 0 to its own of its
    sequence in the layer's cache, or to the last `window` of them:
    softmax(scale * q k^T) v, query head j reading key/value head j / (H / G).
    With a `split_kv` config the result holds partial results
    [rows, H, splits, partial]: the weighted sum of values and the maximum and
    sum of the exponentials, in the target's own layout. With `approximation`,
    the result may be as far off as that says.
  }];
  let arguments = (ins Kernel_Rows:$query, Kernel_KV:$kv,
                       Kernel_Indices:$positions, Kernel_Indices:$sequences,
                       F64Attr:$scale, OptionalAttr<Kernel_Window>:$window,
                       OptionalAttr<Kernel_AttentionConfigAttr>:$config,
                       OptionalAttr<Kernel_Approximation>:$approximation);
  let results = (outs AnyTypeOf<[Kernel_InputRows, Kernel_Partials]>:$result);
  let assemblyFormat = [{
    $query `over` $kv `at` $positions `,` $sequences attr-dict `:`
    functional-type(operands, results)
  }];
}

def Kernel_AttentionMergeOp : Kernel_AnchorOp<"attention_merge"> {
  let summary = "Merge the partial results of split-KV attention, in fixed order";
  let description = [{
    `partials` [rows, H, splits, partial] as `kernel.attention` leaves it
    becomes [rows, H * h]; a row's position and the window say which splits it
    has. Splits
    are merged in ascending order, so the result does not depend on which
    thread computed which.
  }];
  let arguments = (ins Kernel_Partials:$partials, Kernel_Indices:$positions,
                       F64Attr:$scale, I64Attr:$kvHeads,
                       OptionalAttr<Kernel_Window>:$window,
                       Kernel_AttentionConfigAttr:$config);
  let results = (outs Kernel_Rows:$result);
  let assemblyFormat = [{
    $partials `at` $positions attr-dict `:` functional-type(operands, results)
  }];
}

def Kernel_PointwiseOp : Kernel_AnchorOp<"pointwise", [IsolatedFromAbove]> {
  let summary = "An element-wise function of equally shaped operands";
  let description = "A vector among them stands for equal rows.";
  let arguments = (ins Variadic<Kernel_RowsOrVector>:$inputs);
  let results = (outs Kernel_InputRows:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $inputs `body` $body attr-dict `:` functional-type(operands, results)
  }];
}

// Collectives begin once all ranks have done the launches before them, and read
// the input of each.

def Kernel_Ranks
    : ConfinedAttr<I64Attr, [IntMinValue<2>, IntMaxValue<64>]>;

def Kernel_AllReduceOp
    : Kernel_AnchorOp<"all_reduce", [AllTypesMatch<["input", "result"]>,
                                     AttrSizedOperandSegments,
                                     IsolatedFromAbove, NextNormOpInterface]> {
  let summary = "The sum of the inputs of all ranks, with an epilogue";
  let description = [{
    For every element the inputs of ranks 0, 1 and so on are added in this
    order, or with `tree`, for a power of two of ranks, as `llama.all_reduce`
    says. The epilogue, where there is one, turns the sum and the elements of
    the extra operands into the result's, as that of `kernel.matmul` does, and so
    does `nextNorm`.

    ```mlir
    %x1 = kernel.all_reduce %y over 2 extras(%x) epilogue {
    ^bb0(%sum: f32, %residual: f32):
      %0 = arith.addf %residual, %sum : f32
      kernel.yield %0
    } : (tensor<?x576xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Kernel_Rows:$input, Optional<Kernel_Vector>:$nextNorm,
                       Variadic<Kernel_RowsOrVector>:$extras,
                       Kernel_Ranks:$ranks, UnitAttr:$tree);
  let results = (outs Kernel_Rows:$result,
                      Variadic<Kernel_InputRows>:$forNextNorm);
  let regions = (region AnyRegion:$epilogue);
  let assemblyFormat = [{
    $input `over` $ranks (`next_norm` `(` $nextNorm^ `)`)? (`extras` `(` $extras^ `)`)?
    (`epilogue` $epilogue^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Kernel_AllGatherOp : Kernel_AnchorOp<"all_gather"> {
  let summary = "The columns of all ranks side by side";
  let description = [{
    `result[r, i * w + n] = input_i[r, n]` of rank i, where inputs are [rows, w].
  }];
  let arguments = (ins Kernel_Rows:$input, Kernel_Ranks:$ranks);
  let results = (outs Kernel_Rows:$result);
  let assemblyFormat = [{
    $input `over` $ranks attr-dict `:` functional-type(operands, results)
  }];
}

def Kernel_SampleOp : Kernel_AnchorOp<"sample"> {
  let summary = "The token that each row of logits gives";
  let description = [{
    `logits` is [rows, V]; `params` is [rows, 4] in i32: the bits of the
    temperature in f32, k, the bits of p in f32, and the key of the noise. Tokens
    stand in order of their logits, the larger first, of equal ones the smaller id
    first, and weigh exp(logit / temperature). Kept are the fewest first tokens that
    weigh p times what the first k do; k = 0 stands for all. The token is the one of
    them with the least -log(1 - u) / weight, where u = (h + 1/2) / 2^32 and h is the
    hash of the key and the token's id (`engine/sampling/TokenNoise.h`). With a
    temperature of 0 it is the first. A row that holds an infinity or a NaN
    gives -1.

    ```mlir
    %t = kernel.sample %logits by %params
      : (tensor<?x128256xf32>, tensor<?x4xi32>) -> tensor<?xi32>
    ```
  }];
  let arguments = (ins Kernel_Rows:$logits, Kernel_SamplingParams:$params);
  let results = (outs Kernel_Indices:$result);
  let assemblyFormat = [{
    $logits `by` $params attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Resident steps
//===----------------------------------------------------------------------===//

def Kernel_Passed : AnyTypeOf<[AnyRankedTensor, Kernel_KV]>;

def Kernel_ResidentOp
    : Kernel_AnchorOp<"resident", [IsolatedFromAbove, SingleBlock]> {
  let summary = "A whole step in one launch";
  let description = [{
    The ops of the body are phases of one kernel, whose blocks are all there at
    the same time: a block goes on to the next phase as soon as it has what that
    reads. The body's arguments are the operands, and what `kernel.return` takes
    are the results. Layers of the same structure are one `kernel.layers`.

    ```mlir
    %y, %kv0, %kv1 = kernel.resident %tokens, %p, %w, %u0, %a, %u1, %b phases {
    ^bb0(...):
      %x = kernel.embed %tokens, %w : ...
      %z, %k:2 = kernel.layers 2 shared(%p) carried(%x) each(%u0, %a, %u1, %b) {
      ^bb0(%q: tensor<?xi32>, %h: tensor<?x576xf32>, %u: tensor<576x576xbf16>,
           %kv: !llama.kv<...>):
        ...
      } : ...
      kernel.return %z, %k#0, %k#1 : ...
    } : (...) -> (...)
    ```
  }];
  let arguments = (ins Variadic<Kernel_Passed>:$inputs);
  let results = (outs Variadic<Kernel_Passed>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $inputs `phases` $body attr-dict `:` functional-type(operands, results)
  }];
}

def Kernel_LayersOp
    : Kernel_Op<"layers", [Pure, AttrSizedOperandSegments, IsolatedFromAbove,
                           SingleBlock, ParentOneOf<["ResidentOp"]>]> {
  let summary = "Layers that differ in what they are given alone";
  let description = [{
    The body is a layer. Its arguments are what all layers `shared`, what the
    layer before it gives, `carried` for the first, and its part of `each`, which has those of layer 0,
    then those of layer 1, and so on. `kernel.return` takes what it gives the
    next layer, and what else it makes. The results are what the last layer
    gives, and then what each makes.
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<2>]>:$count,
                       Variadic<Kernel_Passed>:$shared,
                       Variadic<Kernel_Passed>:$carried,
                       Variadic<Kernel_Passed>:$each);
  let results = (outs Variadic<Kernel_Passed>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $count `shared` `(` $shared `)` `carried` `(` $carried `)`
    `each` `(` $each `)` $body attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How many of `each` a layer has.
    int64_t getEachOfLayer() {
      return static_cast<int64_t>(getEach().size()) /
             static_cast<int64_t>(getCount());
    }

    /// The number of the body's first argument that each layer has for itself.
    size_t getFirstEach() { return getShared().size() + getCarried().size(); }

    /// The argument of the body that is operand `number`, of whichever layer.
    mlir::BlockArgument getArgumentOf(size_t number) {
      const size_t first = getFirstEach();
      return getBody().getArgument(static_cast<unsigned>(
          number < first ? number
                         : first + (number - first) % getEachOfLayer()));
    }

    /// The operand that `argument` of the body, which is not carried, is in
    /// layer `layer`.
    mlir::Value getOperandOf(mlir::BlockArgument argument, int64_t layer) {
      const size_t number = argument.getArgNumber(), first = getFirstEach();
      return number < first
                 ? getShared()[number]
                 : getEach()[number - first + layer * getEachOfLayer()];
    }
  }];
}

def Kernel_ReturnOp
    : Kernel_Op<"return", [Pure, Terminator,
                           ParentOneOf<["ResidentOp", "LayersOp"]>]> {
  let summary = "What a resident step, or a layer of it, gives";
  let arguments = (ins Variadic<Kernel_Passed>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

// Negation, exponential, sum and division.
def Kernel_SiluOp : Kernel_ScalarOp<"silu", 4> {
  let summary = "x / (1 + exp(-x)) of a scalar";
  let arguments = (ins F32:$input);
  let results = (outs F32:$result);
  let assemblyFormat = "$input attr-dict";
}

// Three products and a sum inside, two products, tanh by exponential, two sums
// and a division.
def Kernel_GeluTanhOp : Kernel_ScalarOp<"gelu_tanh", 11> {
  let summary = "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))";
  let arguments = (ins F32:$input);
  let results = (outs F32:$result);
  let assemblyFormat = "$input attr-dict";
}

def Kernel_YieldOp : Kernel_Op<"yield", [Pure, Terminator,
                                         ParentOneOf<["AllReduceOp", "MatmulOp",
                                                      "PointwiseOp",
                                                      "RmsNormOp"]>]> {
  let summary = "The value of one output element";
  let arguments = (ins F32:$value);
  let assemblyFormat = "$value attr-dict";
}

#endif // LLAMAC_IR_KERNEL_KERNELOPS_TD
