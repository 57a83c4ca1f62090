// RUN: llamac-opt %s --append-sampling --verify-diagnostics

// expected-error @below {{expected a step that gives logits and caches, got '(tensor<?xi32>) -> tensor<?x8xf32>'}}
func.func @decode(%tokens: tensor<?xi32>) -> tensor<?x8xf32> {
  %e = llama.weight "tok_embeddings" : tensor<9x8xbf16>
  %x = kernel.embed %tokens, %e : (tensor<?xi32>, tensor<9x8xbf16>) -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
