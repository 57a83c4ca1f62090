// Launches get memory in the order of their kernel's arguments, and a barrier
// exactly where one depends on another since the last barrier.
// RUN: llamac-opt %s --split-input-file --attach-target --lower-to-plan | FileCheck %s

// Operands, then results; a buffer for each result, of the row bound's size.
// Both readers of %x may run at once, so neither overwrites it.
// CHECK-LABEL: plan.program @independent
// CHECK: %[[TOKENS:.*]] = plan.input tokens
// CHECK: %[[POS:.*]] = plan.input positions
// CHECK: %[[SEQ:.*]] = plan.input sequences
// CHECK: %[[WANTED:.*]] = plan.input logits_rows
// CHECK: %[[E:.*]] = plan.weight "tok_embeddings" : tensor<9x8xbf16>
// CHECK: %[[X:.*]] = plan.buffer 128{{ *$}}
// CHECK: plan.launch @[[EMBED:.*]](%[[TOKENS]], %[[E]], %[[X]]) rows tokens{{ *$}}
// Nothing it reads is written by a launch.
// CHECK: %[[T:.*]] = plan.buffer 64{{ *$}}
// CHECK: plan.launch @{{.*}}(%[[POS]], %[[T]]) rows tokens{{ *$}}
// It reads what the first launch writes.
// CHECK: %[[Y:.*]] = plan.buffer 128
// CHECK: plan.launch @{{.*}}(%[[X]], %[[Y]]) rows tokens barrier
// The same operand, read beside it.
// CHECK: %[[Z:.*]] = plan.buffer 128
// CHECK: plan.launch @{{.*}}(%[[X]], %[[Z]]) rows tokens{{ *$}}
// Rows behind gather_rows are the logits rows, at most two here.
// CHECK: %[[L:.*]] = plan.buffer 64{{ *$}}
// CHECK: plan.launch @{{.*}}(%[[Y]], %[[WANTED]], %[[L]]) rows logits_rows barrier
// CHECK: plan.logits %[[L]]
// CHECK: } {max_logits_rows = 2 : i64, max_rows = 4 : i64}
// CHECK: plan.kernel @[[EMBED]](activation, weight, result) family "embed" roles ["tok_embeddings"] geometry <items = {{.*}}> {
func.func @independent(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}, %pos: tensor<?xi32> {llama.role = #llama.role<positions>}, %seq: tensor<?xi32> {llama.role = #llama.role<sequences>}, %wanted: tensor<?xi32> {llama.role = #llama.role<logits_rows>}, %kv: !llama.kv<heads = 1, size = 8> {llama.role = #llama.role<kv, layer = 0>})
    -> (tensor<?x8xf32>, !llama.kv<heads = 1, size = 8>) attributes {llamac.max_logits_rows = 2 : i64, llamac.max_rows = 4 : i64} {
  %e = llama.weight "tok_embeddings" : tensor<9x8xbf16>
  %x = kernel.embed %tokens, %e : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  %t = kernel.rope_table %pos {frequencies = dense<[1.0, 0.1]> : tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x2xf32>
  %y = kernel.pointwise %x body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %z = kernel.pointwise %x body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %l = kernel.gather_rows %y, %wanted : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %l, %kv : tensor<?x8xf32>, !llama.kv<heads = 1, size = 8>
}

// -----

// The last reader overwrites an operand that it reads element by element, but
// not one that a caller's later launch reads, nor the input of the product.
// CHECK-LABEL: plan.program @in_place
// CHECK: %[[X:.*]] = plan.buffer 128
// CHECK: plan.launch @{{.*}}(%{{.*}}, %[[X]])
// CHECK: %[[Y:.*]] = plan.buffer 128
// CHECK: plan.launch @{{.*}}(%[[X]], %[[W:.*]], %[[X]], %[[Y]])
// CHECK-NOT: plan.buffer
// CHECK: plan.launch @{{.*}}(%[[X]], %[[W]], %[[Y]], %[[Y]])
// CHECK-NOT: plan.buffer
// CHECK: plan.launch @{{.*}}(%[[X]], %[[Y]], %[[X]])
// CHECK: plan.logits %[[X]]
func.func @in_place(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}, %pos: tensor<?xi32> {llama.role = #llama.role<positions>}, %seq: tensor<?xi32> {llama.role = #llama.role<sequences>}, %wanted: tensor<?xi32> {llama.role = #llama.role<logits_rows>}, %kv: !llama.kv<heads = 1, size = 8> {llama.role = #llama.role<kv, layer = 0>})
    -> (tensor<?x8xf32>, !llama.kv<heads = 1, size = 8>) attributes {llamac.max_logits_rows = 4 : i64, llamac.max_rows = 4 : i64} {
  %e = llama.weight "tok_embeddings" : tensor<9x8xbf16>
  %w = llama.weight "w" : tensor<8x8xbf16>
  %x = kernel.embed %tokens, %e : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  %y = kernel.matmul %x, %w extras(%x) epilogue {
  ^bb0(%acc: f32, %r: f32):
    %s = arith.addf %acc, %r : f32
    kernel.yield %s
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 4>} : (tensor<?x8xf32>, tensor<8x8xbf16>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %z = kernel.matmul %x, %w extras(%y) epilogue {
  ^bb0(%acc: f32, %r: f32):
    %s = arith.addf %acc, %r : f32
    kernel.yield %s
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 4>} : (tensor<?x8xf32>, tensor<8x8xbf16>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %l = kernel.pointwise %x, %z body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %l, %kv : tensor<?x8xf32>, !llama.kv<heads = 1, size = 8>
}

// -----

!kv = !llama.kv<heads = 1, size = 8>

// The cache is one piece of memory for each layer; the page table comes behind
// the operands and before the results. An append orders itself against the
// reads of its own layer alone.
// CHECK-LABEL: plan.program @cache
// CHECK: %[[POS:.*]] = plan.input positions
// CHECK: %[[SEQ:.*]] = plan.input sequences
// CHECK: %[[KV0:.*]] = plan.kv layer 0
// CHECK: %[[KV1:.*]] = plan.kv layer 1
// CHECK: %[[PAGES:.*]] = plan.input page_table
// CHECK: plan.launch @[[APPEND:.*]](%[[X:.*]], %[[X]], %[[X]], %[[T:.*]], %[[KV0]], %[[POS]], %[[SEQ]], %[[PAGES]], %[[Q0:.*]]) rows tokens barrier
// CHECK-NOT: plan.input page_table
// CHECK: plan.launch @[[APPEND]](%[[X]], %[[X]], %[[X]], %[[T]], %[[KV1]], %[[POS]], %[[SEQ]], %[[PAGES]], %[[Q1:.*]]) rows tokens{{ *$}}
// CHECK: plan.launch @[[ATTENTION:.*]](%[[Q0]], %[[KV0]], %[[POS]], %[[SEQ]], %[[PAGES]], %{{.*}}) rows tokens barrier
// CHECK: plan.launch @[[ATTENTION]](%[[Q1]], %[[KV1]], %[[POS]], %[[SEQ]], %[[PAGES]], %{{.*}}) rows tokens{{ *$}}
// Layer 0 is overwritten: all reads of it must be done.
// CHECK: plan.launch @[[APPEND]](%[[X]], {{.*}}, %[[KV0]], {{.*}}) rows tokens barrier
// CHECK-NOT: plan.launch
// CHECK: plan.kernel @[[APPEND]](activation, activation, activation, activation, appended_cache, activation, activation, page_table, result) family "rope_append"
// CHECK: kernel.rope_append
// CHECK: plan.kernel @[[ATTENTION]](activation, cache, activation, activation, page_table, result) family "attention"
// CHECK: kernel.attention
func.func @cache(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}, %pos: tensor<?xi32> {llama.role = #llama.role<positions>}, %seq: tensor<?xi32> {llama.role = #llama.role<sequences>}, %wanted: tensor<?xi32> {llama.role = #llama.role<logits_rows>}, %kv: !kv {llama.role = #llama.role<kv, layer = 0>}, %other: !kv {llama.role = #llama.role<kv, layer = 1>})
    -> (tensor<?x8xf32>, !kv, !kv) attributes {llamac.max_logits_rows = 2 : i64, llamac.max_rows = 512 : i64} {
  %e = llama.weight "tok_embeddings" : tensor<9x8xbf16>
  %x = kernel.embed %tokens, %e : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  %t = kernel.rope_table %pos {frequencies = dense<[1.0, 0.1, 0.01, 0.001]> : tensor<4xf64>} : (tensor<?xi32>) -> tensor<?x4x2xf32>
  %q0, %kv0 = kernel.rope_append %x, %x, %x, %t into %kv at %pos, %seq
    : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x8xf32>, !kv)
  %q1, %kv1 = kernel.rope_append %x, %x, %x, %t into %other at %pos, %seq
    : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x8xf32>, !kv)
  %o0 = kernel.attention %q0 over %kv0 at %pos, %seq {config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, scale = 0.25 : f64}
    : (tensor<?x8xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x8xf32>
  %o1 = kernel.attention %q1 over %kv1 at %pos, %seq {config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, scale = 0.25 : f64}
    : (tensor<?x8xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x8xf32>
  %q2, %kv2 = kernel.rope_append %x, %x, %x, %t into %kv0 at %pos, %seq
    : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x8xf32>, !kv)
  return %o1, %kv2, %kv1 : tensor<?x8xf32>, !kv, !kv
}

// -----

// The pages of layers with a window, and their page table, are those of that
// window; without one, those of all keys.
// CHECK-LABEL: plan.program @windows
// CHECK-DAG: %[[KV0:.*]] = plan.kv layer 0{{ *$}}
// CHECK-DAG: %[[KV1:.*]] = plan.kv layer 1 window 64{{ *$}}
// CHECK-DAG: %[[ALL:.*]] = plan.input page_table{{ *$}}
// CHECK-DAG: %[[RING:.*]] = plan.input page_table window 64{{ *$}}
// CHECK-DAG: plan.launch @{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[KV0]], %{{.*}}, %{{.*}}, %[[ALL]], %[[Q0:.*]])
// CHECK-DAG: plan.launch @{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[KV1]], %{{.*}}, %{{.*}}, %[[RING]], %[[Q1:.*]])
// CHECK-DAG: plan.launch @{{.*}}(%[[Q0]], %[[KV0]], %{{.*}}, %{{.*}}, %[[ALL]], %{{.*}})
// CHECK-DAG: plan.launch @{{.*}}(%[[Q1]], %[[KV1]], %{{.*}}, %{{.*}}, %[[RING]], %{{.*}})
// CHECK: plan.kernel
!kv = !llama.kv<heads = 1, size = 8>
func.func @windows(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}, %pos: tensor<?xi32> {llama.role = #llama.role<positions>}, %seq: tensor<?xi32> {llama.role = #llama.role<sequences>}, %wanted: tensor<?xi32> {llama.role = #llama.role<logits_rows>}, %kv: !kv {llama.role = #llama.role<kv, layer = 0>}, %other: !kv {llama.role = #llama.role<kv, layer = 1>})
    -> (tensor<?x8xf32>, !kv, !kv) attributes {llamac.max_logits_rows = 2 : i64, llamac.max_rows = 512 : i64} {
  %e = llama.weight "tok_embeddings" : tensor<9x8xbf16>
  %x = kernel.embed %tokens, %e : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  %t = kernel.rope_table %pos {frequencies = dense<[1.0, 0.1, 0.01, 0.001]> : tensor<4xf64>} : (tensor<?xi32>) -> tensor<?x4x2xf32>
  %q0, %kv0 = kernel.rope_append %x, %x, %x, %t into %kv at %pos, %seq
    : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x8xf32>, !kv)
  %o0 = kernel.attention %q0 over %kv0 at %pos, %seq {config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, scale = 0.25 : f64}
    : (tensor<?x8xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x8xf32>
  %q1, %kv1 = kernel.rope_append %o0, %x, %x, %t into %other at %pos, %seq
    : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x4x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x8xf32>, !kv)
  %o1 = kernel.attention %q1 over %kv1 at %pos, %seq {config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>, scale = 0.25 : f64, window = 64 : i64}
    : (tensor<?x8xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %o1, %kv0, %kv1 : tensor<?x8xf32>, !kv, !kv
}

// -----

// Products that differ in nothing but the weight share a kernel, which serves
// both and is called after the first; one of another type, shape or epilogue
// has its own. Locations do not count.
// CHECK-LABEL: plan.program @sharing
// CHECK: plan.launch @[[A:gemv_wq_n8_k8_bf16]](
// CHECK: plan.launch @[[A]](
// CHECK: plan.launch @[[B:gemv_wv_n8_k8_f16]](
// CHECK: plan.launch @[[C:gemv_wq_n8_k8_bf16_2]](
// CHECK: plan.launch @[[D:pointwise_n8]](
// CHECK: plan.kernel @[[A]]({{.*}}) family "gemv" roles ["layers.*.wq", "layers.*.wk"]
// CHECK: plan.kernel @[[B]]({{.*}}) family "gemv" roles ["layers.*.wv"]
// CHECK: plan.kernel @[[C]](activation, weight, activation, result) family "gemv" roles ["layers.*.wq"]
// CHECK: plan.kernel @[[D]](activation, result) family "pointwise" roles []
// CHECK-NOT: plan.kernel
func.func @sharing(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}, %pos: tensor<?xi32> {llama.role = #llama.role<positions>}, %seq: tensor<?xi32> {llama.role = #llama.role<sequences>}, %wanted: tensor<?xi32> {llama.role = #llama.role<logits_rows>}, %kv: !llama.kv<heads = 1, size = 8> {llama.role = #llama.role<kv, layer = 0>})
    -> tensor<?x8xf32> attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
  %q = llama.weight "layers.0.wq" : tensor<8x8xbf16>
  %k = llama.weight "layers.11.wk" : tensor<8x8xbf16>
  %v = llama.weight "layers.0.wv" : tensor<8x8xf16>
  %x = kernel.embed %tokens, %q : (tensor<?xi32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %0 = kernel.matmul %x, %q epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32> loc("one")
  %1 = kernel.matmul %0, %k epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32> loc("another")
  %2 = kernel.matmul %1, %v epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x8xf32>, tensor<8x8xf16>) -> tensor<?x8xf32>
  %3 = kernel.matmul %2, %q extras(%x) epilogue {
  ^bb0(%acc: f32, %r: f32):
    %s = arith.addf %acc, %r : f32
    kernel.yield %s
  } {config = #kernel.matmul_config<family = gemv, rowBlock = 1>} : (tensor<?x8xf32>, tensor<8x8xbf16>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %4 = kernel.pointwise %3 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %4 : tensor<?x8xf32>
}

// -----

// The operand that a vector is added to says which rows they are, wherever it stands.
// CHECK-LABEL: plan.program @vector_first
// CHECK: %[[L:.*]] = plan.buffer 64{{ *$}}
// CHECK: plan.launch @gather_rows{{.*}} rows logits_rows
// CHECK: plan.launch @pointwise{{.*}} rows logits_rows barrier
func.func @vector_first(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}, %wanted: tensor<?xi32> {llama.role = #llama.role<logits_rows>}, %kv: !llama.kv<heads = 1, size = 8> {llama.role = #llama.role<kv, layer = 0>})
    -> (tensor<?x8xf32>, !llama.kv<heads = 1, size = 8>) attributes {llamac.max_logits_rows = 2 : i64, llamac.max_rows = 4 : i64} {
  %e = llama.weight "tok_embeddings" : tensor<9x8xbf16>
  %b = llama.weight "bias" : tensor<8xf32>
  %x = kernel.embed %tokens, %e : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  %l = kernel.gather_rows %x, %wanted : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  %y = kernel.pointwise %b, %l body {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %a, %c : f32
    kernel.yield %s
  } : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y, %kv : tensor<?x8xf32>, !llama.kv<heads = 1, size = 8>
}
