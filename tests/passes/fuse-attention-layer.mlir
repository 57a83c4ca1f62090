// An attention layer is two launches, the turn with the append and attention,
// however it is written.
// RUN: llamac-opt %s --llamac-graph --fuse-attention --prune-rows --canonicalize --lower-to-kernels --fuse-epilogue --fuse-norm --fuse-qkv | FileCheck %s
// RUN: llamac-opt %s --llamac-graph --fuse-attention --prune-rows --canonicalize --lower-to-kernels --fuse-epilogue --fuse-norm --fuse-qkv --canonicalize --cse --fuse-epilogue --fuse-norm | FileCheck %s

!indices = tensor<?xi32>
!wide = tensor<?x64xf32>
!narrow = tensor<?x32xf32>
!q = tensor<?x4x16xf32>
!heads = tensor<?x2x16xf32>
!scores = tensor<4x?x?xf32>
!mask = tensor<?x?xf32>
!table = tensor<?x8x2xf32>
!kv = !llama.kv<heads = 2, size = 16>

// The frontends write it like this.
// CHECK-LABEL: func.func @as_built
// CHECK-SAME: (%[[Q:.*]]: tensor<?x64xf32>, %[[K:.*]]: tensor<?x32xf32>, %[[V:.*]]: tensor<?x32xf32>, %[[POS:.*]]: tensor<?xi32>, %[[SEQ:.*]]: tensor<?xi32>, %[[KV:.*]]: !kv)
// CHECK-NEXT: %[[T:.*]] = kernel.rope_table %[[POS]]
// CHECK-NEXT: %[[ROTATED:.*]], %[[NEW:.*]] = kernel.rope_append %[[Q]], %[[K]], %[[V]], %[[T]] into %[[KV]] at %[[POS]], %[[SEQ]]
// CHECK-NEXT: %[[O:.*]] = kernel.attention %[[ROTATED]] over %[[NEW]] at %[[POS]], %[[SEQ]] {scale = 2.500000e-01 : f64}
// CHECK-NEXT: return %[[O]], %[[NEW]]
func.func @as_built(%q2: !wide, %k2: !narrow, %v2: !narrow, %pos: !indices, %seq: !indices, %kv: !kv) -> (!wide, !kv) {
  %table = llama.rope_table %pos frequencies = dense<1.0> : tensor<8xf64> : (!indices) -> !table
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %q3 = llama.split_heads %q2 heads = 4 : (!wide) -> !q
  %k3 = llama.split_heads %k2 heads = 2 : (!narrow) -> !heads
  %v3 = llama.split_heads %v2 heads = 2 : (!narrow) -> !heads
  %q = llama.rope %q3, %table : (!q, !table) -> !q
  %k = llama.rope %k3, %table : (!heads, !table) -> !heads
  %kv1 = llama.cache_append %kv, %k, %v3, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %s = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %t = llama.scale %s by 0.25 : (!scores) -> !scores
  %m = llama.add_mask %t, %mask : (!scores, !mask) -> !scores
  %p = llama.softmax %m : (!scores) -> !scores
  %o3 = llama.attention_values %p, %values : (!scores, !heads) -> !q
  %o = llama.merge_heads %o3 : (!q) -> !wide
  return %o, %kv1 : !wide, !kv
}

// The query is scaled before it is in heads, each rope has a table, keys and
// values are read apart, heads become rows and heads again.
// CHECK-LABEL: func.func @in_other_words
// CHECK-SAME: (%[[Q:.*]]: tensor<?x64xf32>, %[[K:.*]]: tensor<?x32xf32>, %[[V:.*]]: tensor<?x32xf32>, %[[POS:.*]]: tensor<?xi32>, %[[SEQ:.*]]: tensor<?xi32>, %[[KV:.*]]: !kv)
// CHECK-NEXT: %[[T:.*]] = kernel.rope_table %[[POS]]
// CHECK-NEXT: %[[ROTATED:.*]], %[[NEW:.*]] = kernel.rope_append %[[Q]], %[[K]], %[[V]], %[[T]] into %[[KV]] at %[[POS]], %[[SEQ]]
// CHECK-NEXT: %[[O:.*]] = kernel.attention %[[ROTATED]] over %[[NEW]] at %[[POS]], %[[SEQ]] {scale = 2.500000e-01 : f64}
// CHECK-NEXT: return %[[O]], %[[NEW]]
func.func @in_other_words(%q2: !wide, %k2: !narrow, %v2: !narrow, %pos: !indices, %seq: !indices, %kv: !kv) -> (!wide, !kv) {
  %k3 = llama.split_heads %k2 heads = 2 : (!narrow) -> !heads
  %v3 = llama.split_heads %v2 heads = 2 : (!narrow) -> !heads
  %v4 = llama.merge_heads %v3 : (!heads) -> !narrow
  %v5 = llama.split_heads %v4 heads = 2 : (!narrow) -> !heads
  %table = llama.rope_table %pos frequencies = dense<1.0> : tensor<8xf64> : (!indices) -> !table
  %k = llama.rope %k3, %table : (!heads, !table) -> !heads
  %kv1 = llama.cache_append %kv, %k, %v5, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %scaled = llama.scale %q2 by 0.5 : (!wide) -> !wide
  %q3 = llama.split_heads %scaled heads = 4 : (!wide) -> !q
  %table2 = llama.rope_table %pos frequencies = dense<1.0> : tensor<8xf64> : (!indices) -> !table
  %q = llama.rope %q3, %table2 : (!q, !table) -> !q
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %s = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %m = llama.add_mask %s, %mask : (!scores, !mask) -> !scores
  %t = llama.scale %m by 0.5 : (!scores) -> !scores
  %p = llama.softmax %t : (!scores) -> !scores
  %keys2, %values2 = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %o3 = llama.attention_values %p, %values2 : (!scores, !heads) -> !q
  %o = llama.merge_heads %o3 : (!q) -> !wide
  return %o, %kv1 : !wide, !kv
}
