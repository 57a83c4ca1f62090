// The feed-forward is two launches however it is written: the norm before gate
// and up, SiLU and the product behind them, the residual behind down.
// RUN: llamac-opt %s --llamac-graph --fuse-attention --prune-rows --canonicalize --lower-to-kernels --fuse-epilogue --fuse-norm --fuse-qkv | FileCheck %s
// RUN: llamac-opt %s --llamac-graph --fuse-attention --prune-rows --canonicalize --lower-to-kernels --fuse-epilogue --fuse-norm --fuse-qkv | llamac-opt --fuse-epilogue --fuse-norm | FileCheck %s

// The frontends write it like this.
// CHECK-LABEL: func.func @as_built
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[N:.*]]: tensor<8xf32>, %[[W1:.*]]: tensor<16x8xbf16>, %[[W3:.*]]: tensor<16x8xbf16>, %[[W2:.*]]: tensor<8x16xbf16>)
// CHECK-NEXT: %[[H:.*]] = kernel.matmul %[[X]], %[[W1]], %[[W3]] norm(%[[N]]) epilogue {
// CHECK-NEXT: ^bb0(%[[GATE:.*]]: f32, %[[UP:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = kernel.silu %[[GATE]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[S]], %[[UP]] : f32
// CHECK-NEXT: kernel.yield %[[M]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[O:.*]] = kernel.matmul %[[H]], %[[W2]] extras(%[[X]]) epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: arith.addf
// CHECK-NEXT: kernel.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[O]]
func.func @as_built(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w1: tensor<16x8xbf16>, %w3: tensor<16x8xbf16>, %w2: tensor<8x16xbf16>) -> tensor<?x8xf32> {
  %y = llama.rms_norm %x, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %g = llama.linear %y, %w1 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %u = llama.linear %y, %w3 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %s = llama.silu %g : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %m = llama.mul %s, %u : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %d = llama.linear %m, %w2 : (tensor<?x16xf32>, tensor<8x16xbf16>) -> tensor<?x8xf32>
  %o = llama.add %x, %d : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}

// The residual on the right.
// CHECK-LABEL: func.func @residual_second
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[N:.*]]: tensor<8xf32>, %[[W1:.*]]: tensor<16x8xbf16>, %[[W3:.*]]: tensor<16x8xbf16>, %[[W2:.*]]: tensor<8x16xbf16>)
// CHECK-NEXT: %[[H:.*]] = kernel.matmul %[[X]], %[[W1]], %[[W3]] norm(%[[N]]) epilogue {
// CHECK-NEXT: ^bb0(%[[GATE:.*]]: f32, %[[UP:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = kernel.silu %[[GATE]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[S]], %[[UP]] : f32
// CHECK-NEXT: kernel.yield %[[M]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[O:.*]] = kernel.matmul %[[H]], %[[W2]] extras(%[[X]]) epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: arith.addf
// CHECK-NEXT: kernel.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[O]]
func.func @residual_second(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w1: tensor<16x8xbf16>, %w3: tensor<16x8xbf16>, %w2: tensor<8x16xbf16>) -> tensor<?x8xf32> {
  %y = llama.rms_norm %x, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %g = llama.linear %y, %w1 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %u = llama.linear %y, %w3 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %s = llama.silu %g : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %m = llama.mul %s, %u : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %d = llama.linear %m, %w2 : (tensor<?x16xf32>, tensor<8x16xbf16>) -> tensor<?x8xf32>
  %o = llama.add %d, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}

// Up on the left: SiLU stays on the gate.
// CHECK-LABEL: func.func @up_times_gate
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[N:.*]]: tensor<8xf32>, %[[W1:.*]]: tensor<16x8xbf16>, %[[W3:.*]]: tensor<16x8xbf16>, %[[W2:.*]]: tensor<8x16xbf16>)
// CHECK-NEXT: %[[H:.*]] = kernel.matmul %[[X]], %[[W3]], %[[W1]] norm(%[[N]]) epilogue {
// CHECK-NEXT: ^bb0(%[[UP:.*]]: f32, %[[GATE:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = kernel.silu %[[GATE]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[UP]], %[[S]] : f32
// CHECK-NEXT: kernel.yield %[[M]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[O:.*]] = kernel.matmul %[[H]], %[[W2]] extras(%[[X]]) epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: arith.addf
// CHECK-NEXT: kernel.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[O]]
func.func @up_times_gate(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w1: tensor<16x8xbf16>, %w3: tensor<16x8xbf16>, %w2: tensor<8x16xbf16>) -> tensor<?x8xf32> {
  %y = llama.rms_norm %x, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %g = llama.linear %y, %w1 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %u = llama.linear %y, %w3 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %s = llama.silu %g : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %m = llama.mul %u, %s : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %d = llama.linear %m, %w2 : (tensor<?x16xf32>, tensor<8x16xbf16>) -> tensor<?x8xf32>
  %o = llama.add %x, %d : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}

// The norm is written twice.
// CHECK-LABEL: func.func @a_norm_for_each_product
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[N:.*]]: tensor<8xf32>, %[[W1:.*]]: tensor<16x8xbf16>, %[[W3:.*]]: tensor<16x8xbf16>, %[[W2:.*]]: tensor<8x16xbf16>)
// CHECK-NEXT: %[[H:.*]] = kernel.matmul %[[X]], %[[W1]], %[[W3]] norm(%[[N]]) epilogue {
// CHECK-NEXT: ^bb0(%[[GATE:.*]]: f32, %[[UP:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = kernel.silu %[[GATE]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[S]], %[[UP]] : f32
// CHECK-NEXT: kernel.yield %[[M]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[O:.*]] = kernel.matmul %[[H]], %[[W2]] extras(%[[X]]) epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: arith.addf
// CHECK-NEXT: kernel.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[O]]
func.func @a_norm_for_each_product(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w1: tensor<16x8xbf16>, %w3: tensor<16x8xbf16>, %w2: tensor<8x16xbf16>) -> tensor<?x8xf32> {
  %y = llama.rms_norm %x, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %z = llama.rms_norm %x, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %g = llama.linear %y, %w1 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %u = llama.linear %z, %w3 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %s = llama.silu %g : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %m = llama.mul %s, %u : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %d = llama.linear %m, %w2 : (tensor<?x16xf32>, tensor<8x16xbf16>) -> tensor<?x8xf32>
  %o = llama.add %x, %d : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}

// Up is computed first.
// CHECK-LABEL: func.func @up_before_gate
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[N:.*]]: tensor<8xf32>, %[[W1:.*]]: tensor<16x8xbf16>, %[[W3:.*]]: tensor<16x8xbf16>, %[[W2:.*]]: tensor<8x16xbf16>)
// CHECK-NEXT: %[[H:.*]] = kernel.matmul %[[X]], %[[W1]], %[[W3]] norm(%[[N]]) epilogue {
// CHECK-NEXT: ^bb0(%[[GATE:.*]]: f32, %[[UP:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = kernel.silu %[[GATE]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[S]], %[[UP]] : f32
// CHECK-NEXT: kernel.yield %[[M]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[O:.*]] = kernel.matmul %[[H]], %[[W2]] extras(%[[X]]) epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: arith.addf
// CHECK-NEXT: kernel.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[O]]
func.func @up_before_gate(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w1: tensor<16x8xbf16>, %w3: tensor<16x8xbf16>, %w2: tensor<8x16xbf16>) -> tensor<?x8xf32> {
  %y = llama.rms_norm %x, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %u = llama.linear %y, %w3 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %g = llama.linear %y, %w1 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %s = llama.silu %g : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %m = llama.mul %s, %u : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %d = llama.linear %m, %w2 : (tensor<?x16xf32>, tensor<8x16xbf16>) -> tensor<?x8xf32>
  %o = llama.add %x, %d : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}

// Scales by one are none.
// CHECK-LABEL: func.func @scaled_by_one
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[N:.*]]: tensor<8xf32>, %[[W1:.*]]: tensor<16x8xbf16>, %[[W3:.*]]: tensor<16x8xbf16>, %[[W2:.*]]: tensor<8x16xbf16>)
// CHECK-NEXT: %[[H:.*]] = kernel.matmul %[[X]], %[[W1]], %[[W3]] norm(%[[N]]) epilogue {
// CHECK-NEXT: ^bb0(%[[GATE:.*]]: f32, %[[UP:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = kernel.silu %[[GATE]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[S]], %[[UP]] : f32
// CHECK-NEXT: kernel.yield %[[M]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[O:.*]] = kernel.matmul %[[H]], %[[W2]] extras(%[[X]]) epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: arith.addf
// CHECK-NEXT: kernel.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[O]]
func.func @scaled_by_one(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w1: tensor<16x8xbf16>, %w3: tensor<16x8xbf16>, %w2: tensor<8x16xbf16>) -> tensor<?x8xf32> {
  %y = llama.rms_norm %x, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %y1 = llama.scale %y by 1.0 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %g = llama.linear %y1, %w1 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %u = llama.linear %y, %w3 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %s = llama.silu %g : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %s1 = llama.scale %s by 1.0 : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %m = llama.mul %s1, %u : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %d = llama.linear %m, %w2 : (tensor<?x16xf32>, tensor<8x16xbf16>) -> tensor<?x8xf32>
  %o = llama.add %x, %d : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}

// Gate and up of different norms: up is a launch of its own.
// CHECK-LABEL: func.func @two_norms
// CHECK: %[[U:.*]] = kernel.matmul %{{.*}}, %{{[a-z0-9]*}} norm(%{{.*}}) epilogue {
// CHECK: kernel.matmul %{{.*}}, %{{[a-z0-9]*}} norm(%{{.*}}) extras(%[[U]]) epilogue {
// CHECK-NOT: kernel.pointwise
// CHECK: return
func.func @two_norms(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %n2: tensor<8xf32>, %w1: tensor<16x8xbf16>, %w3: tensor<16x8xbf16>) -> tensor<?x16xf32> {
  %y = llama.rms_norm %x, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %z = llama.rms_norm %x, %n2 eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %g = llama.linear %y, %w1 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %u = llama.linear %z, %w3 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %s = llama.silu %g : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %m = llama.mul %s, %u : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  return %m : tensor<?x16xf32>
}

// The gate is a result too: it stays a product, whose SiLU goes to up.
// CHECK-LABEL: func.func @gate_returned
// CHECK: %[[G:.*]] = kernel.matmul %{{.*}}, %{{[a-z0-9]*}} norm(%{{.*}}) epilogue {
// CHECK: %[[M:.*]] = kernel.matmul %{{.*}}, %{{[a-z0-9]*}} norm(%{{.*}}) extras(%[[G]]) epilogue {
// CHECK: return %[[G]], %[[M]]
func.func @gate_returned(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w1: tensor<16x8xbf16>, %w3: tensor<16x8xbf16>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %y = llama.rms_norm %x, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %g = llama.linear %y, %w1 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %u = llama.linear %y, %w3 : (tensor<?x8xf32>, tensor<16x8xbf16>) -> tensor<?x16xf32>
  %s = llama.silu %g : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %m = llama.mul %s, %u : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  return %g, %m : tensor<?x16xf32>, tensor<?x16xf32>
}

// One norm for queries, keys and values, and a residual that reads the rows
// before it.
// CHECK-LABEL: func.func @one_norm_for_three_products
// CHECK-COUNT-3: kernel.matmul %{{.*}}, %{{[a-z0-9]*}} norm(%{{.*}})
// CHECK-NOT: kernel.rms_norm
// CHECK: return
func.func @one_norm_for_three_products(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %wq: tensor<8x8xbf16>, %wk: tensor<4x8xbf16>, %wv: tensor<4x8xbf16>) -> (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
  %y = llama.rms_norm %x, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %q = llama.linear %y, %wq : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %k = llama.linear %y, %wk : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %v = llama.linear %y, %wv : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %o = llama.add %x, %q : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %o, %k, %v : tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}

// The norm is the residual: it is needed as a value.
// CHECK-LABEL: func.func @norm_as_residual
// CHECK: %[[Y:.*]] = kernel.rms_norm
// CHECK: kernel.matmul %[[Y]], %{{[a-z0-9]*}} extras(%[[Y]]) epilogue {
// CHECK: return
func.func @norm_as_residual(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<8x8xbf16>) -> tensor<?x8xf32> {
  %y = llama.rms_norm %x, %n eps = 1.0e-5 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %d = llama.linear %y, %w : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %o = llama.add %y, %d : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}
