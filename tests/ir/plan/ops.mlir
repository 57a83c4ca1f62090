// Every op, type and attribute of the plan dialect round-trips through its text
// form and through the generic one.
// RUN: llamac-opt %s | llamac-opt | FileCheck %s
// RUN: llamac-opt %s --mlir-print-op-generic | llamac-opt | FileCheck %s

// CHECK: plan.kernel @embed(activation, weight, result) family "embed" roles ["tok_embeddings"] geometry <items = 4, rowBlock = 8, scratch = 64> {
// CHECK-NEXT: ^bb0(%[[TOKENS:.*]]: tensor<?xi32>, %[[TABLE:.*]]: tensor<100x64xbf16>):
// CHECK-NEXT: kernel.embed %[[TOKENS]], %[[TABLE]]
// CHECK-NEXT: }
plan.kernel @embed(activation, weight, result) family "embed" roles ["tok_embeddings"] geometry <items = 4, rowBlock = 8, scratch = 64> {
^bb0(%tokens: tensor<?xi32>, %table: tensor<100x64xbf16>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<100x64xbf16>) -> tensor<?x64xf32>
}

// Every role, and all that a geometry may have.
// CHECK: plan.kernel @append(activation, activation, activation, activation, appended_cache, activation, activation, page_table, workspace, counters, result) family "append" roles [] geometry <items = 4, rowBlock = 0, scratch = 64, threads = 384, cluster = 2, dependent = true, workspace = 16, counters = 1> maps [#plan.tensor_map<operand = 0, elementBytes = 4, columns = 8, rows = 0, boxColumns = 8, boxRows = 32, swizzleBytes = 32>] {
plan.kernel @append(activation, activation, activation, activation, appended_cache, activation, activation, page_table, workspace, counters, result) family "append" roles [] geometry <items = 4, rowBlock = 0, scratch = 64, threads = 384, cluster = 2, dependent = true, workspace = 16, counters = 1> maps [#plan.tensor_map<operand = 0, elementBytes = 4, columns = 8, rows = 0, boxColumns = 8, boxRows = 32, swizzleBytes = 32>] {
^bb0(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %v: tensor<?x8xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 1, size = 8>, %pos: tensor<?xi32>, %seq: tensor<?xi32>):
  %0, %1 = kernel.rope_append %q, %k, %v, %t into %kv at %pos, %seq
    : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 1, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x8xf32>, !llama.kv<heads = 1, size = 8>)
}

// CHECK: plan.program @placed {
// CHECK: } {arena_bytes = 512 : i64, max_logits_rows = 1 : i64, max_rows = 1 : i64}
plan.program @placed {
} {arena_bytes = 512 : i64, max_logits_rows = 1 : i64, max_rows = 1 : i64}

// CHECK: plan.program @decode {
plan.program @decode {
  // CHECK-NEXT: plan.input tokens
  %tokens = plan.input tokens
  // CHECK-NEXT: plan.input positions
  %positions = plan.input positions
  // CHECK-NEXT: plan.input sequences
  %sequences = plan.input sequences
  // CHECK-NEXT: plan.input logits_rows
  %wanted = plan.input logits_rows
  // CHECK-NEXT: plan.input page_table
  %pages = plan.input page_table
  // CHECK-NEXT: plan.input page_table window 512
  %ring = plan.input page_table window 512
  // CHECK-NEXT: plan.input sampling_params
  %draws = plan.input sampling_params
  // CHECK-NEXT: plan.weight "tok_embeddings" : tensor<100x64xbf16>
  %table = plan.weight "tok_embeddings" : tensor<100x64xbf16>
  // CHECK-NEXT: plan.kv layer 29
  %kv = plan.kv layer 29
  // CHECK-NEXT: plan.kv layer 30 window 512
  %windowed = plan.kv layer 30 window 512
  // CHECK-NEXT: %[[X:.*]] = plan.buffer 256{{ *$}}
  %x = plan.buffer 256
  // CHECK-NEXT: %[[Y:.*]] = plan.buffer 256 at 64{{ *$}}
  %y = plan.buffer 256 at 64
  // CHECK-NEXT: plan.launch @embed(%{{.*}}, %{{.*}}, %[[X]]) rows tokens{{ *$}}
  plan.launch @embed(%tokens, %table, %x) rows tokens
  // CHECK-NEXT: plan.launch @embed(%[[X]], %{{.*}}, %[[Y]]) rows logits_rows barrier
  plan.launch @embed(%x, %table, %y) rows logits_rows barrier
  // CHECK-NEXT: plan.logits %[[Y]]
  plan.logits %y
  // CHECK-NEXT: plan.tokens %[[X]]
  plan.tokens %x
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// The type has a text form of its own.
// CHECK: func.func private @takes_memory(!plan.memory)
func.func private @takes_memory(!plan.memory)
