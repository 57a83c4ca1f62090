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
#include "frontends/WeightTable.h"
#include "runtime/base/Status.h"
#include "runtime/io/CheckedMath.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include <optional>

namespace llamac {

static constexpr uint64_t maxPickleBytes = uint64_t{16} << 20;
static constexpr size_t maxValues = size_t{1} << 20;
static constexpr size_t maxPickleRank = 8;

namespace {

using ValueId = uint32_t;

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
  Tensor
};

constexpr absl::string_view kindNames[] = {
    "None",   "a bool", "an integer", "a float",   "text",    "a tuple",
    "a list", "a dict", "a name",     "a storage", "a tensor"};

// The names that may be imported; those of storages have a type.
enum class GlobalName : uint8_t {
  OrderedDict,
  RebuildTensor,
  RebuildParameter,
  Storage
};

struct GlobalRow {
  absl::string_view module;
  absl::string_view name;
  GlobalName global;
  std::optional<DataType> storage = {};
  absl::string_view packedType = {}; ///< See StoredTensor.
};

constexpr GlobalRow globals[] = {
    {"collections", "OrderedDict", GlobalName::OrderedDict},
    {"torch._utils", "_rebuild_tensor_v2", GlobalName::RebuildTensor},
    {"torch._utils", "_rebuild_parameter", GlobalName::RebuildParameter},
    {"torch", "BFloat16Storage", GlobalName::Storage, DataType::BF16},
    {"torch", "HalfStorage", GlobalName::Storage, DataType::F16},
    {"torch", "FloatStorage", GlobalName::Storage, DataType::F32},
    {"torch", "LongStorage", GlobalName::Storage, DataType::F32, "I64"},
    {"torch", "BoolStorage", GlobalName::Storage, DataType::F32, "BOOL"},
};

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
  absl::string_view packedType;
  absl::string_view key;
  uint64_t elements;
};

// The first error stays and ends the run. Until then what an operation goes on
// with is harmless: 0, nothing, or the value None, which has the id 0.
class PickleMachine {
public:
  PickleMachine(absl::string_view file, absl::Span<const uint8_t> bytes,
                uint64_t base, bool takesPacked)
      : file(file), cursor(file, bytes, base), takesPacked(takesPacked),
        values(1) {}

  absl::StatusOr<std::vector<PickledTensor>> run() {
    while (running && error.ok()) {
      opcodeOffset = cursor.offset();
      step(read<uint8_t>("pickle instruction"));
    }
    const ValueId top = pop("state dict", ValueKind::Dict);
    LLAMAC_RETURN_IF_ERROR(error);
    return takeStateDict(values[top].items);
  }

private:
  // Reads the operand of one instruction and does it.
  void step(uint8_t opcode);
  void persistentId();
  void rebuildTensor(const std::vector<ValueId> &arguments);
  void reduce();
  absl::StatusOr<std::vector<PickledTensor>>
  takeStateDict(const std::vector<ValueId> &items) const;

  void fail(absl::string_view field, const absl::AlphaNum &expected,
            const absl::AlphaNum &got) {
    error.Update(malformed(file, opcodeOffset, field, expected, got));
  }
  absl::string_view kindOf(ValueId id) const {
    return kindNames[static_cast<size_t>(values[id].kind)];
  }

  template <typename T> T valueOf(absl::StatusOr<T> result) {
    error.Update(result.status());
    return result.ok() ? *std::move(result) : T{};
  }
  template <typename T> T read(absl::string_view field) {
    return valueOf(cursor.read<T>(field));
  }

  void push(Value value) {
    if (values.size() > maxValues)
      return fail("pickle", absl::StrCat("at most ", maxValues, " values"),
                  "more");
    value.position = opcodeOffset;
    stack.push_back(static_cast<ValueId>(values.size()));
    values.push_back(std::move(value));
  }
  void pushInt(int64_t number) {
    push({.kind = ValueKind::Int, .number = number});
  }
  void pushText(uint64_t size) {
    push({.kind = ValueKind::Text,
          .text = valueOf(cursor.takeText(size, "text"))});
  }

  ValueId pop(absl::string_view field) {
    if (stack.size() <= (marks.empty() ? 0 : marks.back())) {
      fail(field, "a value on the stack", "none");
      return 0;
    }
    const ValueId id = stack.back();
    stack.pop_back();
    return id;
  }
  ValueId pop(absl::string_view field, ValueKind kind) {
    const ValueId id = pop(field);
    if (values[id].kind == kind)
      return id;
    fail(field, kindNames[static_cast<size_t>(kind)], kindOf(id));
    return 0;
  }
  std::vector<ValueId> popToMark() {
    if (marks.empty()) {
      fail("mark", "one on the stack", "none");
      return {};
    }
    std::vector<ValueId> items(
        stack.begin() + static_cast<std::ptrdiff_t>(marks.back()), stack.end());
    stack.resize(marks.back());
    marks.pop_back();
    return items;
  }

  void pushTuple(size_t size) {
    std::vector<ValueId> items(size);
    while (size > 0)
      items[--size] = pop("tuple");
    push({.kind = ValueKind::Tuple, .items = std::move(items)});
  }

  void pushGlobal(absl::string_view module, absl::string_view name) {
    for (const GlobalRow &row : globals)
      if (row.module == module && row.name == name &&
          (row.packedType.empty() || takesPacked))
        return push({.kind = ValueKind::Global, .number = &row - globals});
    fail("global",
         "OrderedDict, _rebuild_tensor_v2, _rebuild_parameter or a "
         "BFloat16, Half or Float storage",
         quoteForMessage(absl::StrCat(module, ".", name)));
  }

  absl::string_view readLine() {
    constexpr uint64_t maxLine = 256;
    absl::string_view line;
    while (error.ok()) {
      const absl::string_view byte = valueOf(cursor.takeText(1, "global"));
      if (byte.empty() || byte == "\n")
        break;
      // The bytes of a line are adjacent.
      line = {line.empty() ? byte.data() : line.data(), line.size() + 1};
      if (line.size() > maxLine)
        fail("global", absl::StrCat("at most ", maxLine, " bytes"),
             "a longer name");
    }
    return line;
  }

  // LONG1: a little-endian two's complement number of `size` bytes.
  void pushLong(uint8_t size) {
    const absl::Span<const uint8_t> bytes =
        valueOf(cursor.take(size, "integer"));
    if (bytes.size() < size || size > sizeof(int64_t))
      return fail("integer", "at most 8 bytes", size);
    uint64_t number = size > 0 && (bytes.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
    std::memcpy(&number, bytes.data(), bytes.size());
    pushInt(static_cast<int64_t>(number));
  }

  void remember(uint64_t slot) {
    if (stack.empty())
      return fail("memo", "a value on the stack", "none");
    memo[slot] = stack.back();
  }
  void recall(uint64_t slot) {
    const auto found = memo.find(slot);
    if (found == memo.end())
      return fail("memo", "a slot that was filled", slot);
    stack.push_back(found->second);
  }

  // Adds items to the list or dict at the top of the stack.
  void append(const std::vector<ValueId> &items, ValueKind kind) {
    const ValueId target = pop("container", kind);
    if (kind == ValueKind::Dict && items.size() % 2 != 0)
      fail("dict", "keys and values in pairs",
           absl::StrCat(items.size(), " items"));
    if (!error.ok())
      return;
    std::vector<ValueId> &to = values[target].items;
    to.insert(to.end(), items.begin(), items.end());
    stack.push_back(target);
  }

  // A number of at least 0.
  uint64_t size(ValueId id, absl::string_view field) {
    if (values[id].kind == ValueKind::Int && values[id].number >= 0)
      return static_cast<uint64_t>(values[id].number);
    fail(field, "an integer of at least 0",
         values[id].kind == ValueKind::Int ? absl::StrCat(values[id].number)
                                           : std::string(kindOf(id)));
    return 0;
  }
  std::vector<uint64_t> sizes(ValueId tuple, absl::string_view field) {
    std::vector<uint64_t> result;
    if (values[tuple].kind != ValueKind::Tuple ||
        values[tuple].items.size() > maxPickleRank)
      fail(field, absl::StrCat("a tuple of at most ", maxPickleRank, " sizes"),
           kindOf(tuple));
    else
      for (ValueId item : values[tuple].items)
        result.push_back(size(item, field));
    return result;
  }

  absl::string_view file;
  ByteCursor cursor;
  bool takesPacked;
  absl::Status error;
  bool running = true; // Until STOP.
  uint64_t opcodeOffset = 0;
  std::vector<Value> values;
  std::vector<ValueId> stack;
  std::vector<size_t> marks;
  absl::flat_hash_map<uint64_t, ValueId> memo;
  std::vector<Storage> storages;
  std::vector<PickledTensor> tensors;
};

} // namespace

// BINPERSID: ('storage', torch.XStorage, key, location, elements).
void PickleMachine::persistentId() {
  const ValueId id = pop("persistent id", ValueKind::Tuple);
  const std::vector<ValueId> &items = values[id].items;
  static constexpr ValueKind kinds[] = {ValueKind::Text, ValueKind::Global,
                                        ValueKind::Text, ValueKind::Text,
                                        ValueKind::Int};
  if (items.size() != std::size(kinds))
    return fail("persistent id", "5 items", items.size());
  for (size_t i = 0; i < std::size(kinds); ++i)
    if (values[items[i]].kind != kinds[i])
      return fail(absl::StrCat("persistent id item ", i),
                  kindNames[static_cast<size_t>(kinds[i])], kindOf(items[i]));
  if (values[items[0]].text != "storage")
    return fail("persistent id", "\"storage\"",
                quoteForMessage(values[items[0]].text));
  const GlobalRow &row = globals[values[items[1]].number];
  if (!row.storage)
    return fail("storage class", "a BFloat16, Half or Float storage",
                quoteForMessage(row.name));
  const uint64_t elements = size(items[4], "storage elements");
  storages.push_back(
      {*row.storage, row.packedType, values[items[2]].text, elements});
  push({.kind = ValueKind::Storage,
        .number = static_cast<int64_t>(storages.size() - 1)});
}

// _rebuild_tensor_v2(storage, first element, shape, strides, requires grad,
// hooks[, metadata]).
void PickleMachine::rebuildTensor(const std::vector<ValueId> &arguments) {
  if (arguments.size() < 6 || arguments.size() > 7)
    return fail("_rebuild_tensor_v2", "6 or 7 arguments", arguments.size());
  if (values[arguments[0]].kind != ValueKind::Storage)
    return fail("tensor storage", "a storage", kindOf(arguments[0]));
  const Storage &source =
      storages[static_cast<size_t>(values[arguments[0]].number)];
  PickledTensor tensor;
  tensor.type = source.type;
  tensor.packedType = source.packedType;
  tensor.storage = source.key;
  tensor.storageElements = source.elements;
  tensor.position = opcodeOffset;
  tensor.firstElement = size(arguments[1], "tensor offset");
  tensor.shape = sizes(arguments[2], "tensor shape");
  const std::vector<uint64_t> strides = sizes(arguments[3], "tensor strides");
  if (strides.size() != tensor.shape.size())
    return fail("tensor strides", tensor.shape.size(), strides.size());
  const std::optional<uint64_t> elements = checkedProduct(tensor.shape);
  if (!elements)
    return fail("tensor shape", "fewer than 2^63 elements",
                shapeText(tensor.shape));
  tensor.elements = *elements;
  // The stride of a dimension of size 1 is never used.
  uint64_t stride = 1;
  for (size_t i = tensor.shape.size(); *elements > 0 && i-- > 0;) {
    if (tensor.shape[i] != 1 && strides[i] != stride)
      return fail("tensor strides",
                  absl::StrCat("contiguous rows of ", shapeText(tensor.shape)),
                  shapeText(strides));
    stride *= tensor.shape[i];
  }
  if (!isInside(tensor.firstElement, tensor.elements, source.elements))
    return fail(
        "tensor extent",
        absl::StrCat("an extent within the storage's ", source.elements,
                     " elements"),
        absl::StrCat(tensor.elements, " elements from ", tensor.firstElement));
  tensors.push_back(std::move(tensor));
  push({.kind = ValueKind::Tensor,
        .number = static_cast<int64_t>(tensors.size() - 1)});
}

void PickleMachine::reduce() {
  const ValueId tuple = pop("arguments", ValueKind::Tuple);
  const ValueId callee = pop("callee", ValueKind::Global);
  if (!error.ok())
    return;
  const std::vector<ValueId> arguments = values[tuple].items;
  const GlobalRow &row = globals[values[callee].number];
  switch (row.global) {
  case GlobalName::OrderedDict:
    if (!arguments.empty())
      return fail("OrderedDict", "no arguments", arguments.size());
    return push({.kind = ValueKind::Dict});
  case GlobalName::RebuildTensor:
    return rebuildTensor(arguments);
  case GlobalName::RebuildParameter:
    if (arguments.size() != 3 || values[arguments[0]].kind != ValueKind::Tensor)
      return fail("_rebuild_parameter", "a tensor, a flag and hooks",
                  absl::StrCat(arguments.size(), " arguments"));
    return stack.push_back(arguments[0]);
  case GlobalName::Storage:
    return fail("callee", "a rebuild function or OrderedDict",
                quoteForMessage(row.name));
  }
}

void PickleMachine::step(uint8_t opcode) {
  switch (opcode) {
  case 0x80: // PROTO
    if (const auto version = read<uint8_t>("protocol");
        version < 2 || version > 5)
      fail("protocol", "2 to 5", version);
    return;
  case 0x95: // FRAME
    read<uint64_t>("frame size");
    return;
  case '.': // STOP
    running = false;
    return;
  case '(': // MARK
    marks.push_back(stack.size());
    return;
  case '0': // POP
    pop("pop");
    return;
  case 'N': // NONE
    return push({.kind = ValueKind::None});
  case 0x88: // NEWTRUE
  case 0x89: // NEWFALSE
    return push({.kind = ValueKind::Bool, .number = opcode == 0x88});
  case 'K': // BININT1
    return pushInt(read<uint8_t>("integer"));
  case 'M': // BININT2
    return pushInt(read<uint16_t>("integer"));
  case 'J': // BININT
    return pushInt(read<int32_t>("integer"));
  case 0x8a: // LONG1
    return pushLong(read<uint8_t>("integer"));
  case 'G': // BINFLOAT
    read<uint64_t>("float");
    return push({.kind = ValueKind::Float});
  case 'X': // BINUNICODE
    return pushText(read<uint32_t>("text size"));
  case 0x8c: // SHORT_BINUNICODE
    return pushText(read<uint8_t>("text size"));
  case 0x8d: // BINUNICODE8
    return pushText(read<uint64_t>("text size"));
  case ')': // EMPTY_TUPLE
    return pushTuple(0);
  case 0x85: // TUPLE1
  case 0x86: // TUPLE2
  case 0x87: // TUPLE3
    return pushTuple(opcode - 0x84);
  case 't': // TUPLE
    return push({.kind = ValueKind::Tuple, .items = popToMark()});
  case ']': // EMPTY_LIST
    return push({.kind = ValueKind::List});
  case 'a': // APPEND
    return append({pop("list item")}, ValueKind::List);
  case 'e': // APPENDS
    return append(popToMark(), ValueKind::List);
  case '}': // EMPTY_DICT
    return push({.kind = ValueKind::Dict});
  case 's': { // SETITEM
    const ValueId value = pop("dict value");
    return append({pop("dict key"), value}, ValueKind::Dict);
  }
  case 'u': // SETITEMS
    return append(popToMark(), ValueKind::Dict);
  case 'q': // BINPUT
    return remember(read<uint8_t>("memo"));
  case 'r': // LONG_BINPUT
    return remember(read<uint32_t>("memo"));
  case 0x94: // MEMOIZE
    return remember(memo.size());
  case 'h': // BINGET
    return recall(read<uint8_t>("memo"));
  case 'j': // LONG_BINGET
    return recall(read<uint32_t>("memo"));
  case 'c': { // GLOBAL
    const absl::string_view module = readLine();
    return pushGlobal(module, readLine());
  }
  case 0x93: { // STACK_GLOBAL
    const ValueId name = pop("name", ValueKind::Text);
    const ValueId module = pop("module", ValueKind::Text);
    return pushGlobal(values[module].text, values[name].text);
  }
  case 'Q': // BINPERSID
    return persistentId();
  case 'R': // REDUCE
    return reduce();
  case 'b': // BUILD: attributes (_metadata, versions) of a state dict.
    pop("attributes", ValueKind::Dict);
    return append({}, ValueKind::Dict); // Leaves the state dict, unchanged.
  default:
    return fail("pickle instruction", "one that builds plain data",
                absl::StrCat("0x", absl::Hex(opcode, absl::kZeroPad2)));
  }
}

// The tensors of the dict that is made of `items`.
absl::StatusOr<std::vector<PickledTensor>>
PickleMachine::takeStateDict(const std::vector<ValueId> &items) const {
  std::vector<PickledTensor> result;
  absl::flat_hash_set<absl::string_view> names;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    const Value &key = values[items[i]];
    const Value &value = values[items[i + 1]];
    if (key.kind != ValueKind::Text)
      return malformed(file, key.position, "state dict key", "text",
                       kindOf(items[i]));
    if (value.kind != ValueKind::Tensor)
      return malformed(file, value.position, quoteForMessage(key.text),
                       "a tensor", kindOf(items[i + 1]));
    if (!names.insert(key.text).second)
      return malformed(file, key.position, "state dict key", "a name used once",
                       absl::StrCat("a second ", quoteForMessage(key.text)));
    result.push_back(tensors[static_cast<size_t>(value.number)]);
    result.back().name = key.text;
  }
  return result;
}

absl::StatusOr<std::vector<PickledTensor>>
readPickledStateDict(absl::string_view file, absl::Span<const uint8_t> bytes,
                     uint64_t base, bool takesPacked) {
  if (bytes.size() > maxPickleBytes)
    return malformed(file, base, "pickle",
                     absl::StrCat("at most ", maxPickleBytes, " bytes"),
                     bytes.size());
  return PickleMachine(file, bytes, base, takesPacked).run();
}

} // namespace llamac
