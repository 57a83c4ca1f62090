//===- many.c - Many answers in one event loop ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// many PLAN PROMPT...
//
// One thread waits for the answers to all prompts by poll(), as an event loop
// that has other descriptors too would. Answers print a line when they end.
//
//===----------------------------------------------------------------------===//

#include "llamac/llamac.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// Ends the program with the error of `code`, unless there is none.
static void check(llamac_code code) {
  if (code == LLAMAC_OK)
    return;
  fprintf(stderr, "many: error: %s\n", llamac_last_error());
  exit(code);
}

/// A prompt and its answer as it grows.
struct request {
  llamac_answer *answer;
  const char *prompt;
  char *text;
  size_t size;
};

static void append(struct request *request, const llamac_part *part) {
  request->text = realloc(request->text, request->size + part->text_size + 1);
  if (request->text == NULL)
    exit(LLAMAC_MEMORY);
  memcpy(request->text + request->size, part->text, part->text_size + 1);
  request->size += part->text_size;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: many PLAN PROMPT...\n");
    return LLAMAC_USAGE;
  }
  llamac_model *model;
  llamac_engine *engine;
  llamac_queue *queue;
  llamac_options *options;
  check(llamac_model_load(argv[1], NULL, &model));
  check(llamac_engine_new(model, NULL, &engine));
  check(llamac_queue_new(&queue));
  check(llamac_options_new(LLAMAC_FOR_REQUEST, &options));
  check(llamac_options_set_integer(options, "max_tokens", 8));
  check(llamac_options_set_number(options, "temperature", 0));

  const int count = argc - 2;
  struct request *requests = calloc((size_t)count, sizeof(*requests));
  if (requests == NULL)
    return LLAMAC_MEMORY;
  for (int i = 0; i < count; ++i) {
    struct request *request = &requests[i];
    request->prompt = argv[i + 2];
    check(llamac_engine_submit_text(engine, request->prompt,
                                    strlen(request->prompt), options,
                                    &request->answer));
    check(llamac_queue_add(queue, request->answer));
  }

  struct pollfd ready = {.fd = -1, .events = POLLIN};
  check(llamac_queue_fd(queue, &ready.fd));
  for (int left = count; left > 0;) {
    poll(&ready, 1, -1);
    llamac_answer *answer;
    while (check(llamac_queue_next(queue, 0, &answer)), answer != NULL) {
      struct request *request = requests;
      while (request->answer != answer)
        ++request;
      const llamac_part *part;
      while (check(llamac_answer_next(answer, 0, &part)), part != NULL) {
        append(request, part);
        if (part->end == NULL)
          continue;
        --left;
        if (part->end->code == LLAMAC_OK)
          printf("%s ->%s\n", request->prompt, request->text);
        else
          printf("%s: %s\n", request->prompt, part->end->message);
      }
    }
  }

  for (int i = 0; i < count; ++i) {
    check(llamac_answer_free(requests[i].answer));
    free(requests[i].text);
  }
  free(requests);
  check(llamac_options_free(options));
  check(llamac_queue_free(queue));
  check(llamac_engine_free(engine));
  check(llamac_model_free(model));
  return 0;
}
