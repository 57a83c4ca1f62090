//===- ConvertCommand.cpp - llamac convert ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//

#include "compiler/llamac/Commands.h"
#include "frontends/Checkpoint.h"
#include "frontends/Convert.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
