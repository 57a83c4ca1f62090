//===- JsonReaderTest.cpp - JSON configuration files ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/JsonReader.h"

#include "tests/runtime/io/TestFiles.h"

namespace llamac {

using testing::ElementsAre;

TEST(JsonReader, GivesTypedMembers) {
  const auto document = parseJson(
      "file", R"({"int": 8192, "exact": 4096.0, "number": 1e-5, "flag": true,
                  "text": "a\nb", "ids": [1, 2], "id": 3, "null": null,
                  "texts": ["x"], "object": {"inner": -1}})");
  ASSERT_TRUE(document.ok()) << document.status();
  const auto root = JsonObject::root(*document);
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(*root->requiredInt("int"), 8192);
  EXPECT_EQ(*root->requiredInt("exact"), 4096);
  EXPECT_EQ(**root->optionalNumber("number"), 1e-5);
  EXPECT_EQ(**root->optionalBool("flag"), true);
  EXPECT_EQ(**root->optionalString("text"), "a\nb");
  EXPECT_THAT(*root->intOrInts("ids"), ElementsAre(1, 2));
  EXPECT_THAT(*root->intOrInts("id"), ElementsAre(3));
  EXPECT_THAT(*root->strings("texts"), ElementsAre("x"));
  EXPECT_EQ(*(*root->optionalObject("object"))->optionalInt("inner"), -1);
  EXPECT_FALSE(root->has("null"));
  EXPECT_EQ(*root->optionalInt("null"), std::nullopt);
  EXPECT_EQ(*root->optionalInt("none"), std::nullopt);
}

TEST(JsonReader, ErrorsSayWhereTheMemberIs) {
  const std::string text = R"({"a": 1, "deep": {"b": "text"}})";
  const auto document = parseJson("file", text);
  const auto root = JsonObject::root(*document);
  const auto deep = root->optionalObject("deep");
  expectRefused((*deep)->optionalInt("b").status(), ExitCode::BadFile, "file",
                {absl::StrCat(":1:", text.find("\"b\"") + 1, ": b: "),
                 "an integer", "\"text\""});
  expectRefused(root->requiredInt("c").status(), ExitCode::BadFile, "file",
                {"c", "no such key"});
  expectRefused(
      root->optionalBool("a").status(), ExitCode::BadFile, "file",
      {absl::StrCat(":1:", text.find("\"a\"") + 1, ": a: "), "true or false"});
}

TEST(JsonReader, ObjectsOfAnArrayKnowWhereTheyAre) {
  const std::string text = R"({"rows": [{"z": 1, "a": 2}, {"z": 3}]})";
  const auto document = parseJson("file", text);
  const auto root = JsonObject::root(*document);
  const auto rows = root->objects("rows");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ(*(*rows)[0].requiredInt("a"), 2);
  EXPECT_EQ(*(*rows)[1].requiredInt("z"), 3);
  expectRefused((*rows)[1].requiredInt("a").status(), ExitCode::BadFile, "file",
                {absl::StrCat(":1:", text.rfind("\"z\"") + 1, ": a: "),
                 "an integer", "no such key"});
  EXPECT_TRUE(root->objects("none")->empty());
}

TEST(JsonReader, RefusesWhatIsNoArrayOfObjects) {
  for (const char *text : {R"({"k": {}})", R"({"k": [{}, 1]})"}) {
    const auto document = parseJson("file", text);
    const auto root = JsonObject::root(*document);
    expectRefused(root->objects("k").status(), ExitCode::BadFile, "file",
                  {"k", "an array of objects"});
  }
}

struct BadMember {
  const char *name;
  const char *json;
  const char *expected;
  const char *got;
};
static void PrintTo(const BadMember &bad, std::ostream *os) { *os << bad.name; }
class JsonReaderRefusesInt : public testing::TestWithParam<BadMember> {};

TEST_P(JsonReaderRefusesInt, Member) {
  const auto document = parseJson("file", GetParam().json);
  ASSERT_TRUE(document.ok()) << document.status();
  const auto root = JsonObject::root(*document);
  ASSERT_TRUE(root.ok());
  expectRefused(root->requiredInt("k").status(), ExitCode::BadFile, "file",
                {"k", GetParam().expected, GetParam().got});
}

INSTANTIATE_TEST_SUITE_P(
    Json, JsonReaderRefusesInt,
    testing::Values(
        BadMember{"Fraction", R"({"k": 0.5})", "an integer", "0.5"},
        BadMember{"TooLarge", R"({"k": 1e300})", "an integer", "e+300"},
        BadMember{"PastInt64", R"({"k": 9223372036854775808})", "an integer",
                  "9223372036854775808"},
        BadMember{"Text", R"({"k": "12"})", "an integer", "\"12\""},
        BadMember{"Flag", R"({"k": true})", "an integer", "true"},
        BadMember{"Array", R"({"k": [1]})", "an integer", "array"},
        BadMember{"Null", R"({"k": null})", "an integer", "no such key"}),
    [](const auto &info) { return std::string(info.param.name); });

struct BadText {
  const char *name;
  std::string text;
  std::vector<std::string> pieces;
};
static void PrintTo(const BadText &bad, std::ostream *os) { *os << bad.name; }
class JsonReaderRefuses : public testing::TestWithParam<BadText> {};

TEST_P(JsonReaderRefuses, Text) {
  expectRefused(parseJson("file", GetParam().text).status(), ExitCode::BadFile,
                "file", GetParam().pieces);
}

static std::vector<BadText> badTexts() {
  const auto repeat = [](const std::string &piece, int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += piece;
    return text;
  };
  return {
      {"Empty", "", {"JSON"}},
      {"CutOff", R"({"a": 1)", {":1:8: JSON", "well-formed"}},
      {"Comment", "{} // no", {"JSON"}},
      {"TrailingComma", R"({"a": 1,})", {":1:9: JSON"}},
      {"NotANumber", R"({"a": NaN})", {"JSON"}},
      {"ControlCharacter", "{\"a\": \"\x01\"}", {"JSON"}},
      {"InvalidUtf8", "{\"a\": \"\xc3\"}", {"JSON"}},
      {"LoneSurrogate", R"({"a": "\ud800"})", {"JSON"}},
      {"SixtyFiveLevels",
       repeat("[", 65) + repeat("]", 65),
       {":1:65: nesting", "64"}},
      {"FiftyThousandArrays", repeat("[", 50000), {"nesting"}},
      {"FiftyThousandObjects", repeat("{\"a\":", 50000), {"nesting"}},
      {"TooLarge", std::string((4 << 20) + 1, ' '), {"size", "4194304"}},
      {"DuplicateKey", R"({"a": 1, "a": 2})", {":1:10: a", "used once"}},
      {"DuplicateKeyWithEscape",
       R"({"a": 1, "\u0061": 2})",
       {"a", "used once"}},
      {"DuplicateKeyInside",
       R"({"x": [{"b": {}, "b": 2}]})",
       {":1:18: b", "used once"}},
      {"OnTheThirdLine", "{\n\"a\": 1,\n  \"a\": 2}", {":3:3: a"}},
      {"NestedOnTheSecondLine", "[\n" + repeat("[", 64), {":2:64: nesting"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Json, JsonReaderRefuses, testing::ValuesIn(badTexts()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

TEST(JsonReader, GivesAMemberAsItIsWritten) {
  const std::string text =
      R"({"z": {"b": "}\"]", "a": [1, {}]} , "y" : 1.50, "x":"a,\\",)"
      R"( "w\u0061": {"b": 1, "a": 2}})";
  const auto document = *parseJson("file", text);
  const JsonObject object = *JsonObject::root(document);
  EXPECT_EQ(object.textOf("z", text), R"({"b": "}\"]", "a": [1, {}]})");
  EXPECT_EQ(object.textOf("y", text), "1.50");
  EXPECT_EQ(object.textOf("x", text), R"("a,\\")");
  // Where the key has escapes, only the value is the same.
  EXPECT_EQ(nlohmann::json::parse(object.textOf("wa", text)),
            object.raw()["wa"]);
}

TEST(JsonReader, RefusesARootThatIsNoObject) {
  const auto document = parseJson("file", "[1]");
  ASSERT_TRUE(document.ok()) << document.status();
  expectRefused(JsonObject::root(*document).status(), ExitCode::BadFile, "file",
                {"root", "an object", "array"});
}

TEST(JsonReader, BracketsInTextsDoNotNest) {
  const std::string brackets(1000, '[');
  const auto document = parseJson("file", R"({"a": "\")" + brackets + "\"}");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(document->root()["a"].get<std::string>(), "\"" + brackets);
}

} // namespace llamac
