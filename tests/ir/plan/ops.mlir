// Every op, type and attribute of the plan dialect round-trips through its text
// form and through the generic one.
// RUN: llamac-opt %s | llamac-opt | FileCheck %s
// RUN: llamac-opt %s --mlir-print-op-generic | llamac-opt | FileCheck %s

// CHECK: plan.kernel @embed family "embed" roles ["tok_embeddings"] {
// CHECK-NEXT: ^bb0(%[[TOKENS:.*]]: tensor<?xi32>, %[[TABLE:.*]]: tensor<100x64xbf16>):
// CHECK-NEXT: kernel.embed %[[TOKENS]], %[[TABLE]]
// CHECK-NEXT: }
plan.kernel @embed family "embed" roles ["tok_embeddings"] {
^bb0(%tokens: tensor<?xi32>, %table: tensor<100x64xbf16>):
  %0 = kernel.embed %tokens, %table : (tensor<?xi32>, tensor<100x64xbf16>) -> tensor<?x64xf32>
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
  // CHECK-NEXT: plan.launch @embed(read %{{.*}}, read %{{.*}}, write %[[X]]) rows tokens <items = 4, rowBlock = 8, scratch = 64>{{ *$}}
  plan.launch @embed(read %tokens, read %table, write %x) rows tokens <items = 4, rowBlock = 8, scratch = 64>
  // CHECK-NEXT: plan.launch @embed(update %[[X]], read %{{.*}}, write %[[Y]]) rows logits_rows <items = 1, rowBlock = 0, scratch = 0> barrier
  plan.launch @embed(update %x, read %kv, write %y) rows logits_rows <items = 1, rowBlock = 0, scratch = 0> barrier
  // CHECK-NEXT: plan.launch @embed(read %{{.*}}, read %{{.*}}, write %[[X]]) rows tokens <items = 4, rowBlock = 0, scratch = 64, threads = 384, cluster = 2> maps [#plan.tensor_map<operand = 1, elementBytes = 2, columns = 64, rows = 100, boxColumns = 64, boxRows = 32, swizzleBytes = 128>]{{ *$}}
  plan.launch @embed(read %tokens, read %table, write %x) rows tokens <items = 4, rowBlock = 0, scratch = 64, threads = 384, cluster = 2> maps [#plan.tensor_map<operand = 1, elementBytes = 2, columns = 64, rows = 100, boxColumns = 64, boxRows = 32, swizzleBytes = 128>]
  // CHECK-NEXT: plan.logits %[[Y]]
  plan.logits %y
  // CHECK-NEXT: plan.tokens %[[X]]
  plan.tokens %x
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// The type has a text form of its own.
// CHECK: func.func private @takes_memory(!plan.memory)
func.func private @takes_memory(!plan.memory)
