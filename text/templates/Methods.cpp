//===- Methods.cpp - Methods of texts and collections ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Tables.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace llamac::chat {

namespace method {

using ValueOr = absl::StatusOr<Value>;

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

static absl::Status wrongArgument(absl::string_view expected,
                                  const Value &got) {
  return got.isUndefined()
             ? undefinedError(got)
             : templateError(absl::StrCat("the method expects ", expected,
                                          ", got ", typeName(got)));
}

static ValueOr split(Interpreter &in, const Value &self, CallArguments &args) {
  if (!args[0].isString() || args[0].text().empty())
    return wrongArgument("a text that separates", args[0]);
  if (args.has(1) && !args[1].isInt())
    return wrongArgument("an integer", args[1]);
  int64_t most = args.has(1) ? args[1].integer() : -1;
  const absl::string_view separator = args[0].text();
  absl::string_view text = self.text();
  std::vector<Value> parts;
  const auto add = [&](absl::string_view part) -> absl::Status {
    LLAMAC_ASSIGN_OR_RETURN(const Value made,
                            in.heap.string(std::string(part)));
    parts.push_back(made);
    return absl::OkStatus();
  };
  while (most-- != 0) {
    const size_t at = find(text, separator);
    if (at == absl::string_view::npos)
      break;
    LLAMAC_RETURN_IF_ERROR(in.heap.spend(1 + separator.size() / 16));
    LLAMAC_RETURN_IF_ERROR(add(text.substr(0, at)));
    text.remove_prefix(at + separator.size());
  }
  LLAMAC_RETURN_IF_ERROR(add(text));
  return in.heap.list(std::move(parts));
}

template <bool (*matches)(absl::string_view, absl::string_view)>
static ValueOr borders(Interpreter &in, const Value &self,
                       CallArguments &args) {
  if (!args[0].isString())
    return wrongArgument("a text", args[0]);
  LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(args[0].text().size()));
  return Value::boolean(matches(self.text(), args[0].text()));
}

static ValueOr replaced(Interpreter &in, const Value &self,
                        CallArguments &args) {
  if (!args[0].isString() || !args[1].isString())
    return wrongArgument("texts", args[args[0].isString()]);
  return replaceText(in, self, args);
}

// Python's str.format, of whose fields only {} is supported.
static ValueOr format(Interpreter &in, const Value &self, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(self.text().size()));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> pieces,
                          formatPieces(self.text()));
  std::string text = pieces[0];
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (i > args.positional.size())
      return templateError("not enough arguments for the format");
    LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(1, text.size()));
    LLAMAC_RETURN_IF_ERROR(appendText(in.heap, args[i - 1], text));
    text += pieces[i];
  }
  return in.heap.string(std::move(text));
}

//===----------------------------------------------------------------------===//
// Dictionaries
//===----------------------------------------------------------------------===//

static ValueOr get(Interpreter &in, const Value &self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const Value *const found,
                          lookUp(in.heap, self.dict(), args[0]));
  if (found)
    return *found;
  return args.has(1) ? args[1] : Value::none();
}

template <bool withKeys, bool withValues>
static ValueOr view(Interpreter &in, const Value &self, CallArguments &) {
  std::vector<Value> all;
  for (const auto &[key, value] : self.dict().entries) {
    Value item = withKeys ? key : value;
    if (withKeys && withValues) {
      LLAMAC_ASSIGN_OR_RETURN(item, in.heap.tuple({key, value}));
    }
    all.push_back(item);
  }
  return in.heap.sequence(Kind::View, std::move(all));
}

//===----------------------------------------------------------------------===//
// The tables
//===----------------------------------------------------------------------===//

// Methods without a call change their object, which the sandbox forbids.
static constexpr Function ofDict[] = {
    {"clear", nullptr},
    {"get", get, {"", ""}, 1},
    {"items", view<true, true>},
    {"keys", view<true, false>},
    {"pop", nullptr},
    {"popitem", nullptr},
    {"setdefault", nullptr},
    {"update", nullptr},
    {"values", view<false, true>},
};
static constexpr Function ofList[] = {
    {"append", nullptr},  {"clear", nullptr}, {"extend", nullptr},
    {"insert", nullptr},  {"pop", nullptr},   {"remove", nullptr},
    {"reverse", nullptr}, {"sort", nullptr},
};
static constexpr Function ofString[] = {
    {"capitalize", changeText<capitalize>},
    {"endswith", borders<absl::EndsWith>, {""}, 1},
    {"format", format, {}, 0, true},
    {"lower", changeText<lower>},
    {"lstrip", stripText<true, false>, {""}},
    {"replace", replaced, {"", "", ""}, 2},
    {"rstrip", stripText<false, true>, {""}},
    {"split", split, {"sep", "maxsplit"}, 1},
    {"startswith", borders<absl::StartsWith>, {""}, 1},
    {"strip", stripText<true, true>, {""}},
    {"upper", changeText<upper>},
};

static constexpr Table dictTable = {"method", ofDict, "copy fromkeys"};
static constexpr Table listTable = {"method", ofList, "copy count index"};
static constexpr Table tupleTable = {"method", {}, "count index"};
static constexpr Table stringTable = {
    "method", ofString,
    "casefold center count encode expandtabs find format_map index isalnum "
    "isalpha isascii isdecimal isdigit isidentifier islower isnumeric "
    "isprintable isspace istitle isupper join ljust maketrans partition "
    "removeprefix removesuffix rfind rindex rjust rpartition rsplit splitlines "
    "swapcase title translate zfill"};
static constexpr Table numberTable = {
    "attribute",
    {},
    "as_integer_ratio bit_count bit_length conjugate denominator from_bytes "
    "fromhex hex imag is_integer numerator real to_bytes"};
static constexpr Table loopTable = {
    "attribute of loop", {}, "changed cycle depth depth0"};
static constexpr Table noTable = {"method", {}, ""};

} // namespace method

const Table &methods(Kind kind) {
  switch (kind) {
  case Kind::String:
    return method::stringTable;
  case Kind::Dict:
    return method::dictTable;
  case Kind::List:
    return method::listTable;
  case Kind::Tuple:
    return method::tupleTable;
  case Kind::Bool:
  case Kind::Int:
  case Kind::Float:
    return method::numberTable;
  case Kind::Loop:
    return method::loopTable;
  default:
    return method::noTable;
  }
}

std::string methodRefusal(absl::string_view name, size_t positional,
                          absl::Span<const std::string> named) {
  std::string message;
  for (const Kind kind : {Kind::String, Kind::Dict, Kind::List, Kind::Tuple}) {
    const Table &table = methods(kind);
    if (const Function *const function = table.find(name)) {
      const absl::Status taken =
          function->call ? checkArguments(*function, positional, named)
                         : absl::OkStatus();
      if (taken.ok())
        return "";
      message = absl::StrCat("the method '", name, "' ", taken.message());
    } else if (table.refuses(name) && message.empty()) {
      message = table.refusal(name);
    }
  }
  return message;
}

absl::StatusOr<std::vector<std::string>>
formatPieces(absl::string_view format) {
  std::vector<std::string> pieces(1);
  for (size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    const char following = at + 1 < format.size() ? format[at + 1] : '\0';
    if (c != '{' && c != '}') {
      pieces.back() += c;
    } else if (c == following) {
      pieces.back() += c;
      ++at;
    } else if (c == '{' && following == '}') {
      pieces.emplace_back();
      ++at;
    } else {
      return templateError("of the fields of a format only {} is supported");
    }
  }
  return pieces;
}

} // namespace llamac::chat
