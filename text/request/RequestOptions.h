//===- RequestOptions.h - The options of a request, by name -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one list of them: lines of JSON, C and Python read it. Names and meanings
// are those of OpenAI's interface, and vLLM's where that has none.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_REQUEST_REQUESTOPTIONS_H
#define LLAMAC_TEXT_REQUEST_REQUESTOPTIONS_H

#include "text/request/Request.h"

#include "absl/types/span.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace llamac {

using TokenWeights = std::vector<std::pair<int32_t, float>>;

/// A field that is the opposite of what its option says.
struct Inverse {
  bool *value;
};

/// The grammar of a request, which has one at most, as a text of this kind.
struct GrammarField {
  std::optional<GrammarSource> *source;
  GrammarSource::Kind kind;
};

/// What an option sets; the type says which values it takes.
using OptionField =
    std::variant<bool *, Inverse, int *, int64_t *, double *, std::string *,
                 std::optional<uint64_t> *, std::vector<std::string> *,
                 std::vector<int32_t> *, TokenWeights *, GrammarField>;

/// An option of Target.
template <typename Target> struct NamedOption {
  const char *name;
  OptionField (*field)(Target &to);
  const char *help;
  /// Numbers are in this range; requests are checked as they are prepared.
  int64_t least = std::numeric_limits<int64_t>::min(),
          most = std::numeric_limits<int64_t>::max();
};

absl::Span<const NamedOption<Request>> requestOptions();

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_REQUESTOPTIONS_H
