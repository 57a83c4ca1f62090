// Buffers get offsets: those alive at once lie apart, on cache lines; dead ones
// give their place to others.
// RUN: llamac-opt %s --plan-memory | FileCheck %s
// RUN: llamac-opt %s --plan-memory --plan-memory | FileCheck %s

plan.kernel @k(activation, result) family "pointwise" roles [] geometry <items = 1, rowBlock = 0, scratch = 0> {
^bb0(%x: tensor<?x8xf32>):
  %0 = kernel.pointwise %x body {
  ^bb0(%a: f32):
    kernel.yield %a
  } : (tensor<?x8xf32>) -> tensor<?x8xf32>
}

// Each buffer is dead one barrier interval after it is read, so three share
// two places; 100 bytes take two cache lines.
// CHECK-LABEL: plan.program @chain
// CHECK: plan.buffer 100 at 0{{ *$}}
// CHECK: plan.buffer 100 at 128{{ *$}}
// CHECK: plan.buffer 100 at 0{{ *$}}
// CHECK: plan.buffer 100 at 128{{ *$}}
// CHECK: } {arena_bytes = 256 : i64
plan.program @chain {
  %tokens = plan.input tokens
  %a = plan.buffer 100
  plan.launch @k(%tokens, %a) rows tokens
  %b = plan.buffer 100
  plan.launch @k(%a, %b) rows tokens barrier
  %c = plan.buffer 100
  plan.launch @k(%b, %c) rows tokens barrier
  %d = plan.buffer 100
  plan.launch @k(%c, %d) rows tokens barrier
  plan.logits %d
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// Without a barrier launches may run in any order: what the first one reads is
// alive while the second one writes.
// CHECK-LABEL: plan.program @one_phase
// CHECK: plan.buffer 64 at 0{{ *$}}
// CHECK: plan.buffer 64 at 64{{ *$}}
// CHECK: plan.buffer 64 at 128{{ *$}}
// CHECK: } {arena_bytes = 192 : i64
plan.program @one_phase {
  %tokens = plan.input tokens
  %a = plan.buffer 64
  plan.launch @k(%tokens, %a) rows tokens
  %b = plan.buffer 64
  plan.launch @k(%a, %b) rows tokens barrier
  %c = plan.buffer 64
  plan.launch @k(%tokens, %c) rows tokens
  plan.logits %c
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// Memory of all rows that the launches of logits rows read stays: they may run again.
// CHECK-LABEL: plan.program @logits_rows
// CHECK: plan.buffer 64 at 0{{ *$}}
// CHECK: plan.buffer 64 at 64{{ *$}}
// CHECK: plan.buffer 64 at 128{{ *$}}
// CHECK: plan.buffer 64 at 64{{ *$}}
// CHECK: } {arena_bytes = 192 : i64
plan.program @logits_rows {
  %tokens = plan.input tokens
  %a = plan.buffer 64
  plan.launch @k(%tokens, %a) rows tokens
  %b = plan.buffer 64
  plan.launch @k(%a, %b) rows logits_rows barrier
  %c = plan.buffer 64
  plan.launch @k(%b, %c) rows logits_rows barrier
  %d = plan.buffer 64
  plan.launch @k(%c, %d) rows logits_rows barrier
  plan.logits %d
} {max_logits_rows = 1 : i64, max_rows = 2 : i64}

// The logits are read after the program: nothing takes their place, early as
// they are written.
// CHECK-LABEL: plan.program @early_logits
// CHECK: plan.buffer 64 at 0{{ *$}}
// CHECK: plan.buffer 64 at 64{{ *$}}
// CHECK: plan.buffer 64 at 128{{ *$}}
// CHECK: plan.buffer 64 at 64{{ *$}}
// CHECK: } {arena_bytes = 192 : i64
plan.program @early_logits {
  %tokens = plan.input tokens
  %logits = plan.buffer 64
  plan.launch @k(%tokens, %logits) rows tokens
  %b = plan.buffer 64
  plan.launch @k(%tokens, %b) rows tokens barrier
  %c = plan.buffer 64
  plan.launch @k(%b, %c) rows tokens barrier
  %d = plan.buffer 64
  plan.launch @k(%c, %d) rows tokens barrier
  plan.logits %logits
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// A large buffer goes first, small ones into the gap that it leaves.
// CHECK-LABEL: plan.program @largest_first
// CHECK: plan.buffer 64 at 1024{{ *$}}
// CHECK: plan.buffer 1024 at 0{{ *$}}
// CHECK: plan.buffer 64 at 0{{ *$}}
// CHECK: } {arena_bytes = 1088 : i64
plan.program @largest_first {
  %tokens = plan.input tokens
  %a = plan.buffer 64
  plan.launch @k(%tokens, %a) rows tokens
  %b = plan.buffer 1024
  plan.launch @k(%a, %b) rows tokens barrier
  %c = plan.buffer 64
  plan.launch @k(%a, %c) rows tokens barrier
  plan.logits %c
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}

// CHECK-LABEL: plan.program @empty
// CHECK: } {arena_bytes = 0 : i64
plan.program @empty {
} {max_logits_rows = 1 : i64, max_rows = 1 : i64}
