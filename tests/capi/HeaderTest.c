//===- HeaderTest.c - The header in C11, and each of its functions --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// HeaderTest PLAN: ends with 0 when every function does what it should.
// CApiTest.cpp tests what they do in detail.
//
//===----------------------------------------------------------------------===//

#include "llamac/llamac.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(CONDITION)                                                      \
  do {                                                                         \
    if (!(CONDITION)) {                                                        \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #CONDITION,   \
              llamac_last_error());                                            \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)
#define EXPECT_OK(CALL) EXPECT((CALL) == LLAMAC_OK)

static void testVersion(void) {
  char header[32];
  snprintf(header, sizeof(header), "%d.%d.%d", LLAMAC_VERSION_MAJOR,
           LLAMAC_VERSION_MINOR, LLAMAC_VERSION_PATCH);
  EXPECT(strcmp(llamac_version(), header) == 0);
  EXPECT(strcmp(llamac_last_error(), "") == 0);
}

static llamac_model *load(const char *path) {
  llamac_options *options;
  llamac_model *model;
  EXPECT(strcmp(llamac_option_at(LLAMAC_FOR_MODEL, 0)->name, "threads") == 0);
  EXPECT_OK(llamac_options_new(LLAMAC_FOR_MODEL, &options));
  EXPECT_OK(llamac_options_set_integer(options, "threads", 1));
  EXPECT_OK(llamac_options_set_text(options, "isa", ""));
  EXPECT_OK(llamac_model_load(path, options, &model));
  EXPECT_OK(llamac_options_free(options));
  return model;
}

static void testModel(const llamac_model *model) {
  const llamac_model_description *description;
  EXPECT_OK(llamac_model_describe(model, &description));
  EXPECT(description->vocab_size == 96 && description->stop_id_count > 0);

  const int32_t *tokens;
  const char *text;
  size_t count, size;
  EXPECT_OK(llamac_model_encode(model, "ab", 2, 0, &tokens, &count));
  EXPECT(count > 0);
  EXPECT_OK(llamac_model_decode(model, tokens, count, 0, &text, &size));
  EXPECT(size == 2 && strcmp(text, "ab") == 0);
  EXPECT_OK(llamac_model_token(model, tokens[count - 1], &text, &size));
  EXPECT(size > 0);
}

static void testAnswers(const llamac_model *model) {
  llamac_engine *engine;
  llamac_options *options;
  EXPECT_OK(llamac_options_new(LLAMAC_FOR_ENGINE, &options));
  EXPECT_OK(llamac_options_set_integer(options, "max_waiting", 8));
  EXPECT_OK(llamac_options_set_text(options, "chat_template",
                                    "{{ messages[0].content }}"));
  EXPECT_OK(llamac_engine_new(model, options, &engine));
  EXPECT_OK(llamac_options_free(options));

  const int32_t prompt[] = {5, 6, 7}, stops[] = {9};
  const float weights[] = {1};
  EXPECT_OK(llamac_options_new(LLAMAC_FOR_REQUEST, &options));
  EXPECT_OK(llamac_options_set_integer(options, "max_tokens", 4));
  EXPECT_OK(llamac_options_set_number(options, "temperature", 0));
  EXPECT_OK(llamac_options_add_text(options, "stop", "no such text"));
  EXPECT_OK(llamac_options_set_tokens(options, "stop_token_ids", stops, 1));
  EXPECT(llamac_options_set_weights(options, "seed", stops, weights, 1) ==
         LLAMAC_USAGE);

  static const char json[] =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}]}";
  llamac_answer *answer, *other, *chat, *ready;
  llamac_queue *queue;
  EXPECT_OK(llamac_engine_submit(engine, prompt, 3, options, &answer));
  EXPECT_OK(llamac_engine_submit_text(engine, "ab", 2, options, &other));
  EXPECT_OK(llamac_engine_submit_chat(engine, json, sizeof(json) - 1, options,
                                      &chat));
  EXPECT_OK(llamac_queue_new(&queue));
  EXPECT_OK(llamac_queue_add(queue, answer));
  int fd, done, ended = 0;
  size_t calls = 0;
  EXPECT_OK(llamac_queue_fd(queue, &fd));
  EXPECT(fd >= 0);
  EXPECT_OK(llamac_queue_next(queue, -1, &ready));
  EXPECT(ready == answer);
  const llamac_part *part;
  do {
    EXPECT_OK(llamac_answer_next(answer, 10, &part));
    ended += part != NULL && part->end != NULL;
    if (part != NULL && part->end != NULL)
      calls += part->call_count + (strcmp(part->end->finish_reason, "") == 0);
  } while (part != NULL);
  EXPECT(ended == 1 && calls == 0);
  EXPECT_OK(llamac_answer_done(answer, &done));
  EXPECT(done == 1);
  EXPECT_OK(llamac_answer_cancel(other));

  llamac_counts counts;
  EXPECT_OK(llamac_engine_count(engine, &counts, sizeof(counts)));
  EXPECT(counts.pages > 0);
  EXPECT_OK(llamac_queue_free(queue));
  EXPECT_OK(llamac_answer_free(answer));
  EXPECT_OK(llamac_answer_free(other));
  EXPECT_OK(llamac_answer_free(chat));
  EXPECT_OK(llamac_options_free(options));
  EXPECT_OK(llamac_engine_free(engine));
}

static void testSequences(llamac_model *model) {
  llamac_sequence *sequence;
  llamac_logits *logits;
  const int32_t tokens[] = {5, 6, 7};
  const float *data;
  size_t rows, columns;
  int64_t length;
  EXPECT_OK(llamac_sequence_new(model, &sequence));
  EXPECT_OK(
      llamac_sequence_step(sequence, tokens, 3, LLAMAC_ALL_ROWS, &logits));
  EXPECT_OK(llamac_logits_data(logits, &data, &rows, &columns));
  EXPECT(rows == 3 && columns == 96 && data != NULL);
  EXPECT_OK(llamac_logits_free(logits));
  EXPECT_OK(llamac_sequence_truncate(sequence, 2, &length));
  EXPECT(length == 2);
  EXPECT_OK(llamac_sequence_length(sequence, &length));
  EXPECT(length == 2);
  EXPECT_OK(llamac_sequence_free(sequence));
}

int main(int argc, char **argv) {
  EXPECT(argc == 2);
  testVersion();
  llamac_model *model = load(argv[1]);
  testModel(model);
  testAnswers(model);
  testSequences(model);
  EXPECT_OK(llamac_model_free(model));
  EXPECT(llamac_model_free(model) == LLAMAC_USAGE);
  EXPECT(strstr(llamac_last_error(), "closed") != NULL);
  return 0;
}
