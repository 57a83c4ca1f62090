//===- Passes.td - Every pass of the pipeline --------------*- tablegen -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order of the pipeline. docs/passes.md is generated from this file.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_PASSES_PASSES_TD
#define LLAMAC_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Graph
//===----------------------------------------------------------------------===//

def AttachTarget : Pass<"attach-target", "::mlir::ModuleOp"> {
  let summary = "What the module is compiled for";
  let description = [{
    Sets the module's `kernel.target`, which the driver does when it imports a
    model: for IR that comes from elsewhere, or is to be for another target.

    ```mlir
    module {
    ```

    becomes, with `name=cuda gpu=sm_80`,

    ```mlir
    module attributes {kernel.target = #kernel.target<name = "cuda", context_size = 4096, gpu = "sm_80">} {
    ```
  }];
  let options = [
    Option<"name", "name", "std::string", /*default=*/"\"cpu\"",
           "cpu, cuda or sim">,
    Option<"context", "context", "int64_t", /*default=*/"4096",
           "Tokens that a sequence may hold">,
    Option<"kvType", "kv-type", "std::string", /*default=*/"\"f16\"",
           "Type of the KV cache">,
    Option<"gpu", "gpu", "std::string", /*default=*/"\"\"",
           "Of cuda and sim: whose kernels">,
    Option<"tuneCpu", "tune-cpu", "std::string", /*default=*/"\"\"",
           "Of cpu: CPU to tune for; results are unchanged">,
    Option<"exact", "exact", "bool", /*default=*/"false",
           "Of cpu: activations stay in f32">,
    Option<"residentStep", "resident-step", "std::string", /*default=*/"\"off\"",
           "Of cuda and sim: whether the step of one row is one launch; off, auto or on">];
  let dependentDialects = ["::llamac::kernel::KernelDialect"];
}

def AssignWeightFormats : Pass<"assign-weight-formats", "::mlir::func::FuncOp"> {
  let summary = "The element type in which each weight is kept";
  let description = [{
    Vectors (the norms) become f32. Matrices keep the checkpoint's type, or
    take `format`, one of those that --weights offers; a matrix whose rows are no
    multiple of the format's block keeps its type, with a warning, and so has a type
    that the target's kernels read as another one. The plan's writer converts what
    differs from the checkpoint.

    ```mlir
    %w = llama.weight "layers.0.attention.wq" : tensor<576x576xbf16>
    ```

    becomes, with `format=q8_0`,

    ```mlir
    %w = llama.weight "layers.0.attention.wq" : tensor<576x576x!llama.quant<q8_0>>
    ```
  }];
  let options = [Option<"format", "format", "std::string", /*default=*/"\"keep\"",
                        "keep, or a format to round to">];
  let dependentDialects = ["::llamac::llama::LlamaDialect"];
}

def Shard : Pass<"shard", "::mlir::func::FuncOp"> {
  let summary = "A step becomes that of one of several ranks";
  let description = [{
    Runs only where more ranks than one are asked for, or reproducible sums.
    Every rank then holds some of the heads, of the features of the feed-forward
    and of the vocabulary: weights get a `#llama.shard` and the type of their
    part. Where ranks have parts of a sum, `llama.all_reduce` adds them: behind
    `wo`, `w2` and the embedding. `llama.all_gather` brings the logits together.
    KV heads that are fewer than ranks are held by several of them.

    ```mlir
    %w = llama.weight "layers.0.attention.wo" : tensor<64x64xbf16>
    %y = llama.linear %o, %w : (tensor<?x64xf32>, tensor<64x64xbf16>) -> tensor<?x64xf32>
    ```

    becomes, with `ranks=2`,

    ```mlir
    %w = llama.weight "layers.0.attention.wo" {shard = #llama.shard<dim = 1, parts = 2, ranks = 2>} : tensor<64x32xbf16>
    %p = llama.linear %o, %w : (tensor<?x32xf32>, tensor<64x32xbf16>) -> tensor<?x64xf32>
    %y = llama.all_reduce %p over 2 : (tensor<?x64xf32>) -> tensor<?x64xf32>
    ```

    It is an error, which names the numbers of ranks that would do, when heads,
    rows, or columns in whole blocks, cannot be cut into so many equal parts, and
    for norms of whole rows of heads.

    With `reproducible` the same sums are trees over eight leaves, so that 1, 2,
    4 and 8 ranks give the same bits; it then runs for one rank too. Above,

    ```mlir
    %p = llama.linear %o, %w {leaves = 4 : i64} : (tensor<?x32xf32>, tensor<64x32xbf16>) -> tensor<?x64xf32>
    %y = llama.all_reduce %p over 2 {tree} : (tensor<?x64xf32>) -> tensor<?x64xf32>
    ```

    It is an error where a leaf is no multiple of 8 columns or of a block.
  }];
  let options = [Option<"ranks", "ranks", "int64_t", /*default=*/"2",
                        "The number of ranks that partition the step">,
                 Option<"reproducible", "reproducible", "bool",
                        /*default=*/"false",
                        "Whether results are those of any number of ranks">];
  let dependentDialects = ["::llamac::llama::LlamaDialect"];
}

//===----------------------------------------------------------------------===//
// Fuse
//===----------------------------------------------------------------------===//

class ExplainedPass<string name> : Pass<name, "::mlir::func::FuncOp"> {
  let options = [Option<"explain", "explain", "bool", /*default=*/"false",
                        "Say in remarks why ops were not fused">];
}

def FuseAttention : ExplainedPass<"fuse-attention"> {
  let summary = "QK^T, scale, causal mask, softmax and AV become one attention";
  let description = [{
    Before, with the scores [heads, rows, keys] as a value:

    ```mlir
    %k, %v = llama.cache_read %kv
    %s0 = llama.attention_scores %q, %k
    %s1 = llama.scale %s0 by 0.125
    %s2 = llama.add_mask %s1, %mask
    %p = llama.softmax %s2
    %o = llama.attention_values %p, %v
    ```

    After:

    ```mlir
    %o = llama.attention %q, %kv, %positions, %sequences scale = 0.125
    ```

    Fires only when every value between is used once, the mask is the causal
    mask of rows of this step, and keys and values are read from the cache that
    the layer's append gives; without a scale, `scale` is 1. It relies on
    canonicalize, which brings scales of the query, the keys or masked scores
    to the scores. With `explain`, a remark says of every product of
    probabilities and values that is left which of these is not so.
  }];
  let dependentDialects = ["::llamac::llama::LlamaDialect"];
}

def ApproximateExp : Pass<"approximate-exp", "::mlir::func::FuncOp"> {
  let summary = "Attention takes exponentials by a polynomial or a table";
  let description = [{
    Runs only where it is asked for, with `poly=3` or `table=256`.

    ```mlir
    %o = llama.attention %q, %kv, %positions, %sequences scale = 0.125
    ```

    becomes, with `poly=3`,

    ```mlir
    %o = llama.attention %q, %kv, %positions, %sequences scale = 0.125
           {approximation = #llama.approximation<exp = poly3>}
    ```

    | option | 2^x of x in [0, 1) | e, the largest relative error |
    |---|---|---|
    | `poly=3` | 1 + 0.695146 x + 0.227564 x^2 + 0.0771191 x^3 | 9.5e-5 |
    | `table=256` | 2^(i/256) (1 + r ln 2), i = round(256 x), r = x - i/256 | 8e-6 |

    Attention is off by at most 2e / (1 - e) of the largest value. The errors
    are of fp32 down to e^-87; those of the formulas are 8.8e-5 and 9.2e-7. A
    kind that the target has no kernels for is an error. The polynomial is worth
    a few percent of attention in prefill, the table nothing
    ([decision 24](decisions/0024-approximations-with-bounds.md)).
  }];
  let options = [
    Option<"poly", "poly", "int64_t", /*default=*/"0",
           "Degree of the polynomial: 3">,
    Option<"table", "table", "int64_t", /*default=*/"0",
           "Entries of the table: 256">];
  let dependentDialects = ["::llamac::llama::LlamaDialect"];
}

def PruneRows : Pass<"prune-rows", "::mlir::func::FuncOp"> {
  let summary = "Only the logits rows are computed";
  let description = [{
    `llama.gather_rows` moves up through the ops that work row by row, for as
    long as nothing else reads the other rows. In the last layer attention, its
    output product and the feed-forward work on the logits rows alone; the cache
    gets the keys and values of all rows.

    ```mlir
    %q1 = llama.rope %q0, %table
    %o = llama.attention %q1, %kv, %positions, %sequences scale = 0.125
    %a = llama.linear %o, %wo
    %x1 = llama.add %x0, %a
    %y = llama.rms_norm %x1, %norm eps = 1.0e-5
    %last = llama.gather_rows %y, %rows
    ```

    becomes

    ```mlir
    %q1 = llama.rope %q0, %table
    %p = llama.gather_rows %positions, %rows
    %s = llama.gather_rows %sequences, %rows
    %q2 = llama.gather_rows %q1, %rows
    %o = llama.attention %q2, %kv, %p, %s scale = 0.125
    %a = llama.linear %o, %wo
    %x2 = llama.gather_rows %x0, %rows
    %x1 = llama.add %x2, %a
    %last = llama.rms_norm %x1, %norm eps = 1.0e-5
    ```

    The query is projected and rotated for all rows: one launch rotates queries
    and keys and appends the keys, which are needed of every row.
  }];
  let dependentDialects = ["::llamac::llama::LlamaDialect"];
}

def LowerToKernels : Pass<"lower-to-kernels", "::mlir::func::FuncOp"> {
  let summary = "Every step of the graph becomes a launch";
  let description = [{
    One kernel op for each op of the graph; element-wise ops become
    `kernel.pointwise` with the scalar function in its body, products get an
    epilogue that yields the accumulator. Splitting and merging heads is a
    change of view and disappears. RoPE of q and k and the cache append of one
    layer become one `kernel.rope_append`.
  }];
  let dependentDialects = ["::llamac::kernel::KernelDialect",
                           "::mlir::arith::ArithDialect"];
}

def FuseEpilogue : ExplainedPass<"fuse-epilogue"> {
  let summary = "Element-wise work moves into the product or norm before it";
  let description = [{
    A pointwise op joins the pointwise op, product or norm that makes one of
    its operands, when nothing else uses that value; its other operands become
    extras. Two products of one input under one pointwise op become one
    product with two accumulators. So a residual is added where the product, or
    the norm behind it, is stored, and SiLU-multiply happens where gate and up
    are.

    ```mlir
    %a = kernel.matmul %x, %w epilogue { yields the accumulator }
    %b = kernel.pointwise %r, %a body { yields the sum }
    ```

    becomes

    ```mlir
    %b = kernel.matmul %x, %w extras(%r) epilogue {
    ^bb0(%acc: f32, %residual: f32):
      %0 = arith.addf %residual, %acc : f32
      kernel.yield %0
    }
    ```

    With `explain`, remarks say why a pointwise op is left, and why two
    products under one pointwise op are not one.
  }];
  let dependentDialects = ["::llamac::kernel::KernelDialect",
                           "::mlir::arith::ArithDialect"];
}

def FuseEmbed : ExplainedPass<"fuse-embed"> {
  let summary = "The launch that embeds tokens also computes cosines and sines";
  let description = [{
    A `kernel.rope_table` of the step's positions becomes a second result of the
    `kernel.embed` of the step's tokens: one launch less at the start of a step,
    for targets where a launch takes longer than the cosines and sines.

    ```mlir
    %t = kernel.rope_table %positions {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>}
    %x = kernel.embed %tokens, %table
    ```

    becomes

    ```mlir
    %x, %t = kernel.embed %tokens, %table cos_sin(%positions) {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>}
    ```

    With `explain`, a remark says why a table is left.
  }];
  let dependentDialects = ["::llamac::kernel::KernelDialect"];
}

def FuseNorm : ExplainedPass<"fuse-norm"> {
  let summary = "RMSNorm moves into the launches that read it";
  let description = [{
    A `kernel.rms_norm` whose users are all products becomes their prologue:
    each computes the norm of the rows it works on. Norms of query and key that
    only a `kernel.rope_append` reads become its `norms`.

    ```mlir
    %y = kernel.rms_norm %x, %norm {eps = 1.0e-5 : f64}
    %q = kernel.matmul %y, %wq epilogue { yields the accumulator }
    ```

    becomes

    ```mlir
    %q = kernel.matmul %x, %wq norm(%norm) epilogue { yields the accumulator } {eps = 1.0e-5 : f64}
    ```

    With `explain`, remarks say why a norm is left and who else reads it.
  }];
  let dependentDialects = ["::llamac::kernel::KernelDialect"];
}

def FuseQkv : ExplainedPass<"fuse-qkv"> {
  let summary = "Query, key and value are made, rotated and appended in one launch";
  let description = [{
    Three plain products of one input that only a `kernel.rope_append` reads
    become, with it, one `kernel.qkv`: RoPE and the append are the epilogue.
    The weights may differ in type. Where the append has norms of heads, or the
    target's cache rounds whole heads, it stays, and the products become one
    `kernel.qkv_products`.

    ```mlir
    %q = kernel.matmul %x, %wq norm(%w) epilogue { yields the accumulator }
    %k = kernel.matmul %x, %wk norm(%w) epilogue { yields the accumulator }
    %v = kernel.matmul %x, %wv norm(%w) epilogue { yields the accumulator }
    %t, %kv1 = kernel.rope_append %q, %k, %v, %table into %kv at %p, %s
    ```

    becomes

    ```mlir
    %t, %kv1 = kernel.qkv %x, %wq, %wk, %wv norm(%w) rotated by %table into %kv at %p, %s
                 {eps = 1.0e-5 : f64}
    ```

    With `explain`, a remark says why an append is left.
  }];
  let dependentDialects = ["::llamac::kernel::KernelDialect"];
}

def SpecialiseRows : Pass<"specialise-rows", "::mlir::ModuleOp"> {
  let summary = "One function for each range of row counts";
  let description = [{
    Clones `@step` once for each of the target's row buckets and removes it;
    each clone carries its bounds as `llamac.max_rows` and
    `llamac.max_logits_rows`.

    ```mlir
    func.func @step(...)
    ```

    becomes, for a target with two buckets,

    ```mlir
    func.func @decode(...) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64}
    func.func @prefill(...) attributes {llamac.max_logits_rows = 64 : i64, llamac.max_rows = 512 : i64}
    ```

    Where there is one row at most, it is the logits row: its function gathers
    no rows. A step that needs no logits of its one row computes them anyway.

    With `rows`, the last bucket is the first that takes prompts of as many rows;
    buckets are whole, so that kernels are those of a plan for all steps.
  }];
  let options = [Option<"rows", "rows", "int64_t", /*default=*/"0",
                        "Rows of a step that are enough (0: all of the "
                        "target's)">];
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

def SparsifyAttention : Pass<"sparsify-attention", "::mlir::func::FuncOp"> {
  let summary = "Attention of one row keeps the largest scores";
  let description = [{
    Runs only where it is asked for. In functions of one row, the softmax of
    attention is over the `top-k` largest scores and whatever else the target
    does not drop: cpu keeps the `top-k` largest of each 256 keys, so that it
    reads the values of those alone. Functions of several rows stay exact.

    ```mlir
    func.func @decode(...) attributes {llamac.max_rows = 1 : i64, ...} {
      %o = kernel.attention %q over %kv at %positions, %sequences
             {scale = 0.125 : f64}
    ```

    becomes, with `top-k=64`,

    ```mlir
    func.func @decode(...) attributes {llamac.max_rows = 1 : i64, ...} {
      %o = kernel.attention %q over %kv at %positions, %sequences
             {approximation = #llama.approximation<top_k = 64>,
              scale = 0.125 : f64}
    ```

    Where the other scores have the share d of the softmax, attention is off by
    at most 2d of the largest value; `llamac check` gives the largest d it sees.
    A target that drops no scores is an error. It is slower than exact attention
    where query heads share keys and values
    ([decision 24](decisions/0024-approximations-with-bounds.md)).
  }];
  let options = [Option<"topK", "top-k", "int64_t", /*default=*/"0",
                        "Scores of a row that are sure to count">];
  let dependentDialects = ["::llamac::kernel::KernelDialect"];
}

def AppendSampling : Pass<"append-sampling", "::mlir::func::FuncOp"> {
  let summary = "Steps sample the tokens that follow";
  let description = [{
    For targets that sample by themselves: the function takes the sampling
    params as its last argument, and its last result is the sampled tokens.

    ```mlir
    func.func @decode(...) -> (tensor<?x512xf32>, !llama.kv<...>) {
      return %logits, %kv1 : tensor<?x512xf32>, !llama.kv<...>
    ```

    becomes

    ```mlir
    func.func @decode(..., %params: tensor<?x4xi32>)
        -> (tensor<?x512xf32>, !llama.kv<...>, tensor<?xi32>) {
      %t = kernel.sample %logits by %params : (tensor<?x512xf32>, tensor<?x4xi32>) -> tensor<?xi32>
      return %logits, %kv1, %t : tensor<?x512xf32>, !llama.kv<...>, tensor<?xi32>
    ```
  }];
  let dependentDialects = ["::llamac::kernel::KernelDialect"];
}

def ChooseKernels : Pass<"choose-kernels", "::mlir::func::FuncOp"> {
  let summary = "Family and tile config of every launch";
  let description = [{
    Asks the target for the config of each kernel op at the function's row
    bound; after `kernel.gather_rows` the bound of the logits rows counts.
    Attention that the target splits over the keys gets a
    `kernel.attention_merge` after it.

    ```mlir
    %o = kernel.attention %q over %kv at %positions, %sequences
           {scale = 0.125 : f64} : ... -> tensor<?x576xf32>
    ```

    becomes, where rows are few,

    ```mlir
    %p = kernel.attention %q over %kv at %positions, %sequences
           {config = #split_kv, scale = 0.125 : f64} : ... -> tensor<?x9x32x80xf32>
    %o = kernel.attention_merge %p at %positions
           {config = #split_kv, kvHeads = 3 : i64, scale = 0.125 : f64} : ... -> tensor<?x576xf32>
    ```
  }];
  let dependentDialects = ["::llamac::kernel::KernelDialect"];
}

def RoundInputs : Pass<"round-inputs", "::mlir::func::FuncOp"> {
  let summary = "Inputs of products on tensor cores come in bf16";
  let description = [{
    For products whose kernels take them so, as the target says. Each block of
    such a kernel would round what all of them read. Where the target has kernels
    for that, the op that makes the rows of a norm shares it with the product: it
    stores them in bf16 as well, times the norm's weights, and their sums of
    squares, from which the product takes a scale for each row. Any other norm
    becomes a launch again, which
    rounds. Attention, and a product that no other op reads, round their result;
    anything else gets a launch that does. Packed weights are multiplied by
    columns in the order of lanes, `#kernel.lane_order`, in which they are then
    stored.

    ```mlir
    %o = kernel.attention %q over %kv ... -> tensor<?x576xf32>
    %x1 = kernel.matmul %o, %wo extras(%x) ... {config = #wgmma} : ... -> tensor<?x576xf32>
    %h = kernel.matmul %x1, %w1, %w3 norm(%w) ... {config = #wgmma, eps = 1.0e-5 : f64}
      : ... -> tensor<?x1536xf32>
    %x2 = kernel.matmul %h, %w2 extras(%x1) ... {config = #wgmma} : ... -> tensor<?x576xf32>
    ```

    becomes

    ```mlir
    %o = kernel.attention %q over %kv ... -> tensor<?x576xbf16>
    %x1, %n, %squares = kernel.matmul %o, %wo next_norm(%w) extras(%x) ... {config = #wgmma}
      : ... -> (tensor<?x576xf32>, tensor<?x576xbf16>, tensor<?x9xf32>)
    %h = kernel.matmul %n, %w1, %w3 norm(%squares) ... {config = #wgmma, eps = 1.0e-5 : f64}
      : ... -> tensor<?x1536xbf16>
    %x2 = kernel.matmul %h, %w2 extras(%x1) ... {config = #wgmma} : ... -> tensor<?x576xf32>
    ```

    and in a program for more rows

    ```mlir
    %x1 = kernel.matmul %o, %wo extras(%x) ... {config = #wgmma} : ... -> tensor<?x576xf32>
    %n = kernel.rms_norm %x1, %w {eps = 1.0e-5 : f64} : ... -> tensor<?x576xbf16>
    %h = kernel.matmul %n, %w1, %w3 ... {config = #wgmma} : ... -> tensor<?x1536xbf16>
    ```
  }];
  let dependentDialects = ["::llamac::kernel::KernelDialect"];
}

def FormResident : Pass<"form-resident", "::mlir::ModuleOp"> {
  let summary = "The step of one row becomes one launch";
  let description = [{
    Ahead of a function for one row comes another one for the same row, whose
    launches are the phases of one `kernel.resident`, if the target has a kernel
    for that, and, where the target's `resident` is `auto`, if that is expected to
    take less time. Where the launches repeat themselves, layer by layer, they become
    one `kernel.layers`: what the layers differ in, weights and caches, is its
    `each`. The function behind it is for GPUs on which not all blocks fit at
    once.

    ```mlir
    func.func @decode(%tokens, %kv0, %kv1) {
      %x0 = kernel.embed %tokens, %table
      %x1, %a0 = kernel.qkv %x0, %w0 ... into %kv0
      %x2, %a1 = kernel.qkv %x1, %w1 ... into %kv1
      return %x2, %a0, %a1
    }
    ```

    gets ahead of it

    ```mlir
    func.func @resident(%tokens, %kv0, %kv1) {
      %y:3 = kernel.resident %tokens, %table, %w0, %kv0, %w1, %kv1 phases {
        %x = kernel.embed %tokens, %table
        %z, %k:2 = kernel.layers 2 shared() carried(%x)
                     each(%w0, %kv0, %w1, %kv1) {
        ^bb0(%h, %w, %kv):
          %x1, %a = kernel.qkv %h, %w ... into %kv
          kernel.return %x1, %a
        }
        kernel.return %z, %k#0, %k#1
      }
      return %y#0, %y#1, %y#2
    }
    ```
  }];
  let options = [Option<"explain", "explain", "bool", "false",
                        "remark why there is none, where it may be left out">];
  let dependentDialects = ["::llamac::kernel::KernelDialect"];
}

def LowerToPlan : Pass<"lower-to-plan", "::mlir::ModuleOp"> {
  let summary = "Launches get memory and kernels become symbols";
  let description = [{
    Each function becomes a `plan.program`; each op a `plan.launch` of a
    `plan.kernel` that is shared by all ops that differ only in their operands;
    each cache becomes the pages of its layer. The kernel has the role of each
    parameter, the geometry and the tensor maps; a launch names only memory, and
    gets a barrier when it depends on one since the last barrier. A residual that
    is read for the last time is overwritten in place: the sum takes its buffer.

    ```mlir
    %y = kernel.matmul %x, %wq norm(%norm) epilogue { ... } loc("layers.0.attention.wq")
    ```

    becomes

    ```mlir
    %y = plan.buffer 2304
    plan.launch @gemv_attention_wq_n576_k576_q4_1(%x, %wq, %norm, %y) rows tokens barrier
    plan.kernel @gemv_attention_wq_n576_k576_q4_1(activation, weight, weight, result)
      family "gemv" roles ["layers.*.attention.wq"]
      geometry <items = 36, rowBlock = 0, scratch = 5376> { ... }
    ```
  }];
  let dependentDialects = ["::llamac::plan::PlanDialect"];
}

def PlanMemory : Pass<"plan-memory", "::llamac::plan::ProgramOp"> {
  let summary = "Buffers get offsets in one arena";
  let description = [{
    A buffer is live from the first to the last barrier interval (the launches
    between two barriers) that touches it. Buffers are placed one by one at the
    lowest offset where no overlapping live range lies, in several orders
    (largest first, longest-lived first, first used first); the smallest arena
    is kept.
  }];
  let dependentDialects = ["::llamac::plan::PlanDialect"];
}

#endif // LLAMAC_PASSES_PASSES_TD
