//===- JsonSchemaTest.cpp - Schemas that grammars can follow --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/JsonSchema.h"

#include "runtime/base/Status.h"

#include "absl/strings/match.h"

#include <gtest/gtest.h>

namespace llamac {
namespace {

static std::string prepared(absl::string_view text) {
  const absl::StatusOr<std::string> result = prepareJsonSchema(text);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or("");
}

TEST(JsonSchemaTest, WhatGrammarsFollowStaysAsItIs) {
  for (const char *text : {
           R"({})",
           R"(true)",
           R"({"type":"integer","minimum":1,"title":"An annotation"})",
           R"({"type":["string","null"],"minLength":3})",
           R"({"type":"string","enum":["z","a"]})",
           R"({"type":["number","null"],"enum":[1.5,2,null]})",
           R"({"anyOf":[{"const":1},{"$ref":"#/$defs/a"}],"$defs":{"a":{}}})",
           R"({"type":"array","items":{"$ref":"#"},"uniqueItems":false})",
           R"({"type":"object","properties":{"not":{"type":"null"}}})",
       })
    EXPECT_EQ(prepared(text), text);
}

TEST(JsonSchemaTest, KeywordsImplyTheirType) {
  EXPECT_EQ(prepared(R"({"minLength":1})"),
            R"({"minLength":1,"type":"string"})");
  EXPECT_EQ(prepared(R"({"maximum":1})"), R"({"maximum":1,"type":"number"})");
  EXPECT_EQ(prepared(R"({"items":true})"), R"({"items":true,"type":"array"})");
  EXPECT_EQ(prepared(R"({"properties":{}})"),
            R"({"properties":{},"type":"object"})");
}

TEST(JsonSchemaTest, WhatSaysNothingOfItsPartsMayHaveAny) {
  EXPECT_EQ(prepared(R"({"type":"object"})"),
            R"({"type":"object","additionalProperties":true})");
  EXPECT_EQ(prepared(R"({"type":"array"})"),
            R"({"type":"array","items":true})");
  EXPECT_EQ(
      prepared(R"({"type":"object","required":["a"],"properties":{"b":true}})"),
      R"({"type":"object","required":["a"],"properties":{"b":true,"a":true}})");
}

TEST(JsonSchemaTest, ErrorsNameThePlaceAndTheKeyword) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "schema:0: JSON: expected well-formed text"},
      {"{", "schema:1: JSON: expected well-formed text"},
      {"\"\xff\"", "schema:1: JSON: expected well-formed text"},
      {"[]", "#: expected a schema, got array"},
      {R"({"a":1,"a":2})", "schema:7: a: expected a key used"},
      {R"({"not":{}})", "#: not is not supported"},
      {R"({"properties":{"x":{"contains":{}}}})",
       "#/properties/x: contains is not supported"},
      {R"({"type":"array","uniqueItems":true})",
       "#: uniqueItems is not supported"},
      {R"({"$defs":{"d":{"if":{}}}})", "#/$defs/d: if is not supported"},
      {R"({"anyOf":[{}],"properties":{}})",
       "#: properties beside anyOf is not supported"},
      {R"({"const":1,"enum":[1]})", "#: enum beside const is not supported"},
      {R"({"type":"object","oneOf":[{}]})",
       "#: type beside oneOf is not supported"},
      {R"({"type":"string","const":1})",
       R"(#: const: expected values of type "string", got 1)"},
      {R"({"type":"integer","enum":[1,1.5]})",
       R"(#: enum: expected values of type "integer", got 1.5)"},
      {R"({"minimum":1,"minLength":1})",
       "#: expected a type beside minLength and minimum"},
      {R"({"type":"string","maxLength":100000})",
       "#: maxLength: expected 0 to 10000, got 100000"},
      {R"({"type":"string","minLength":-1})",
       "#: minLength: expected 0 to 10000, got -1"},
      {R"({"type":"array","minItems":1.5})",
       "#: minItems: expected 0 to 10000, got 1.5"},
      {R"({"anyOf":[]})", "#/anyOf: expected a list of schemas"},
      {R"({"properties":[]})", "#/properties: expected an object of schemas"},
      {R"({"properties":{"a":3}})",
       "#/properties/a: expected a schema, got number"},
      {R"({"type":"object","required":"a"})",
       "#: required: expected a list of names"},
      {R"({"$ref":1})", "#: $ref: expected a string"},
      // What is no schema by its place has not been checked.
      {R"({"$ref":"#/default","default":{"not":{}}})",
       "#: $ref: expected the place of a schema in this one, got #/default"},
      {R"({"$ref":"http://example.com/a"})",
       "#: $ref: expected the place of a schema in this one, got "
       "http://example.com/a"},
  };
  for (const auto &[text, message] : cases) {
    const absl::Status status = prepareJsonSchema(text).status();
    EXPECT_EQ(exitCode(status), ExitCode::Usage) << text;
    EXPECT_TRUE(absl::StartsWith(status.message(), message))
        << text << ": " << status;
  }
}

} // namespace
} // namespace llamac
