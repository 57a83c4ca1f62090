// @step becomes one function for each range of row counts, with its bounds.
// Where there is one row, it is the logits row and nothing is gathered.
// RUN: llamac-opt %s --attach-target --specialise-rows | FileCheck %s

// With rows, functions that only steps of more need are left out.
// RUN: llamac-opt %s --attach-target --specialise-rows=rows=1 | FileCheck %s --check-prefix=ONE
// RUN: llamac-opt %s --attach-target=name=cuda --specialise-rows=rows=17 | FileCheck %s --check-prefix=SOME
// RUN: llamac-opt %s --attach-target=name=cuda --specialise-rows=rows=33 | FileCheck %s --check-prefix=PROMPT
// ONE: func.func @decode(
// ONE-NOT: func.func
// SOME: func.func @decode16(
// SOME: func.func @decode32({{.*}}llamac.max_rows = 32
// SOME-NOT: func.func
// PROMPT: func.func @decode256(
// PROMPT-NOT: func.func

// CHECK-NOT: @step
// CHECK: func.func @decode(%{{.*}}: tensor<?x8xf32>, %{{.*}}: tensor<?xi32>) -> tensor<?x8xf32> attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
// CHECK-NEXT: %[[Y:.*]] = kernel.pointwise
// CHECK-NOT: kernel.gather_rows
// CHECK: return %[[Y]]
// CHECK: func.func @prefill(%{{.*}}: tensor<?x8xf32>, %{{.*}}: tensor<?xi32>) -> tensor<?x8xf32> attributes {llamac.max_logits_rows = 64 : i64, llamac.max_rows = 512 : i64} {
// CHECK-NEXT: %[[Y:.*]] = kernel.pointwise
// CHECK: %[[G:.*]] = kernel.gather_rows %[[Y]], %{{.*}}
// CHECK-NEXT: return %[[G]]
// CHECK-NOT: @step
func.func @step(%x: tensor<?x8xf32>, %wanted: tensor<?xi32>) -> tensor<?x8xf32> {
  %0 = kernel.pointwise %x body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = kernel.gather_rows %0, %wanted : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
