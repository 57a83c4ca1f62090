// A product whose config was never chosen has no family to write it.
// RUN: not llamac-emit-unit < %s 2>&1 | FileCheck %s

// CHECK: loc("<stdin>":[[# @LINE + 1]]:1): error: no cpu kernel family implements kernel.matmul as it is
plan.kernel @product(activation, weight, result) family "gemv" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>):
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
}
