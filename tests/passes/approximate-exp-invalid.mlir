// One polynomial and one table are known, and GPUs have the polynomial alone.
// RUN: not llamac-opt %s --attach-target --approximate-exp=poly=4 2>&1 | FileCheck %s --check-prefix=DEGREE
// RUN: not llamac-opt %s --attach-target --approximate-exp=table=128 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not llamac-opt %s --attach-target --approximate-exp 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not llamac-opt %s --attach-target --approximate-exp="poly=3 table=256" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not llamac-opt %s --attach-target="name=cuda" --approximate-exp=table=256 2>&1 | FileCheck %s --check-prefix=GPU

// DEGREE: error: approximate-exp: expected poly=3 or table=256, got poly=4 table=0
// SIZE: error: approximate-exp: expected poly=3 or table=256, got poly=0 table=128
// NONE: error: approximate-exp: expected poly=3 or table=256, got poly=0 table=0
// BOTH: error: approximate-exp: expected poly=3 or table=256, got poly=3 table=256
// GPU: error: approximate-exp: target cuda has no kernels for table256, expected poly=3
func.func @step() {
  return
}
