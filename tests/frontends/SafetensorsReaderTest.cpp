//===- SafetensorsReaderTest.cpp - Safetensors files ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/TensorFiles.h"

#include "tests/runtime/io/TestFiles.h"

namespace llamac {

using testing::ElementsAre;

static std::string makeFile(const std::string &header, size_t dataBytes = 0) {
  return Bytes()
      .u64(header.size())
      .add(header)
      .add(std::string(dataBytes, 'd'))
      .text;
}

TEST(SafetensorsReader, GivesTensorsInTheOrderOfTheirData) {
  TestDirectory directory;
  const auto file = directory.map(
      "good.safetensors",
      makeFile(
          R"({"__metadata__":{"format":"pt"},)"
          R"("b":{"data_offsets":[24,28],"shape":[2],"dtype":"F16"},)"
          R"("a\u0041":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
          R"("s":{"dtype":"BF16","shape":[],"data_offsets":[28,30]}}   )",
          30));
  const auto tensors = readSafetensors(*file);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 3U);
  EXPECT_EQ((*tensors)[0].name, "aA");
  EXPECT_EQ((*tensors)[0].type, DataType::F32);
  EXPECT_THAT((*tensors)[0].shape, ElementsAre(2, 3));
  EXPECT_EQ((*tensors)[0].offset, file->size() - 30);
  EXPECT_EQ((*tensors)[1].type, DataType::F16);
  EXPECT_EQ((*tensors)[1].size, 4U);
  EXPECT_EQ((*tensors)[2].type, DataType::BF16);
  EXPECT_TRUE((*tensors)[2].shape.empty());
}

TEST(SafetensorsReader, TakesAFileWithoutTensors) {
  TestDirectory directory;
  const auto tensors =
      readSafetensors(*directory.map("empty.safetensors", makeFile("{}")));
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_TRUE(tensors->empty());
}

struct BadSafetensors {
  const char *name;
  std::string bytes;
  std::vector<std::string> pieces;
  ExitCode exit = ExitCode::BadFile;
};
static void PrintTo(const BadSafetensors &bad, std::ostream *os) {
  *os << bad.name;
}

class SafetensorsReaderRefuses : public testing::TestWithParam<BadSafetensors> {
};

TEST_P(SafetensorsReaderRefuses, File) {
  TestDirectory directory;
  const auto file = directory.map("bad.safetensors", GetParam().bytes);
  expectRefused(readSafetensors(*file).status(), GetParam().exit, file->path(),
                GetParam().pieces);
}

static std::vector<BadSafetensors> badFiles() {
  // A header of one tensor of 8 bytes with one field replaced.
  const auto one = [](const std::string &dtype, const std::string &shape,
                      const std::string &offsets, size_t dataBytes = 8) {
    return makeFile(R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape +
                        R"(,"data_offsets":)" + offsets + "}}",
                    dataBytes);
  };
  const std::string good =
      R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const std::string next =
      R"({"dtype":"F32","shape":[2],"data_offsets":[8,16]})";
  std::string deep;
  for (int i = 0; i < 50000; ++i)
    deep += '[';
  return {
      {"EmptyFile", "", {"header length", "8 bytes"}},
      {"FortyThreeBytes",
       Bytes().u64(uint64_t{1} << 62).add(std::string(35, '{')).text,
       {"header length"}},
      {"HeaderLongerThanFile",
       Bytes().u64(100).add("{}").text,
       {"header length", "at most 2", "100"}},
      {"HeaderLongerThanAllowed",
       Bytes().u64(100'000'001).add("{}").text,
       {"header length", "100000001"}},
      {"NotJson", makeFile("hello"), {"JSON"}},
      {"JsonCutOff", makeFile(R"({"w":{"dtype":"F32)"), {"JSON"}},
      {"TextAfterJson", makeFile("{} x"), {"JSON"}},
      {"InvalidUtf8", makeFile("{\"\xff\":1}"), {"JSON"}},
      {"NestedBrackets", makeFile(deep), {"nesting", "3"}},
      {"HeaderIsAnArray", makeFile("[]"), {"header", "an object", "array"}},
      {"HeaderIsANumber", makeFile("7"), {"header", "an object", "number"}},
      {"EntryIsAnArray", makeFile(R"({"w":[]})"), {"\"w\"", "an object"}},
      {"EntryIsNull", makeFile(R"({"w":null})"), {"\"w\"", "null"}},
      {"MetadataIsNested",
       makeFile(R"({"__metadata__":{"a":{}}})"),
       {"__metadata__", "a string"}},
      {"DuplicateTensor",
       makeFile("{\"w\":" + good + ",\"w\":" + good + "}", 8),
       {"w", "used once"}},
      {"DuplicateField",
       makeFile(R"({"w":{"dtype":"F32","dtype":"F32"}})"),
       {"dtype", "used once"}},
      {"UnknownField",
       makeFile(R"({"w":{"type":"F32"}})"),
       {"\"w\"", "\"type\""}},
      {"NoDtype",
       makeFile(R"({"w":{"shape":[2],"data_offsets":[0,8]}})", 8),
       {"\"w\"", "a dtype", "none"}},
      {"NoShape",
       makeFile(R"({"w":{"dtype":"F32","data_offsets":[0,8]}})", 8),
       {"\"w\"", "a shape", "none"}},
      {"NoOffsets",
       makeFile(R"({"w":{"dtype":"F32","shape":[2]}})", 8),
       {"\"w\"", "a data_offsets", "none"}},
      {"IntegerDtype",
       one(R"("I64")", "[1]", "[0,8]"),
       {"dtype", "I64"},
       ExitCode::Unsupported},
      {"EightBitDtype",
       one(R"("F8_E4M3")", "[8]", "[0,8]"),
       {"dtype", "F8_E4M3"},
       ExitCode::Unsupported},
      {"DtypeIsANumber", one("4", "[2]", "[0,8]"), {"dtype", "a string"}},
      {"ShapeIsText", one(R"("F32")", R"("2")", "[0,8]"), {"shape"}},
      {"NegativeSize",
       one(R"("F32")", "[-2]", "[0,8]"),
       {"shape", "at least 0", "-2"}},
      {"FractionalSize",
       one(R"("F32")", "[2.5]", "[0,8]"),
       {"shape", "integer", "2.5"}},
      {"SizePast64Bits",
       one(R"("F32")", "[18446744073709551616]", "[0,8]"),
       {"shape", "integer"}},
      {"TooManySizes",
       one(R"("F32")", "[1,1,1,1,1,1,1,1,2]", "[0,8]"),
       {"shape", "at most 8"}},
      {"ShapeOverflows",
       one(R"("F32")", "[4294967296,4294967296,4294967296]", "[0,8]"),
       {"shape", "2^63"}},
      {"ShapeWrapsToTheRightSize",
       one(R"("F32")", "[4611686018427387906]", "[0,8]"),
       {"shape"}},
      {"ShapeAndOffsetsDisagree",
       one(R"("F32")", "[3]", "[0,8]"),
       {"shape", "8 bytes", "12 bytes"}},
      {"OneOffset",
       one(R"("F32")", "[2]", "[0]"),
       {"data_offsets", "two", "[0]"}},
      {"ThreeOffsets",
       one(R"("F32")", "[2]", "[0,8,16]"),
       {"data_offsets", "two"}},
      {"OffsetsReversed",
       one(R"("F32")", "[2]", "[8,0]"),
       {"data_offsets", "[8, 0]"}},
      {"OffsetsPastTheEnd",
       one(R"("F32")", "[4]", "[0,16]"),
       {"data_offsets", "8 bytes", "[0, 16]"}},
      {"Hole", makeFile("{\"w\":" + next + "}", 16), {"\"w\"", "hole", "8"}},
      {"Overlap",
       makeFile("{\"a\":" + good + ",\"b\":" + good + "}", 8),
       {"\"b\"", "overlap"}},
      {"DataLeftOver",
       makeFile("{\"w\":" + good + "}", 9),
       {"data", "1 bytes more"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Safetensors, SafetensorsReaderRefuses,
                         testing::ValuesIn(badFiles()), [](const auto &info) {
                           return std::string(info.param.name);
                         });

TEST(SafetensorsReader, SurvivesEveryFlippedBit) {
  TestDirectory directory;
  const std::string whole =
      makeFile(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string broken = whole;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << (bit % 8)));
    const auto file = directory.map("flip.safetensors", broken);
    const auto tensors = readSafetensors(*file);
    if (!tensors.ok()) {
      ASSERT_NE(exitCode(tensors.status()), ExitCode::Internal);
      continue;
    }
    for (const StoredTensor &tensor : *tensors)
      ASSERT_TRUE(file->slice(tensor.offset, tensor.size).ok());
  }
}

} // namespace llamac
