//===- complete.c - Completes a prompt ------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// complete PLAN PROMPT [MAX_TOKENS]
//
//   cc -std=c11 complete.c -lllamac -o complete
//   llamac compile model.gguf -o model.plan
//   ./complete model.plan "Once upon a time" 40
//
//===----------------------------------------------------------------------===//

#include "llamac/llamac.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// Ends the program with the error of `code`, unless there is none.
static void check(llamac_code code) {
  if (code == LLAMAC_OK)
    return;
  fprintf(stderr, "complete: error: %s\n", llamac_last_error());
  exit(code);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: complete PLAN PROMPT [MAX_TOKENS]\n");
    return LLAMAC_USAGE;
  }
  llamac_model *model;
  llamac_engine *engine;
  llamac_options *options;
  llamac_answer *answer;
  check(llamac_model_load(argv[1], NULL, &model));
  check(llamac_engine_new(model, NULL, &engine));

  check(llamac_options_new(LLAMAC_FOR_REQUEST, &options));
  check(llamac_options_set_number(options, "temperature", 0));
  if (argc > 3)
    check(llamac_options_set_integer(options, "max_tokens", atoll(argv[3])));
  check(llamac_engine_submit_text(engine, argv[2], strlen(argv[2]), options,
                                  &answer));

  const llamac_part *part;
  llamac_code code = LLAMAC_OK;
  while (check(llamac_answer_next(answer, -1, &part)), part != NULL) {
    fwrite(part->text, 1, part->text_size, stdout);
    fflush(stdout);
    if (part->end == NULL)
      continue;
    fprintf(stderr, "\n%lld tokens, ended by %s\n",
            (long long)part->end->answer_tokens,
            part->end->code == LLAMAC_OK ? part->end->reason_name
                                         : part->end->message);
    code = part->end->code;
  }

  check(llamac_answer_free(answer));
  check(llamac_options_free(options));
  check(llamac_engine_free(engine));
  check(llamac_model_free(model));
  return code;
}
