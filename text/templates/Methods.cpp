//===- Methods.cpp - Methods of collections and loops ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Methods.h"
#include "text/templates/Tables.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace llamac::chat {

namespace method {

using ValueOr = absl::StatusOr<Value>;

// From `least` to `most` arguments without names.
absl::StatusOr<std::vector<Value>> positional(const CallArguments &args,
                                              size_t least, size_t most) {
  if (!args.named.empty() || args.positional.size() < least ||
      args.positional.size() > most)
    return templateError(absl::StrCat(
        "the method takes ", least, " to ", most, " arguments, got ",
        args.positional.size() + args.named.size()));
  std::vector<Value> given = args.positional;
  given.resize(most, Value::missing());
  return given;
}

absl::Status wrongArgument(absl::string_view expected, const Value &got) {
  return got.isUndefined()
             ? undefinedError(got)
             : templateError(absl::StrCat("the method expects ", expected,
                                          ", got ", typeName(got)));
}

absl::StatusOr<int64_t> integer(const Value &value, int64_t otherwise) {
  if (value.is(Kind::Missing))
    return otherwise;
  if (!value.isInt())
    return wrongArgument("an integer", value);
  return value.integer();
}

//===----------------------------------------------------------------------===//
// Collections
//===----------------------------------------------------------------------===//

static ValueOr get(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 1, 2));
  LLAMAC_ASSIGN_OR_RETURN(const Value *const found,
                          lookUp(in.heap, self.dict(), given[0]));
  if (found)
    return *found;
  return given[1].is(Kind::Missing) ? Value::none() : given[1];
}

template <DictView::Part part>
static ValueOr view(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(positional(args, 0, 0).status());
  return in.heap.object(Kind::DictView, DictView{part, &self.dict()});
}

static ValueOr copyDict(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(positional(args, 0, 0).status());
  LLAMAC_ASSIGN_OR_RETURN(const Value copy, in.heap.dict());
  for (const auto &[key, value] : self.dict().entries)
    LLAMAC_RETURN_IF_ERROR(in.heap.set(copy, key, value));
  return copy;
}

static ValueOr copyList(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(positional(args, 0, 0).status());
  return in.heap.list(self.sequence().items);
}

static ValueOr countItems(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 1, 1));
  LLAMAC_ASSIGN_OR_RETURN(const auto all, items(in.heap, self));
  int64_t found = 0;
  for (const Value &item : all) {
    LLAMAC_ASSIGN_OR_RETURN(const bool same, equals(in.heap, item, given[0]));
    found += same;
  }
  return Value::integer(found);
}

static ValueOr indexOf(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given,
                          positional(args, 1, self.is(Kind::Range) ? 1 : 3));
  LLAMAC_ASSIGN_OR_RETURN(const auto all, items(in.heap, self));
  const int64_t size = static_cast<int64_t>(all.size());
  int64_t bounds[2] = {0, size};
  for (size_t i = 1; i < given.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(bounds[i - 1], integer(given[i], bounds[i - 1]));
    if (bounds[i - 1] < 0)
      bounds[i - 1] = std::max<int64_t>(0, bounds[i - 1] + size);
  }
  for (int64_t i = bounds[0]; i < std::min(bounds[1], size); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(
        const bool same,
        equals(in.heap, all[static_cast<size_t>(i)], given[0]));
    if (same)
      return Value::integer(i);
  }
  return templateError("the item is not found");
}

//===----------------------------------------------------------------------===//
// Loops and cyclers
//===----------------------------------------------------------------------===//

static ValueOr cycle(Interpreter &in, Value self, CallArguments &args) {
  if (args.positional.empty() || !args.named.empty())
    return templateError("cycle takes items");
  return args.positional[static_cast<size_t>(self.loop().index0) %
                         args.positional.size()];
}

static ValueOr hasChanged(Interpreter &in, Value self, CallArguments &args) {
  if (!args.named.empty())
    return templateError("changed takes values without names");
  Loop &loop = self.loop();
  bool same = std::exchange(loop.wasAsked, true) &&
              loop.changed.size() == args.positional.size();
  for (size_t i = 0; same && i < args.positional.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(
        same, equals(in.heap, loop.changed[i], args.positional[i]));
  }
  loop.changed = args.positional;
  return Value::boolean(!same);
}

static ValueOr nextItem(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(positional(args, 0, 0).status());
  Cycler &cycler = self.cycler();
  const Value item = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return item;
}

static ValueOr reset(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(positional(args, 0, 0).status());
  self.cycler().position = 0;
  return Value::none();
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static absl::Span<const Function> methodsOf(Kind kind) {
  // Those without a call change what the sandbox keeps as it is.
  static constexpr Function ofDict[] = {
      {"clear", nullptr},
      {"copy", copyDict},
      {"get", get},
      {"items", view<DictView::Part::Items>},
      {"keys", view<DictView::Part::Keys>},
      {"pop", nullptr},
      {"popitem", nullptr},
      {"setdefault", nullptr},
      {"update", nullptr},
      {"values", view<DictView::Part::Values>},
  };
  static constexpr Function ofList[] = {
      {"append", nullptr},   {"clear", nullptr},  {"copy", copyList},
      {"count", countItems}, {"extend", nullptr}, {"index", indexOf},
      {"insert", nullptr},   {"pop", nullptr},    {"remove", nullptr},
      {"reverse", nullptr},  {"sort", nullptr},
  };
  static constexpr Function ofTuple[] = {
      {"count", countItems},
      {"index", indexOf},
  };
  static constexpr Function ofLoop[] = {
      {"changed", hasChanged},
      {"cycle", cycle},
  };
  static constexpr Function ofCycler[] = {
      {"next", nextItem},
      {"reset", reset},
  };
  switch (kind) {
  case Kind::String:
    return textMethods();
  case Kind::Dict:
    return ofDict;
  case Kind::List:
    return ofList;
  case Kind::Tuple:
  case Kind::Range:
    return ofTuple;
  case Kind::Loop:
    return ofLoop;
  case Kind::Cycler:
    return ofCycler;
  default:
    return {};
  }
}

} // namespace method

const Function *findMethod(const Value &receiver, absl::string_view name) {
  return findIn(method::methodsOf(receiver.kind()), name);
}

} // namespace llamac::chat
