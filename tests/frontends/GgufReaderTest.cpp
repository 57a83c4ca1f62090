//===- GgufReaderTest.cpp - GGUF files ------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/GgufReader.h"

#include "tests/runtime/io/TestFiles.h"

namespace llamac {

using testing::ElementsAre;

// The numbers of the format's value types.
enum : uint32_t {
  Uint8Value = 0,
  Uint32Value = 4,
  Int32Value = 5,
  Float32Value = 6,
  BoolValue = 7,
  StringValue = 8,
  ArrayValue = 9,
  Uint64Value = 10,
};

static std::string pair(const std::string &key, uint32_t type,
                        const std::string &value) {
  return Bytes().string(key).u32(type).add(value).text;
}
static std::string array(uint32_t type, uint64_t count,
                         const std::string &elements) {
  return Bytes().u32(type).u64(count).add(elements).text;
}
static std::string u32(uint32_t value) { return Bytes().u32(value).text; }
static std::string text(const std::string &value) {
  return Bytes().string(value).text;
}

struct TestGgufTensor {
  std::string name = "w";
  std::vector<uint64_t> shape = {4, 2};
  uint32_t type = 0;
  uint64_t offset = 0;
};
static std::string record(const TestGgufTensor &tensor) {
  Bytes bytes;
  bytes.string(tensor.name).u32(tensor.shape.size());
  for (uint64_t size : tensor.shape)
    bytes.u64(size);
  return bytes.u32(tensor.type).u64(tensor.offset).text;
}

struct TestGguf {
  uint32_t magic = 0x46554747;
  uint32_t version = 3;
  std::vector<std::string> pairs = {};
  std::vector<std::string> tensors = {};
  std::optional<uint64_t> tensorCount = {};
  std::optional<uint64_t> pairCount = {};
  std::string data = {};
  size_t alignment = 32;
};
static std::string makeGguf(const TestGguf &gguf) {
  Bytes file;
  file.u32(gguf.magic).u32(gguf.version);
  file.u64(gguf.tensorCount.value_or(gguf.tensors.size()));
  file.u64(gguf.pairCount.value_or(gguf.pairs.size()));
  for (const std::string &pair : gguf.pairs)
    file.add(pair);
  for (const std::string &tensor : gguf.tensors)
    file.add(tensor);
  return file.alignTo(gguf.alignment).add(gguf.data).text;
}

TEST(GgufReader, GivesValuesOfEveryType) {
  TestDirectory directory;
  const auto file = directory.map(
      "values.gguf",
      makeGguf(
          {.pairs = {
               pair("u8", 0, Bytes().u8(200).text),
               pair("i8", 1, Bytes().put(int8_t{-3}).text),
               pair("u16", 2, Bytes().u16(60000).text),
               pair("i16", 3, Bytes().put(int16_t{-300}).text),
               pair("u32", 4, u32(4000000000U)),
               pair("i32", 5, Bytes().put(int32_t{-70000}).text),
               pair("f32", 6, Bytes().put(0.5F).text),
               pair("bool", 7, Bytes().u8(1).text),
               pair("text", 8, text("hello")),
               pair("u64", 10, Bytes().u64(uint64_t{1} << 40).text),
               pair("i64", 11, Bytes().put(int64_t{-5}).text),
               pair("f64", 12, Bytes().put(0.1).text),
               pair("texts", 9,
                    array(StringValue, 3, text("a") + text("") + text("bc"))),
               pair("ints", 9, array(Int32Value, 2, u32(7) + u32(~0U))),
               pair("floats", 9,
                    array(Float32Value, 1, Bytes().put(2.5F).text)),
           }}));
  const auto opened = GgufReader::open(file);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const GgufReader &gguf = **opened;
  const auto number = [&](const char *key) { return **gguf.optionalInt(key); };
  EXPECT_EQ(number("u8"), 200);
  EXPECT_EQ(number("i8"), -3);
  EXPECT_EQ(number("u16"), 60000);
  EXPECT_EQ(number("i16"), -300);
  EXPECT_EQ(number("u32"), 4000000000);
  EXPECT_EQ(number("i32"), -70000);
  EXPECT_EQ(number("u64"), int64_t{1} << 40);
  EXPECT_EQ(number("i64"), -5);
  EXPECT_EQ(**gguf.optionalNumber("f32"), 0.5);
  EXPECT_EQ(**gguf.optionalNumber("f64"), 0.1);
  EXPECT_EQ(**gguf.optionalBool("bool"), true);
  EXPECT_EQ(**gguf.optionalString("text"), "hello");
  EXPECT_THAT(*gguf.strings("texts"), ElementsAre("a", "", "bc"));
  EXPECT_THAT(*gguf.ints("ints"), ElementsAre(7, -1));
  EXPECT_THAT(*gguf.floats("floats"), ElementsAre(2.5F));
  EXPECT_EQ(*gguf.optionalInt("none"), std::nullopt);
  EXPECT_TRUE(gguf.strings("none")->empty());

  expectRefused(gguf.optionalInt("text").status(), ExitCode::BadFile,
                file->path(), {"text", "an integer", "string"});
  expectRefused(gguf.strings("ints").status(), ExitCode::BadFile, file->path(),
                {"ints", "array of strings", "2 int32"});
  expectRefused(gguf.optionalString("texts").status(), ExitCode::BadFile,
                file->path(), {"texts", "a string", "array of 3 string"});
  expectRefused(gguf.optionalNumber("u8").status(), ExitCode::BadFile,
                file->path(), {"u8", "a float"});
  expectRefused(gguf.optionalBool("u8").status(), ExitCode::BadFile,
                file->path(), {"u8", "a bool"});
}

TEST(GgufReader, GivesTensorsInPlace) {
  TestDirectory directory;
  for (uint32_t version : {2U, 3U}) {
    const auto file = directory.map(
        "tensors.gguf",
        makeGguf({.version = version,
                  .pairs = {pair("general.alignment", Uint32Value, u32(8))},
                  .tensors = {record({.name = "b", .offset = 40}),
                              record({.name = "a", .shape = {10}})},
                  .data = std::string(40, 'a') + std::string(32, 'b'),
                  .alignment = 8}));
    const auto gguf = GgufReader::open(file);
    ASSERT_TRUE(gguf.ok()) << gguf.status();
    const StoredTensor *b = (*gguf)->findTensor("b");
    EXPECT_THAT(b->shape, ElementsAre(2, 4));
    EXPECT_EQ(file->text().substr(b->offset, b->size), std::string(32, 'b'));
    const StoredTensor *a = (*gguf)->findTensor("a");
    EXPECT_THAT(a->shape, ElementsAre(10));
    EXPECT_EQ(file->text().substr(a->offset, a->size), std::string(40, 'a'));
  }
}

struct BadGguf {
  const char *name;
  TestGguf gguf;
  std::vector<std::string> pieces;
  ExitCode exit = ExitCode::BadFile;
};
static void PrintTo(const BadGguf &bad, std::ostream *os) { *os << bad.name; }

class GgufReaderRefuses : public testing::TestWithParam<BadGguf> {};

TEST_P(GgufReaderRefuses, File) {
  TestDirectory directory;
  const auto file = directory.map("bad.gguf", makeGguf(GetParam().gguf));
  expectRefused(GgufReader::open(file).status(), GetParam().exit, file->path(),
                GetParam().pieces);
}

static std::vector<BadGguf> badGgufs() {
  const auto oneTensor = [](const TestGgufTensor &tensor) {
    return TestGguf{.tensors = {record(tensor)}, .data = std::string(64, '\0')};
  };
  const auto onePair = [](const std::string &bytes) {
    return TestGguf{.pairs = {bytes}};
  };
  const std::string one = u32(1);
  return {
      {"WrongMagic", {.magic = 0x46554746}, {"magic", "GGUF"}},
      {"Version1", {.version = 1}, {"version", "1"}, ExitCode::Unsupported},
      {"Version4", {.version = 4}, {"version", "4"}, ExitCode::Unsupported},
      {"BigEndian",
       {.version = 0x03000000},
       {"version", "big-endian"},
       ExitCode::Unsupported},
      {"TensorCountHuge", {.tensorCount = UINT64_MAX}, {"tensor count"}},
      {"TensorCountTooLarge", {.tensorCount = 1}, {"tensor count", "1"}},
      {"MetadataCountHuge",
       {.pairCount = uint64_t{1} << 62},
       {"metadata count"}},
      {"KeyPastTheEnd",
       onePair(Bytes().u64(uint64_t{1} << 60).add(std::string(32, 'k')).text),
       {"metadata key"}},
      {"KeyEmpty", onePair(pair("", 4, one)), {"metadata key", "0"}},
      {"KeyTooLong",
       onePair(pair(std::string(70000, 'k'), 4, one)),
       {"metadata key", "70000"}},
      {"DuplicateKey",
       {.pairs = {pair("k", 4, one), pair("k", 4, one)}},
       {"metadata key", "used once"}},
      {"UnknownValueType",
       onePair(pair("k", 13, std::string(32, '\0'))),
       {"\"k\" type", "13"}},
      {"UnknownElementType",
       onePair(pair("k", 9, array(99, 1, one))),
       {"\"k\" type", "99"}},
      {"ArrayOfArrays",
       onePair(pair("k", 9, array(9, 1, array(4, 1, one)))),
       {"array of arrays"},
       ExitCode::Unsupported},
      {"ArrayCountHuge",
       onePair(pair("k", 9, array(4, UINT64_MAX, one))),
       {"\"k\"", "uint32"}},
      {"ArrayCountOverflows",
       onePair(pair("k", 9, array(10, (uint64_t{1} << 61) + 1, one))),
       {"\"k\"", "uint64"}},
      {"ArrayPastTheEnd",
       onePair(pair("k", 9, array(4, 1000, one))),
       {"\"k\"", "1000 of uint32"}},
      {"StringCountHuge",
       onePair(pair("k", 9, array(8, UINT64_MAX, text("a")))),
       {"\"k\""}},
      {"StringPastTheEnd",
       onePair(pair("k", 8, Bytes().u64(uint64_t{1} << 63).text)),
       {"\"k\"", "9223372036854775808 bytes"}},
      {"BoolOfTwo", onePair(pair("k", 7, Bytes().u8(2).text)), {"\"k\"", "2"}},
      {"AlignmentZero",
       onePair(pair("general.alignment", 4, u32(0))),
       {"general.alignment", "power of two", "0"}},
      {"AlignmentOdd",
       onePair(pair("general.alignment", 4, u32(24))),
       {"general.alignment", "24"}},
      {"AlignmentHuge",
       onePair(pair("general.alignment", 4, u32(1U << 31))),
       {"general.alignment", "2147483648"}},
      {"AlignmentIsText",
       onePair(pair("general.alignment", 8, text("32"))),
       {"general.alignment", "an integer", "string"}},
      {"TensorNamePastTheEnd",
       {.tensors = {Bytes().u64(UINT64_MAX).add(std::string(64, 'n')).text}},
       {"tensor name"}},
      {"TensorNameEmpty", oneTensor({.name = ""}), {"tensor name", "0"}},
      {"TensorNameTooLong",
       oneTensor({.name = std::string(2000, 'n')}),
       {"tensor name", "2000"}},
      {"DuplicateTensor",
       {.tensors = {record({}), record({.offset = 32})},
        .data = std::string(64, '\0')},
       {"tensor name", "used once"}},
      {"RankZero", oneTensor({.shape = {}}), {"rank", "0"}},
      {"RankFive", oneTensor({.shape = {1, 1, 1, 1, 1}}), {"rank", "5"}},
      {"SizeZero", oneTensor({.shape = {4, 0}}), {"\"w\" shape", "[4, 0]"}},
      {"ShapeOverflows",
       oneTensor({.shape = {uint64_t{1} << 33, uint64_t{1} << 33}}),
       {"\"w\" shape"}},
      {"BytesOverflow",
       oneTensor({.shape = {uint64_t{1} << 62}}),
       {"\"w\" shape"}},
      {"RowsNoMultipleOfTheBlock",
       oneTensor({.shape = {48, 2}, .type = 8}),
       {"\"w\" shape", "32", "48"}},
      {"UnknownTensorType", oneTensor({.type = 200}), {"\"w\" type", "200"}},
      {"RemovedTensorType", oneTensor({.type = 4}), {"\"w\" type", "4"}},
      {"UnsupportedTensorType",
       oneTensor({.type = 16}),
       {"\"w\" type", "IQ2_XXS"},
       ExitCode::Unsupported},
      {"OffsetNotAligned",
       oneTensor({.offset = 16}),
       {"\"w\" offset", "multiple of 32", "16"}},
      {"DataPastTheEnd",
       oneTensor({.offset = 64}),
       {"\"w\" offset", "64 bytes", "32 bytes from 64"}},
      {"OffsetHuge", oneTensor({.offset = UINT64_MAX - 31}), {"\"w\" offset"}},
      {"TensorsOverlap",
       {.tensors = {record({.name = "a", .shape = {16}}),
                    record({.name = "b", .offset = 32})},
        .data = std::string(96, '\0')},
       {"\"b\" offset", "\"a\"", "64"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Gguf, GgufReaderRefuses, testing::ValuesIn(badGgufs()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

static std::string wholeFile() {
  return makeGguf(
      {.pairs = {pair("k", Uint32Value, u32(1)),
                 pair("texts", ArrayValue,
                      array(StringValue, 2, text("ab") + text("c"))),
                 pair("flag", BoolValue, Bytes().u8(1).text)},
       .tensors = {record({}),
                   record({.name = "v", .shape = {2}, .offset = 32})},
       .data = std::string(40, 'x')});
}

TEST(GgufReader, RefusesEveryTruncation) {
  TestDirectory directory;
  const std::string whole = wholeFile();
  ASSERT_TRUE(GgufReader::open(directory.map("whole.gguf", whole)).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto file = directory.map("cut.gguf", whole.substr(0, size));
    ASSERT_EQ(exitCode(GgufReader::open(file).status()), ExitCode::BadFile)
        << size << " bytes";
  }
}

TEST(GgufReader, SurvivesEveryFlippedBit) {
  TestDirectory directory;
  const std::string whole = wholeFile();
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string broken = whole;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << (bit % 8)));
    const auto file = directory.map("flip.gguf", broken);
    const auto gguf = GgufReader::open(file);
    if (!gguf.ok()) {
      ASSERT_NE(exitCode(gguf.status()), ExitCode::Internal);
      continue;
    }
    for (const StoredTensor &tensor : (*gguf)->tensors())
      ASSERT_TRUE(file->slice(tensor.offset, tensor.size).ok());
  }
}

} // namespace llamac
