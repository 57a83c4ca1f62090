//===- PickleReader.cpp - Reader of torch's data.pkl as pure data ---------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The machine: values live in one list and are named by their index; the stack
// and the memo hold indices, so sharing and even cycles cost nothing and
// nothing here recurses. A mark remembers a height of the stack. Every value
// comes from at least one byte of the pickle and the number of values is
// bounded, which bounds memory.
//
//===----------------------------------------------------------------------===//

#include "frontends/meta/PickleReader.h"

#include "frontends/ByteCursor.h"
#include "runtime/base/Status.h"
#include "runtime/io/CheckedMath.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <optional>

namespace llamac {

static constexpr uint64_t maxPickleBytes = uint64_t{16} << 20;
static constexpr size_t maxValues = size_t{1} << 20;
static constexpr size_t maxRank = 8;

using ValueId = uint32_t;

namespace {

enum class ValueKind : uint8_t {
  None,
  Bool,
  Int,
  Float,
  Text,
  Tuple,
  List,
  Dict,
  Global,
  Storage,
  Tensor,
};

} // namespace

static absl::string_view kindName(ValueKind kind) {
  static constexpr absl::string_view names[] = {
      "None",   "a bool", "an integer", "a float",   "text",    "a tuple",
      "a list", "a dict", "a name",     "a storage", "a tensor"};
  return names[static_cast<size_t>(kind)];
}

namespace {

// The names that may be imported.
enum class GlobalName : uint8_t {
  OrderedDict,
  RebuildTensor,
  RebuildParameter,
  BFloat16Storage,
  HalfStorage,
  FloatStorage,
};

struct GlobalRow {
  absl::string_view module;
  absl::string_view name;
  GlobalName global;
  std::optional<DataType> storage;
};

} // namespace

static constexpr GlobalRow globals[] = {
    {"collections", "OrderedDict", GlobalName::OrderedDict, {}},
    {"torch._utils", "_rebuild_tensor_v2", GlobalName::RebuildTensor, {}},
    {"torch._utils", "_rebuild_parameter", GlobalName::RebuildParameter, {}},
    {"torch", "BFloat16Storage", GlobalName::BFloat16Storage, DataType::BF16},
    {"torch", "HalfStorage", GlobalName::HalfStorage, DataType::F16},
    {"torch", "FloatStorage", GlobalName::FloatStorage, DataType::F32},
};

namespace {

struct Value {
  ValueKind kind = ValueKind::None;
  uint64_t position = 0; // In the file, for messages.
  int64_t number = 0;    // Bool, Int; Global: row of `globals`;
                         // Tensor: index of `tensors`; Storage: of `storages`.
  absl::string_view text = {};
  std::vector<ValueId> items =
      {}; // Tuple, List; Dict: keys and values in turn.
};

struct Storage {
  DataType type;
  absl::string_view key;
  uint64_t elements;
};

class PickleMachine {
public:
  PickleMachine(absl::string_view file, absl::Span<const uint8_t> bytes,
                uint64_t base)
      : file(file), cursor(file, bytes, base) {}

  absl::StatusOr<std::vector<PickledTensor>> run();

private:
  absl::StatusOr<bool> step(uint8_t opcode);
  absl::StatusOr<std::vector<PickledTensor>> takeStateDict();

  absl::Status fail(absl::string_view field, absl::string_view expected,
                    absl::string_view got) const {
    return malformed(file, opcodeOffset, field, expected, got);
  }

  absl::Status push(Value value);
  absl::Status pushInt(int64_t number) {
    return push({.kind = ValueKind::Int, .number = number});
  }
  absl::Status pushText(absl::StatusOr<absl::string_view> text);
  absl::StatusOr<ValueId> pop(absl::string_view field);
  absl::StatusOr<ValueId> pop(absl::string_view field, ValueKind kind);
  absl::StatusOr<std::vector<ValueId>> popToMark();
  absl::Status pushTuple(size_t size);
  absl::Status pushGlobal(absl::string_view module, absl::string_view name);
  absl::StatusOr<absl::string_view> readLine();
  absl::Status readLong();
  absl::Status remember(uint64_t slot);
  absl::Status recall(uint64_t slot);
  absl::Status append(std::vector<ValueId> items, ValueKind kind);
  absl::Status persistentId();
  absl::Status reduce();
  absl::Status build();
  absl::Status rebuildTensor(const std::vector<ValueId> &arguments);
  absl::StatusOr<std::vector<uint64_t>> sizes(ValueId tuple,
                                              absl::string_view field) const;

  absl::string_view file;
  ByteCursor cursor;
  uint64_t opcodeOffset = 0;
  std::vector<Value> values;
  std::vector<ValueId> stack;
  std::vector<size_t> marks;
  absl::flat_hash_map<uint64_t, ValueId> memo;
  std::vector<Storage> storages;
  std::vector<PickledTensor> tensors;
};

} // namespace

absl::Status PickleMachine::push(Value value) {
  if (values.size() == maxValues)
    return fail("pickle", absl::StrCat("at most ", maxValues, " values"),
                "more");
  value.position = opcodeOffset;
  stack.push_back(static_cast<ValueId>(values.size()));
  values.push_back(std::move(value));
  return absl::OkStatus();
}

absl::Status PickleMachine::pushText(absl::StatusOr<absl::string_view> text) {
  LLAMAC_RETURN_IF_ERROR(text.status());
  return push({.kind = ValueKind::Text, .text = *text});
}

absl::StatusOr<ValueId> PickleMachine::pop(absl::string_view field) {
  const size_t floor = marks.empty() ? 0 : marks.back();
  if (stack.size() <= floor)
    return fail(field, "a value on the stack", "none");
  const ValueId id = stack.back();
  stack.pop_back();
  return id;
}

absl::StatusOr<ValueId> PickleMachine::pop(absl::string_view field,
                                           ValueKind kind) {
  LLAMAC_ASSIGN_OR_RETURN(const ValueId id, pop(field));
  if (values[id].kind != kind)
    return fail(field, kindName(kind), kindName(values[id].kind));
  return id;
}

absl::StatusOr<std::vector<ValueId>> PickleMachine::popToMark() {
  if (marks.empty())
    return fail("mark", "one on the stack", "none");
  std::vector<ValueId> items(
      stack.begin() + static_cast<std::ptrdiff_t>(marks.back()), stack.end());
  stack.resize(marks.back());
  marks.pop_back();
  return items;
}

absl::Status PickleMachine::pushTuple(size_t size) {
  std::vector<ValueId> items(size);
  while (size > 0) {
    LLAMAC_ASSIGN_OR_RETURN(items[--size], pop("tuple"));
  }
  return push({.kind = ValueKind::Tuple, .items = std::move(items)});
}

absl::Status PickleMachine::pushGlobal(absl::string_view module,
                                       absl::string_view name) {
  for (const GlobalRow &row : globals)
    if (row.module == module && row.name == name)
      return push({.kind = ValueKind::Global, .number = &row - globals});
  return fail("global",
              "OrderedDict, _rebuild_tensor_v2, _rebuild_parameter or a "
              "BFloat16, Half or Float storage",
              quoteForMessage(absl::StrCat(module, ".", name)));
}

absl::StatusOr<absl::string_view> PickleMachine::readLine() {
  constexpr uint64_t maxLine = 256;
  absl::string_view first;
  uint64_t size = 0;
  while (true) {
    LLAMAC_ASSIGN_OR_RETURN(absl::string_view byte,
                            cursor.takeText(1, "global"));
    if (size == 0)
      first = byte;
    if (byte[0] == '\n')
      return absl::string_view(first.data(), size);
    if (++size > maxLine)
      return fail("global", absl::StrCat("at most ", maxLine, " bytes"),
                  "a longer name");
  }
}

// LONG1: a little-endian two's complement number of `size` bytes.
absl::Status PickleMachine::readLong() {
  LLAMAC_ASSIGN_OR_RETURN(const uint8_t size, cursor.read<uint8_t>("integer"));
  LLAMAC_ASSIGN_OR_RETURN(absl::Span<const uint8_t> bytes,
                          cursor.take(size, "integer"));
  if (size > sizeof(int64_t))
    return fail("integer", "at most 8 bytes", absl::StrCat(size));
  uint64_t number =
      size > 0 && (bytes[size - 1] & 0x80) != 0 ? ~uint64_t{0} : 0;
  std::memcpy(&number, bytes.data(), size);
  return pushInt(static_cast<int64_t>(number));
}

absl::Status PickleMachine::remember(uint64_t slot) {
  if (stack.empty())
    return fail("memo", "a value on the stack", "none");
  memo[slot] = stack.back();
  return absl::OkStatus();
}

absl::Status PickleMachine::recall(uint64_t slot) {
  const auto found = memo.find(slot);
  if (found == memo.end())
    return fail("memo", "a slot that was filled", absl::StrCat(slot));
  stack.push_back(found->second);
  return absl::OkStatus();
}

// Adds items to the list or dict at the top of the stack.
absl::Status PickleMachine::append(std::vector<ValueId> items, ValueKind kind) {
  LLAMAC_ASSIGN_OR_RETURN(const ValueId target, pop("container", kind));
  if (kind == ValueKind::Dict && items.size() % 2 != 0)
    return fail("dict", "keys and values in pairs",
                absl::StrCat(items.size(), " items"));
  std::vector<ValueId> &to = values[target].items;
  to.insert(to.end(), items.begin(), items.end());
  stack.push_back(target);
  return absl::OkStatus();
}

// BINPERSID: ('storage', torch.XStorage, key, location, elements).
absl::Status PickleMachine::persistentId() {
  LLAMAC_ASSIGN_OR_RETURN(const ValueId id,
                          pop("persistent id", ValueKind::Tuple));
  const std::vector<ValueId> &items = values[id].items;
  static constexpr ValueKind kinds[] = {ValueKind::Text, ValueKind::Global,
                                        ValueKind::Text, ValueKind::Text,
                                        ValueKind::Int};
  if (items.size() != std::size(kinds))
    return fail("persistent id", "5 items", absl::StrCat(items.size()));
  for (size_t i = 0; i < std::size(kinds); ++i)
    if (values[items[i]].kind != kinds[i])
      return fail(absl::StrCat("persistent id item ", i), kindName(kinds[i]),
                  kindName(values[items[i]].kind));
  if (values[items[0]].text != "storage")
    return fail("persistent id", "\"storage\"",
                quoteForMessage(values[items[0]].text));
  const GlobalRow &row = globals[values[items[1]].number];
  if (!row.storage)
    return fail("storage class", "a BFloat16, Half or Float storage",
                quoteForMessage(row.name));
  const int64_t elements = values[items[4]].number;
  if (elements < 0)
    return fail("storage elements", "at least 0", absl::StrCat(elements));
  storages.push_back(
      {*row.storage, values[items[2]].text, static_cast<uint64_t>(elements)});
  return push({.kind = ValueKind::Storage,
               .number = static_cast<int64_t>(storages.size() - 1)});
}

absl::StatusOr<std::vector<uint64_t>>
PickleMachine::sizes(ValueId tuple, absl::string_view field) const {
  const Value &value = values[tuple];
  if (value.kind != ValueKind::Tuple || value.items.size() > maxRank)
    return fail(field, absl::StrCat("a tuple of at most ", maxRank, " sizes"),
                kindName(value.kind));
  std::vector<uint64_t> result;
  for (ValueId item : value.items) {
    if (values[item].kind != ValueKind::Int || values[item].number < 0)
      return fail(field, "integers of at least 0",
                  values[item].kind == ValueKind::Int
                      ? absl::StrCat(values[item].number)
                      : std::string(kindName(values[item].kind)));
    result.push_back(static_cast<uint64_t>(values[item].number));
  }
  return result;
}

// _rebuild_tensor_v2(storage, first element, shape, strides, requires grad,
// hooks[, metadata]).
absl::Status
PickleMachine::rebuildTensor(const std::vector<ValueId> &arguments) {
  if (arguments.size() < 6 || arguments.size() > 7)
    return fail("_rebuild_tensor_v2", "6 or 7 arguments",
                absl::StrCat(arguments.size()));
  const Value &storage = values[arguments[0]];
  const Value &first = values[arguments[1]];
  if (storage.kind != ValueKind::Storage)
    return fail("tensor storage", "a storage", kindName(storage.kind));
  if (first.kind != ValueKind::Int || first.number < 0)
    return fail("tensor offset", "an integer of at least 0",
                first.kind == ValueKind::Int
                    ? absl::StrCat(first.number)
                    : std::string(kindName(first.kind)));
  PickledTensor tensor;
  LLAMAC_ASSIGN_OR_RETURN(tensor.shape, sizes(arguments[2], "tensor shape"));
  LLAMAC_ASSIGN_OR_RETURN(std::vector<uint64_t> strides,
                          sizes(arguments[3], "tensor strides"));
  if (strides.size() != tensor.shape.size())
    return fail("tensor strides", absl::StrCat(tensor.shape.size()),
                absl::StrCat(strides.size()));
  const std::optional<uint64_t> elements = checkedProduct(tensor.shape);
  if (!elements)
    return fail("tensor shape", "fewer than 2^63 elements",
                absl::StrCat("[", absl::StrJoin(tensor.shape, ", "), "]"));
  // The stride of a dimension of size 1 is never used and may be anything.
  uint64_t stride = 1;
  for (size_t i = tensor.shape.size(); *elements > 0 && i-- > 0;) {
    if (tensor.shape[i] != 1 && strides[i] != stride)
      return fail("tensor strides",
                  absl::StrCat("contiguous rows of [",
                               absl::StrJoin(tensor.shape, ", "), "]"),
                  absl::StrCat("[", absl::StrJoin(strides, ", "), "]"));
    stride *= tensor.shape[i];
  }
  const Storage &source = storages[static_cast<size_t>(storage.number)];
  tensor.type = source.type;
  tensor.storage = source.key;
  tensor.storageElements = source.elements;
  tensor.firstElement = static_cast<uint64_t>(first.number);
  tensor.elements = *elements;
  tensor.position = opcodeOffset;
  if (!isInside(tensor.firstElement, tensor.elements, source.elements))
    return fail(
        "tensor extent",
        absl::StrCat("an extent within the storage's ", source.elements,
                     " elements"),
        absl::StrCat(tensor.elements, " elements from ", tensor.firstElement));
  tensors.push_back(std::move(tensor));
  return push({.kind = ValueKind::Tensor,
               .number = static_cast<int64_t>(tensors.size() - 1)});
}

absl::Status PickleMachine::reduce() {
  LLAMAC_ASSIGN_OR_RETURN(const ValueId tuple,
                          pop("arguments", ValueKind::Tuple));
  LLAMAC_ASSIGN_OR_RETURN(const ValueId callee,
                          pop("callee", ValueKind::Global));
  const std::vector<ValueId> arguments = values[tuple].items;
  const GlobalRow &row = globals[values[callee].number];
  switch (row.global) {
  case GlobalName::OrderedDict:
    if (!arguments.empty())
      return fail("OrderedDict", "no arguments",
                  absl::StrCat(arguments.size()));
    return push({.kind = ValueKind::Dict});
  case GlobalName::RebuildTensor:
    return rebuildTensor(arguments);
  case GlobalName::RebuildParameter:
    if (arguments.size() != 3 || values[arguments[0]].kind != ValueKind::Tensor)
      return fail("_rebuild_parameter", "a tensor, a flag and hooks",
                  absl::StrCat(arguments.size(), " arguments"));
    stack.push_back(arguments[0]);
    return absl::OkStatus();
  default:
    return fail("callee", "a rebuild function or OrderedDict",
                quoteForMessage(row.name));
  }
}

// A state dict carries attributes (_metadata, versions of its modules), which
// mean nothing here.
absl::Status PickleMachine::build() {
  LLAMAC_RETURN_IF_ERROR(pop("attributes", ValueKind::Dict).status());
  LLAMAC_ASSIGN_OR_RETURN(const ValueId target,
                          pop("object with attributes", ValueKind::Dict));
  stack.push_back(target);
  return absl::OkStatus();
}

// Reads the operand of one instruction and does it; false at STOP.
absl::StatusOr<bool> PickleMachine::step(uint8_t opcode) {
  const auto done = [](const absl::Status &status) -> absl::StatusOr<bool> {
    if (!status.ok())
      return status;
    return true;
  };
  switch (opcode) {
  case 0x80: { // PROTO
    LLAMAC_ASSIGN_OR_RETURN(const uint8_t version,
                            cursor.read<uint8_t>("protocol"));
    if (version < 2 || version > 5)
      return fail("protocol", "2 to 5", absl::StrCat(version));
    return true;
  }
  case 0x95: // FRAME
    return done(cursor.read<uint64_t>("frame size").status());
  case '.': // STOP
    return false;
  case '(': // MARK
    marks.push_back(stack.size());
    return true;
  case '0': // POP
    return done(pop("pop").status());
  case 'N': // NONE
    return done(push({.kind = ValueKind::None}));
  case 0x88: // NEWTRUE
    return done(push({.kind = ValueKind::Bool, .number = 1}));
  case 0x89: // NEWFALSE
    return done(push({.kind = ValueKind::Bool}));
  case 'K': { // BININT1
    LLAMAC_ASSIGN_OR_RETURN(const uint8_t number,
                            cursor.read<uint8_t>("integer"));
    return done(pushInt(number));
  }
  case 'M': { // BININT2
    LLAMAC_ASSIGN_OR_RETURN(const uint16_t number,
                            cursor.read<uint16_t>("integer"));
    return done(pushInt(number));
  }
  case 'J': { // BININT
    LLAMAC_ASSIGN_OR_RETURN(const int32_t number,
                            cursor.read<int32_t>("integer"));
    return done(pushInt(number));
  }
  case 0x8a: // LONG1
    return done(readLong());
  case 'G': // BINFLOAT
    LLAMAC_RETURN_IF_ERROR(cursor.take(8, "float").status());
    return done(push({.kind = ValueKind::Float}));
  case 'X': { // BINUNICODE
    LLAMAC_ASSIGN_OR_RETURN(const uint32_t size,
                            cursor.read<uint32_t>("text size"));
    return done(pushText(cursor.takeText(size, "text")));
  }
  case 0x8c: { // SHORT_BINUNICODE
    LLAMAC_ASSIGN_OR_RETURN(const uint8_t size,
                            cursor.read<uint8_t>("text size"));
    return done(pushText(cursor.takeText(size, "text")));
  }
  case 0x8d: { // BINUNICODE8
    LLAMAC_ASSIGN_OR_RETURN(const uint64_t size,
                            cursor.read<uint64_t>("text size"));
    return done(pushText(cursor.takeText(size, "text")));
  }
  case ')': // EMPTY_TUPLE
    return done(pushTuple(0));
  case 0x85: // TUPLE1
    return done(pushTuple(1));
  case 0x86: // TUPLE2
    return done(pushTuple(2));
  case 0x87: // TUPLE3
    return done(pushTuple(3));
  case 't': { // TUPLE
    LLAMAC_ASSIGN_OR_RETURN(std::vector<ValueId> items, popToMark());
    return done(push({.kind = ValueKind::Tuple, .items = std::move(items)}));
  }
  case ']': // EMPTY_LIST
    return done(push({.kind = ValueKind::List}));
  case 'a': { // APPEND
    LLAMAC_ASSIGN_OR_RETURN(const ValueId item, pop("list item"));
    return done(append({item}, ValueKind::List));
  }
  case 'e': { // APPENDS
    LLAMAC_ASSIGN_OR_RETURN(std::vector<ValueId> items, popToMark());
    return done(append(std::move(items), ValueKind::List));
  }
  case '}': // EMPTY_DICT
    return done(push({.kind = ValueKind::Dict}));
  case 's': { // SETITEM
    LLAMAC_ASSIGN_OR_RETURN(const ValueId value, pop("dict value"));
    LLAMAC_ASSIGN_OR_RETURN(const ValueId key, pop("dict key"));
    return done(append({key, value}, ValueKind::Dict));
  }
  case 'u': { // SETITEMS
    LLAMAC_ASSIGN_OR_RETURN(std::vector<ValueId> items, popToMark());
    return done(append(std::move(items), ValueKind::Dict));
  }
  case 'q': { // BINPUT
    LLAMAC_ASSIGN_OR_RETURN(const uint8_t slot, cursor.read<uint8_t>("memo"));
    return done(remember(slot));
  }
  case 'r': { // LONG_BINPUT
    LLAMAC_ASSIGN_OR_RETURN(const uint32_t slot, cursor.read<uint32_t>("memo"));
    return done(remember(slot));
  }
  case 0x94: // MEMOIZE
    return done(remember(memo.size()));
  case 'h': { // BINGET
    LLAMAC_ASSIGN_OR_RETURN(const uint8_t slot, cursor.read<uint8_t>("memo"));
    return done(recall(slot));
  }
  case 'j': { // LONG_BINGET
    LLAMAC_ASSIGN_OR_RETURN(const uint32_t slot, cursor.read<uint32_t>("memo"));
    return done(recall(slot));
  }
  case 'c': { // GLOBAL
    LLAMAC_ASSIGN_OR_RETURN(absl::string_view module, readLine());
    LLAMAC_ASSIGN_OR_RETURN(absl::string_view name, readLine());
    return done(pushGlobal(module, name));
  }
  case 0x93: { // STACK_GLOBAL
    LLAMAC_ASSIGN_OR_RETURN(const ValueId name, pop("name", ValueKind::Text));
    LLAMAC_ASSIGN_OR_RETURN(const ValueId module,
                            pop("module", ValueKind::Text));
    return done(pushGlobal(values[module].text, values[name].text));
  }
  case 'Q': // BINPERSID
    return done(persistentId());
  case 'R': // REDUCE
    return done(reduce());
  case 'b': // BUILD
    return done(build());
  default:
    return fail("pickle instruction", "one that builds plain data",
                absl::StrCat("0x", absl::Hex(opcode, absl::kZeroPad2)));
  }
}

// The tensors of the dict at the top of the stack.
absl::StatusOr<std::vector<PickledTensor>> PickleMachine::takeStateDict() {
  LLAMAC_ASSIGN_OR_RETURN(const ValueId top,
                          pop("state dict", ValueKind::Dict));
  std::vector<PickledTensor> result;
  absl::flat_hash_set<absl::string_view> names;
  const std::vector<ValueId> &items = values[top].items;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    const Value &key = values[items[i]];
    const Value &value = values[items[i + 1]];
    if (key.kind != ValueKind::Text)
      return malformed(file, key.position, "state dict key", "text",
                       kindName(key.kind));
    if (value.kind != ValueKind::Tensor)
      return malformed(file, value.position, quoteForMessage(key.text),
                       "a tensor", kindName(value.kind));
    if (!names.insert(key.text).second)
      return malformed(file, key.position, "state dict key", "a name used once",
                       absl::StrCat("a second ", quoteForMessage(key.text)));
    result.push_back(tensors[static_cast<size_t>(value.number)]);
    result.back().name = key.text;
  }
  return result;
}

absl::StatusOr<std::vector<PickledTensor>> PickleMachine::run() {
  bool running = true;
  while (running) {
    opcodeOffset = cursor.offset();
    LLAMAC_ASSIGN_OR_RETURN(const uint8_t opcode,
                            cursor.read<uint8_t>("pickle instruction"));
    LLAMAC_ASSIGN_OR_RETURN(running, step(opcode));
  }
  return takeStateDict();
}

absl::StatusOr<std::vector<PickledTensor>>
readPickledStateDict(absl::string_view file, absl::Span<const uint8_t> bytes,
                     uint64_t base) {
  if (bytes.size() > maxPickleBytes)
    return malformed(file, base, "pickle",
                     absl::StrCat("at most ", maxPickleBytes, " bytes"),
                     bytes.size());
  return PickleMachine(file, bytes, base).run();
}

} // namespace llamac
