//===- JsonSchemaTest.cpp - Grammars of JSON schemas ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Schemas that are refused. Which answers the grammars allow is tested against
// Python's jsonschema in tests/e2e/test_schemas.py.
//
//===----------------------------------------------------------------------===//

#include "text/grammar/JsonSchema.h"

#include "runtime/base/Status.h"

#include "absl/strings/match.h"

#include <gtest/gtest.h>

namespace llamac {
namespace {

TEST(JsonSchemaTest, ErrorsNameThePlaceAndTheKeyword) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "schema:1:1: JSON: expected well-formed text"},
      {"{", "schema:1:2: JSON: expected well-formed text"},
      {"\"\xff\"", "schema:1:2: JSON: expected well-formed text"},
      {"[]", "#: expected a schema, got array"},
      {R"({"a":1,"a":2})", "schema:1:8: a: expected a key used"},
      {R"({"not":{}})", "#: not is not supported"},
      {R"({"properties":{"x":{"contains":{}}}})",
       "#/properties/x: contains is not supported"},
      {R"({"type":"array","uniqueItems":true})",
       "#: uniqueItems is not supported"},
      {R"({"$defs":{"d":{"if":{}}}})", "#/$defs/d: if is not supported"},
      {R"({"type":"thing"})",
       "#: type: expected one or more of null, boolean, integer, number, "
       "string, array and object, got \"thing\""},
      {R"({"type":[]})", "#: type: expected one or more"},
      {R"({"type":["null",1]})", "#: type: expected one or more"},
      {R"({"enum":{}})", "#: enum: expected a list of values, got {}"},
      {R"({"minimum":"1"})", "#: minimum: expected a number, got \"1\""},
      {R"({"exclusiveMinimum":true})",
       "#: exclusiveMinimum: expected a number, got true"},
      {R"({"pattern":1})", "#: pattern: expected a string, got 1"},
      {R"({"format":1})", "#: format: expected a string, got 1"},
      {R"j({"pattern":"(?=a)"})j",
       "#: pattern \"(?=a)\": offset 1: lookahead is not supported"},
      {R"({"pattern":"a{4294967298}b"})",
       "#: pattern \"a{4294967298}b\": offset 1: expected counts of at most "
       "10000"},
      {R"({"patternProperties":{"[":{}}})",
       "#: pattern \"[\": offset 1: a class without an end"},
      {R"({"type":"string","maxLength":100000})",
       "#: maxLength: expected 0 to 10000, got 100000"},
      {R"({"type":"string","minLength":-1})",
       "#: minLength: expected 0 to 10000, got -1"},
      {R"({"type":"array","minItems":1.5})",
       "#: minItems: expected 0 to 10000, got 1.5"},
      {R"({"multipleOf":0})", "#: multipleOf: expected a number above 0"},
      {R"({"multipleOf":0.01})",
       "#: multipleOf is supported for integers from 1 to 500, got 0.01"},
      {R"({"anyOf":[]})", "#: anyOf: expected a list of schemas, got []"},
      {R"({"properties":[1],"required":["a"]})",
       "#: properties: expected an object of schemas, got [1]"},
      {R"({"properties":{"a/b":3}})",
       "#/properties/a~1b: expected a schema, got number"},
      {R"({"type":"object","required":"a"})",
       "#: required: expected a list of names, got \"a\""},
      {R"({"items":[{}]})", "#/items: expected a schema, got array"},
      {R"({"$ref":1})", "#: $ref: expected a string, got 1"},
      {R"({"$ref":"#"})", "#: $ref: the schema is its own part"},
      {R"({"$ref":"#/default","default":{"not":{}}})",
       "#/default: not is not supported"},
      {R"({"$ref":"#/a~2b","a~2b":{}})",
       "#: $ref: expected the place of a schema in this one, got #/a~2b"},
      {R"({"$ref":"#/a%zz"})",
       "#: $ref: expected the place of a schema in this one, got #/a%zz"},
      {R"({"$ref":"http://example.com/a"})",
       "#: $ref: expected the place of a schema in this one, got "
       "http://example.com/a"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})",
       "#: oneOf: schemas that exclude each other are supported; a value may "
       "fulfil those at 0 and 1"},
      {R"({"minProperties":3})", "#: minProperties is supported up to one "
                                 "more than the properties that are named, "
                                 "got 3"},
      {R"({"type":"number","minimum":1e-300,"maximum":2e-300})",
       "#: no number of at most 15 digits is between the bounds"},
      {"false", "#: no value is valid by it"},
      {R"({"type":"string","const":1})", "#: no value is valid by it"},
      {R"({"type":"integer","minimum":2,"maximum":1})",
       "#: no value is valid by it"},
      {R"({"allOf":[{"type":"string"},{"type":"null"}]})",
       "#: no value is valid by it"},
      {R"({"required":["a"],"properties":{"a":{"$ref":"#"}}})",
       "#: no value is valid by it"},
  };
  for (const auto &[text, message] : cases) {
    GrammarWork work(10, int64_t{1} << 30);
    const absl::Status status = jsonSchemaGrammar(text, work).status();
    EXPECT_EQ(exitCode(status), ExitCode::Usage) << text;
    EXPECT_TRUE(absl::StartsWith(status.message(), message))
        << text << ": " << status;
  }
}

} // namespace
} // namespace llamac
