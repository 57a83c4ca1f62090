// A step that samples takes the sampling parameters as its last argument and
// gives the tokens as its last result.
// RUN: llamac-opt %s --append-sampling | FileCheck %s

!kv = !llama.kv<heads = 1, size = 8>

// CHECK-LABEL: func.func @decode(
// CHECK-SAME: %[[KV:[a-z0-9]+]]: !kv {llama.role = #llama.role<kv, layer = 0>}, %[[DRAWS:[a-z0-9]+]]: tensor<?x4xi32> {llama.role = #llama.role<sampling_params>}) -> (tensor<?x8xf32>, !kv, tensor<?xi32>) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64}
// CHECK: %[[LOGITS:.*]] = kernel.embed
// CHECK-NEXT: %[[TOKENS:.*]] = kernel.sample %[[LOGITS]] by %[[DRAWS]] : (tensor<?x8xf32>, tensor<?x4xi32>) -> tensor<?xi32>
// CHECK-NEXT: return %[[LOGITS]], %[[KV]], %[[TOKENS]]
func.func @decode(%tokens: tensor<?xi32> {llama.role = #llama.role<tokens>}, %pos: tensor<?xi32> {llama.role = #llama.role<positions>}, %seq: tensor<?xi32> {llama.role = #llama.role<sequences>}, %wanted: tensor<?xi32> {llama.role = #llama.role<logits_rows>}, %kv: !kv {llama.role = #llama.role<kv, layer = 0>})
    -> (tensor<?x8xf32>, !kv) attributes {llamac.max_logits_rows = 1 : i64, llamac.max_rows = 1 : i64} {
  %e = llama.weight "tok_embeddings" : tensor<9x8xbf16>
  %x = kernel.embed %tokens, %e : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  return %x, %kv : tensor<?x8xf32>, !kv
}
