//===- RequestOptions.h - The options of a request, by name -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// This is the one list of them: command lines, JSON, C, Python, the page and
// the documents are made of it (docs/adding.md). Names and meanings are those
// of OpenAI's interface, and vLLM's where that has none.
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

/// The field that an option sets; its type says which values are taken.
using OptionField =
    std::variant<bool *, Inverse, int *, int64_t *, double *, std::string *,
                 std::optional<uint64_t> *, std::vector<std::string> *,
                 std::vector<int32_t> *, TokenWeights *, GrammarField>;

/// The numbers that an option takes.
struct OptionRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool isAbove = false; ///< Whether `least` itself is not one.
};

/// An option of Target.
template <typename Target> struct NamedOption {
  const char *name;
  OptionField (*field)(Target &to);
  const char *help; ///< One sentence, which begins with a small letter.
  OptionRange range = {};
  /// How command lines have it, "-s,--seed SEED", with the names that other
  /// programs have for it last; empty: they do not.
  const char *flag = "";
  /// The default in words, where the value that a Target has does not say it.
  const char *byDefault = nullptr;
};

/// The value that `field` has, as people write it.
std::string valueText(const OptionField &field);

/// The value of `option` where nobody sets it, in words.
template <typename Target>
std::string defaultText(const NamedOption<Target> &option) {
  Target target{};
  return option.byDefault ? option.byDefault : valueText(option.field(target));
}

/// "0 to 1", "a number of at least 0"; empty where `field` has any value.
std::string rangeText(const OptionField &field, const OptionRange &range);

absl::Span<const NamedOption<Request>> requestOptions();

/// Usage error, about the option, for a number of `request` that is not in its
/// option's range. Changes nothing; fields of options just could.
absl::Status checkNumbers(Request &request);

/// Gives `request`, whose options called `given` were set over what the model
/// advises, the temperature 1 where one of them asks for drawn answers and
/// neither they nor the model say which: at 0 it would have no effect.
void drawWhereAsked(absl::Span<const absl::string_view> given,
                    Request &request);

/// Gives `to` the value that `option` has in `from`, which does not change.
void copyOption(const NamedOption<Request> &option, Request &from, Request &to);

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_REQUESTOPTIONS_H
