// A norm that only products read becomes their prologue.
// RUN: llamac-opt %s --fuse-norm | FileCheck %s
// RUN: llamac-opt %s --fuse-norm --fuse-norm | FileCheck %s

// CHECK-LABEL: func.func @into_every_product
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[N:.*]]: tensor<8xf32>, %[[W:.*]]: tensor<4x8xbf16>, %[[V:.*]]: tensor<4x8xbf16>)
// CHECK-NOT: kernel.rms_norm
// CHECK: kernel.matmul %[[X]], %[[W]] norm(%[[N]]) epilogue {
// CHECK: } {eps = 1.000000e-05 : f64} : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<8xf32>) -> tensor<?x4xf32>
// CHECK: kernel.matmul %[[X]], %[[V]] norm(%[[N]]) epilogue {
// CHECK: } {eps = 1.000000e-05 : f64}
// CHECK: return
func.func @into_every_product(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<4x8xbf16>, %v: tensor<4x8xbf16>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = kernel.matmul %0, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %2 = kernel.matmul %0, %v epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return %1, %2 : tensor<?x4xf32>, tensor<?x4xf32>
}

// Weights and extras of the product stay what they were.
// CHECK-LABEL: func.func @beside_two_weights_and_an_extra
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[N:.*]]: tensor<8xf32>, %[[W:.*]]: tensor<4x8xbf16>, %[[V:.*]]: tensor<4x8xbf16>, %[[R:.*]]: tensor<?x4xf32>)
// CHECK-NEXT: kernel.matmul %[[X]], %[[W]], %[[V]] norm(%[[N]]) extras(%[[R]]) epilogue {
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[E:.*]]: f32):
// CHECK-NEXT: arith.mulf %[[A]], %[[B]] : f32
func.func @beside_two_weights_and_an_extra(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<4x8xbf16>, %v: tensor<4x8xbf16>, %r: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = kernel.matmul %0, %w, %v extras(%r) epilogue {
  ^bb0(%a: f32, %b: f32, %e: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %m, %e : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// Another op reads the norm too, as gather_rows before lm_head does.
// CHECK-LABEL: func.func @read_by_another_op
// CHECK: %[[Y:.*]] = kernel.rms_norm
// CHECK: kernel.matmul %[[Y]], %{{[a-z0-9]*}} epilogue {
// CHECK: kernel.gather_rows %[[Y]]
func.func @read_by_another_op(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<4x8xbf16>, %rows: tensor<?xi32>) -> (tensor<?x4xf32>, tensor<?x8xf32>) {
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = kernel.matmul %0, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  %2 = kernel.gather_rows %0, %rows : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %1, %2 : tensor<?x4xf32>, tensor<?x8xf32>
}

// The function's caller reads the norm.
// CHECK-LABEL: func.func @returned
// CHECK: %[[Y:.*]] = kernel.rms_norm
// CHECK: return %[[Y]]
func.func @returned(%x: tensor<?x8xf32>, %n: tensor<8xf32>) -> tensor<?x8xf32> {
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// A product has room for one norm: the inner one stays a launch.
// CHECK-LABEL: func.func @norm_of_a_norm
// CHECK: %[[Y:.*]] = kernel.rms_norm
// CHECK-NOT: kernel.rms_norm
// CHECK: kernel.matmul %[[Y]], %{{.*}} norm(%{{.*}}) epilogue {
// CHECK: } {eps = 2.500000e-01 : f64}
func.func @norm_of_a_norm(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = kernel.matmul %0, %w norm(%n) epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } {eps = 0.25 : f64} : (tensor<?x8xf32>, tensor<4x8xbf16>, tensor<8xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// The norm as an extra operand is not the product's input.
// CHECK-LABEL: func.func @norm_as_an_extra
// CHECK: %[[Y:.*]] = kernel.rms_norm
// CHECK: kernel.matmul %[[Y]], %{{.*}} extras(%[[Y]]) epilogue {
func.func @norm_as_an_extra(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<8x8xbf16>) -> tensor<?x8xf32> {
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = kernel.matmul %0, %w extras(%0) epilogue {
  ^bb0(%acc: f32, %e: f32):
    %s = arith.addf %acc, %e : f32
    kernel.yield %s
  } : (tensor<?x8xf32>, tensor<8x8xbf16>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// A norm with an epilogue is more than the norm that its readers would make.
// CHECK-LABEL: func.func @with_an_epilogue
// CHECK: %[[Y:.*]] = kernel.rms_norm
// CHECK: kernel.matmul %[[Y]], %{{[a-z0-9]*}} epilogue {
func.func @with_an_epilogue(%x: tensor<?x8xf32>, %n: tensor<8xf32>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %0 = kernel.rms_norm %x, %n extras(%x) epilogue {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s
  } {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = kernel.matmul %0, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}


// Norms of query and key that an append alone reads become its own.
// CHECK-LABEL: func.func @into_the_append
// CHECK-SAME: (%[[Q:.*]]: tensor<?x32xf32>, %[[K:.*]]: tensor<?x16xf32>, %[[QN:.*]]: tensor<8xf32>, %[[KN:.*]]: tensor<16xf32>
// CHECK-NEXT: kernel.rope_append %[[Q]], %[[K]], %[[K]], %{{.*}} norms(%[[QN]], %[[KN]]) {eps = 1.000000e-05 : f64}
func.func @into_the_append(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %qn: tensor<8xf32>, %kn: tensor<16xf32>, %t: tensor<?x4x2xf32>, %kv: !llama.kv<heads = 2, size = 8>, %p: tensor<?xi32>, %s: tensor<?xi32>) -> tensor<?x32xf32> {
  %0 = kernel.rms_norm %q, %qn {eps = 1.0e-5 : f64} : (tensor<?x32xf32>, tensor<8xf32>) -> tensor<?x32xf32>
  %1 = kernel.rms_norm %k, %kn {eps = 1.0e-5 : f64} : (tensor<?x16xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  %2:2 = kernel.rope_append %0, %1, %k, %t into %kv at %p, %s
    : (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x4x2xf32>, !llama.kv<heads = 2, size = 8>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, !llama.kv<heads = 2, size = 8>)
  return %2#0 : tensor<?x32xf32>
}

// A norm of parts of rows is none that a product makes.
// CHECK-LABEL: func.func @of_parts
// CHECK: %[[Y:.*]] = kernel.rms_norm
// CHECK: kernel.matmul %[[Y]], %{{[a-z0-9]*}} epilogue {
func.func @of_parts(%x: tensor<?x8xf32>, %n: tensor<4xf32>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<4xf32>) -> tensor<?x8xf32>
  %1 = kernel.matmul %0, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
