//===- WriteConversations.cpp - Writes requests' messages for tests -------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// write-conversations < CASES > RESULTS: a case is two lines, a template as a
// string of JSON and a request with messages. A result is a line {"text": ...}
// or {"error": ...}.
//
//===----------------------------------------------------------------------===//

#include "tests/frontends/tokenizer/TokenizerFixtures.h"
#include "text/request/ChatMessages.h"

#include <iostream>

using namespace llamac;
using nlohmann::ordered_json;

static absl::StatusOr<std::string> write(const Tokenizer &tokenizer,
                                         const std::string &source,
                                         const std::string &body) {
  LLAMAC_ASSIGN_OR_RETURN(const auto format,
                          ChatFormat::create(tokenizer, source, "template"));
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document, parseJson("body", body));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::root(document));
  LLAMAC_ASSIGN_OR_RETURN(const ChatRequest request,
                          readChatRequest(object, body, *format));
  return format->text(request.inputs);
}

int main() {
  const std::unique_ptr<Tokenizer> tokenizer =
      test::load(buildGgufBlob(test::GgufFixture().vocabulary()));
  std::string source, body;
  while (std::getline(std::cin, source) && std::getline(std::cin, body)) {
    const auto text =
        write(*tokenizer, ordered_json::parse(source).get<std::string>(), body);
    const ordered_json result =
        text.ok() ? ordered_json{{"text", *text}}
                  : ordered_json{{"error", text.status().message()}};
    std::cout << result.dump(-1, ' ', false,
                             ordered_json::error_handler_t::replace)
              << '\n';
  }
  return 0;
}
