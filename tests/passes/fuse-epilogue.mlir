// Element-wise work moves into the product before it; what must stay apart
// stays apart.
// RUN: llamac-opt %s --fuse-epilogue | FileCheck %s
// RUN: llamac-opt %s --fuse-epilogue --fuse-epilogue | FileCheck %s

// CHECK-LABEL: func.func @residual
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[W:.*]]: tensor<4x8xbf16>, %[[R:.*]]: tensor<?x4xf32>)
// CHECK-NEXT: %[[P:.*]] = kernel.matmul %[[X]], %[[W]] extras(%[[R]]) epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[E]], %[[ACC]] : f32
// CHECK-NEXT: kernel.yield %[[S]]
// CHECK-NEXT: } : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT: return %[[P]]
func.func @residual(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>, %r: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %r, %0 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// The order of the operands of a function that does not commute is kept,
// wherever the product stands.
// CHECK-LABEL: func.func @product_first
// CHECK: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: arith.subf %[[ACC]], %[[E]] : f32
// CHECK-LABEL: func.func @product_second
// CHECK: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: arith.subf %[[E]], %[[ACC]] : f32
func.func @product_first(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>, %r: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %0, %r body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
func.func @product_second(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>, %r: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %r, %0 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// SiLU of the gate, times up: one product with two accumulators, each weight
// with the accumulator that stood for it.
// CHECK-LABEL: func.func @gate_and_up
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[W1:.*]]: tensor<4x8xbf16>, %[[W3:.*]]: tensor<4x8xbf16>)
// CHECK-NEXT: %[[P:.*]] = kernel.matmul %[[X]], %[[W1]], %[[W3]] epilogue {
// CHECK-NEXT: ^bb0(%[[GATE:.*]]: f32, %[[UP:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = kernel.silu %[[GATE]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[S]], %[[UP]] : f32
// CHECK-NEXT: kernel.yield %[[M]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[P]]
func.func @gate_and_up(%x: tensor<?x8xf32>, %w1: tensor<4x8xbf16>, %w3: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %gate = kernel.matmul %x, %w1 epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %up = kernel.matmul %x, %w3 epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %silu = kernel.pointwise %gate body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %mul = kernel.pointwise %silu, %up body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %mul : tensor<?x4xf32>
}

// Multiplied from the left: weights in the order of the operands, and
// SiLU stays on the gate.
// CHECK-LABEL: func.func @up_and_gate
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[W1:.*]]: tensor<4x8xbf16>, %[[W3:.*]]: tensor<4x8xbf16>)
// CHECK-NOT: kernel.pointwise
// CHECK: kernel.matmul %[[X]], %[[W3]], %[[W1]] epilogue {
// CHECK-NEXT: ^bb0(%[[UP:.*]]: f32, %[[GATE:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = kernel.silu %[[GATE]]
// CHECK-NEXT: arith.mulf %[[UP]], %[[S]] : f32
func.func @up_and_gate(%x: tensor<?x8xf32>, %w1: tensor<4x8xbf16>, %w3: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %up = kernel.matmul %x, %w3 epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %gate = kernel.matmul %x, %w1 epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %silu = kernel.pointwise %gate body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %mul = kernel.pointwise %up, %silu body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %mul : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[X:.*]]: tensor<?x4xf32>, %[[Y:.*]]: tensor<?x4xf32>)
// CHECK-NEXT: %[[P:.*]] = kernel.pointwise %[[X]], %[[Y]] body {
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[T:.*]] = kernel.silu %[[S]]
// CHECK-NEXT: %[[U:.*]] = arith.mulf %[[T]], %[[A]] : f32
// CHECK-NEXT: kernel.yield %[[U]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[P]]
func.func @chain(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.pointwise %x, %y body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %0 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = kernel.pointwise %1, %x body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}

// A product that has an epilogue takes more: its own extras stay first.
// CHECK-LABEL: func.func @second_epilogue
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[W:.*]]: tensor<4x8xbf16>, %[[R:.*]]: tensor<?x4xf32>, %[[S:.*]]: tensor<?x4xf32>)
// CHECK-NEXT: kernel.matmul %[[X]], %[[W]] extras(%[[R]], %[[S]]) epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[E0:.*]]: f32, %[[E1:.*]]: f32):
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[ACC]], %[[E0]] : f32
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[E1]], %[[SUM]] : f32
// CHECK-NEXT: kernel.yield %[[D]]
func.func @second_epilogue(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>, %r: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.matmul %x, %w extras(%r) epilogue {
  ^bb0(%acc: f32, %e: f32):
    %sum = arith.addf %acc, %e : f32
    kernel.yield %sum
  } : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %s, %0 body {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    kernel.yield %d
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// An extra that both ops read is one extra.
// CHECK-LABEL: func.func @shared_extra
// CHECK: kernel.matmul %{{.*}}, %{{.*}} extras(%{{[a-z0-9]*}}) epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[ACC]], %[[E]] : f32
// CHECK-NEXT: arith.mulf %[[SUM]], %[[E]] : f32
func.func @shared_extra(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>, %r: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.matmul %x, %w extras(%r) epilogue {
  ^bb0(%acc: f32, %e: f32):
    %sum = arith.addf %acc, %e : f32
    kernel.yield %sum
  } : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %0, %r body {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    kernel.yield %m
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// The residual of one product is the other product: it stays a launch.
// CHECK-LABEL: func.func @other_inputs
// CHECK: %[[B:.*]] = kernel.matmul %{{.*}}, %[[WB:.*]] epilogue {
// CHECK: kernel.matmul %{{.*}}, %{{.*}} extras(%[[B]]) epilogue {
// CHECK-NOT: kernel.pointwise
// CHECK: return
func.func @other_inputs(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %a = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %b = kernel.matmul %y, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %c = kernel.pointwise %a, %b body {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %c : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @other_weight_types
// CHECK: %[[B:.*]] = kernel.matmul %{{.*}}, %{{.*}} epilogue {
// CHECK: } : (tensor<?x8xf32>, tensor<4x8xf16>) -> tensor<?x4xf32>
// CHECK: kernel.matmul %{{.*}}, %{{.*}} extras(%[[B]]) epilogue {
// CHECK: } : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK: return
func.func @other_weight_types(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>, %v: tensor<4x8xf16>) -> tensor<?x4xf32> {
  %a = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %b = kernel.matmul %x, %v epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xf16>) -> tensor<?x4xf32>
  %c = kernel.pointwise %a, %b body {
  ^bb0(%p: f32, %q: f32):
    %s = arith.mulf %p, %q : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %c : tensor<?x4xf32>
}

// Norms differ: the products do not read the same rows.
// CHECK-LABEL: func.func @other_norms
// CHECK: %[[B:.*]] = kernel.matmul %{{.*}}, %{{.*}} norm(%{{.*}}) epilogue {
// CHECK: kernel.matmul %{{.*}}, %{{.*}} norm(%{{.*}}) extras(%[[B]]) epilogue {
// CHECK: return
func.func @other_norms(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>, %n: tensor<8xf32>) -> tensor<?x4xf32> {
  %a = kernel.matmul %x, %w norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<8xf32>) -> tensor<?x4xf32>
  %b = kernel.matmul %x, %w norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {eps = 1.0e-6 : f64} : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<8xf32>) -> tensor<?x4xf32>
  %c = kernel.pointwise %a, %b body {
  ^bb0(%p: f32, %q: f32):
    %s = arith.mulf %p, %q : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %c : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @product_read_elsewhere
// CHECK: %[[P:.*]] = kernel.matmul %{{.*}}, %{{.*}} epilogue {
// CHECK: %[[S:.*]] = kernel.pointwise %[[P]] body {
// CHECK: return %[[P]], %[[S]]
func.func @product_read_elsewhere(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %0 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// Both operands of one op are the product: nothing else reads it.
// CHECK-LABEL: func.func @product_read_twice
// CHECK-NEXT: %[[P:.*]] = kernel.matmul %{{.*}}, %{{.*}} epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32):
// CHECK-NEXT: arith.mulf %[[ACC]], %[[ACC]] : f32
// CHECK: return %[[P]]
func.func @product_read_twice(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %0, %0 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @pointwise_read_elsewhere
// CHECK: %[[A:.*]] = kernel.pointwise
// CHECK: %[[B:.*]] = kernel.pointwise %[[A]] body {
// CHECK: return %[[A]], %[[B]]
func.func @pointwise_read_elsewhere(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = kernel.pointwise %x body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %0 body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// Three products of one input: two share a walk, the third becomes an extra.
// CHECK-LABEL: func.func @three_products
// CHECK: %[[C:.*]] = kernel.matmul %{{.*}}, %{{[a-z0-9]*}} epilogue {
// CHECK: kernel.matmul %{{.*}}, %{{.*}}, %{{.*}} extras(%[[C]]) epilogue {
// CHECK-NEXT: ^bb0(%[[A0:.*]]: f32, %[[A1:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A0]], %[[A1]] : f32
// CHECK-NEXT: arith.subf %[[S]], %[[E]] : f32
func.func @three_products(%x: tensor<?x8xf32>, %u: tensor<4x8xbf16>, %v: tensor<4x8xbf16>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %a = kernel.matmul %x, %u epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %b = kernel.matmul %x, %v epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %c = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %d = kernel.pointwise %a, %b, %c body {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.addf %p, %q : f32
    %t = arith.subf %s, %r : f32
    kernel.yield %t
  } : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %d : tensor<?x4xf32>
}

// A pointwise op that its only user reads twice is fused into it.
// CHECK-LABEL: func.func @pointwise_read_twice
// CHECK-NEXT: kernel.pointwise %{{[a-z0-9]*}} body {
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = kernel.silu %[[A]]
// CHECK-NEXT: arith.mulf %[[S]], %[[S]] : f32
// CHECK-NOT: kernel.pointwise
// CHECK: return
func.func @pointwise_read_twice(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.pointwise %x body {
  ^bb0(%a: f32):
    %s = kernel.silu %a
    kernel.yield %s
  } : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %0, %0 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// The residual on the right.
// CHECK-LABEL: func.func @residual_second
// CHECK: kernel.matmul %{{.*}}, %{{.*}} extras(%{{[a-z0-9]*}}) epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: arith.addf %[[ACC]], %[[E]] : f32
// CHECK-NOT: kernel.pointwise
// CHECK: return
func.func @residual_second(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>, %r: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %0, %r body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// The two of one input are joined, wherever the third stands.
// CHECK-LABEL: func.func @pair_after_another_product
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[Y:.*]]: tensor<?x8xf32>, %[[U:.*]]: tensor<4x8xbf16>, %[[V:.*]]: tensor<4x8xbf16>)
// CHECK-NEXT: %[[C:.*]] = kernel.matmul %[[Y]], %[[U]] epilogue {
// CHECK: kernel.matmul %[[X]], %[[U]], %[[V]] extras(%[[C]]) epilogue {
// CHECK-NEXT: ^bb0(%[[A0:.*]]: f32, %[[A1:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = arith.subf %[[E]], %[[A0]] : f32
// CHECK-NEXT: arith.mulf %[[S]], %[[A1]] : f32
func.func @pair_after_another_product(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %u: tensor<4x8xbf16>, %v: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %0 = kernel.matmul %y, %u epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %1 = kernel.matmul %x, %u epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %2 = kernel.matmul %x, %v epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %3 = kernel.pointwise %0, %1, %2 body {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.subf %a, %b : f32
    %t = arith.mulf %s, %c : f32
    kernel.yield %t
  } : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %3 : tensor<?x4xf32>
}

// A gate with a bias: each product brings its own operands.
// CHECK-LABEL: func.func @gate_with_an_operand_of_its_own
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[W1:.*]]: tensor<4x8xbf16>, %[[W3:.*]]: tensor<4x8xbf16>, %[[B:.*]]: tensor<?x4xf32>)
// CHECK-NEXT: kernel.matmul %[[X]], %[[W1]], %[[W3]] extras(%[[B]]) epilogue {
// CHECK-NEXT: ^bb0(%[[GATE:.*]]: f32, %[[UP:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[GATE]], %[[E]] : f32
// CHECK-NEXT: arith.mulf %[[S]], %[[UP]] : f32
// CHECK-NOT: kernel.matmul
// CHECK: return
func.func @gate_with_an_operand_of_its_own(%x: tensor<?x8xf32>, %w1: tensor<4x8xbf16>, %w3: tensor<4x8xbf16>, %bias: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.matmul %x, %w1 epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %1 = kernel.matmul %x, %w3 epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %2 = kernel.pointwise %0, %bias body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %3 = kernel.pointwise %2, %1 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %3 : tensor<?x4xf32>
}

// An addition behind a norm is the norm's epilogue; its weight stays its own.
// CHECK-LABEL: func.func @behind_a_norm
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[N:.*]]: tensor<8xf32>, %[[R:.*]]: tensor<?x8xf32>)
// CHECK-NEXT: %[[Y:.*]] = kernel.rms_norm %[[X]], %[[N]] extras(%[[R]]) epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[E]], %[[ACC]] : f32
// CHECK-NEXT: kernel.yield %[[S]]
// CHECK-NEXT: } {eps = 1.000000e-05 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @behind_a_norm(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %r: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = kernel.pointwise %r, %0 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// A norm that another op reads stays as it is.
// CHECK-LABEL: func.func @norm_read_twice
// CHECK: %[[Y:.*]] = kernel.rms_norm %{{[a-z0-9]*}}, %{{[a-z0-9]*}} {eps
// CHECK: kernel.pointwise %{{[a-z0-9]*}}, %[[Y]]
func.func @norm_read_twice(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %r: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = kernel.pointwise %r, %0 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// A sum by leaves or by a tree stays one.
// CHECK-LABEL: func.func @trees
// CHECK: kernel.matmul {{.*}} extras
// CHECK: } {leaves = 8 : i64} : (tensor<?x8xf32>
// CHECK: kernel.all_reduce {{.*}} over 2 extras
// CHECK: } {tree} : (tensor<?x4xf32>
func.func @trees(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>, %r: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {leaves = 8 : i64} : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %r, %0 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = kernel.all_reduce %r over 2 {tree} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %3 = kernel.pointwise %r, %2 body {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1, %3 : tensor<?x4xf32>, tensor<?x4xf32>
}

// One walk over an input sums by leaves or does not.
// CHECK-LABEL: func.func @one_by_leaves
// CHECK-COUNT-2: kernel.matmul
func.func @one_by_leaves(%x: tensor<?x8xf32>, %w1: tensor<4x8xbf16>, %w3: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %gate = kernel.matmul %x, %w1 epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {leaves = 2 : i64} : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %up = kernel.matmul %x, %w3 epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %1 = kernel.pointwise %gate, %up body {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    kernel.yield %m
  } : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
