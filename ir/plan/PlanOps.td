//===- PlanOps.td - Programs of launches on memory ---------*- tablegen -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan dialect is what the plan file holds, as IR: kernels, and for each
// range of row counts a program, the list of launches with their memory. Values
// are pieces of memory; a launch reads some and writes others.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_IR_PLAN_PLANOPS_TD
#define LLAMAC_IR_PLAN_PLANOPS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def PlanDialect : Dialect {
  let name = "plan";
  let cppNamespace = "::llamac::plan";
  let summary = "Programs of kernel launches on assigned memory";
  let description = [{
    A module of plan ops is the plan file before it is written: `plan.kernel`
    for each distinct kernel, holding the op it implements, and `plan.program`
    for each range of row counts.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Plan_Op<string mnemonic, list<Trait> traits = []>
    : Op<PlanDialect, mnemonic, traits>;

def Plan_MemoryType : TypeDef<PlanDialect, "Memory"> {
  let mnemonic = "memory";
  let summary = "A piece of memory that a launch reads or writes";
}

// Plan_MemoryType as a type that ops need not print or be given.
def Plan_Memory : DialectType<PlanDialect, Plan_MemoryType.predicate, "memory">,
                  BuildableType<"::llamac::plan::MemoryType::get($_builder.getContext())">;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def Plan_RowSymbol : I32EnumAttr<"RowSymbol",
    "Which of the step's counts is a launch's number of rows", [
      I32EnumAttrCase<"Tokens", 0, "tokens">,
      I32EnumAttrCase<"LogitsRows", 1, "logits_rows">]> {
  let cppNamespace = "::llamac::plan";
}

def Plan_InputRole : I32EnumAttr<"InputRole", "An input of every step", [
      I32EnumAttrCase<"Tokens", 0, "tokens">,
      I32EnumAttrCase<"Positions", 1, "positions">,
      I32EnumAttrCase<"Sequences", 2, "sequences">,
      I32EnumAttrCase<"LogitsRows", 3, "logits_rows">,
      I32EnumAttrCase<"PageTable", 4, "page_table">,
      I32EnumAttrCase<"SamplingParams", 5, "sampling_params">,
      I32EnumAttrCase<"Rank", 6, "rank">,
      I32EnumAttrCase<"Features", 7, "features">,
      I32EnumAttrCase<"HeadState", 8, "head_state">]> {
  let cppNamespace = "::llamac::plan";
}

def Plan_ParamRole : I32EnumAttr<"ParamRole", "What a parameter of a kernel is", [
      I32EnumAttrCase<"Activation", 0, "activation">,
      I32EnumAttrCase<"Weight", 1, "weight">,
      I32EnumAttrCase<"Cache", 2, "cache">,
      I32EnumAttrCase<"AppendedCache", 3, "appended_cache">,
      I32EnumAttrCase<"PageTable", 4, "page_table">,
      I32EnumAttrCase<"Workspace", 5, "workspace">,
      I32EnumAttrCase<"Counters", 6, "counters">,
      I32EnumAttrCase<"Result", 7, "result">,
      I32EnumAttrCase<"Peers", 8, "peers">]> {
  let cppNamespace = "::llamac::plan";
}

def Plan_GeometryAttr : AttrDef<PlanDialect, "Geometry"> {
  let mnemonic = "geometry";
  let summary = "How many independent work items a launch has";
  let description = [{
    `items`, times ceil(rows / `rowBlock`) when `rowBlock` is not 0. On a GPU
    a work item is a block of `threads` threads with `scratch` bytes of shared
    memory, and `cluster` consecutive ones run together; `dependent` is
    programmatic dependent launch: the launch may begin while the one before it
    ends. Elsewhere these are left out and each thread has `scratch` bytes of
    its own. For each row a launch has `workspace` bytes of workspace and
    `counters` counters. Of a `resident` one all blocks run at the same time,
    and may wait for each other: at most `items` of them, as many as fit.
  }];
  let parameters = (ins "int64_t":$items, "int64_t":$rowBlock,
                        "int64_t":$scratch,
                        DefaultValuedParameter<"int64_t", "0">:$threads,
                        DefaultValuedParameter<"int64_t", "1">:$cluster,
                        DefaultValuedParameter<"bool", "false">:$dependent,
                        DefaultValuedParameter<"int64_t", "0">:$workspace,
                        DefaultValuedParameter<"int64_t", "0">:$counters,
                        DefaultValuedParameter<"bool", "false">:$resident);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Plan_TensorMapAttr : AttrDef<PlanDialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "How a launch copies boxes of a matrix";
  let description = [{
    Argument `operand` of a launch is a matrix of `rows` rows, without gaps, of
    `columns` elements; `rows` 0 stands for all that the argument has: the most
    rows of the launch, or the pages of the cache. A box is `boxRows` x
    `boxColumns` elements, and its 16-byte pieces are exchanged in shared memory
    by a swizzle of `swizzleBytes`.
  }];
  let parameters = (ins "int64_t":$operand, "int64_t":$elementBytes,
                        "int64_t":$columns, "int64_t":$rows,
                        "int64_t":$boxColumns, "int64_t":$boxRows,
                        "int64_t":$swizzleBytes);
  let assemblyFormat = "`<` struct(params) `>`";
}

/// Sizes and places in memory, whose sums do not overflow.
def Plan_Bytes
    : ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<0x1000000000000>]>;
def Plan_Rows : ConfinedAttr<I64Attr, [IntPositive, IntMaxValue<0x100000>]>;
def Plan_Window : ConfinedAttr<I64Attr, [IntPositive]>;

//===----------------------------------------------------------------------===//
// Kernels and programs
//===----------------------------------------------------------------------===//

def Plan_TensorMaps : TypedArrayAttrBase<Plan_TensorMapAttr, "tensor maps">;

def Plan_KernelOp : Plan_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlock,
                                        NoTerminator]> {
  let summary = "A distinct kernel, and how it is called";
  let description = [{
    The body holds one kernel op on block arguments: what the kernel computes,
    for operands of exactly these types. `params` are what a launch passes: the
    op's operands in order, the page table when one of them is the cache,
    workspace and counters where the geometry has some, then the op's results,
    of which a cache has no place of its own. The kernel writes workspace,
    results and the cache that it appends to, updates the counters, and reads
    the others. Behind them it takes one parameter more for each of `maps`.
    `roles` names the weights that the kernel multiplies with.

    ```mlir
    plan.kernel @gemv_wo(activation, weight, activation, result) family "gemv"
        roles ["layers.*.attention.wo"]
        geometry <items = 36, rowBlock = 0, scratch = 640> {
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI32ArrayAttr:$params,
                       StrAttr:$family, ArrayAttr:$roles,
                       Plan_GeometryAttr:$geometry,
                       OptionalAttr<Plan_TensorMaps>:$maps);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `` custom<Params>($params) `family` $family `roles` $roles
    `geometry` $geometry (`maps` $maps^)? $body attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The op that says what the kernel computes.
    ::mlir::Operation &getPrototype() { return getBody().front().front(); }

    /// Takes the geometry and the tensor maps of `geometry`.
    void setGeometryOf(const ::llamac::kernel::LaunchGeometry &geometry);

    /// The role of parameter number `param`.
    ParamRole getRole(unsigned param) {
      return static_cast<ParamRole>(getParams()[param]);
    }

    /// The elements of `maps`, if there are any.
    auto getTensorMaps() {
      const ::mlir::ArrayAttr maps = getMapsAttr();
      return (maps ? maps : ::mlir::ArrayAttr::get(getContext(), {}))
          .getAsRange<TensorMapAttr>();
    }

    /// The most rows that a launch of the kernel in its module may have.
    int64_t getMaxRows();
  }];
}

def Plan_ProgramOp : Plan_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock,
                                          NoTerminator]> {
  let summary = "The launches of a step of at most `max_rows` rows";
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_Rows:$max_rows,
                       Plan_Rows:$max_logits_rows,
                       OptionalAttr<Plan_Bytes>:$arena_bytes,
                       UnitAttr:$decode_only);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name $body attr-dict";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Plan_InputOp : Plan_Op<"input", [Pure]> {
  let summary = "An input of the step, filled by the runtime";
  let description = [{
    A page table is that of the layers that see all keys or a `window` of them.
  }];
  let arguments = (ins Plan_InputRole:$role, OptionalAttr<Plan_Window>:$window);
  let results = (outs Plan_Memory:$memory);
  let assemblyFormat = "$role (`window` $window^)? attr-dict";
}

def Plan_Shard
    : Attr<CPred<"::llvm::isa<::llamac::llama::ShardAttr>($_self)">,
           "a #llama.shard"> {
  let storageType = "::llamac::llama::ShardAttr";
  let returnType = "::llamac::llama::ShardAttr";
  let convertFromStorage = "$_self";
}

def Plan_WeightOp : Plan_Op<"weight", [Pure]> {
  let summary = "A weight, or a rank's part, by its canonical name and type";
  let arguments = (ins StrAttr:$name, TypeAttr:$type,
                       OptionalAttr<Plan_Shard>:$shard);
  let results = (outs Plan_Memory:$memory);
  let assemblyFormat = "$name `:` $type (`shard` $shard^)? attr-dict";
}

def Plan_KvOp : Plan_Op<"kv", [Pure]> {
  let summary = "The pages of one layer of the KV cache";
  let description = [{
    With a `window` no row sees more keys than that, so that newer tokens may
    take the place of older ones.
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$layer,
                       OptionalAttr<Plan_Window>:$window);
  let results = (outs Plan_Memory:$memory);
  let assemblyFormat = "`layer` $layer (`window` $window^)? attr-dict";
}

def Plan_BufferOp : Plan_Op<"buffer", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Workspace of `bytes` bytes, at `offset` of the arena";
  let description = [{
    A buffer is live from the first launch that uses it to the last; buffers
    whose live ranges do not overlap may share bytes.
  }];
  let arguments = (ins Plan_Bytes:$bytes, OptionalAttr<Plan_Bytes>:$offset);
  let results = (outs Plan_Memory:$memory);
  let assemblyFormat = "$bytes (`at` $offset^)? attr-dict";
}

def Plan_ExchangeOp : Plan_Op<"exchange", [MemoryEffects<[MemAlloc]>]> {
  let summary = "`bytes` bytes for all ranks to read, in one of two halves";
  let description = [{
    A rank writes the bytes of its own area, and the next launch that takes
    `plan.peers` of them reads those of all ranks. Exchanges take turns between
    the halves, so that a rank that goes on writes where nobody reads.
  }];
  let arguments = (ins Plan_Bytes:$bytes,
                       ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<1>]>:$half);
  let results = (outs Plan_Memory:$memory);
  let assemblyFormat = "$bytes `half` $half attr-dict";
}

def Plan_PeersOp : Plan_Op<"peers", [Pure]> {
  let summary = "What all ranks have written to `exchange`, by their addresses";
  let arguments = (ins Plan_Memory:$exchange);
  let results = (outs Plan_Memory:$memory);
  let assemblyFormat = "$exchange attr-dict";
}

def Plan_CountersOp : Plan_Op<"counters", [Pure]> {
  let summary = "Words of 32 bits that are 0 before a launch and after it";
  let description = [{
    `bytes` bytes by which the blocks of a launch work together. The runtime
    zeroes them when it loads a plan; each launch that updates them leaves them
    zero.
  }];
  let arguments = (ins Plan_Bytes:$bytes);
  let results = (outs Plan_Memory:$memory);
  let assemblyFormat = "$bytes attr-dict";
}

def Plan_LaunchOp : Plan_Op<"launch", [
    MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Run a kernel";
  let description = [{
    The operands are the memory of the kernel's parameters, in order. With
    `barrier`, all earlier launches of the program are done before it starts;
    without it, it may run at the same time as those since the last barrier.

    ```mlir
    plan.launch @gemv_wo(%x, %w, %h, %y) rows tokens barrier
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
                       Variadic<Plan_Memory>:$args,
                       Plan_RowSymbol:$rows, UnitAttr:$barrier);
  let assemblyFormat = [{
    $kernel `` `(` $args `)` `rows` $rows (`barrier` $barrier^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// The kernel that it runs.
    KernelOp getKernelOp();
  }];
}

def Plan_LogitsOp : Plan_Op<"logits", [MemoryEffects<[MemRead]>]> {
  let summary = "The memory that holds the step's logits: f32 [logits rows, V]";
  let arguments = (ins Plan_Memory:$memory);
  let assemblyFormat = "$memory attr-dict";
}

def Plan_FeaturesOp : Plan_Op<"features", [MemoryEffects<[MemRead]>]> {
  let summary = "The memory that holds some of the step's features: f32 [rows, d]";
  let description = [{
    Of a model the input of a layer for all rows; of a draft head what its layer
    makes of the logits rows.
  }];
  let arguments = (ins Plan_Memory:$memory);
  let assemblyFormat = "$memory attr-dict";
}

def Plan_TokensOp : Plan_Op<"tokens", [MemoryEffects<[MemRead]>]> {
  let summary = "The memory that holds the step's tokens: i32 [logits rows]";
  let arguments = (ins Plan_Memory:$memory);
  let assemblyFormat = "$memory attr-dict";
}

#endif // LLAMAC_IR_PLAN_PLANOPS_TD
