// Attention in other equivalent forms is the same attention, and fuses; what only
// looks like it does not.
// RUN: llamac-opt %s --canonicalize --cse --fuse-attention | FileCheck %s
// RUN: llamac-opt %s --canonicalize --cse --fuse-attention --canonicalize --cse --fuse-attention | FileCheck %s

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

// Scores without a scale are scaled by one.
// CHECK-LABEL: func.func @unscaled
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %[[POS:[a-z0-9]*]]: tensor<?xi32>, %[[SEQ:[a-z0-9]*]]: tensor<?xi32>, %[[KV0:[a-z0-9]*]]: !kv
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append %[[KV0]]
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q]], %[[KV]], %[[POS]], %[[SEQ]] scale = 1.000000e+00 :
// CHECK-NEXT: return %[[O]]
func.func @unscaled(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.add_mask %0, %mask : (!scores, !mask) -> !scores
  %2 = llama.softmax %1 : (!scores) -> !scores
  %o = llama.attention_values %2, %values : (!scores, !heads) -> !q
  return %o : !q
}

// Two scales are one by their product.
// CHECK-LABEL: func.func @scaled_twice
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %[[POS:[a-z0-9]*]]: tensor<?xi32>, %[[SEQ:[a-z0-9]*]]: tensor<?xi32>, %[[KV0:[a-z0-9]*]]: !kv
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append %[[KV0]]
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q]], %[[KV]], %[[POS]], %[[SEQ]] scale = 2.500000e-01 :
// CHECK-NEXT: return %[[O]]
func.func @scaled_twice(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.5 : (!scores) -> !scores
  %2 = llama.scale %1 by 0.5 : (!scores) -> !scores
  %3 = llama.add_mask %2, %mask : (!scores, !mask) -> !scores
  %4 = llama.softmax %3 : (!scores) -> !scores
  %o = llama.attention_values %4, %values : (!scores, !heads) -> !q
  return %o : !q
}

// A scale by one is none.
// CHECK-LABEL: func.func @scaled_by_one
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %[[POS:[a-z0-9]*]]: tensor<?xi32>, %[[SEQ:[a-z0-9]*]]: tensor<?xi32>, %[[KV0:[a-z0-9]*]]: !kv
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append %[[KV0]]
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q]], %[[KV]], %[[POS]], %[[SEQ]] scale = 2.500000e-01 :
// CHECK-NEXT: return %[[O]]
func.func @scaled_by_one(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.scale %1 by 1.0 : (!scores) -> !scores
  %3 = llama.add_mask %2, %mask : (!scores, !mask) -> !scores
  %4 = llama.softmax %3 : (!scores) -> !scores
  %o = llama.attention_values %4, %values : (!scores, !heads) -> !q
  return %o : !q
}

// The query is scaled in place of the scores.
// CHECK-LABEL: func.func @scaled_query
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %[[POS:[a-z0-9]*]]: tensor<?xi32>, %[[SEQ:[a-z0-9]*]]: tensor<?xi32>, %[[KV0:[a-z0-9]*]]: !kv
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append %[[KV0]]
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q]], %[[KV]], %[[POS]], %[[SEQ]] scale = 2.500000e-01 :
// CHECK-NEXT: return %[[O]]
func.func @scaled_query(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.scale %q by 0.25 : (!q) -> !q
  %1 = llama.attention_scores %0, %keys : (!q, !heads) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// The keys are scaled in place of the scores.
// CHECK-LABEL: func.func @scaled_keys
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %[[POS:[a-z0-9]*]]: tensor<?xi32>, %[[SEQ:[a-z0-9]*]]: tensor<?xi32>, %[[KV0:[a-z0-9]*]]: !kv
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append %[[KV0]]
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q]], %[[KV]], %[[POS]], %[[SEQ]] scale = 2.500000e-01 :
// CHECK-NEXT: return %[[O]]
func.func @scaled_keys(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.scale %keys by 0.25 : (!heads) -> !heads
  %1 = llama.attention_scores %q, %0 : (!q, !heads) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// A part of the factor each.
// CHECK-LABEL: func.func @query_keys_and_scores_scaled
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %[[POS:[a-z0-9]*]]: tensor<?xi32>, %[[SEQ:[a-z0-9]*]]: tensor<?xi32>, %[[KV0:[a-z0-9]*]]: !kv
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append %[[KV0]]
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q]], %[[KV]], %[[POS]], %[[SEQ]] scale = 2.500000e-01 :
// CHECK-NEXT: return %[[O]]
func.func @query_keys_and_scores_scaled(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.scale %q by 0.5 : (!q) -> !q
  %1 = llama.scale %keys by 0.25 : (!heads) -> !heads
  %2 = llama.attention_scores %0, %1 : (!q, !heads) -> !scores
  %3 = llama.scale %2 by 2.0 : (!scores) -> !scores
  %4 = llama.add_mask %3, %mask : (!scores, !mask) -> !scores
  %5 = llama.softmax %4 : (!scores) -> !scores
  %o = llama.attention_values %5, %values : (!scores, !heads) -> !q
  return %o : !q
}

// Zero and minus infinity are the same when scaled.
// CHECK-LABEL: func.func @scaled_after_the_mask
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %[[POS:[a-z0-9]*]]: tensor<?xi32>, %[[SEQ:[a-z0-9]*]]: tensor<?xi32>, %[[KV0:[a-z0-9]*]]: !kv
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append %[[KV0]]
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q]], %[[KV]], %[[POS]], %[[SEQ]] scale = 2.500000e-01 :
// CHECK-NEXT: return %[[O]]
func.func @scaled_after_the_mask(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.add_mask %0, %mask : (!scores, !mask) -> !scores
  %2 = llama.scale %1 by 0.25 : (!scores) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// The mask of masked scores hides nothing more.
// CHECK-LABEL: func.func @masked_twice
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %[[POS:[a-z0-9]*]]: tensor<?xi32>, %[[SEQ:[a-z0-9]*]]: tensor<?xi32>, %[[KV0:[a-z0-9]*]]: !kv
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append %[[KV0]]
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q]], %[[KV]], %[[POS]], %[[SEQ]] scale = 2.500000e-01 :
// CHECK-NEXT: return %[[O]]
func.func @masked_twice(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.add_mask %0, %mask : (!scores, !mask) -> !scores
  %2 = llama.scale %1 by 0.25 : (!scores) -> !scores
  %3 = llama.add_mask %2, %mask : (!scores, !mask) -> !scores
  %4 = llama.softmax %3 : (!scores) -> !scores
  %o = llama.attention_values %4, %values : (!scores, !heads) -> !q
  return %o : !q
}

// Heads as rows and back are the heads.
// CHECK-LABEL: func.func @query_split_merged_and_split
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %[[POS:[a-z0-9]*]]: tensor<?xi32>, %[[SEQ:[a-z0-9]*]]: tensor<?xi32>, %[[KV0:[a-z0-9]*]]: !kv
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append %[[KV0]]
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q]], %[[KV]], %[[POS]], %[[SEQ]] scale = 2.500000e-01 :
// CHECK-NEXT: return %[[O]]
func.func @query_split_merged_and_split(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.merge_heads %q : (!q) -> tensor<?x64xf32>
  %1 = llama.split_heads %0 heads = 4 : (tensor<?x64xf32>) -> !q
  %2 = llama.attention_scores %1, %keys : (!q, !heads) -> !scores
  %3 = llama.scale %2 by 0.25 : (!scores) -> !scores
  %4 = llama.add_mask %3, %mask : (!scores, !mask) -> !scores
  %5 = llama.softmax %4 : (!scores) -> !scores
  %o = llama.attention_values %5, %values : (!scores, !heads) -> !q
  return %o : !q
}

// Two reads of one state of a layer give the same.
// CHECK-LABEL: func.func @keys_and_values_read_apart
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %{{[a-z0-9]*}}: tensor<?x2x16xf32>, %[[POS:[a-z0-9]*]]: tensor<?xi32>, %[[SEQ:[a-z0-9]*]]: tensor<?xi32>, %[[KV0:[a-z0-9]*]]: !kv
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append %[[KV0]]
// CHECK-NEXT: %[[O:.*]] = llama.attention %[[Q]], %[[KV]], %[[POS]], %[[SEQ]] scale = 2.500000e-01 :
// CHECK-NEXT: return %[[O]]
func.func @keys_and_values_read_apart(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %keys2, %values2 = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values2 : (!scores, !heads) -> !q
  return %o : !q
}

// Attention of some rows of the step: those of the query and of the mask.
// CHECK-LABEL: func.func @some_rows
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %{{.*}}, %[[POS:[a-z0-9]*]]: tensor<?xi32>, %[[SEQ:[a-z0-9]*]]: tensor<?xi32>, %{{.*}}, %[[R:.*]]: tensor<?xi32>)
// CHECK-NEXT: %[[P:.*]] = llama.gather_rows %[[POS]], %[[R]]
// CHECK-NEXT: %[[S:.*]] = llama.gather_rows %[[SEQ]], %[[R]]
// CHECK-NEXT: %[[KV:.*]] = llama.cache_append
// CHECK-NEXT: llama.attention %[[Q]], %[[KV]], %[[P]], %[[S]] scale = 2.500000e-01
func.func @some_rows(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %rows: !indices) -> !q {
  %p = llama.gather_rows %pos, %rows : (!indices, !indices) -> !indices
  %s = llama.gather_rows %seq, %rows : (!indices, !indices) -> !indices
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %p, %s, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// The mask and the cos/sin cache are made once for two layers, or for
// each: both fuse.
// CHECK-LABEL: func.func @mask_shared_by_layers
// CHECK-NOT: llama.causal_mask
// CHECK: llama.attention %{{.*}} scale = 2.500000e-01
// CHECK: llama.attention %{{.*}} scale = 2.500000e-01
// CHECK-LABEL: func.func @a_mask_for_each_layer
// CHECK-NOT: llama.causal_mask
// CHECK: llama.attention %{{.*}} scale = 2.500000e-01
// CHECK: llama.attention %{{.*}} scale = 2.500000e-01
func.func @mask_shared_by_layers(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %other: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv0 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys0, %values0 = llama.cache_read %kv0 : (!kv) -> (!heads, !heads)
  %s0 = llama.attention_scores %q, %keys0 : (!q, !heads) -> !scores
  %t0 = llama.scale %s0 by 0.25 : (!scores) -> !scores
  %m0 = llama.add_mask %t0, %mask : (!scores, !mask) -> !scores
  %p0 = llama.softmax %m0 : (!scores) -> !scores
  %o0 = llama.attention_values %p0, %values0 : (!scores, !heads) -> !q
  %kv1 = llama.cache_append %other, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys1, %values1 = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %s1 = llama.attention_scores %o0, %keys1 : (!q, !heads) -> !scores
  %t1 = llama.scale %s1 by 0.25 : (!scores) -> !scores
  %m1 = llama.add_mask %t1, %mask : (!scores, !mask) -> !scores
  %p1 = llama.softmax %m1 : (!scores) -> !scores
  %o1 = llama.attention_values %p1, %values1 : (!scores, !heads) -> !q
  return %o1 : !q
}
func.func @a_mask_for_each_layer(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %other: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kp2, %ks2 = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask2 = llama.causal_mask %pos, %seq, %kp2, %ks2 : (!indices, !indices, !indices, !indices) -> !mask
  %kv0 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys0, %values0 = llama.cache_read %kv0 : (!kv) -> (!heads, !heads)
  %s0 = llama.attention_scores %q, %keys0 : (!q, !heads) -> !scores
  %t0 = llama.scale %s0 by 0.25 : (!scores) -> !scores
  %m0 = llama.add_mask %t0, %mask : (!scores, !mask) -> !scores
  %p0 = llama.softmax %m0 : (!scores) -> !scores
  %o0 = llama.attention_values %p0, %values0 : (!scores, !heads) -> !q
  %kv1 = llama.cache_append %other, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys1, %values1 = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %s1 = llama.attention_scores %o0, %keys1 : (!q, !heads) -> !scores
  %t1 = llama.scale %s1 by 0.25 : (!scores) -> !scores
  %m1 = llama.add_mask %t1, %mask2 : (!scores, !mask) -> !scores
  %p1 = llama.softmax %m1 : (!scores) -> !scores
  %o1 = llama.attention_values %p1, %values1 : (!scores, !heads) -> !q
  return %o1 : !q
}

// Every query head has its own key head.
!mha_q = tensor<?x2x16xf32>
!mha_kv = !llama.kv<heads = 2, size = 16>
!mha_heads = tensor<?x2x16xf32>
!mha_scores = tensor<2x?x?xf32>

// CHECK-LABEL: func.func @as_many_keys_as_queries
// CHECK: llama.attention %{{.*}} scale = 2.500000e-01 : (tensor<?x2x16xf32>, {{.*}}) -> tensor<?x2x16xf32>
// CHECK-NOT: llama.attention_values
func.func @as_many_keys_as_queries(%q: !mha_q, %k: !mha_heads, %v: !mha_heads, %pos: !indices, %seq: !indices, %kv: !mha_kv) -> !mha_q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!mha_kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!mha_kv, !mha_heads, !mha_heads, !indices, !indices) -> !mha_kv
  %keys, %values = llama.cache_read %kv1 : (!mha_kv) -> (!mha_heads, !mha_heads)
  %0 = llama.attention_scores %q, %keys : (!mha_q, !mha_heads) -> !mha_scores
  %1 = llama.scale %0 by 0.25 : (!mha_scores) -> !mha_scores
  %2 = llama.add_mask %1, %mask : (!mha_scores, !mask) -> !mha_scores
  %3 = llama.softmax %2 : (!mha_scores) -> !mha_scores
  %o = llama.attention_values %3, %values : (!mha_scores, !mha_heads) -> !mha_q
  return %o : !mha_q
}

// All query heads read one key head.
!mqa_q = tensor<?x8x16xf32>
!mqa_kv = !llama.kv<heads = 1, size = 16>
!mqa_heads = tensor<?x1x16xf32>
!mqa_scores = tensor<8x?x?xf32>

// CHECK-LABEL: func.func @one_key_for_all_queries
// CHECK: llama.attention %{{.*}} scale = 2.500000e-01 : (tensor<?x8x16xf32>, {{.*}}) -> tensor<?x8x16xf32>
// CHECK-NOT: llama.attention_values
func.func @one_key_for_all_queries(%q: !mqa_q, %k: !mqa_heads, %v: !mqa_heads, %pos: !indices, %seq: !indices, %kv: !mqa_kv) -> !mqa_q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!mqa_kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!mqa_kv, !mqa_heads, !mqa_heads, !indices, !indices) -> !mqa_kv
  %keys, %values = llama.cache_read %kv1 : (!mqa_kv) -> (!mqa_heads, !mqa_heads)
  %0 = llama.attention_scores %q, %keys : (!mqa_q, !mqa_heads) -> !mqa_scores
  %1 = llama.scale %0 by 0.25 : (!mqa_scores) -> !mqa_scores
  %2 = llama.add_mask %1, %mask : (!mqa_scores, !mask) -> !mqa_scores
  %3 = llama.softmax %2 : (!mqa_scores) -> !mqa_scores
  %o = llama.attention_values %3, %values : (!mqa_scores, !mqa_heads) -> !mqa_q
  return %o : !mqa_q
}

// A bias on the scores is no part of attention.
// CHECK-LABEL: func.func @scores_with_a_bias
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @scores_with_a_bias(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %bias: !scores) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %b = llama.add %1, %bias : (!scores, !scores) -> !scores
  %2 = llama.add_mask %b, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// Nothing says that this mask may be scaled.
// CHECK-LABEL: func.func @scaled_after_another_mask
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @scaled_after_another_mask(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %other: !mask) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %m = llama.add_mask %0, %other : (!scores, !mask) -> !scores
  %1 = llama.scale %m by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// The scaled scores are a result.
// CHECK-LABEL: func.func @scaled_scores_read_elsewhere
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @scaled_scores_read_elsewhere(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> (!q, !scores) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.5 : (!scores) -> !scores
  %2 = llama.scale %1 by 0.5 : (!scores) -> !scores
  %3 = llama.add_mask %2, %mask : (!scores, !mask) -> !scores
  %4 = llama.softmax %3 : (!scores) -> !scores
  %o = llama.attention_values %4, %values : (!scores, !heads) -> !q
  return %o, %2 : !q, !scores
}

// One softmax, two products of values: the probabilities are needed.
// CHECK-LABEL: func.func @probabilities_of_two_products
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @probabilities_of_two_products(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> (!q, !q) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  %o2 = llama.attention_values %3, %keys : (!scores, !heads) -> !q
  return %o, %o2 : !q, !q
}

// Softmax of softmax.
// CHECK-LABEL: func.func @softmax_of_probabilities
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @softmax_of_probabilities(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %4 = llama.softmax %3 : (!scores) -> !scores
  %o = llama.attention_values %4, %values : (!scores, !heads) -> !q
  return %o : !q
}

// Another layer's values.
// CHECK-LABEL: func.func @values_of_the_other_layer
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @values_of_the_other_layer(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %other: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %kv2 = llama.cache_append %other, %v, %k, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %keys0, %values0 = llama.cache_read %kv2 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values0 : (!scores, !heads) -> !q
  return %o : !q
}

// The layer is appended to between the read of the keys and that of the values.
// CHECK-LABEL: func.func @values_of_a_later_state
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @values_of_a_later_state(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %kv2 = llama.cache_append %kv1, %v, %k, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys2, %values2 = llama.cache_read %kv2 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values2 : (!scores, !heads) -> !q
  return %o : !q
}

// Positions of some rows, sequences of others.
// CHECK-LABEL: func.func @positions_and_sequences_of_different_rows
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @positions_and_sequences_of_different_rows(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %rows: !indices, %others: !indices) -> !q {
  %p = llama.gather_rows %pos, %rows : (!indices, !indices) -> !indices
  %s = llama.gather_rows %seq, %others : (!indices, !indices) -> !indices
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %p, %s, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// Scores times scores.
// CHECK-LABEL: func.func @products_of_scores
// CHECK-NOT: llama.attention %
// CHECK: llama.attention_values
// CHECK-NOT: llama.attention %
func.func @products_of_scores(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %b = llama.mul %1, %1 : (!scores, !scores) -> !scores
  %2 = llama.add_mask %b, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}
