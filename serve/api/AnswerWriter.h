//===- AnswerWriter.h - Answers of OpenAI's interface -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A whole answer is the sum of what a stream has: both are made of the same
// deltas.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_API_ANSWERWRITER_H
#define LLAMAC_SERVE_API_ANSWERWRITER_H

#include "serve/api/ApiRequest.h"
#include "text/request/ChatTurn.h"
#include "text/request/ToolCalls.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace llamac::serve {

/// The tokens that a request took, over all of its answers.
struct Usage {
  int64_t promptTokens = 0, cachedTokens = 0, answerTokens = 0;
};

/// Matches tokens with the text that is given of them, so that the texts of the
/// logprobs are the text of the answer.
class TokenTexts {
public:
  struct Entry {
    std::string text;
    TokenLogprobs logprobs;
  };

  /// Matches tokens of answers in which `namedControls` have text.
  TokenTexts(const Tokenizer &tokenizer, std::vector<int32_t> namedControls)
      : tokenizer(&tokenizer), namedControls(std::move(namedControls)) {}

  /// The text of a token, as answers have it.
  std::string textOf(int32_t id) const {
    return std::string(bytesInAnswer(*tokenizer, id, namedControls));
  }

  /// The tokens that are complete with the text of `part`. At the end of the
  /// answer the last one is cut where the text is.
  std::vector<Entry> take(const AnswerPart &part);

private:
  const Tokenizer *tokenizer;
  std::vector<int32_t> namedControls;
  std::deque<Entry> waiting; ///< For their text.
  size_t given = 0;          ///< Bytes of text, but for those of entries.
};

/// Makes the answer to one request from its parts.
class AnswerWriter {
public:
  /// `request` outlives it.
  explicit AnswerWriter(const ApiRequest &request);

  /// Takes a part of the answer to prompt number `prompt`. Returns the events
  /// of a stream, empty where it is not one or the part has nothing for it.
  std::string take(size_t prompt, AnswerPart part);

  /// The events that end a stream.
  std::string streamEnd() const;

  /// The answer as a whole.
  std::string whole() const;

  /// The tokens so far.
  const Usage &usage() const { return used; }
  /// How the first answer ended.
  const std::string &finishReason() const {
    return choices.front().finishReason;
  }

private:
  using Json = nlohmann::ordered_json;

  struct Call {
    std::string id, name, arguments;
  };
  struct Choice {
    AnswerReader reader;
    std::optional<TokenTexts> tokens;
    bool begun = false; ///< A stream has its first event.
    std::string text;
    std::vector<Call> calls;
    Json logprobs;     ///< Logprobs of the answer so far, if asked for.
    size_t offset = 0; ///< Offset of the next token, in characters.
    int64_t answerTokens = 0;
    std::string finishReason;
  };
  /// The text, calls and logprobs that a part brings to a choice.
  struct Delta : ToolCallPieces {
    Json logprobs;
  };

  Json logprobsOf(Choice &choice, const AnswerPart &part) const;
  void add(Choice &choice, const Delta &delta) const;
  std::string events(size_t index, Choice &choice, const Delta &delta,
                     bool isEnd) const;
  std::string event(size_t index, Json delta, Json logprobs,
                    const std::string *finishReason) const;
  Json envelope(const char *object) const;
  Json usageJson() const;

  const ApiRequest *request;
  std::string id;
  int64_t created;
  std::vector<Choice> choices;
  Usage used;
};

/// A random id that begins with `prefix`.
std::string randomId(absl::string_view prefix);

} // namespace llamac::serve

#endif // LLAMAC_SERVE_API_ANSWERWRITER_H
