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
    sequences) and the KV state, and gives logits and the next KV state:

    ```mlir
    func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>,
                    %sequences: tensor<?xi32>, %logits_rows: tensor<?xi32>,
                    %kv: !llama.kv<layers = 30, heads = 3, size = 64>)
        -> (tensor<?x49152xf32>, !llama.kv<layers = 30, heads = 3, size = 64>)
    ```

    Each argument has its role as attribute, such as
    `{llama.role = #llama.role<tokens>}`: what it is does not depend on its place.

    Row `i` is token `tokens[i]` at absolute position `positions[i]` of sequence
    `sequences[i]`; `logits_rows` holds the rows to compute logits of. The same
    function runs prefill (many rows of one sequence) and decode (one row of
    each of several sequences), so the number of rows is symbolic.

    Every op is a value computation without side effects. Activations are f32
    tensors; weights are tensors of the element type of the checkpoint, block
    formats included (`!llama.quant`). The KV state is threaded by value: an
    append gives a new state, and a read names the state it reads.

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

def Llama_BlockFormat : I32EnumAttr<
    "BlockFormat", "a block format: one of GGUF, or MXFP8 with E4M3 elements",
    [I32EnumAttrCase<"Q8_0", 0, "q8_0">, I32EnumAttrCase<"Q4_0", 1, "q4_0">,
     I32EnumAttrCase<"Q4_1", 2, "q4_1">, I32EnumAttrCase<"Q5_0", 3, "q5_0">,
     I32EnumAttrCase<"Q5_1", 4, "q5_1">, I32EnumAttrCase<"Q4_K", 5, "q4_k">,
     I32EnumAttrCase<"Q5_K", 6, "q5_k">, I32EnumAttrCase<"Q6_K", 7, "q6_k">,
     I32EnumAttrCase<"MXFP8", 8, "mxfp8">]> {
  let cppNamespace = "::llamac::llama";
  let genSpecializedAttr = 0;
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
  let parameters = (ins EnumParameter<Llama_BlockFormat>:$format);
  let assemblyFormat = "`<` $format `>`";
  let extraClassDeclaration = [{
    /// Consecutive elements of a row that make one block.
    int64_t getBlockElements() const;

    /// Bytes of a block: its scales, and minima where the format has them, and
    /// the packed elements.
    int64_t getBlockBytes() const;
  }];
}

def Llama_KV : Llama_Type<"KV", "kv"> {
  let summary = "the keys and values of all past positions";
  let description = [{
    The KV state of a step. For each layer it is a map from (sequence, position)
    to a key and a value row of `heads` x `size` numbers. Between steps all
    layers hold the same (sequence, position) pairs. Wherever rows of the state
    become a tensor they are in ascending order of (sequence, position).
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$heads, "int64_t":$size);
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
     I32EnumAttrCase<"SamplingParams", 5, "sampling_params">]> {
  let cppNamespace = "::llamac::llama";
  let genSpecializedAttr = 0;
}

def Llama_Role : EnumAttr<Llama_Dialect, Llama_StepRole, "role"> {
  let summary = "what an argument of a step is";
  let description = [{
    Stands on the arguments of a step's function as `llama.role`; no two of them
    have the same.
  }];
  let assemblyFormat = "`<` $value `>`";
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

#endif // LLAMAC_IR_LLAMA_LLAMADIALECT_TD
