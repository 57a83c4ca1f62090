//===- ReportPage.h - A report as JSON and as one HTML file -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REPORT_REPORTPAGE_H
#define LLAMAC_COMPILER_REPORT_REPORTPAGE_H

#include "compiler/report/Report.h"

#include <nlohmann/json.hpp>

#include <string>

namespace llamac {

/// `report` as the page's script reads it. Diffs are run lengths: [signs,
/// lengths] with one of " -+" for each run.
nlohmann::ordered_json reportJson(const Report &report);

/// `json` in ASCII, fit to stand in a script element: with no '<', '>' or '&',
/// whatever its strings hold. Bytes that are not UTF-8 become U+FFFD.
std::string scriptJson(const nlohmann::ordered_json &json);

/// One HTML file that holds `report` and all it needs to be shown: it loads
/// nothing, and says so to the browser in a content security policy.
std::string reportPage(const Report &report);

} // namespace llamac

#endif // LLAMAC_COMPILER_REPORT_REPORTPAGE_H
