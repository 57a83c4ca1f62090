// Every op, type and attribute of the dialect round-trips through its text
// form and through the generic one.
// RUN: llamac-opt %s | llamac-opt | FileCheck %s
// RUN: llamac-opt %s --mlir-print-op-generic | llamac-opt | FileCheck %s

// CHECK-DAG: #model = #llama.model<dim = 576, layers = 30, heads = 9, kv_heads = 3, head_size = 64, ffn = 1536, vocab = 49152, max_context = 2048, norm_eps = 1.000000e-05 : f64, rope_theta = 1.000000e+05 : f64, tied = true>
// CHECK-DAG: !kv = !llama.kv<heads = 3, size = 64>
#model = #llama.model<dim = 576, layers = 30, heads = 9, kv_heads = 3, head_size = 64, ffn = 1536, vocab = 49152, max_context = 2048, norm_eps = 1.0e-05 : f64, rope_theta = 1.0e+05 : f64, tied = true>
!kv = !llama.kv<heads = 3, size = 64>

// CHECK: module attributes {llama.model = #model}
module attributes {llama.model = #model} {

// CHECK-LABEL: func.func @weights
func.func @weights() {
  // CHECK: %norm = llama.weight "norm" : tensor<576xf32>
  %0 = llama.weight "norm" : tensor<576xf32>
  // CHECK: %layers.0.attention.wq = llama.weight "layers.0.attention.wq" : tensor<576x576xbf16>
  %1 = llama.weight "layers.0.attention.wq" : tensor<576x576xbf16>
  // CHECK: llama.weight "layers.0.attention.wk" : tensor<192x576xf16>
  %2 = llama.weight "layers.0.attention.wk" : tensor<192x576xf16>
  // CHECK: tensor<64x512x!llama.quant<q8_0>>
  %3 = llama.weight "a" : tensor<64x512x!llama.quant<q8_0>>
  // CHECK: tensor<64x512x!llama.quant<q4_0>>
  %4 = llama.weight "b" : tensor<64x512x!llama.quant<q4_0>>
  // CHECK: tensor<64x512x!llama.quant<q4_1>>
  %5 = llama.weight "c" : tensor<64x512x!llama.quant<q4_1>>
  // CHECK: tensor<64x512x!llama.quant<q5_0>>
  %6 = llama.weight "d" : tensor<64x512x!llama.quant<q5_0>>
  // CHECK: tensor<64x512x!llama.quant<q5_1>>
  %7 = llama.weight "e" : tensor<64x512x!llama.quant<q5_1>>
  // CHECK: tensor<64x512x!llama.quant<q4_k>>
  %8 = llama.weight "f" : tensor<64x512x!llama.quant<q4_k>>
  // CHECK: tensor<64x512x!llama.quant<q5_k>>
  %9 = llama.weight "g" : tensor<64x512x!llama.quant<q5_k>>
  // CHECK: tensor<64x512x!llama.quant<q6_k>>
  %10 = llama.weight "h" : tensor<64x512x!llama.quant<q6_k>>
  return
}

// CHECK-LABEL: func.func @embedding
func.func @embedding(%tokens: tensor<?xi32>, %table: tensor<49152x576x!llama.quant<q4_1>>) -> tensor<?x576xf32> {
  // CHECK: llama.embedding %{{.*}}, %{{.*}} : (tensor<?xi32>, tensor<49152x576x!llama.quant<q4_1>>) -> tensor<?x576xf32>
  %0 = llama.embedding %tokens, %table : (tensor<?xi32>, tensor<49152x576x!llama.quant<q4_1>>) -> tensor<?x576xf32>
  return %0 : tensor<?x576xf32>
}

// CHECK-LABEL: func.func @rows
func.func @rows(%x: tensor<?x576xf32>, %norm: tensor<576xbf16>, %w: tensor<192x576xf16>, %rows: tensor<4xi32>) -> tensor<4x192xf32> {
  // CHECK: llama.rms_norm %{{.*}}, %{{.*}} eps = 1.000000e-05 : (tensor<?x576xf32>, tensor<576xbf16>) -> tensor<?x576xf32>
  %0 = llama.rms_norm %x, %norm eps = 1.0e-5 : (tensor<?x576xf32>, tensor<576xbf16>) -> tensor<?x576xf32>
  // CHECK: llama.add %{{.*}}, %{{.*}} : (tensor<?x576xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
  %1 = llama.add %x, %0 : (tensor<?x576xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
  // CHECK: llama.silu %{{.*}} : (tensor<?x576xf32>) -> tensor<?x576xf32>
  %2 = llama.silu %1 : (tensor<?x576xf32>) -> tensor<?x576xf32>
  // CHECK: llama.mul %{{.*}}, %{{.*}} : (tensor<?x576xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
  %3 = llama.mul %1, %2 : (tensor<?x576xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
  // CHECK: llama.gather_rows %{{.*}}, %{{.*}} : (tensor<?x576xf32>, tensor<4xi32>) -> tensor<4x576xf32>
  %4 = llama.gather_rows %3, %rows : (tensor<?x576xf32>, tensor<4xi32>) -> tensor<4x576xf32>
  // CHECK: llama.linear %{{.*}}, %{{.*}} : (tensor<4x576xf32>, tensor<192x576xf16>) -> tensor<4x192xf32>
  %5 = llama.linear %4, %w : (tensor<4x576xf32>, tensor<192x576xf16>) -> tensor<4x192xf32>
  // CHECK: llama.linear %{{.*}}, %{{.*}} {leaves = 8 : i64} : (tensor<4x576xf32>, tensor<192x576xf16>) -> tensor<4x192xf32>
  %by_leaves = llama.linear %4, %w {leaves = 8 : i64} : (tensor<4x576xf32>, tensor<192x576xf16>) -> tensor<4x192xf32>
  return %5 : tensor<4x192xf32>
}

// CHECK-LABEL: func.func @gather_indices
func.func @gather_indices(%x: tensor<?xi32>, %rows: tensor<4xi32>) -> tensor<4xi32> {
  // CHECK: llama.gather_rows %{{.*}}, %{{.*}} : (tensor<?xi32>, tensor<4xi32>) -> tensor<4xi32>
  %0 = llama.gather_rows %x, %rows : (tensor<?xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// CHECK-LABEL: func.func @gather_heads
func.func @gather_heads(%x: tensor<?x2x8xf32>, %rows: tensor<4xi32>) -> tensor<4x2x8xf32> {
  // CHECK: llama.gather_rows %{{.*}}, %{{.*}} : (tensor<?x2x8xf32>, tensor<4xi32>) -> tensor<4x2x8xf32>
  %0 = llama.gather_rows %x, %rows : (tensor<?x2x8xf32>, tensor<4xi32>) -> tensor<4x2x8xf32>
  return %0 : tensor<4x2x8xf32>
}

// CHECK-LABEL: func.func @rotary
func.func @rotary(%x: tensor<?x24xf32>, %positions: tensor<?xi32>) -> tensor<?x24xf32> {
  // CHECK: llama.split_heads %{{.*}} heads = 3 : (tensor<?x24xf32>) -> tensor<?x3x8xf32>
  %0 = llama.split_heads %x heads = 3 : (tensor<?x24xf32>) -> tensor<?x3x8xf32>
  // CHECK: %rope = llama.rope_table %{{.*}} frequencies = dense<[1.000000e+00, 1.000000e-01, 1.000000e-02, 5.623413251903491E-4]> : tensor<4xf64> : (tensor<?xi32>) -> tensor<?x4x2xf32>
  %1 = llama.rope_table %positions frequencies = dense<[1.0, 0.1, 0.01, 0.00056234132519034911]> : tensor<4xf64> : (tensor<?xi32>) -> tensor<?x4x2xf32>
  // CHECK: llama.rope %{{.*}}, %rope : (tensor<?x3x8xf32>, tensor<?x4x2xf32>) -> tensor<?x3x8xf32>
  %2 = llama.rope %0, %1 : (tensor<?x3x8xf32>, tensor<?x4x2xf32>) -> tensor<?x3x8xf32>
  // CHECK: llama.merge_heads %{{.*}} : (tensor<?x3x8xf32>) -> tensor<?x24xf32>
  %3 = llama.merge_heads %2 : (tensor<?x3x8xf32>) -> tensor<?x24xf32>
  return %3 : tensor<?x24xf32>
}

// CHECK-LABEL: func.func @attention
// CHECK-SAME: !kv
func.func @attention(%q: tensor<?x9x64xf32>, %k: tensor<?x3x64xf32>, %v: tensor<?x3x64xf32>,
                     %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %state: !kv)
    -> (tensor<?x9x64xf32>, !kv) {
  // CHECK: %keyPositions, %keySequences = llama.cache_index %{{.*}}, %{{.*}}, %{{.*}} : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  %kp, %ks = llama.cache_index %state, %positions, %sequences : (!kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  // CHECK: %mask = llama.causal_mask %{{.*}}, %{{.*}}, %keyPositions, %keySequences : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  %m = llama.causal_mask %positions, %sequences, %kp, %ks : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>
  // CHECK: %kv = llama.cache_append %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (!kv, tensor<?x3x64xf32>, tensor<?x3x64xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %kv1 = llama.cache_append %state, %k, %v, %positions, %sequences : (!kv, tensor<?x3x64xf32>, tensor<?x3x64xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  // CHECK: %keys, %values = llama.cache_read %kv : (!kv) -> (tensor<?x3x64xf32>, tensor<?x3x64xf32>)
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (tensor<?x3x64xf32>, tensor<?x3x64xf32>)
  // CHECK: llama.attention_scores %{{.*}}, %keys : (tensor<?x9x64xf32>, tensor<?x3x64xf32>) -> tensor<9x?x?xf32>
  %0 = llama.attention_scores %q, %keys : (tensor<?x9x64xf32>, tensor<?x3x64xf32>) -> tensor<9x?x?xf32>
  // CHECK: llama.scale %{{.*}} by 1.250000e-01 : (tensor<9x?x?xf32>) -> tensor<9x?x?xf32>
  %1 = llama.scale %0 by 0.125 : (tensor<9x?x?xf32>) -> tensor<9x?x?xf32>
  // CHECK: llama.add_mask %{{.*}}, %mask : (tensor<9x?x?xf32>, tensor<?x?xf32>) -> tensor<9x?x?xf32>
  %2 = llama.add_mask %1, %m : (tensor<9x?x?xf32>, tensor<?x?xf32>) -> tensor<9x?x?xf32>
  // CHECK: llama.softmax %{{.*}} : (tensor<9x?x?xf32>) -> tensor<9x?x?xf32>
  %3 = llama.softmax %2 : (tensor<9x?x?xf32>) -> tensor<9x?x?xf32>
  // CHECK: llama.attention_values %{{.*}}, %values : (tensor<9x?x?xf32>, tensor<?x3x64xf32>) -> tensor<?x9x64xf32>
  %4 = llama.attention_values %3, %values : (tensor<9x?x?xf32>, tensor<?x3x64xf32>) -> tensor<?x9x64xf32>
  return %4, %kv1 : tensor<?x9x64xf32>, !kv
}

// CHECK-LABEL: func.func @fused_attention
func.func @fused_attention(%q: tensor<?x9x64xf32>, %state: !kv, %positions: tensor<?xi32>, %sequences: tensor<?xi32>) -> tensor<?x9x64xf32> {
  // CHECK: llama.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale = 1.250000e-01 : (tensor<?x9x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x9x64xf32>
  %0 = llama.attention %q, %state, %positions, %sequences scale = 0.125 : (tensor<?x9x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x9x64xf32>
  // CHECK: {approximation = #llama.approximation<exp = table256, top_k = 64>}
  %1 = llama.attention %0, %state, %positions, %sequences scale = 0.125 {approximation = #llama.approximation<exp = table256, top_k = 64>} : (tensor<?x9x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x9x64xf32>
  return %1 : tensor<?x9x64xf32>
}

}

// CHECK-LABEL: func.func @collectives
func.func @collectives(%tokens: tensor<?xi32>, %rank: tensor<1xi32>) -> tensor<?x128xf32> {
  // CHECK: llama.weight "tok_embeddings" {shard = #llama.shard<dim = 0, parts = 2, ranks = 4>} : tensor<52x64xbf16>
  %table = llama.weight "tok_embeddings" {shard = #llama.shard<dim = 0, parts = 2, ranks = 4>} : tensor<52x64xbf16>
  // CHECK: llama.embedding %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?xi32>, tensor<52x64xbf16>, tensor<1xi32>) -> tensor<?x64xf32>
  %0 = llama.embedding %tokens, %table, %rank : (tensor<?xi32>, tensor<52x64xbf16>, tensor<1xi32>) -> tensor<?x64xf32>
  // CHECK: llama.all_reduce %{{.*}} over 2 : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %1 = llama.all_reduce %0 over 2 : (tensor<?x64xf32>) -> tensor<?x64xf32>
  // CHECK: llama.all_reduce %{{.*}} over 4 {tree} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %by_tree = llama.all_reduce %0 over 4 {tree} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  // CHECK: llama.all_gather %{{.*}} over 2 : (tensor<?x64xf32>) -> tensor<?x128xf32>
  %2 = llama.all_gather %1 over 2 : (tensor<?x64xf32>) -> tensor<?x128xf32>
  return %2 : tensor<?x128xf32>
}
