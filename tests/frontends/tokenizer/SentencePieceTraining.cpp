//===- SentencePieceTraining.cpp - Trains small models --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/frontends/tokenizer/SentencePieceTraining.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

namespace llamac::test {

namespace {

class Sentences final : public sentencepiece::SentenceIterator {
public:
  explicit Sentences(const std::vector<std::string> &sentences)
      : sentences(sentences) {}

  bool done() const override { return at == sentences.size(); }
  void Next() override { ++at; }
  const std::string &value() const override { return sentences[at]; }
  sentencepiece::util::Status status() const override { return {}; }

private:
  const std::vector<std::string> &sentences;
  size_t at = 0;
};

} // namespace

std::string trainSentencePiece(const std::vector<std::string> &sentences,
                               int vocabSize) {
  Sentences iterator(sentences);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      std::unordered_map<std::string, std::string>{
          {"model_type", "bpe"},
          {"vocab_size", std::to_string(vocabSize)},
          {"byte_fallback", "true"},
          {"normalization_rule_name", "identity"},
          {"remove_extra_whitespaces", "false"},
          {"character_coverage", "0.99"},
          {"hard_vocab_limit", "false"},
          {"num_threads", "1"},
          {"minloglevel", "2"}},
      &iterator, &model);
  return status.ok() ? model : std::string();
}

static void load(sentencepiece::SentencePieceProcessor &processor,
                 const std::string &model) {
  processor.LoadFromSerializedProto(model).IgnoreError();
}

SentencePiecePieces sentencePiecePieces(const std::string &model) {
  sentencepiece::SentencePieceProcessor processor;
  load(processor, model);
  SentencePiecePieces pieces;
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    pieces.texts.push_back(processor.IdToPiece(id));
    pieces.scores.push_back(processor.GetScore(id));
  }
  return pieces;
}

std::vector<int> sentencePieceEncode(const std::string &model,
                                     const std::string &text) {
  sentencepiece::SentencePieceProcessor processor;
  load(processor, model);
  return processor.EncodeAsIds(text);
}

std::string sentencePieceDecode(const std::string &model,
                                const std::vector<int> &ids) {
  sentencepiece::SentencePieceProcessor processor;
  load(processor, model);
  return processor.DecodeIds(ids);
}

} // namespace llamac::test
