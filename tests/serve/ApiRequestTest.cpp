//===- ApiRequestTest.cpp - Bodies of requests ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/ApiRequest.h"

#include "runtime/base/FieldError.h"
#include "serve/api/ApiError.h"
#include "tests/serve/ServedToy.h"

#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>

namespace llamac::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ApiRequestTest : public ServedToyTest {
protected:
  absl::StatusOr<ApiRequest> read(const std::string &fields) const {
    return readApiRequest(models, /*isChat=*/false,
                          absl::StrCat("{", fields, "}"));
  }
};

TEST_F(ApiRequestTest, AFieldOfARequestIsTheOptionOfThatName) {
  const auto request =
      read(R"("prompt": [5, 6], "max_tokens": 9, "temperature": 0.5, "n": 2,
              "stop": ["a", "b"], "seed": 11, "logit_bias": {"7": -2},
              "stream": true, "stream_options": {"include_usage": true})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(request->streams);
  EXPECT_TRUE(request->includesUsage);
  ASSERT_EQ(request->requests.size(), 1u);
  const Request &one = request->requests.front();
  EXPECT_THAT(one.prompt, ElementsAre(5, 6));
  EXPECT_EQ(one.answers, 2);
  EXPECT_EQ(one.options.maxTokens, 9);
  EXPECT_THAT(one.options.stopStrings, ElementsAre("a", "b"));
  EXPECT_EQ(one.options.sampling.temperature, 0.5);
  EXPECT_EQ(one.options.sampling.seed, 11u);
  EXPECT_THAT(one.options.sampling.logitBias, ElementsAre(std::pair(7, -2.0f)));
}

TEST_F(ApiRequestTest, EachPromptOfAListIsARequest) {
  const auto request = read(R"("prompt": [[5], [6, 7]], "max_tokens": 1)");
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->requests.size(), 2u);
  EXPECT_THAT(request->requests[1].prompt, ElementsAre(6, 7));
}

TEST_F(ApiRequestTest, AModelThatIsNotServedIsNotFound) {
  const auto request = read(R"("model": "toi", "prompt": [5])");
  EXPECT_TRUE(absl::IsNotFound(request.status())) << request.status();
  EXPECT_EQ(fieldOf(request.status()), "model");
  EXPECT_THAT(std::string(request.status().message()), HasSubstr("toy"));
}

TEST_F(ApiRequestTest, WhatCannotBeDoneIsRefusedByItsField) {
  struct Wrong {
    const char *field, *fields;
  };
  for (const auto &[field, fields] : {
           Wrong{"prompt", R"("max_tokens": 3)"},
           Wrong{"prompt", R"("prompt": {"text": "a"})"},
           Wrong{"temperature", R"("prompt": [5], "temperature": "hot")"},
           Wrong{"stream", R"("prompt": [5], "stream": 1)"},
           Wrong{"store", R"("prompt": [5], "store": true)"},
           Wrong{"suffix", R"("prompt": [5], "suffix": "end")"},
           Wrong{"logit_bias", R"("prompt": [5], "logit_bias": [1])"},
           Wrong{"tempratur", R"("prompt": [5], "tempratur": 1)"},
       }) {
    const absl::Status status = read(fields).status();
    EXPECT_EQ(errorAnswer(status).status, 400u) << fields << ": " << status;
    EXPECT_EQ(fieldOf(status), field) << status;
  }
}

TEST_F(ApiRequestTest, ABodyThatIsNoObjectIsABadRequest) {
  for (const char *body : {"", "[]", "{", "{\"a\": 1} x", "\xff"}) {
    const absl::Status status =
        readApiRequest(models, /*isChat=*/false, body).status();
    EXPECT_EQ(errorAnswer(status).status, 400u) << body << ": " << status;
  }
}

TEST_F(ApiRequestTest, AModelWithoutATemplateRefusesConversations) {
  const auto request =
      readApiRequest(models, /*isChat=*/true,
                     R"({"messages": [{"role": "user", "content": "Hello"}]})");
  EXPECT_THAT(std::string(request.status().message()),
              HasSubstr("no chat template"));
}

} // namespace
} // namespace llamac::serve
