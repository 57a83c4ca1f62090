// The C++ of a kernel of every family: its config, its fused scalars and the
// order of its arguments.
// RUN: llamac-emit-unit < %s | FileCheck %s --strict-whitespace

// Headers in alphabetical order, each once.
//      CHECK:// Kernels of a plan for the cpu target
//      CHECK:#include "llamac/cpu/attention.h"
// CHECK-NEXT:#include "llamac/cpu/matmul.h"
// CHECK-NEXT:#include "llamac/cpu/qkv.h"
// CHECK-NEXT:#include "llamac/cpu/rope.h"
// CHECK-NEXT:#include "llamac/cpu/rowwise.h"
// CHECK-EMPTY:
// CHECK-NEXT:using namespace llamac::cpu;
// CHECK-NEXT:using llamac::CpuLaunch;
// CHECK-NEXT:using llamac::PanelFormat;

//      CHECK:// kernel.embed for tok_embeddings{{$}}
// CHECK-NEXT:extern "C" void embed_tokens(const CpuLaunch *launch) {
// CHECK-NEXT:  embed<EmbedConfig{.format = PanelFormat::Q6_K, .width = 256}>(
// CHECK-NEXT:      *launch, operand<int>(*launch, 0), operand<void>(*launch, 1),
// CHECK-NEXT:      operand<float>(*launch, 2));
// CHECK-NEXT:}
plan.kernel @embed_tokens(activation, weight, result) family "embed" roles ["tok_embeddings"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<9x256x!llama.quant<q6_k>>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<9x256x!llama.quant<q6_k>>) -> tensor<?x256xf32>
}

// Numbers are written as short as they can be read back.
//      CHECK:// kernel.rope_table for rope_table
// CHECK-NEXT:namespace rope_table_of_step {
// CHECK-NEXT:// Radians per position.
// CHECK-NEXT:constexpr double frequencies[] = {1.0, 0.1, 0.0005623413251903491};
// CHECK-NEXT:extern "C" void rope_table_of_step(const CpuLaunch *launch) {
// CHECK-NEXT:  ropeTable<6>(*launch, operand<int>(*launch, 0), frequencies,
// CHECK-NEXT:               operand<float>(*launch, 1));
// CHECK-NEXT:}
// CHECK-NEXT:} // namespace rope_table_of_step
plan.kernel @rope_table_of_step(activation, result) family "rope_table" roles ["rope_table"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%positions: tensor<?xi32>):
  %0 = kernel.rope_table %positions {frequencies = dense<[1.0, 0.1, 5.623413251903491E-4]> : tensor<3xf64>} : (tensor<?xi32>) -> tensor<?x3x2xf32>
}

// The norm is the prologue; its weight is the argument behind the matrix.
//      CHECK:// kernel.matmul for layers.*.attention.wq, layers.*.attention.wk
// CHECK-NEXT:namespace gemv_wq {
// CHECK-NEXT:constexpr MatmulConfig config{
// CHECK-NEXT:    .format = PanelFormat::Q4_1, .outputs = 64, .depth = 96};
// CHECK-NEXT:struct Epilogue {
// CHECK-NEXT:  float *out;
// CHECK-NEXT:  void operator()(long row, long column, F32x16 acc, int lanes) const {
// CHECK-NEXT:    const long at = row * config.outputs + column;
// CHECK-NEXT:    store16(out + at, acc, lanes);
// CHECK-NEXT:  }
// CHECK-NEXT:};
// CHECK-NEXT:extern "C" void gemv_wq(const CpuLaunch *launch) {
// CHECK-NEXT:  gemv<config>(*launch,
// CHECK-NEXT:               NormRows<96>{operand<float>(*launch, 0),
// CHECK-NEXT:                            operand<float>(*launch, 2), 1e-05f},
// CHECK-NEXT:               {operand<void>(*launch, 1)},
// CHECK-NEXT:               Epilogue{operand<float>(*launch, 3)});
// CHECK-NEXT:}
// CHECK-NEXT:} // namespace gemv_wq
plan.kernel @gemv_wq(activation, weight, weight, result) family "gemv" roles ["layers.*.attention.wq", "layers.*.attention.wk"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x96xf32>, %w: tensor<64x96x!llama.quant<q4_1>>, %n: tensor<96xf32>):
  %0 = kernel.matmul %x, %w norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>, eps = 1.0e-5 : f64}
    : (tensor<?x96xf32>, tensor<64x96x!llama.quant<q4_1>>, tensor<96xf32>) -> tensor<?x64xf32>
}

// Tiles that were chosen stand in the config.
//      CHECK:namespace gemv_tiles {
// CHECK-NEXT:constexpr MatmulConfig config{.format = PanelFormat::Q4_1,
// CHECK-NEXT:                              .outputs = 64,
// CHECK-NEXT:                              .depth = 96,
// CHECK-NEXT:                              .panels = 4,
// CHECK-NEXT:                              .ahead = 4096};
plan.kernel @gemv_tiles(activation, weight, result) family "gemv" roles ["layers.*.attention.wq"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x96xf32>, %w: tensor<64x96x!llama.quant<q4_1>>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1, tiles = {ahead = 4096 : i64, panels = 4 : i64}>}
    : (tensor<?x96xf32>, tensor<64x96x!llama.quant<q4_1>>) -> tensor<?x64xf32>
}

// Two accumulators and an extra operand: weights, extras, result.
//      CHECK:namespace gemm_gate_up {
// CHECK-NEXT:constexpr MatmulConfig config{
// CHECK-NEXT:    .format = PanelFormat::BF16, .outputs = 40, .depth = 96, .weights = 2};
// CHECK-NEXT:struct Epilogue {
// CHECK-NEXT:  const float *extra0;
// CHECK-NEXT:  float *out;
// CHECK-NEXT:  void operator()(long row, long column, F32x16 acc0, F32x16 acc1,
// CHECK-NEXT:                  int lanes) const {
// CHECK-NEXT:    const long at = row * config.outputs + column;
// CHECK-NEXT:    const F32x16 x0 = load16(extra0 + at, lanes);
// CHECK-NEXT:    const F32x16 activated = silu(acc0);
// CHECK-NEXT:    const F32x16 product = activated * acc1;
// CHECK-NEXT:    const F32x16 sum = product + x0;
// CHECK-NEXT:    const F32x16 sum2 = sum + acc1;
// CHECK-NEXT:    const F32x16 difference = sum2 - acc0;
// CHECK-NEXT:    const F32x16 quotient = difference / x0;
// CHECK-NEXT:    store16(out + at, quotient, lanes);
// CHECK-NEXT:  }
// CHECK-NEXT:};
// CHECK-NEXT:extern "C" void gemm_gate_up(const CpuLaunch *launch) {
// CHECK-NEXT:  gemm<config>(
// CHECK-NEXT:      *launch, InputRows<96>{operand<float>(*launch, 0)},
// CHECK-NEXT:      {operand<void>(*launch, 1), operand<void>(*launch, 2)},
// CHECK-NEXT:      Epilogue{operand<float>(*launch, 3), operand<float>(*launch, 4)});
// CHECK-NEXT:}
plan.kernel @gemm_gate_up(activation, weight, weight, activation, result) family "gemm" roles ["layers.*.feed_forward.w1"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x96xf32>, %w: tensor<40x96xbf16>, %v: tensor<40x96xbf16>, %r: tensor<?x40xf32>):
  %0 = kernel.matmul %x, %w, %v extras(%r) epilogue {
  ^bb0(%gate: f32, %up: f32, %e: f32):
    %a = kernel.silu %gate
    %b = arith.mulf %a, %up : f32
    %c = arith.addf %b, %e : f32
    %d = arith.addf %c, %up : f32
    %f = arith.subf %d, %gate : f32
    %g = arith.divf %f, %e : f32
    kernel.yield %g
  } {config = #kernel.matmul_config<family = gemm, rowBlock = 0>}
    : (tensor<?x96xf32>, tensor<40x96xbf16>, tensor<40x96xbf16>, tensor<?x40xf32>) -> tensor<?x40xf32>
}

// The page table comes behind the operands, the rotated query last.
//      CHECK:extern "C" void append(const CpuLaunch *launch) {
// CHECK-NEXT:  ropeAppend<RopeConfig{.kv = {.kvHeads = 2,
// CHECK-NEXT:                               .headSize = 16,
// CHECK-NEXT:                               .pagesPerSequence = 64,
// CHECK-NEXT:                               .pageTokens = 64,
// CHECK-NEXT:                               .format = KvFormat::F16},
// CHECK-NEXT:                        .heads = 4}>(
// CHECK-NEXT:      *launch, RopeArgs{.q = operand<float>(*launch, 0),
// CHECK-NEXT:                        .k = operand<float>(*launch, 1),
// CHECK-NEXT:                        .v = operand<float>(*launch, 2),
// CHECK-NEXT:                        .to = {.cosSin = operand<float>(*launch, 3),
// CHECK-NEXT:                               .pool = operand<void>(*launch, 4),
// CHECK-NEXT:                               .pageTable = operand<int>(*launch, 7),
// CHECK-NEXT:                               .positions = operand<int>(*launch, 5),
// CHECK-NEXT:                               .sequences = operand<int>(*launch, 6)},
// CHECK-NEXT:                        .out = operand<float>(*launch, 8)});
plan.kernel @append(activation, activation, activation, activation, appended_cache, activation, activation, page_table, result) family "rope_append" roles ["layers.*.attention.rope_q"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %v: tensor<?x32xf32>, %t: tensor<?x8x2xf32>, %kv: !llama.kv<heads = 2, size = 16>, %pos: tensor<?xi32>, %seq: tensor<?xi32>):
  %0, %1 = kernel.rope_append %q, %k, %v, %t into %kv at %pos, %seq
    : (tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x8x2xf32>, !llama.kv<heads = 2, size = 16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x64xf32>, !llama.kv<heads = 2, size = 16>)
}

//      CHECK:extern "C" void append_behind_norms(const CpuLaunch *launch) {
//      CHECK:                        .queryNorm = 16,
// CHECK-NEXT:                        .keyNorm = 32}>(
//      CHECK:                               .pageTable = operand<int>(*launch, 9),
//      CHECK:                        .out = operand<float>(*launch, 10),
// CHECK-NEXT:                        .queryGain = operand<float>(*launch, 7),
// CHECK-NEXT:                        .keyGain = operand<float>(*launch, 8),
// CHECK-NEXT:                        .eps = 1e-05f});
plan.kernel @append_behind_norms(activation, activation, activation, activation, appended_cache, activation, activation, weight, weight, page_table, result) family "rope_append" roles ["layers.*.attention.q_norm"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %v: tensor<?x32xf32>, %t: tensor<?x8x2xf32>, %kv: !llama.kv<heads = 2, size = 16>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %qn: tensor<16xf32>, %kn: tensor<32xf32>):
  %0, %1 = kernel.rope_append %q, %k, %v, %t into %kv at %pos, %seq norms(%qn, %kn) {eps = 1.0e-5 : f64}
    : (tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x8x2xf32>, !llama.kv<heads = 2, size = 16>, tensor<?xi32>, tensor<?xi32>, tensor<16xf32>, tensor<32xf32>) -> (tensor<?x64xf32>, !llama.kv<heads = 2, size = 16>)
}

//      CHECK:namespace products_of_a_layer {
// CHECK-NEXT:constexpr QkvConfig config{
// CHECK-NEXT:    .query = {.format = PanelFormat::BF16,
//      CHECK:extern "C" void products_of_a_layer(const CpuLaunch *launch) {
// CHECK-NEXT:  qkvGemv<config>(*launch, InputRows<256>{operand<float>(*launch, 0)},
// CHECK-NEXT:                  QkvProductsArgs{.query = operand<void>(*launch, 1),
// CHECK-NEXT:                                  .key = operand<void>(*launch, 2),
// CHECK-NEXT:                                  .value = operand<void>(*launch, 3),
// CHECK-NEXT:                                  .outs = {operand<float>(*launch, 4),
// CHECK-NEXT:                                           operand<float>(*launch, 5),
// CHECK-NEXT:                                           operand<float>(*launch, 6)}});
plan.kernel @products_of_a_layer(activation, weight, weight, weight, result, result, result) family "qkv_products_gemv" roles ["layers.*.attention.wq"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %q: tensor<64x256xbf16>, %k: tensor<32x256xbf16>, %v: tensor<32x256xf16>):
  %0, %1, %2 = kernel.qkv_products %x, %q, %k, %v {config = #kernel.matmul_config<family = gemv, rowBlock = 1>}
    : (tensor<?x256xf32>, tensor<64x256xbf16>, tensor<32x256xbf16>, tensor<32x256xf16>) -> (tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
}

// Three products of one input, each in the format of its weight.
//      CHECK:// kernel.qkv for layers.*.attention.wq
// CHECK-NEXT:namespace qkv_of_a_layer {
// CHECK-NEXT:constexpr QkvConfig config{
// CHECK-NEXT:    .query = {.format = PanelFormat::Q4_K, .outputs = 64, .depth = 256},
// CHECK-NEXT:    .key = {.format = PanelFormat::Q4_K, .outputs = 32, .depth = 256},
// CHECK-NEXT:    .value = {.format = PanelFormat::Q6_K, .outputs = 32, .depth = 256},
// CHECK-NEXT:    .kv = {.kvHeads = 2,
// CHECK-NEXT:           .headSize = 16,
// CHECK-NEXT:           .pagesPerSequence = 64,
// CHECK-NEXT:           .pageTokens = 64,
// CHECK-NEXT:           .format = KvFormat::F16}};
// CHECK-NEXT:extern "C" void qkv_of_a_layer(const CpuLaunch *launch) {
// CHECK-NEXT:  qkvGemm<config>(*launch,
// CHECK-NEXT:                  NormRows<256>{operand<float>(*launch, 0),
// CHECK-NEXT:                                operand<float>(*launch, 4), 1e-05f},
// CHECK-NEXT:                  QkvArgs{.query = operand<void>(*launch, 1),
// CHECK-NEXT:                          .key = operand<void>(*launch, 2),
// CHECK-NEXT:                          .value = operand<void>(*launch, 3),
// CHECK-NEXT:                          .to = {.cosSin = operand<float>(*launch, 5),
// CHECK-NEXT:                                 .pool = operand<void>(*launch, 6),
// CHECK-NEXT:                                 .pageTable = operand<int>(*launch, 9),
// CHECK-NEXT:                                 .positions = operand<int>(*launch, 7),
// CHECK-NEXT:                                 .sequences = operand<int>(*launch, 8)},
// CHECK-NEXT:                          .out = operand<float>(*launch, 10)});
// CHECK-NEXT:}
// CHECK-NEXT:} // namespace qkv_of_a_layer
plan.kernel @qkv_of_a_layer(activation, weight, weight, weight, weight, activation, appended_cache, activation, activation, page_table, result) family "qkv_gemm" roles ["layers.*.attention.wq"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x256xf32>, %q: tensor<64x256x!llama.quant<q4_k>>, %k: tensor<32x256x!llama.quant<q4_k>>, %v: tensor<32x256x!llama.quant<q6_k>>, %n: tensor<256xf32>, %t: tensor<?x8x2xf32>, %kv: !llama.kv<heads = 2, size = 16>, %pos: tensor<?xi32>, %seq: tensor<?xi32>):
  %0, %1 = kernel.qkv %x, %q, %k, %v norm(%n) rotated by %t into %kv at %pos, %seq {config = #kernel.matmul_config<family = gemm, rowBlock = 0>, eps = 1.0e-5 : f64}
    : (tensor<?x256xf32>, tensor<64x256x!llama.quant<q4_k>>, tensor<32x256x!llama.quant<q4_k>>, tensor<32x256x!llama.quant<q6_k>>, tensor<256xf32>, tensor<?x8x2xf32>, !llama.kv<heads = 2, size = 16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x64xf32>, !llama.kv<heads = 2, size = 16>)
}

//      CHECK:extern "C" void attention_whole(const CpuLaunch *launch) {
// CHECK-NEXT:  attention<AttentionConfig{.kv = {.kvHeads = 2,
// CHECK-NEXT:                                   .headSize = 16,
// CHECK-NEXT:                                   .pagesPerSequence = 64,
// CHECK-NEXT:                                   .pageTokens = 64,
// CHECK-NEXT:                                   .format = KvFormat::F16},
// CHECK-NEXT:                            .heads = 4,
// CHECK-NEXT:                            .scale = 0.25f,
// CHECK-NEXT:                            .vectors = 32}>(
// CHECK-NEXT:      *launch, AttentionArgs{.q = operand<float>(*launch, 0),
// CHECK-NEXT:                             .pool = operand<void>(*launch, 1),
// CHECK-NEXT:                             .pageTable = operand<int>(*launch, 4),
// CHECK-NEXT:                             .positions = operand<int>(*launch, 2),
// CHECK-NEXT:                             .sequences = operand<int>(*launch, 3),
// CHECK-NEXT:                             .out = operand<float>(*launch, 5)});
plan.kernel @attention_whole(activation, cache, activation, activation, page_table, result) family "attention" roles ["layers.*.attention.softmax"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%q: tensor<?x64xf32>, %kv: !llama.kv<heads = 2, size = 16>, %pos: tensor<?xi32>, %seq: tensor<?xi32>):
  %0 = kernel.attention %q over %kv at %pos, %seq {config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, scale = 0.25 : f64}
    : (tensor<?x64xf32>, !llama.kv<heads = 2, size = 16>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
}

//      CHECK:extern "C" void attention_parts(const CpuLaunch *launch) {
// CHECK-NEXT:  attentionSplit<AttentionConfig{.kv = {.kvHeads = 2,
//      CHECK:      *launch, AttentionArgs{.q = operand<float>(*launch, 0),
//      CHECK:                             .out = operand<float>(*launch, 5)});
plan.kernel @attention_parts(activation, cache, activation, activation, page_table, result) family "attention_split" roles ["layers.*.attention.softmax"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%q: tensor<?x64xf32>, %kv: !llama.kv<heads = 2, size = 16>, %pos: tensor<?xi32>, %seq: tensor<?xi32>):
  %0 = kernel.attention %q over %kv at %pos, %seq {config = #kernel.attention_config<family = split_kv, splits = 64, partial = 32>, scale = 0.25 : f64}
    : (tensor<?x64xf32>, !llama.kv<heads = 2, size = 16>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x64x32xf32>
}

// The merge knows the same config as the split before it.
//      CHECK:extern "C" void merge(const CpuLaunch *launch) {
// CHECK-NEXT:  attentionMerge<AttentionConfig{.kv = {.kvHeads = 2,
// CHECK-NEXT:                                        .headSize = 16,
// CHECK-NEXT:                                        .pagesPerSequence = 64,
// CHECK-NEXT:                                        .pageTokens = 64,
// CHECK-NEXT:                                        .format = KvFormat::F16},
// CHECK-NEXT:                                 .heads = 4,
// CHECK-NEXT:                                 .scale = 0.25f,
// CHECK-NEXT:                                 .vectors = 32}>(
// CHECK-NEXT:      *launch, operand<float>(*launch, 0), operand<int>(*launch, 1),
// CHECK-NEXT:      operand<float>(*launch, 2));
plan.kernel @merge(activation, activation, result) family "attention_merge" roles ["layers.*.attention.softmax"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%p: tensor<?x4x64x32xf32>, %pos: tensor<?xi32>):
  %0 = kernel.attention_merge %p at %pos {config = #kernel.attention_config<family = split_kv, splits = 64, partial = 32>, kvHeads = 2 : i64, scale = 0.25 : f64}
    : (tensor<?x4x64x32xf32>, tensor<?xi32>) -> tensor<?x64xf32>
}

//      CHECK:extern "C" void norm(const CpuLaunch *launch) {
// CHECK-NEXT:  rmsNorm<64, 64>(*launch, operand<float>(*launch, 0),
// CHECK-NEXT:                  operand<float>(*launch, 1), 1e-06f,
// CHECK-NEXT:                  StoreRows<64>{operand<float>(*launch, 2)});
plan.kernel @norm(activation, weight, result) family "rms_norm" roles ["norm"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x64xf32>, %w: tensor<64xf32>):
  %0 = kernel.rms_norm %x, %w {eps = 1.0e-6 : f64} : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
}

//      CHECK:namespace post_norm {
// CHECK-NEXT:struct Epilogue {
//      CHECK:  const F32x16 sum = x0 + acc;
//      CHECK:  rmsNorm<64, 64>(
// CHECK-NEXT:      *launch, operand<float>(*launch, 0), operand<float>(*launch, 1), 1e-06f,
// CHECK-NEXT:      Epilogue{operand<float>(*launch, 2), operand<float>(*launch, 3)});
plan.kernel @post_norm(activation, weight, activation, result) family "rms_norm" roles ["post_norm"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x64xf32>, %w: tensor<64xf32>, %r: tensor<?x64xf32>):
  %0 = kernel.rms_norm %x, %w extras(%r) epilogue {
  ^bb0(%normed: f32, %residual: f32):
    %s = arith.addf %residual, %normed : f32
    kernel.yield %s
  } {eps = 1.0e-6 : f64} : (tensor<?x64xf32>, tensor<64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
}

//      CHECK:extern "C" void gather(const CpuLaunch *launch) {
// CHECK-NEXT:  gatherRows<64>(*launch, operand<float>(*launch, 0), operand<int>(*launch, 1),
// CHECK-NEXT:                 operand<float>(*launch, 2));
plan.kernel @gather(activation, activation, result) family "gather_rows" roles ["wanted"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x64xf32>, %rows: tensor<?xi32>):
  %0 = kernel.gather_rows %x, %rows : (tensor<?x64xf32>, tensor<?xi32>) -> tensor<?x64xf32>
}

//      CHECK:extern "C" void gather_positions(const CpuLaunch *launch) {
// CHECK-NEXT:  gatherRows<1>(*launch, operand<int>(*launch, 0), operand<int>(*launch, 1),
// CHECK-NEXT:                operand<int>(*launch, 2));
plan.kernel @gather_positions(activation, activation, result) family "gather_rows" roles ["wanted"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?xi32>, %rows: tensor<?xi32>):
  %0 = kernel.gather_rows %x, %rows : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
}

//      CHECK:namespace pointwise_add {
// CHECK-NEXT:struct Function {
// CHECK-NEXT:  const float *input0;
// CHECK-NEXT:  const float *input1;
// CHECK-NEXT:  float *out;
// CHECK-NEXT:  void operator()(long row, long column, int lanes) const {
// CHECK-NEXT:    const long at = row * 24 + column;
// CHECK-NEXT:    const F32x16 x0 = load16(input0 + at, lanes);
// CHECK-NEXT:    const F32x16 x1 = load16(input1 + at, lanes);
// CHECK-NEXT:    const F32x16 sum = x1 + x0;
// CHECK-NEXT:    store16(out + at, sum, lanes);
// CHECK-NEXT:  }
// CHECK-NEXT:};
// CHECK-NEXT:extern "C" void pointwise_add(const CpuLaunch *launch) {
// CHECK-NEXT:  pointwise<24>(*launch,
// CHECK-NEXT:                Function{operand<float>(*launch, 0), operand<float>(*launch, 1),
// CHECK-NEXT:                         operand<float>(*launch, 2)});
// CHECK-NEXT:}
// CHECK-NEXT:} // namespace pointwise_add
plan.kernel @pointwise_add(activation, activation, result) family "pointwise" roles ["add"] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x24xf32>, %y: tensor<?x24xf32>):
  %0 = kernel.pointwise %x, %y body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %b, %a : f32
    kernel.yield %s
  } : (tensor<?x24xf32>, tensor<?x24xf32>) -> tensor<?x24xf32>
}

plan.program @decode {
  %t = plan.input tokens
  %w = plan.weight "tok_embeddings" : tensor<9x256x!llama.quant<q6_k>>
  %b = plan.buffer 1024
  plan.launch @embed_tokens(%t, %w, %b) rows tokens
  plan.logits %b
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

plan.program @prefill {
  %t = plan.input tokens
  %w = plan.weight "tok_embeddings" : tensor<9x256x!llama.quant<q6_k>>
  %b = plan.buffer 1024
  plan.launch @embed_tokens(%t, %w, %b) rows tokens
  plan.launch @embed_tokens(%t, %w, %b) rows tokens barrier
  plan.logits %b
} {max_logits_rows = 64 : i64, max_rows = 512 : i64}
