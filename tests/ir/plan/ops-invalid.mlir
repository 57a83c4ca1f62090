// What the verifiers and the parser of the plan dialect refuse.
// RUN: llamac-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'plan.kernel' op body must hold exactly one op, got 2}}
plan.kernel @two_ops family "pointwise" roles [] {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %1 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

// expected-error @below {{'plan.kernel' op body must hold exactly one op, got 0}}
plan.kernel @no_op family "pointwise" roles [] {
^bb0(%x: tensor<?xi32>):
}

// -----

// expected-error @below {{'plan.kernel' op body's op takes 2 operands, the kernel has 3}}
plan.kernel @spare_argument family "embed" roles [] {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>, %spare: tensor<4xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

plan.program @no_items {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op geometry is #plan.geometry<items = 0, rowBlock = 0, scratch = 0>, expected positive items and no negative size}}
  plan.launch @missing(write %x) rows tokens <items = 0, rowBlock = 0, scratch = 0>
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @negative_block {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op geometry is #plan.geometry<items = 1, rowBlock = -8, scratch = 0>, expected positive items and no negative size}}
  plan.launch @missing(write %x) rows tokens <items = 1, rowBlock = -8, scratch = 0>
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @negative_scratch {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op geometry is #plan.geometry<items = 1, rowBlock = 0, scratch = -1>, expected positive items and no negative size}}
  plan.launch @missing(write %x) rows tokens <items = 1, rowBlock = 0, scratch = -1>
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @unknown_kernel {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op no plan.kernel is named @missing}}
  plan.launch @missing(write %x) rows tokens <items = 1, rowBlock = 0, scratch = 0>
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

// A symbol of another kind is no kernel.
plan.program @itself {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op no plan.kernel is named @itself}}
  plan.launch @itself(write %x) rows tokens <items = 1, rowBlock = 0, scratch = 0>
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @count_of_accesses {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op has 1 arguments and 2 accesses}}
  "plan.launch"(%x) {accesses = array<i32: 0, 1>, geometry = #plan.geometry<items = 1, rowBlock = 0, scratch = 0>, kernel = @k, rows = 0 : i32} : (!plan.memory) -> ()
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @unknown_access {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op access 3, expected read, write or update}}
  "plan.launch"(%x) {accesses = array<i32: 3>, geometry = #plan.geometry<items = 1, rowBlock = 0, scratch = 0>, kernel = @k, rows = 0 : i32} : (!plan.memory) -> ()
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @map_of_no_argument {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op has a tensor map of argument 1 of 1}}
  plan.launch @k(write %x) rows tokens <items = 1, rowBlock = 0, scratch = 0> maps [#plan.tensor_map<operand = 1, elementBytes = 4, columns = 8, rows = 2, boxColumns = 8, boxRows = 2, swizzleBytes = 32>]
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @map_of_another_kind {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op has 7 : i64 among its tensor maps}}
  plan.launch @k(write %x) rows tokens <items = 1, rowBlock = 0, scratch = 0> maps [7]
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @access_keyword {
  %x = plan.buffer 64
  // expected-error @below {{expected read, write or update, got 'erase'}}
  plan.launch @k(erase %x) rows tokens <items = 1, rowBlock = 0, scratch = 0>
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @access_missing {
  %x = plan.buffer 64
  // expected-error @below {{expected valid keyword}}
  plan.launch @k(%x) rows tokens <items = 1, rowBlock = 0, scratch = 0>
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}
