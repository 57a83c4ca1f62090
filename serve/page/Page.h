//===- Page.h - The page at / -----------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_PAGE_PAGE_H
#define LLAMAC_SERVE_PAGE_PAGE_H

#include "serve/http/HttpConnection.h"

namespace llamac::serve {

/// The page, one document with its style and script. Its policy lets nothing
/// else in, and the page call its own server alone
/// (https://www.w3.org/TR/CSP3/).
const HttpAnswer &pageAnswer();

} // namespace llamac::serve

#endif // LLAMAC_SERVE_PAGE_PAGE_H
