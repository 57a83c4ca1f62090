// The target's config for the function's rows; attention over few rows is split
// over the keys and merged.
// RUN: llamac-opt %s --attach-target --choose-kernels | FileCheck %s
// RUN: llamac-opt %s --attach-target --choose-kernels --choose-kernels | FileCheck %s

!kv = !llama.kv<heads = 2, size = 16>

// CHECK-LABEL: func.func @products_of_one_row
// CHECK: config = #kernel.matmul_config<family = gemv, rowBlock = 1>
func.func @products_of_one_row(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @products_of_two_rows
// CHECK: config = #kernel.matmul_config<family = gemm, rowBlock = 0>
func.func @products_of_two_rows(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> attributes {llamac.max_logits_rows = 2 : i64, llamac.max_rows = 2 : i64} {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<4x8xbf16>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// Behind gather_rows the number of logits rows counts, through every op.
// CHECK-LABEL: func.func @wanted_rows
// CHECK: config = #kernel.matmul_config<family = gemm, rowBlock = 0>
// CHECK: kernel.gather_rows
// CHECK: kernel.rms_norm
// CHECK: config = #kernel.matmul_config<family = gemv, rowBlock = 1>
func.func @wanted_rows(%x: tensor<?x8xf32>, %w: tensor<8x8xbf16>, %n: tensor<8xf32>, %wanted: tensor<?xi32> {llama.role = #llama.role<logits_rows>}) -> tensor<?x8xf32> attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 512 : i64} {
  %0 = kernel.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %1 = kernel.gather_rows %0, %wanted : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  %2 = kernel.rms_norm %1, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %3 = kernel.matmul %2, %w epilogue {
  ^bb0(%acc: f32):
    kernel.yield %acc
  } : (tensor<?x8xf32>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @attention_of_one_row
// CHECK-SAME: (%[[Q:.*]]: tensor<?x64xf32>, %[[KV:.*]]: !kv, %[[POS:.*]]: tensor<?xi32>, %[[SEQ:.*]]: tensor<?xi32>)
// CHECK-NEXT: %[[P:.*]] = kernel.attention %[[Q]] over %[[KV]] at %[[POS]], %[[SEQ]] {config = #[[CONFIG:.*]], scale = 2.500000e-01 : f64}
// CHECK-SAME: -> tensor<?x4x[[SPLITS:.*]]x[[PARTIAL:.*]]xf32>
// CHECK-NEXT: %[[O:.*]] = kernel.attention_merge %[[P]] at %[[POS]] {config = #[[CONFIG]], kvHeads = 2 : i64, scale = 2.500000e-01 : f64} : (tensor<?x4x[[SPLITS]]x[[PARTIAL]]xf32>, tensor<?xi32>) -> tensor<?x64xf32>
// CHECK-NEXT: return %[[O]]
func.func @attention_of_one_row(%q: tensor<?x64xf32>, %kv: !kv, %pos: tensor<?xi32>, %seq: tensor<?xi32>) -> tensor<?x64xf32> attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
  %0 = kernel.attention %q over %kv at %pos, %seq {scale = 0.25 : f64} : (tensor<?x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @attention_of_few_rows
// CHECK: kernel.attention {{.*}} {config = #kernel.attention_config<family = split_kv,
// CHECK: kernel.attention_merge
func.func @attention_of_few_rows(%q: tensor<?x64xf32>, %kv: !kv, %pos: tensor<?xi32>, %seq: tensor<?xi32>) -> tensor<?x64xf32> attributes {llamac.max_logits_rows = 32 : i64, llamac.max_rows = 32 : i64} {
  %0 = kernel.attention %q over %kv at %pos, %seq {scale = 0.25 : f64} : (tensor<?x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @attention_of_many_rows
// CHECK: kernel.attention {{.*}} {config = #kernel.attention_config<family = unsplit, splits = 0, partial = 0>
// CHECK-NOT: kernel.attention_merge
func.func @attention_of_many_rows(%q: tensor<?x64xf32>, %kv: !kv, %pos: tensor<?xi32>, %seq: tensor<?xi32>) -> tensor<?x64xf32> attributes {llamac.max_logits_rows = 64 : i64, llamac.max_rows = 512 : i64} {
  %0 = kernel.attention %q over %kv at %pos, %seq {scale = 0.25 : f64} : (tensor<?x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// Ops of one form have no config.
// CHECK-LABEL: func.func @no_choice
// CHECK-NOT: config
func.func @no_choice(%x: tensor<?x8xf32>, %n: tensor<8xf32>) -> tensor<?x8xf32> attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
  %0 = kernel.rms_norm %x, %n {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
