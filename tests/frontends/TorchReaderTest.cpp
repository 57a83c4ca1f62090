//===- TorchReaderTest.cpp - Zip, pickle and .pth files -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/TensorFiles.h"
#include "frontends/meta/PickleReader.h"
#include "frontends/meta/ZipReader.h"
#include "tests/runtime/io/TestFiles.h"

namespace llamac {

using namespace std::string_literals;
using testing::ElementsAre;

static std::string sixFloats() { return std::string(24, '\1'); }

static std::string stateDict(const TestTensor &tensor) {
  return pickleDict(pickleText("w") + pickleTensor(tensor));
}

static std::string torchFile(const std::string &pickle) {
  return makeZip({{.name = "archive/data.pkl", .data = pickle},
                  {.name = "archive/data/0", .data = sixFloats()},
                  {.name = "archive/version", .data = "3\n"}});
}

TEST(TorchReader, GivesTensorsInPlace) {
  TestDirectory directory;
  const auto file = directory.map("good.pth", torchFile(stateDict({})));
  const auto tensors = readTorchFile(*file);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 1U);
  const StoredTensor &tensor = tensors->front();
  EXPECT_EQ(tensor.name, "w");
  EXPECT_EQ(tensor.type, DataType::F32);
  EXPECT_THAT(tensor.shape, ElementsAre(2, 3));
  EXPECT_EQ(file->text().substr(tensor.offset, tensor.size),
            absl::string_view(sixFloats()));
}

TEST(TorchReader, TakesPartsOfAStorageAndPlainDicts) {
  TestDirectory directory;
  const std::string item = pickleTensor({.offset = pickleInt(2),
                                         .shape = pickleTuple({1, 4}),
                                         .strides = pickleTuple({99, 1})});
  const auto file = directory.map(
      "part.pth", torchFile("\x80\x02}(" + pickleText("w") + item + "u."));
  const auto tensors = readTorchFile(*file);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ(tensors->front().size, 16U);
  EXPECT_EQ(file->text().substr(tensors->front().offset - 8, 24),
            absl::string_view(sixFloats()));
}

// The pickles that Python's pickler writes at protocols 4 and 5 differ.
TEST(TorchReader, TakesNewerProtocols) {
  const auto text = [](const std::string &value) {
    return Bytes().u8(0x8c).u8(value.size()).add(value).text;
  };
  const auto global = [&](const std::string &module, const std::string &name) {
    return text(module) + text(name) + "\x93\x94";
  };
  const std::string pickle =
      Bytes().u8(0x80).u8(4).u8(0x95).u64(0).text + "}\x94(" + text("w") +
      global("torch._utils", "_rebuild_tensor_v2") + "((" + text("storage") +
      global("torch", "HalfStorage") + text("7") + text("cpu") + "K\x0ctQ" +
      "K\0"s + "K\x04K\x03\x86" + "K\x03K\x01\x86" + "\x89" +
      global("collections", "OrderedDict") + ")RtRu.";
  const auto tensors = readPickledStateDict(
      "file", {reinterpret_cast<const uint8_t *>(pickle.data()), pickle.size()},
      100);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 1U);
  EXPECT_EQ(tensors->front().type, DataType::F16);
  EXPECT_EQ(tensors->front().storage, "7");
  EXPECT_THAT(tensors->front().shape, ElementsAre(4, 3));
}

TEST(ZipReader, TakesZip64AndDataDescriptors) {
  TestDirectory directory;
  // Sizes of 64 bits in an extra field behind one of another kind.
  const std::string extra =
      Bytes().u16(0x5555).u16(3).add("abc").u16(1).u16(16).u64(5).u64(5).text;
  const auto file =
      directory.map("64.zip", makeZip({{.name = "a", .data = "first"},
                                       {.name = "b",
                                        .data = "later",
                                        .flags = 8,
                                        .localSize = 0,
                                        .size = 0xffffffff,
                                        .extra = extra}},
                                      {.comment = "a comment"}));
  const auto zip = ZipReader::open(*file);
  ASSERT_TRUE(zip.ok()) << zip.status();
  const auto bytes = zip->readChecked(*zip->find("b"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(std::string(bytes->begin(), bytes->end()), "later");
  EXPECT_EQ(zip->find("c"), nullptr);
}

struct BadTorchFile {
  const char *name;
  std::string bytes;
  std::vector<std::string> pieces;
  ExitCode exit = ExitCode::BadFile;
};

static void PrintTo(const BadTorchFile &bad, std::ostream *os) {
  *os << bad.name;
}

class TorchReaderRefuses : public testing::TestWithParam<BadTorchFile> {};

TEST_P(TorchReaderRefuses, File) {
  TestDirectory directory;
  const auto file = directory.map("bad.pth", GetParam().bytes);
  expectRefused(readTorchFile(*file).status(), GetParam().exit, file->path(),
                GetParam().pieces);
}

static std::vector<BadTorchFile> badZips() {
  const std::vector<TestEntry> good = {{.name = "a/data.pkl", .data = "abc"},
                                       {.name = "a/data/0", .data = "12345"}};
  const auto with = [&](auto change) {
    std::vector<TestEntry> entries = good;
    change(entries[1]);
    return makeZip(entries);
  };
  const std::string whole = makeZip(good);
  std::string noCentral = whole;
  noCentral[noCentral.find("PK\1\2")] = 'X';
  std::string noLocal = whole;
  noLocal[noLocal.find("PK\3\4", 4)] = 'X';
  // A zip64 locator that points past the end of the file.
  std::string locator =
      whole.substr(0, whole.size() - 22) +
      Bytes().u32(0x07064b50).u32(0).u64(1 << 30).u32(1).text +
      whole.substr(whole.size() - 22);
  return {
      {"EmptyFile", "", {"zip end record", "22"}},
      {"NotAZip", std::string(1000, 'x'), {"zip end record", "no signature"}},
      {"TruncatedZip", whole.substr(0, whole.size() - 1), {"zip end record"}},
      {"DirectoryPastTheEnd",
       makeZip(good, {.offset = 0x7fffffff}),
       {"central directory"}},
      {"DirectoryLargerThanFile",
       makeZip(good, {.size = 0x7fffffff}),
       {"central directory"}},
      {"TooManyEntries", makeZip(good, {.entries = 60000}), {"entry count"}},
      {"TooFewEntries",
       makeZip(good, {.entries = 1}),
       {"central directory", "more"}},
      {"SeveralDisks", makeZip(good, {.disk = 3}), {"disk"}},
      {"NoDirectoryRecord", noCentral, {"directory record"}},
      {"NoLocalHeader", noLocal, {"local header"}},
      {"Zip64LocatorPastTheEnd", locator, {"zip64 end record"}},
      {"Compressed",
       with([](TestEntry &e) { e.method = 8; }),
       {"stored", "method 8"}},
      {"Encrypted", with([](TestEntry &e) { e.flags = 1; }), {"unencrypted"}},
      {"DuplicateName",
       with([](TestEntry &e) { e.name = "a/data.pkl"; }),
       {"used once", "a/data.pkl"}},
      {"ParentDirectory",
       with([](TestEntry &e) { e.name = "a/../../etc/passwd"; }),
       {"entry name", ".."}},
      {"AbsoluteName",
       with([](TestEntry &e) { e.name = "/etc/passwd"; }),
       {"entry name"}},
      {"BackslashName",
       with([](TestEntry &e) { e.name = "a\\b"; }),
       {"entry name"}},
      {"EmptyName", with([](TestEntry &e) { e.name = ""; }), {"entry name"}},
      {"LocalNameDiffers",
       with([](TestEntry &e) { e.localName = "a/data/1"; }),
       {"local name", "a/data/0", "a/data/1"}},
      {"LocalSizeDiffers",
       with([](TestEntry &e) { e.localSize = 4; }),
       {"local size", "5", "4"}},
      {"SizePastTheDirectory",
       with([](TestEntry &e) { e.size = e.localSize = 5000; }),
       {"a/data/0", "5000"}},
      {"Zip64FieldMissing",
       with([](TestEntry &e) { e.size = 0xffffffff; }),
       {"zip64 extra field"}},
      {"Zip64SizeHuge",
       with([](TestEntry &e) {
         e.size = 0xffffffff;
         e.flags = 8;
         e.extra = Bytes().u16(1).u16(16).u64(UINT64_MAX).u64(UINT64_MAX).text;
       }),
       {"a/data/0"}},
      {"ExtraFieldPastItsEnd",
       with([](TestEntry &e) {
         e.size = 0xffffffff;
         e.extra = Bytes().u16(1).u16(99).u64(5).text;
       }),
       {"extra field", "99"}},
      {"HeaderOffsetPastTheDirectory",
       with([](TestEntry &e) { e.headerOffset = 0x7ffffff0; }),
       {"local header offset"}},
      {"OverlappingEntries",
       makeZip({{.name = "a", .data = "xy", .flags = 8, .size = 20},
                {.name = "b", .data = "xy"}}),
       {"\"b\"", "overlap"}},
      {"PickleCrcWrong",
       makeZip({{.name = "a/data.pkl", .data = "abc", .crc = 1}}),
       {"a/data.pkl", "CRC-32"}},
      {"NoPickle", makeZip({{.name = "a/x", .data = "abc"}}), {"data.pkl"}},
      {"TwoPickles",
       makeZip({{.name = "a/data.pkl", .data = "abc"},
                {.name = "b/data.pkl", .data = "abc"}}),
       {"data.pkl", "one entry"}},
      {"BigEndian",
       makeZip({{.name = "a/data.pkl", .data = stateDict({})},
                {.name = "a/byteorder", .data = "big"}}),
       {"byteorder", "big"},
       ExitCode::Unsupported},
      {"LegacyFormat",
       "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.",
       {"format", "1.6"},
       ExitCode::Unsupported},
      {"StorageMissing",
       makeZip({{.name = "a/data.pkl", .data = stateDict({})}}),
       {"a/data/"}},
      {"StorageTooSmall",
       makeZip({{.name = "a/data.pkl", .data = stateDict({})},
                {.name = "a/data/0", .data = "1234"}}),
       {"6 f32", "4 bytes"}},
      {"StorageSizeOverflows",
       makeZip(
           {{.name = "a/data.pkl",
             .data = pickleDict(
                 pickleText("w") +
                 pickleGlobal("torch._utils", "_rebuild_tensor_v2") + "((" +
                 pickleText("storage") + pickleGlobal("torch", "FloatStorage") +
                 pickleText("0") + pickleText("cpu") +
                 Bytes().u8(0x8a).u8(8).u64(uint64_t{1} << 62).text + "tQ" +
                 pickleInt(0) + pickleTuple({1}) + pickleTuple({1}) +
                 "\x89)tR")},
            {.name = "a/data/0", .data = ""}}),
       {"storage"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Zip, TorchReaderRefuses, testing::ValuesIn(badZips()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

static std::vector<BadTorchFile> badPickles() {
  const auto pickle = [](const std::string &bytes) { return torchFile(bytes); };
  const auto tensor = [](const TestTensor &t) {
    return torchFile(stateDict(t));
  };
  const std::string call = pickleText("w") + pickleTensor();
  std::string manyTuples = "\x80\x02";
  for (int i = 0; i < 2'000'000; ++i)
    manyTuples += ")";
  return {
      {"EmptyPickle", pickle(""), {"pickle instruction", "end"}},
      {"NoStop", pickle("\x80\x02}"), {"pickle instruction", "end"}},
      {"Protocol0", pickle(Bytes().u8(0x80).u8(0).text), {"protocol", "0"}},
      {"Protocol6", pickle("\x80\x06}."), {"protocol", "6"}},
      {"ImportsOs",
       pickle("\x80\x02" + pickleGlobal("os", "system") + pickleText("true") +
              "\x85R."),
       {"global", "os.system"}},
      {"ImportsBuiltins",
       pickle("\x80\x02" + pickleGlobal("builtins", "eval") + "."),
       {"global", "builtins.eval"}},
      {"ImportsTorchJit",
       pickle("\x80\x02" + pickleGlobal("torch.jit", "load") + "."),
       {"global", "torch.jit.load"}},
      {"ImportsAnotherStorage",
       pickle("\x80\x02" + pickleGlobal("torch", "LongStorage") + "."),
       {"global", "torch.LongStorage"}},
      {"ImportsByStack",
       pickle("\x80\x04" + pickleText("os") + pickleText("system") + "\x93."),
       {"global", "os.system"}},
      {"GlobalWithoutEnd",
       pickle("\x80\x02"
              "c" +
              std::string(5000, 'a')),
       {"global", "256"}},
      {"InstanceInstruction",
       pickle("\x80\x02(ios\nsystem\n."),
       {"pickle instruction", "0x69"}},
      {"ObjectInstruction", pickle("\x80\x02(o."), {"0x6f"}},
      {"NewObjectInstruction", pickle("\x80\x02))\x81."), {"0x81"}},
      {"ExtensionInstruction", pickle("\x80\x02\x82\x01."), {"0x82"}},
      {"TextInstruction", pickle("\x80\x02V1\n."), {"0x56"}},
      {"PersistentTextInstruction", pickle("\x80\x02P1\n."), {"0x50"}},
      {"TextPastTheEnd",
       pickle(Bytes().add("\x80\x02X").u32(0x7fffffff).add("abc").text),
       {"text"}},
      {"TextOf64BitsPastTheEnd",
       pickle(Bytes().add("\x80\x04\x8d").u64(UINT64_MAX).text),
       {"text"}},
      {"StackEmpty", pickle("\x80\x02\x85."), {"tuple", "stack"}},
      {"PopsThroughAMark", pickle("\x80\x02)(R."), {"stack"}},
      {"NoMark", pickle("\x80\x02t."), {"mark"}},
      {"MemoEmpty", pickle("\x80\x02h\x07."), {"memo", "7"}},
      {"NothingToRemember", pickle("\x80\x02q\x01."), {"memo"}},
      {"LongInteger",
       pickle("\x80\x02\x8a\x09"
              "123456789."),
       {"integer", "9"}},
      {"TooManyValues", pickle(manyTuples), {"values"}},
      {"OddDict", pickle(pickleDict(pickleText("w"))), {"dict", "pairs"}},
      {"NotADict", pickle("\x80\x02)."), {"state dict", "a tuple"}},
      {"NoResult", pickle("\x80\x02."), {"state dict"}},
      {"KeyIsNoText",
       pickle(pickleDict(pickleInt(3) + pickleTensor())),
       {"key", "an integer"}},
      {"ValueIsNoTensor",
       pickle(pickleDict(pickleText("w") + pickleInt(3))),
       {"\"w\"", "a tensor", "an integer"}},
      {"DuplicateKey", pickle(pickleDict(call + call)), {"used once"}},
      {"DictThatHoldsItself",
       pickle("\x80\x02}q\x01" + pickleText("w") + "h\x01s."),
       {"a tensor", "a dict"}},
      {"CallsATuple", pickle("\x80\x02))R."), {"callee"}},
      {"CallsAStorage",
       pickle("\x80\x02" + pickleGlobal("torch", "FloatStorage") + ")R."),
       {"callee", "FloatStorage"}},
      {"RebuildWithoutArguments",
       pickle("\x80\x02" + pickleGlobal("torch._utils", "_rebuild_tensor_v2") +
              ")R."),
       {"_rebuild_tensor_v2", "0"}},
      {"ParameterOfNothing",
       pickle("\x80\x02" + pickleGlobal("torch._utils", "_rebuild_parameter") +
              ")R."),
       {"_rebuild_parameter"}},
      {"PersistentIdOfText",
       pickle("\x80\x02" + pickleText("x") + "Q."),
       {"persistent id", "a tuple"}},
      {"PersistentIdTooShort", pickle("\x80\x02)Q."), {"persistent id", "5"}},
      {"AttributesOfText",
       pickle("\x80\x02}" + pickleText("x") + "b."),
       {"attributes"}},
      {"OffsetPastStorage",
       tensor({.offset = pickleInt(1)}),
       {"tensor extent", "6 elements from 1"}},
      {"NegativeOffset",
       tensor({.offset = pickleInt(0xffffffff)}),
       {"tensor offset", "-1"}},
      {"NegativeSize",
       tensor({.shape = pickleTuple({2, 0xfffffffd})}),
       {"tensor shape", "-3"}},
      {"ShapeOverflows",
       tensor({.shape = pickleTuple({0x7fffffff, 0x7fffffff, 0x7fffffff}),
               .strides = pickleTuple({1, 1, 1})}),
       {"tensor shape", "2^63"}},
      {"ShapePastStorage",
       tensor({.shape = pickleTuple({3, 3})}),
       {"tensor extent", "9 elements"}},
      {"ShapeIsNoTuple",
       tensor({.shape = pickleInt(6)}),
       {"tensor shape", "tuple"}},
      {"ShapeOfTexts",
       tensor({.shape = pickleText("2") + pickleText("3") + "\x86"}),
       {"tensor shape", "text"}},
      {"RankTooHigh",
       tensor({.shape = pickleTuple({1, 1, 1, 1, 1, 1, 1, 1, 6})}),
       {"tensor shape", "8"}},
      {"TransposedStrides",
       tensor({.strides = pickleTuple({1, 2})}),
       {"tensor strides", "contiguous", "[1, 2]"}},
      {"ZeroStrides",
       tensor({.strides = pickleTuple({0, 0})}),
       {"tensor strides"}},
      {"StridesOfAnotherRank",
       tensor({.strides = pickleTuple({1})}),
       {"tensor strides", "2", "1"}},
      {"NegativeStorage",
       tensor({.storageElements = 0xffffffff}),
       {"storage elements", "-1"}},
      {"StorageKeyOfAnotherEntry", tensor({.key = "../../version"}), {"entry"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Pickle, TorchReaderRefuses,
                         testing::ValuesIn(badPickles()), [](const auto &info) {
                           return std::string(info.param.name);
                         });

// Every prefix of a good file ends in an error, never in a crash.
TEST(TorchReader, RefusesEveryTruncation) {
  TestDirectory directory;
  const std::string whole = torchFile(stateDict({}));
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto file = directory.map("cut.pth", whole.substr(0, size));
    const absl::Status status = readTorchFile(*file).status();
    ASSERT_EQ(exitCode(status), ExitCode::BadFile) << size << " bytes";
  }
}

// A flipped bit may pass unseen in data, but is never more than an error.
TEST(TorchReader, SurvivesEveryFlippedBit) {
  TestDirectory directory;
  const std::string whole = torchFile(stateDict({}));
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string broken = whole;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << (bit % 8)));
    const auto file = directory.map("flip.pth", broken);
    const auto tensors = readTorchFile(*file);
    if (!tensors.ok()) {
      ASSERT_NE(exitCode(tensors.status()), ExitCode::Internal);
      continue;
    }
    for (const StoredTensor &tensor : *tensors)
      ASSERT_TRUE(file->slice(tensor.offset, tensor.size).ok());
  }
}

} // namespace llamac
