// Ops that no launch can do are refused where they stand.
// RUN: llamac-opt %s --split-input-file --lower-to-kernels --verify-diagnostics

func.func @unfused(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>) -> tensor<4x?x?xf32> {
  // expected-error @below {{no kernel implements llama.attention_scores, which is part of attention: fuse-attention must come first}}
  %0 = llama.attention_scores %q, %k : (tensor<?x4x16xf32>, tensor<?x2x16xf32>) -> tensor<4x?x?xf32>
  return %0 : tensor<4x?x?xf32>
}

// -----

func.func @another_dialect(%x: f32) -> f32 {
  // expected-error-re @below {{{{^}}no kernel implements arith.addf{{$}}}}
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}

// -----

// expected-error @below {{expected a body of one block}}
func.func private @declared(tensor<?x8xf32>)

// -----

!kv = !llama.kv<heads = 2, size = 16>

func.func @key_not_turned(%k: tensor<?x2x16xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> !kv {
  // expected-error @below {{the appended key is not rotated by llama.rope}}
  %0 = llama.cache_append %kv, %k, %k, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  return %0 : !kv
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

func.func @append_without_reader(%k: tensor<?x2x16xf32>, %table: tensor<?x8x2xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> !kv {
  %0 = llama.rope %k, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  // expected-error @below {{no attention over the appended cache with a query rotated by the key's table}}
  %1 = llama.cache_append %kv, %0, %k, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  return %1 : !kv
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

func.func @reader_of_another_layer(%k: tensor<?x2x16xf32>, %table: tensor<?x8x2xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv, %other: !kv) -> tensor<?x2x16xf32> {
  %0 = llama.rope %k, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  // expected-error @below {{no attention over the appended cache with a query rotated by the key's table}}
  %1 = llama.cache_append %kv, %0, %k, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %2 = llama.attention %0, %other, %pos, %seq scale = 0.25 : (tensor<?x2x16xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x16xf32>
  return %2 : tensor<?x2x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

func.func @tables_differ(%k: tensor<?x2x16xf32>, %table: tensor<?x8x2xf32>, %other: tensor<?x8x2xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> tensor<?x2x16xf32> {
  %0 = llama.rope %k, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  %1 = llama.rope %k, %other : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  // expected-error @below {{no attention over the appended cache with a query rotated by the key's table}}
  %2 = llama.cache_append %kv, %0, %k, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %3 = llama.attention %1, %2, %pos, %seq scale = 0.25 : (tensor<?x2x16xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x16xf32>
  return %3 : tensor<?x2x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The query is rotated, but no append of the step does it.
func.func @attention_without_append(%q: tensor<?x2x16xf32>, %table: tensor<?x8x2xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> tensor<?x2x16xf32> {
  %0 = llama.rope %q, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  // expected-error @below {{the query is not rotated by llama.rope}}
  %1 = llama.attention %0, %kv, %pos, %seq scale = 0.25 : (tensor<?x2x16xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x16xf32>
  return %1 : tensor<?x2x16xf32>
}

// -----

func.func @turned_value_escapes(%q: tensor<?x2x16xf32>, %table: tensor<?x8x2xf32>) -> tensor<?x2x16xf32> {
  %0 = llama.rope %q, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  // expected-error @below {{reads a result of llama.rope, which may only be an attention's query or an appended key}}
  return %0 : tensor<?x2x16xf32>
}

// -----

func.func @turned_twice(%q: tensor<?x2x16xf32>, %table: tensor<?x8x2xf32>) -> tensor<?x2x16xf32> {
  %0 = llama.rope %q, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  // expected-error @below {{reads a result of llama.rope, which may only be an attention's query or an appended key}}
  %1 = llama.rope %0, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  return %1 : tensor<?x2x16xf32>
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

func.func @turned_value_appended(%k: tensor<?x2x16xf32>, %table: tensor<?x8x2xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> !kv {
  %0 = llama.rope %k, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  // expected-error @below {{reads a result of llama.rope, which may only be an attention's query or an appended key}}
  %1 = llama.cache_append %kv, %0, %0, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  return %1 : !kv
}

// -----

!kv = !llama.kv<heads = 2, size = 16>

// The query is made of what the append gives: no launch can turn it before.
func.func @query_of_the_appended(%k: tensor<?x2x16xf32>, %table: tensor<?x8x2xf32>, %pos: tensor<?xi32>, %seq: tensor<?xi32>, %kv: !kv) -> tensor<?x2x16xf32> {
  %0 = llama.rope %k, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  // expected-error @below {{no attention over the appended cache with a query rotated by the key's table}}
  %1 = llama.cache_append %kv, %0, %k, %pos, %seq : (!kv, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> !kv
  %2 = llama.attention %k, %1, %pos, %seq scale = 0.25 : (tensor<?x2x16xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x16xf32>
  %3 = llama.rope %2, %table : (tensor<?x2x16xf32>, tensor<?x8x2xf32>) -> tensor<?x2x16xf32>
  %4 = llama.attention %3, %1, %pos, %seq scale = 0.25 : (tensor<?x2x16xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x16xf32>
  return %4 : tensor<?x2x16xf32>
}

// -----

// Rows that are known on one side only.
func.func @sum_of_other_rows(%x: tensor<?x8xf32>, %y: tensor<3x8xf32>) -> tensor<3x8xf32> {
  // expected-error @below {{element-wise operand is 'tensor<?x8xf32>', expected the result's shape in f32, 'tensor<3x8xf32>'}}
  %0 = llama.add %x, %y : (tensor<?x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}
