//===- LlamaDialect.td - The llama dialect, its types and attributes ------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_IR_LLAMA_LLAMADIALECT_TD
#define LLAMAC_IR_LLAMA_LLAMADIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "mlir/IR/EnumAttr.td"

def Llama_Dialect : Dialect {
  let name = "llama";
  let summary = "The mathematics of a Llama model, one op for each step.";
  let description = [{
    A model is one function that takes a step's rows (tokens of any number of
    sequences) and the KV cache of each layer, and gives logits and the next
    caches. Of two layers:

    ```mlir
    func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>,
                    %sequences: tensor<?xi32>, %logits_rows: tensor<?xi32>,
                    %kv0: !llama.kv<heads = 3, size = 64>,
                    %kv1: !llama.kv<heads = 3, size = 64>)
        -> (tensor<?x49152xf32>, !llama.kv<heads = 3, size = 64>,
            !llama.kv<heads = 3, size = 64>)
    ```

    Each argument has its role as attribute, such as
    `{llama.role = #llama.role<tokens>}` or `#llama.role<kv, layer = 1>`: what it
    is does not depend on its place. Results have no roles: first come the
    logits, then the caches in the order of the layers, then the tokens of a
    step that samples.

    Row `i` is token `tokens[i]` at absolute position `positions[i]` of sequence
    `sequences[i]`; `logits_rows` holds the rows to compute logits of. The same
    function runs prefill (many rows of one sequence) and decode (one row of
    each of several sequences), so the number of rows is symbolic.

    Every op is a value computation without side effects. Activations are f32
    tensors; weights are tensors of the element type of the checkpoint, block
    formats included (`!llama.quant`). The KV cache of a layer is threaded by
    value: an append gives a new one, and a read names the one it reads.

    In the shapes below N is the number of rows of a step, T the number of
    cached rows, H and G the numbers of query and key/value heads, h the head
    size.
  }];
  let cppNamespace = "::llamac::llama";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The name of the module attribute that holds the ModelAttr.
    static constexpr ::llvm::StringLiteral getModelAttrName() {
      return ::llvm::StringLiteral("llama.model");
    }
    /// The name of the attribute of a step's argument that holds its role.
    static constexpr ::llvm::StringLiteral getRoleAttrName() {
      return ::llvm::StringLiteral("llama.role");
    }
  }];
}

//===----------------------------------------------------------------------===//
// Block formats
//===----------------------------------------------------------------------===//

def Llama_BlockFormat
    : AttrOrTypeParameter<"::llamac::DataType",
                          "a block format of runtime/base/ElementTypes.def"> {
  let parser = "::llamac::llama::parseBlockFormat($_parser)";
  let printer = "$_printer << ::llamac::llama::nameOf($_self)";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Llama_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Llama_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def Llama_Quant : Llama_Type<"Quant", "quant"> {
  let summary = "element of a weight stored in a block format";
  let description = [{
    The element type of a weight whose rows are stored in blocks: 32 or 256
    consecutive elements of a row share scales. The last dimension of such a
    tensor is a multiple of the block.

    ```mlir
    tensor<576x576x!llama.quant<q4_1>>
    ```
  }];
  let parameters = (ins Llama_BlockFormat:$format);
  let assemblyFormat = "`<` $format `>`";
  let extraClassDeclaration = [{
    /// Consecutive elements of a row that make one block.
    int64_t getBlockElements() const {
      return ::llamac::dataTypeInfo(getFormat()).blockElements;
    }

    /// Bytes of a block: its scales, and minima where the format has them, and
    /// the packed elements.
    int64_t getBlockBytes() const {
      return ::llamac::dataTypeInfo(getFormat()).blockBytes;
    }
  }];
}

def Llama_KV : Llama_Type<"KV", "kv"> {
  let summary = "the keys and values of all past positions in one layer";
  let description = [{
    The KV cache of a layer: a map from (sequence, position) to a key and a value
    row of `heads` x `size` numbers. Between steps all layers hold the same
    (sequence, position) pairs. Wherever cached rows become a tensor they are in
    ascending order of (sequence, position).
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$size);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def Llama_StepRole : I32EnumAttr<
    "StepRole", "what an argument of a step is",
    [I32EnumAttrCase<"Tokens", 0, "tokens">,
     I32EnumAttrCase<"Positions", 1, "positions">,
     I32EnumAttrCase<"Sequences", 2, "sequences">,
     I32EnumAttrCase<"LogitsRows", 3, "logits_rows">,
     I32EnumAttrCase<"KV", 4, "kv">,
     I32EnumAttrCase<"SamplingParams", 5, "sampling_params">,
     I32EnumAttrCase<"Rank", 6, "rank">,
     I32EnumAttrCase<"Features", 7, "features">,
     I32EnumAttrCase<"HeadState", 8, "head_state">]> {
  let cppNamespace = "::llamac::llama";
  let genSpecializedAttr = 0;
}

def Llama_Role : AttrDef<Llama_Dialect, "StepRole"> {
  let mnemonic = "role";
  let summary = "what an argument of a step is";
  let description = [{
    Stands on the arguments of a step's function as `llama.role`; no two of them
    have the same. A cache is that of a layer, from 0 on without gaps. A draft
    head alone has `features`, which its target made of the token before a
    row's, and `head_state`, which the head made of it.
  }];
  let parameters = (ins EnumParameter<Llama_StepRole>:$value,
                        OptionalParameter<"std::optional<int64_t>">:$layer);
  let assemblyFormat = "`<` $value (`,` `layer` `=` $layer^)? `>`";
  let genVerifyDecl = 1;
}

def Llama_Shard : AttrDef<Llama_Dialect, "Shard"> {
  let mnemonic = "shard";
  let summary = "which part of a weight a rank holds";
  let description = [{
    Dimension `dim` of the weight is cut into `parts` equal parts, in order, and
    each of them is held by `ranks` / `parts` ranks that follow each other. The
    type of the `llama.weight` is that of the part.

    ```mlir
    #llama.shard<dim = 0, parts = 2, ranks = 4>
    ```
  }];
  let parameters = (ins "int64_t":$dim, "int64_t":$parts, "int64_t":$ranks);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The part that `rank` holds.
    int64_t partOf(int64_t rank) const {
      return rank / (getRanks() / getParts());
    }
  }];
}

def Llama_Model : AttrDef<Llama_Dialect, "Model"> {
  let mnemonic = "model";
  let summary = "the hyperparameters of a model";
  let description = [{
    Stands on the module as `llama.model`. The graph holds all of it in the
    shapes and attributes of its ops; this is the readable summary.
  }];
  let parameters = (ins "int64_t":$dim, "int64_t":$layers, "int64_t":$heads,
                        "int64_t":$kv_heads, "int64_t":$head_size,
                        "int64_t":$ffn, "int64_t":$vocab, "int64_t":$max_context,
                        "::mlir::FloatAttr":$norm_eps,
                        "::mlir::FloatAttr":$rope_theta,
                        "::mlir::BoolAttr":$tied);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Llama_ExpKind : I32EnumAttr<"ExpKind", "how attention takes exponentials", [
    I32EnumAttrCase<"Exact", 0, "exact">, I32EnumAttrCase<"Poly3", 1, "poly3">,
    I32EnumAttrCase<"Table256", 2, "table256">]> {
  let cppNamespace = "::llamac::llama";
  let genSpecializedAttr = 0;
}

class Llama_DefaultExpKind : EnumParameter<Llama_ExpKind> {
  let defaultValue = "::llamac::llama::ExpKind::Exact";
}

def Llama_Approximation : AttrDef<Llama_Dialect, "Approximation"> {
  let mnemonic = "approximation";
  let summary = "how far attention may be from its formula";
  let description = [{
    `exp` is what takes the exponentials of the softmax, all off by a share of
    at most e: `poly3` is a polynomial of degree 3 for 2^x on [0, 1), `table256`
    a table of 2^(i / 256) with a linear correction. `top_k`, unless it is 0,
    says how many of a row's largest scores are sure to take part; kernels may
    drop the others, whose share of the softmax is d.

    An element of the result is off by at most 2 e / (1 - e) + 2 d of the
    largest magnitude that it has among the values that the row sees. The
    reference computes the exact formula.

    ```mlir
    #llama.approximation<exp = poly3, top_k = 64>
    ```
  }];
  let parameters = (ins Llama_DefaultExpKind<>:$exp,
                        DefaultValuedParameter<"int64_t", "0">:$top_k);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // LLAMAC_IR_LLAMA_LLAMADIALECT_TD
