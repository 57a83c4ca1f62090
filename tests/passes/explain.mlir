// With explain, what is left unfused is remarked on where it stands, with the
// reason and the other ops of it.
// RUN: llamac-opt %s --split-input-file --verify-diagnostics --fuse-attention=explain --fuse-epilogue=explain --fuse-norm=explain --fuse-embed=explain

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @probabilities_returned(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> (!q, !scores) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the probabilities have another reader}}
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  // expected-note @below {{also read by func.return}}
  return %o, %3 : !q, !scores
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @masked_scores_returned(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> (!q, !scores) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the scores of the softmax have another reader}}
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  // expected-note @below {{also read by func.return}}
  return %o, %2 : !q, !scores
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @scaled_scores_read_twice(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> (!q, !scores) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the scaled scores have another reader}}
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  // expected-note @below {{also read by llama.silu}}
  %b = llama.silu %1 : (!scores) -> !scores
  // expected-note @below {{also read by llama.mul}}
  %c = llama.mul %1, %b : (!scores, !scores) -> !scores
  return %o, %c : !q, !scores
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @scores_returned(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> (!q, !scores) {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the scores have another reader}}
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  // expected-note @below {{also read by func.return}}
  return %o, %0 : !q, !scores
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @no_softmax(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.add_mask %0, %mask : (!scores, !mask) -> !scores
  // expected-remark @below {{not fused: the probabilities are not made by llama.softmax}}
  %o = llama.attention_values %1, %values : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @no_mask(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.softmax %0 : (!scores) -> !scores
  // expected-remark @below {{not fused: the scores of the softmax are not made by llama.add_mask}}
  %o = llama.attention_values %1, %values : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @bias(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %bias: !scores) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %b = llama.add %0, %bias : (!scores, !scores) -> !scores
  %1 = llama.add_mask %b, %mask : (!scores, !mask) -> !scores
  %2 = llama.softmax %1 : (!scores) -> !scores
  // expected-remark @below {{not fused: the scores are not made by llama.attention_scores}}
  %o = llama.attention_values %2, %values : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @other_keys(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %k : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the keys are not the cache's}}
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @other_values(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the values are not the cache's}}
  %o = llama.attention_values %3, %v : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @layers_differ(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %other: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %other1 = llama.cache_append %other, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys0, %values0 = llama.cache_read %other1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: keys and values are of different caches}}
  %o = llama.attention_values %3, %values0 : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @states_differ(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %keys0, %values0 = llama.cache_read %kv : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: keys and values are of different caches}}
  %o = llama.attention_values %3, %values0 : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @another_mask(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %other: !mask) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %other : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the mask is not a causal mask}}
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @keys_not_indexed(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %ks, %kp : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the mask's keys are not those of an index of the cache}}
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @mask_of_other_rows(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %other: !indices) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %other, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the mask is of other rows than the index of the cache}}
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @append_of_other_rows(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %other: !indices) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %other, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the mask is of other rows than those appended to the cache}}
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @layer_not_appended(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %other: !kv) -> !q {
  %kp, %ks = llama.cache_index %kv, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %other : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the step's rows are not appended to the layer before it is read}}
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// -----

!indices = tensor<?xi32>
!q = tensor<?x4x16xf32>
!kv = !llama.kv<heads = 2, size = 16>
!heads = tensor<?x2x16xf32>
!mask = tensor<?x?xf32>
!scores = tensor<4x?x?xf32>

func.func @another_step(%q: !q, %k: !heads, %v: !heads, %pos: !indices, %seq: !indices, %kv: !kv, %other: !kv) -> !q {
  %other1 = llama.cache_append %other, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %kp, %ks = llama.cache_index %other1, %pos, %seq : (!kv, !indices, !indices) -> (!indices, !indices)
  %mask = llama.causal_mask %pos, %seq, %kp, %ks : (!indices, !indices, !indices, !indices) -> !mask
  %kv1 = llama.cache_append %kv, %k, %v, %pos, %seq : (!kv, !heads, !heads, !indices, !indices) -> !kv
  %keys, %values = llama.cache_read %kv1 : (!kv) -> (!heads, !heads)
  %0 = llama.attention_scores %q, %keys : (!q, !heads) -> !scores
  %1 = llama.scale %0 by 0.25 : (!scores) -> !scores
  %2 = llama.add_mask %1, %mask : (!scores, !mask) -> !scores
  %3 = llama.softmax %2 : (!scores) -> !scores
  // expected-remark @below {{not fused: the mask is of another state of the cache}}
  %o = llama.attention_values %3, %values : (!scores, !heads) -> !q
  return %o : !q
}

// -----

// The caller reads the product too.
func.func @product_returned(%x: tensor<?x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  // expected-remark @below {{not fused: the kernel.matmul that makes operand 0 has another reader}}
  %1 = kernel.pointwise %0 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-note @below {{also read by func.return}}
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

func.func @pointwise_read_twice(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %n: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // expected-remark @below {{not fused: no operand is made by a product or a norm}}
  %0 = kernel.pointwise %x body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-remark @below {{not fused: the kernel.pointwise that makes operand 1 has another reader}}
  %1 = kernel.pointwise %y, %0 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-note @below {{also read by kernel.rms_norm}}
  // expected-remark @below {{not fused: a reader is no product}}
  %2 = kernel.rms_norm %0, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // expected-note @below {{read by func.return}}
  return %1, %2 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// The gate is of one input, up of another.
func.func @inputs_differ(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %w: tensor<8x8xbf16>) -> tensor<?x8xf32> {
  // expected-note @below {{the other product}}
  %u = kernel.matmul %y, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  // expected-remark @below {{not fused: two products with different inputs}}
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %1 = kernel.pointwise %0 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = kernel.pointwise %1, %u body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// Only the gate is of the norm.
func.func @norms_differ(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<8x8xbf16>) -> tensor<?x8xf32> {
  // expected-note @below {{the other product}}
  %u = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  // expected-remark @below {{not fused: two products with different norms}}
  %0 = kernel.matmul %x, %w norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8x8xbf16>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = kernel.pointwise %0 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = kernel.pointwise %1, %u body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// One walk reads weights of one format.
func.func @formats_differ(%x: tensor<?x8xf32>, %w: tensor<8x8xbf16>, %v: tensor<8x8xf32>) -> tensor<?x8xf32> {
  // expected-note @below {{the other product}}
  %u = kernel.matmul %x, %v epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // expected-remark @below {{not fused: two products with weights of different types, bf16 and f32}}
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %1 = kernel.pointwise %0 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = kernel.pointwise %1, %u body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// Two of them are joined.
func.func @three_products(%x: tensor<?x8xf32>, %w: tensor<8x8xbf16>) -> tensor<?x8xf32> {
  // expected-note @below {{the other product}}
  %u = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  // expected-remark @below {{not fused: two products with more than two weights}}
  %0 = kernel.matmul %x, %w, %w epilogue {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %1 = kernel.pointwise %0 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = kernel.pointwise %1, %u body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

func.func @norm_returned(%x: tensor<?x8xf32>, %n: tensor<8xf32>) -> tensor<?x8xf32> {
  // expected-remark @below {{not fused: a reader is no product}}
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // expected-note @below {{read by func.return}}
  return %0 : tensor<?x8xf32>
}

// -----

// The second norm goes into the product.
func.func @norm_of_a_norm(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<8x8xbf16>) -> tensor<?x8xf32> {
  // expected-remark @below {{not fused: a product that reads it has a norm}}
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // expected-note @below {{read by kernel.matmul}}
  %1 = kernel.matmul %0, %w norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8x8xbf16>, tensor<8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

func.func @norm_in_an_epilogue(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<8x8xbf16>) -> tensor<?x8xf32> {
  // expected-remark @below {{not fused: a product reads it in its epilogue}}
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // expected-note @below {{read by kernel.matmul}}
  %1 = kernel.matmul %x, %w extras(%0) epilogue {
  ^bb0(%acc: f32, %e: f32):
    %s = arith.addf %acc, %e : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<8x8xbf16>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// A fused op is not spoken of, nor is a residual that others read too.
func.func @fused(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<8x8xbf16>) -> tensor<?x8xf32> {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %1 = kernel.rms_norm %0, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %2 = kernel.matmul %1, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %3 = kernel.matmul %1, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %4 = kernel.pointwise %2 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %5 = kernel.pointwise %3, %4 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %6 = kernel.matmul %5, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %7 = kernel.pointwise %0, %6 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %7 : tensor<?x8xf32>
}

// -----

func.func @cosines_of_other_rows(%tokens: tensor<?xi32>, %pos: tensor<?xi32>, %w: tensor<9x8xbf16>, %rows: tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x2x2xf32>) {
  %x = kernel.embed %tokens, %w : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  %p = kernel.gather_rows %pos, %rows : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  // expected-remark @below {{not fused: no embedding of the same rows is without a table}}
  %t = kernel.rope_table %p {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x2xf32>
  return %x, %t : tensor<?x8xf32>, tensor<?x2x2xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 8>

func.func @key_not_normalised(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<8xf32>, %m: tensor<4xf32>, %t: tensor<?x4x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // expected-remark @below {{not fused: a reader is no product}}
  %0 = kernel.rms_norm %q, %n {eps = 1.0e-5 : f64} : (tensor<?x32xf32>, tensor<8xf32>) -> tensor<?x32xf32>
  // expected-remark @below {{not fused: query and key are not both normalised}}
  // expected-note @below {{read by kernel.rope_append}}
  %2:2 = kernel.rope_append %0, %k, %k, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !kv)
  return %2#0, %2#0 : tensor<?x32xf32>, tensor<?x32xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 8>

func.func @norm_read_twice(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<8xf32>, %m: tensor<4xf32>, %t: tensor<?x4x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // expected-remark @below {{not fused: a reader is no product}}
  %0 = kernel.rms_norm %q, %n {eps = 1.0e-5 : f64} : (tensor<?x32xf32>, tensor<8xf32>) -> tensor<?x32xf32>
  // expected-remark @below {{not fused: a reader is no product}}
  %1 = kernel.rms_norm %k, %n {eps = 1.0e-5 : f64} : (tensor<?x16xf32>, tensor<8xf32>) -> tensor<?x16xf32>
  // expected-remark @below {{not fused: the norm of query or key has another reader}}
  // expected-note @below {{read by kernel.rope_append}}
  %2:2 = kernel.rope_append %0, %1, %k, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !kv)
  // expected-note @below {{read by func.return}}
  return %2#0, %0 : tensor<?x32xf32>, tensor<?x32xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 8>

func.func @norms_of_another_eps(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<8xf32>, %m: tensor<4xf32>, %t: tensor<?x4x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // expected-remark @below {{not fused: a reader is no product}}
  %0 = kernel.rms_norm %q, %n {eps = 1.0e-5 : f64} : (tensor<?x32xf32>, tensor<8xf32>) -> tensor<?x32xf32>
  // expected-remark @below {{not fused: a reader is no product}}
  %1 = kernel.rms_norm %k, %n {eps = 1.0e-6 : f64} : (tensor<?x16xf32>, tensor<8xf32>) -> tensor<?x16xf32>
  // expected-remark @below {{not fused: the norms of query and key differ in eps}}
  // expected-note @below {{read by kernel.rope_append}}
  %2:2 = kernel.rope_append %0, %1, %k, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !kv)
  return %2#0, %2#0 : tensor<?x32xf32>, tensor<?x32xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 8>

func.func @norms_of_half_heads(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %n: tensor<8xf32>, %m: tensor<4xf32>, %t: tensor<?x4x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // expected-remark @below {{not fused: a reader is no product}}
  %0 = kernel.rms_norm %q, %n {eps = 1.0e-5 : f64} : (tensor<?x32xf32>, tensor<8xf32>) -> tensor<?x32xf32>
  // expected-remark @below {{not fused: a reader is no product}}
  %1 = kernel.rms_norm %k, %m {eps = 1.0e-5 : f64} : (tensor<?x16xf32>, tensor<4xf32>) -> tensor<?x16xf32>
  // expected-remark @below {{not fused: the norm of query or key is not one of whole heads alone}}
  // expected-note @below {{read by kernel.rope_append}}
  %2:2 = kernel.rope_append %0, %1, %k, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !kv)
  return %2#0, %2#0 : tensor<?x32xf32>, tensor<?x32xf32>
}
