//===- Value.h - Values of a template ------------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values behave as Python's. They are small and copied; what they point to
// belongs to the Heap of one rendering and lives as long as that, so that
// values may refer to each other in any way and nothing is freed recursively.
// All but namespaces, generators and loops is immutable, as in the sandbox.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TEMPLATES_VALUE_H
#define LLAMAC_TEXT_TEMPLATES_VALUE_H

#include "runtime/base/Status.h"
#include "text/templates/ChatTemplate.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llamac::chat {

enum class Kind : uint8_t {
  Missing, ///< A variable that was not assigned; never seen by operations.
  Undefined,
  None,
  Bool,
  Int,
  Float,
  String,
  List,
  Tuple,
  Range,
  View, ///< The result of keys(), values() or items() of a dictionary.
  Dict,
  Namespace,
  Generator, ///< The result of map, select and others: items, once.
  Macro,
  Method,
  Function, ///< range, raise_exception, ...
  Loop,
};

struct String;
struct Sequence;
struct Dict;
struct Iterator;
struct Macro;
struct BoundMethod;
struct Function;
struct Loop;
class Heap;

class Value {
public:
  Value() : kindOf(Kind::Undefined), name(nullptr) {}
  static Value missing() { return Value(Kind::Missing); }
  static Value none() { return Value(Kind::None); }
  /// `name`, which outlives the value, is for messages.
  static Value undefined(const std::string *name) {
    Value value;
    value.name = name;
    return value;
  }
  static Value boolean(bool b) {
    Value value(Kind::Bool);
    value.i = b;
    return value;
  }
  static Value integer(int64_t i) {
    Value value(Kind::Int);
    value.i = i;
    return value;
  }
  static Value real(double f) {
    Value value(Kind::Float);
    value.f = f;
    return value;
  }
  template <typename T> static Value of(Kind kind, T *object) {
    Value value(kind);
    value.object = object;
    return value;
  }

  Kind kind() const { return kindOf; }
  bool is(Kind kind) const { return kindOf == kind; }
  bool isUndefined() const { return kindOf == Kind::Undefined; }
  bool isString() const { return kindOf == Kind::String; }
  /// Int or Bool, which Python takes for one.
  bool isInt() const { return kindOf == Kind::Int || kindOf == Kind::Bool; }
  bool isNumber() const { return isInt() || kindOf == Kind::Float; }
  bool isSequence() const {
    return kindOf == Kind::List || kindOf == Kind::Tuple;
  }

  bool boolean() const { return i != 0; }
  int64_t integer() const { return i; }
  double real() const {
    return kindOf == Kind::Float ? f : static_cast<double>(i);
  }
  const std::string *undefinedName() const { return name; }
  const void *address() const { return object; }

  const String &string() const { return as<String>(); }
  absl::string_view text() const;
  /// The items of a List, Tuple, Range or View.
  Sequence &sequence() const { return as<Sequence>(); }
  /// The entries of a Dict or Namespace.
  Dict &dict() const { return as<Dict>(); }
  Iterator &generator() const { return as<Iterator>(); }
  Macro &macro() const { return as<Macro>(); }
  BoundMethod &method() const { return as<BoundMethod>(); }
  const Function &function() const { return as<Function>(); }
  Loop &loop() const { return as<Loop>(); }

private:
  explicit Value(Kind kind) : kindOf(kind), i(0) {}
  template <typename T> T &as() const { return *static_cast<T *>(object); }

  Kind kindOf;
  union {
    int64_t i;
    double f;
    void *object;
    const std::string *name;
  };
};

struct String {
  std::string bytes;
  size_t length;       ///< In code points.
  bool markup = false; ///< Made by `safe`: + escapes what it adds.

  bool isAscii() const { return length == bytes.size(); }
};

inline absl::string_view Value::text() const { return string().bytes; }

struct Sequence {
  std::vector<Value> items;
};

/// In the order of insertion. Keys are strings, numbers and none; those that
/// are equal are one key: 1, 1.0 and true.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  absl::flat_hash_map<std::string, size_t> index; ///< Entries by keyText().

  /// A text that only equal keys have, or nothing for what is no key.
  static std::optional<std::string> keyText(const Value &key);
  const Value *find(const Value &key) const;
  const Value *find(absl::string_view key) const;
};

/// Gives items one by one: those of a list, or what `make` makes of each item
/// of another iterator, where nothing leaves it out.
struct Iterator {
  using Item = absl::StatusOr<std::optional<Value>>;
  using Make = std::function<Item(const Value &)>;

  const std::vector<Value> *items = nullptr;
  size_t at = 0;
  Iterator *source = nullptr;
  Make make;
  int depth = 0; ///< Iterators that this one reads through.

  /// The next item, or nothing after the last.
  Item next(Heap &heap);
};

struct MacroNode;
struct Frame;

struct Macro {
  const MacroNode *node;
  Frame *closure;
};

struct CallArguments;
class Interpreter;

using NativeCall = absl::StatusOr<Value> (*)(Interpreter &, const Value &self,
                                             CallArguments &);

/// A filter, a test, a method or a function.
struct Function {
  const char *name;
  NativeCall call;
  /// The names of its arguments; one without a name is "".
  std::array<const char *, 4> parameters = {};
  int required = 0;         ///< How many of them must be given.
  bool isVariadic = false;  ///< It takes any, and looks at them itself.
  bool takesMarkup = false; ///< The text may be what `safe` returned.
};

struct BoundMethod {
  Value receiver;
  const Function *function;
};

/// Owns the values of a rendering, and counts what it costs.
class Heap {
  struct Owned {
    void *object;
    void (*free)(void *);
  };

public:
  explicit Heap(const ChatTemplateLimits &limits) : limits(limits) {}
  Heap(const Heap &) = delete;
  Heap &operator=(const Heap &) = delete;

  /// Counts `work` steps. Error: more than the limit.
  absl::Status spend(uint64_t work) {
    steps += work;
    return steps > limits.steps ? tooMany("steps", limits.steps)
                                : absl::OkStatus();
  }
  /// Counts the steps for `bytes` of text.
  absl::Status spendBytes(uint64_t bytes) { return spend(1 + bytes / 16); }
  /// Error when `count` pieces of `bytes` more would be too much; to be asked
  /// before they are made. Counts nothing.
  absl::Status wouldFit(uint64_t count, uint64_t bytes) const;

  /// Counts `bytes` that are kept, or are no more.
  absl::Status reserve(uint64_t bytes);
  void release(uint64_t bytes) { memory -= bytes; }

  absl::StatusOr<Value> string(std::string text, bool markup = false);
  absl::StatusOr<Value> sequence(Kind kind, std::vector<Value> items);
  absl::StatusOr<Value> list(std::vector<Value> items) {
    return sequence(Kind::List, std::move(items));
  }
  absl::StatusOr<Value> tuple(std::vector<Value> items) {
    return sequence(Kind::Tuple, std::move(items));
  }
  /// An empty one, a Dict or Namespace.
  absl::StatusOr<Value> dict(Kind kind = Kind::Dict);
  /// Sets a key of a dictionary that is being made, or of a namespace. Error:
  /// a key that cannot be one.
  absl::Status set(const Value &dict, const Value &key, const Value &value);
  /// An iterator over what `make` makes of the items of `source`. Error: too
  /// many of them, each the source of the next.
  absl::StatusOr<Value> generator(Iterator *source, Iterator::Make make);
  template <typename T> absl::StatusOr<Value> object(Kind kind, T made) {
    LLAMAC_RETURN_IF_ERROR(reserve(sizeof(T) + sizeof(Owned)));
    T *const kept = new T(std::move(made));
    owned.push_back({kept, [](void *p) { delete static_cast<T *>(p); }});
    return Value::of(kind, kept);
  }
  ~Heap();

  const ChatTemplateLimits limits;

private:
  static absl::Status tooMany(absl::string_view what, uint64_t limit);

  std::deque<Owned> owned;
  uint64_t steps = 0;
  uint64_t memory = 0;
};

/// An error of a template, without its place: render() adds the line.
absl::Status templateError(absl::string_view message);

/// The error for values that are nested more deeply than their limit.
absl::Status tooDeep();

/// The error for integers that 64 bits do not hold.
absl::Status integerOverflow();

/// Python's name of the type of `value`, for messages.
absl::string_view typeName(const Value &value);

/// The error that `value`, which is undefined, was used as something.
absl::Status undefinedError(const Value &value);

/// Python's bool().
bool isTrue(const Value &value);

/// Python's len(); nothing for what has none.
std::optional<int64_t> lengthOf(const Value &value);

/// Python's ==.
absl::StatusOr<bool> equals(Heap &heap, const Value &a, const Value &b);

/// -1 when a < b in Python, 0 when they are equal, else 1; nothing for what is
/// not two numbers or two texts.
std::optional<int> orderOf(const Value &a, const Value &b);

/// orderOf(), whose nothing becomes the error that `op` does not compare them.
absl::StatusOr<int> compareOrder(Heap &heap, absl::string_view op,
                                 const Value &a, const Value &b);

/// The value of `key` in `dict`, or null. Error: a list or dictionary as a key.
absl::StatusOr<const Value *> lookUp(Heap &heap, const Dict &dict,
                                     const Value &key);

/// Python's iter(). Error: not iterable.
absl::StatusOr<Iterator *> iterate(Heap &heap, const Value &value);
/// All items of `value`.
absl::StatusOr<std::vector<Value>> items(Heap &heap, const Value &value);

/// Python's str() and repr(), appended to `to`.
absl::Status appendText(Heap &heap, const Value &value, std::string &to);
absl::Status appendRepr(Heap &heap, const Value &value, std::string &to,
                        int depth = 0);
absl::StatusOr<std::string> textOf(Heap &heap, const Value &value);
/// repr() of a float.
std::string floatText(double value);

} // namespace llamac::chat

#endif // LLAMAC_TEXT_TEMPLATES_VALUE_H
