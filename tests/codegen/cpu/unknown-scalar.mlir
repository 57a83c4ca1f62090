// An epilogue with an op that has no rendering is refused at that op.
// RUN: not llamac-emit-unit < %s 2>&1 | FileCheck %s

// CHECK: loc("<stdin>":[[# @LINE + 5]]:10): error: the cpu target has no rendering of arith.maximumf
plan.kernel @clamp(activation, activation, result) family "pointwise" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>):
  %0 = kernel.pointwise %x, %y body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.maximumf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
}
