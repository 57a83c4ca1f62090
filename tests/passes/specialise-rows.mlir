// @step becomes one function for each range of row counts, with its bounds.
// RUN: llamac-opt %s --specialise-rows | FileCheck %s

// CHECK-NOT: @step
// CHECK: func.func @decode(%{{.*}}: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {llamac.max_rows = 1 : i64, llamac.max_wanted = 1 : i64} {
// CHECK-NEXT: kernel.pointwise
// CHECK: func.func @prefill(%{{.*}}: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {llamac.max_rows = 512 : i64, llamac.max_wanted = 64 : i64} {
// CHECK-NEXT: kernel.pointwise
// CHECK-NOT: @step
func.func @step(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = kernel.pointwise %x body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
