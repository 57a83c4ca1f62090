//===- SchemaFormats.cpp - Formats of JSON schemas ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/grammar/SchemaFormats.h"

#include "absl/strings/str_cat.h"

namespace llamac {

namespace {

struct Format {
  absl::string_view name;
  /// Strings that are certainly of it; empty: which ones is not known here.
  const char *pattern;
};

/// Years from 0001 on; leap years by the Gregorian rule.
#define LLAMAC_YEAR "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
#define LLAMAC_LEAP_YEAR                                                       \
  "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|"                              \
  "(?:0[48]|[2468][048]|[13579][26])00)"
#define LLAMAC_DATE                                                            \
  "(?:" LLAMAC_YEAR "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"       \
  "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"         \
  "|" LLAMAC_LEAP_YEAR "-02-29)"
#define LLAMAC_TIME                                                            \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?"               \
  "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define LLAMAC_LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
#define LLAMAC_HOST LLAMAC_LABEL "(?:\\." LLAMAC_LABEL "){0,5}"
#define LLAMAC_BYTE "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define LLAMAC_GROUP "[0-9A-Fa-f]{1,4}"
#define LLAMAC_URI_CHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})"
#define LLAMAC_URI_TAIL                                                        \
  LLAMAC_URI_CHAR "*(?:\\?(?:" LLAMAC_URI_CHAR "|\\?)*)?"                      \
                  "(?:#(?:" LLAMAC_URI_CHAR "|\\?)*)?"
#define LLAMAC_URI                                                             \
  "[A-Za-z][A-Za-z0-9+.-]*:(?://[A-Za-z0-9.-]+(?::[0-9]{1,4})?"                \
  "(?:/" LLAMAC_URI_TAIL ")?|[A-Za-z0-9._~-]" LLAMAC_URI_TAIL ")"
#define LLAMAC_URI_REFERENCE                                                   \
  "(?:" LLAMAC_URI "|/(?:[A-Za-z0-9._~-]" LLAMAC_URI_TAIL                      \
  ")?|[A-Za-z0-9._~-]+(?:/" LLAMAC_URI_TAIL ")?)"
#define LLAMAC_EMAIL                                                           \
  "[A-Za-z0-9_+-]{1,20}(?:\\.[A-Za-z0-9_+-]{1,20}){0,2}@" LLAMAC_HOST
#define LLAMAC_POINTER "(?:/(?:[^~/\"\\\\\\x00-\\x1f]|~[01])*)*"
#define LLAMAC_COUNT "[0-9]{1,4}"
#define LLAMAC_DURATION_TIME                                                   \
  "T(?:" LLAMAC_COUNT "H(?:" LLAMAC_COUNT "M(?:" LLAMAC_COUNT                  \
  "S)?)?|" LLAMAC_COUNT "M(?:" LLAMAC_COUNT "S)?|" LLAMAC_COUNT "S)"

constexpr Format formats[] = {
    {"date", LLAMAC_DATE},
    {"date-time", LLAMAC_DATE "T" LLAMAC_TIME},
    {"duration", "P(?:(?:" LLAMAC_COUNT "Y(?:" LLAMAC_COUNT "M(?:" LLAMAC_COUNT
                 "D)?)?|" LLAMAC_COUNT "M(?:" LLAMAC_COUNT "D)?|" LLAMAC_COUNT
                 "D)(?:" LLAMAC_DURATION_TIME ")?|" LLAMAC_DURATION_TIME
                 "|" LLAMAC_COUNT "W)"},
    {"email", LLAMAC_EMAIL},
    {"hostname", LLAMAC_HOST},
    {"idn-email", LLAMAC_EMAIL},
    {"idn-hostname", LLAMAC_HOST},
    {"ipv4", LLAMAC_BYTE "(?:\\." LLAMAC_BYTE "){3}"},
    {"ipv6",
     "(?:(?:" LLAMAC_GROUP ":){7}" LLAMAC_GROUP "|(?:" LLAMAC_GROUP
     ":){1,7}:|(?:" LLAMAC_GROUP ":){1,6}:" LLAMAC_GROUP "|(?:" LLAMAC_GROUP
     ":){1,5}(?::" LLAMAC_GROUP "){1,2}|(?:" LLAMAC_GROUP
     ":){1,4}(?::" LLAMAC_GROUP "){1,3}|(?:" LLAMAC_GROUP
     ":){1,3}(?::" LLAMAC_GROUP "){1,4}|(?:" LLAMAC_GROUP
     ":){1,2}(?::" LLAMAC_GROUP "){1,5}|" LLAMAC_GROUP ":(?::" LLAMAC_GROUP
     "){1,6}|:(?:(?::" LLAMAC_GROUP "){1,7}|:))"},
    {"iri", LLAMAC_URI},
    {"iri-reference", LLAMAC_URI_REFERENCE},
    {"json-pointer", LLAMAC_POINTER},
    {"regex", "[A-Za-z0-9_ ]*"},
    {"relative-json-pointer", "(?:0|[1-9][0-9]{0,4})(?:#|" LLAMAC_POINTER ")"},
    {"time", LLAMAC_TIME},
    {"uri", LLAMAC_URI},
    {"uri-reference", LLAMAC_URI_REFERENCE},
    {"uri-template", "(?:" LLAMAC_URI_CHAR "|\\{[A-Za-z0-9_]+\\})*"},
    {"uuid", "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"},
};

} // namespace

const char *formatPattern(absl::string_view name) {
  for (const Format &format : formats)
    if (format.name == name)
      return format.pattern;
  return nullptr;
}

std::string wholeFormat(absl::string_view name) {
  return absl::StrCat("^(?:", formatPattern(name), ")$");
}

} // namespace llamac
