// The verifiers and the parser of the plan dialect refuse these.
// RUN: llamac-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'plan.kernel' op body must hold exactly one op, got 2}}
plan.kernel @two_ops(activation, weight, result) family "pointwise" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %1 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

// expected-error @below {{'plan.kernel' op body must hold exactly one op, got 0}}
plan.kernel @no_op(activation) family "pointwise" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?xi32>):
}

// -----

// expected-error @below {{'plan.kernel' op body's op takes 2 operands, the kernel has 3}}
plan.kernel @spare_argument(activation, weight, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>, %spare: tensor<4xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

// expected-error @below {{'plan.kernel' op geometry is #plan.geometry<items = 0, rowBlock = 0, scratch = 0>, expected positive items and no negative size}}
plan.kernel @no_items(activation, weight, result) family "embed" roles [] geometry <items = 0, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

// expected-error @below {{'plan.kernel' op geometry is #plan.geometry<items = 1, rowBlock = -8, scratch = 0>, expected positive items and no negative size}}
plan.kernel @negative_block(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = -8, scratch = 0> {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

// expected-error @below {{'plan.kernel' op geometry is #plan.geometry<items = 1, rowBlock = 0, scratch = -1>, expected positive items and no negative size}}
plan.kernel @negative_scratch(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = -1> {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

// expected-error @below {{'plan.kernel' op has 1 parameters of role activation, expected 2}}
plan.kernel @operand_without_parameter(activation, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

// expected-error @below {{'plan.kernel' op has 0 parameters of role workspace, expected 1}}
plan.kernel @workspace_without_parameter(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0, workspace = 64> {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

// expected-error @below {{'plan.kernel' op has 1 parameters of role counters, expected 0}}
plan.kernel @counters_of_no_geometry(activation, weight, counters, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

// expected-error @below {{'plan.kernel' op has a parameter of role 9, expected one of 0 to 8}}
"plan.kernel"() <{family = "embed", geometry = #plan.geometry<items = 1, rowBlock = 0, scratch = 0>, params = array<i32: 0, 1, 9>, roles = [], sym_name = "unknown_role"}> ({
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}) : () -> ()

// -----

// expected-error @below {{'plan.kernel' op has a tensor map of parameter 3 of 3}}
plan.kernel @map_of_no_parameter(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> maps [#plan.tensor_map<operand = 3, elementBytes = 4, columns = 8, rows = 2, boxColumns = 8, boxRows = 2, swizzleBytes = 32>] {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

// expected-error @below {{expected the role of a parameter, got 'activations'}}
plan.kernel @misspelt(activations) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
}

// -----

plan.program @unknown_kernel {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op no plan.kernel is named @missing}}
  plan.launch @missing(%x) rows tokens
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

// A symbol of another kind is no kernel.
plan.program @itself {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op no plan.kernel is named @itself}}
  plan.launch @itself(%x) rows tokens
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.kernel @k(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

plan.program @count_of_arguments {
  %x = plan.buffer 64
  // expected-error @below {{'plan.launch' op has 2 arguments, @k has 3 parameters}}
  plan.launch @k(%x, %x) rows tokens
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

// expected-error @below {{'plan.kernel' op attribute 'maps' failed to satisfy constraint: tensor maps}}
plan.kernel @map_of_another_kind(activation, weight, result) family "embed" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> maps [7] {
^bb0(%x: tensor<?xi32>, %table: tensor<4x8xf32>):
  %0 = kernel.embed %x, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
}

// -----

plan.program @buffer_of_less_than_nothing {
  // expected-error @below {{'plan.buffer' op attribute 'bytes' failed to satisfy constraint}}
  %x = plan.buffer -64
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @place_past_any_memory {
  // expected-error @below {{'plan.buffer' op attribute 'offset' failed to satisfy constraint}}
  %x = plan.buffer 64 at 9223372036854775807
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @third_half {
  // expected-error @below {{'plan.exchange' op attribute 'half' failed to satisfy constraint}}
  %x = plan.exchange 64 half 2
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

plan.program @layer_below_the_first {
  // expected-error @below {{'plan.kv' op attribute 'layer' failed to satisfy constraint}}
  %x = plan.kv layer -1
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// -----

// expected-error @+2 {{'plan.program' op attribute 'max_rows' failed to satisfy constraint}}
plan.program @no_rows {
} {max_logits_rows = 1 : i64, max_rows = 0 : i64}
