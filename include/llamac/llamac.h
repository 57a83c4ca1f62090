//===- llamac.h - The runtime as a library for C ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs plans that `llamac compile` made. Valid C11 and C++.
//
// Results: a function returns LLAMAC_OK or the kind of its error, whose text is
// llamac_last_error(). Nothing throws, and nothing ends the process. After an
// error, what a function was to write is NULL or 0.
//
// Handles: pointers to incomplete types, and never dereferenced. A NULL, closed
// or wrong handle is a usage error. Freeing NULL does nothing. Handles may be
// freed in any order: what an object needs of another lives as long as it.
//
// Memory: what a result points to belongs to the library. How long it lives is
// said with each function. Texts are UTF-8.
//
// Threads: every function may be called by any thread at any time, with the
// same handles too. A call that is running when its handle is freed ends as if
// it had come first. Only one thread at a time takes the parts of an answer.
//
// The library calls nothing of the caller's: news are taken, from one answer by
// llamac_answer_next(), from many by a queue, which has a file descriptor for
// event loops.
//
// fork: the child has none of the parent's threads. There models still encode
// and decode, and every handle can be freed; engines, answers, queues and
// sequences give LLAMAC_DEVICE. Load the model again in the child.
//
// Versions: functions and options are added, never changed, within a major
// version (0.x: a minor one). Structs that the library writes grow at their
// ends only; those that come in arrays do not.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_LLAMAC_H
#define LLAMAC_LLAMAC_H

#include <stddef.h>
#include <stdint.h>

#define LLAMAC_VERSION_MAJOR 0
#define LLAMAC_VERSION_MINOR 1
#define LLAMAC_VERSION_PATCH 0

#if defined(__GNUC__)
#define LLAMAC_API __attribute__((visibility("default")))
#else
#define LLAMAC_API
#endif

// The names are C's, with the library's prefix.
// NOLINTBEGIN(readability-identifier-naming, modernize-*)

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Errors and versions
//===----------------------------------------------------------------------===//

/// Kinds of errors: the exit codes of the tools.
typedef enum llamac_code {
  LLAMAC_OK = 0,
  LLAMAC_INTERNAL = 1,    ///< A bug in llamac.
  LLAMAC_USAGE = 2,       ///< A wrong argument, handle or request.
  LLAMAC_BAD_FILE = 3,    ///< A missing, truncated or malformed model file.
  LLAMAC_UNSUPPORTED = 4, ///< Something that llamac does not do.
  LLAMAC_BAD_PLAN = 5,    ///< A corrupt or stale plan.
  LLAMAC_MEMORY = 6,      ///< Not enough memory, or a full queue.
  LLAMAC_DEVICE = 7,      ///< The device failed or is missing.
  LLAMAC_ACCURACY = 8     ///< Numbers that are not finite.
} llamac_code;

/// The text of this thread's last error, one line; "" before the first. Valid
/// until the thread's next error.
LLAMAC_API const char *llamac_last_error(void);

/// The version of the library that runs: "0.1.0".
LLAMAC_API const char *llamac_version(void);

//===----------------------------------------------------------------------===//
// Options: by name, so that new ones change no function
//===----------------------------------------------------------------------===//

typedef struct llamac_options llamac_options;

/// The object that options are for; docs/options.md lists them all.
typedef enum llamac_scope {
  LLAMAC_FOR_MODEL,
  LLAMAC_FOR_ENGINE,
  LLAMAC_FOR_REQUEST,
  LLAMAC_SCOPE_MAX = 0x7fffffff ///< No scope; makes any int a value.
} llamac_scope;

typedef enum llamac_option_kind {
  LLAMAC_BOOLEAN, ///< An integer, 0 or 1.
  LLAMAC_INTEGER,
  LLAMAC_NUMBER, ///< Or an integer.
  LLAMAC_TEXT,
  LLAMAC_TEXTS,   ///< Set one by one.
  LLAMAC_TOKENS,  ///< Ids.
  LLAMAC_WEIGHTS, ///< Ids, each with a number.
  LLAMAC_SEED     ///< An integer of 64 bits: -1 is the seed 2^64 - 1.
} llamac_option_kind;

typedef struct llamac_option {
  const char *name;
  llamac_option_kind kind;
  const char *help;          ///< One line.
  const char *default_value; ///< In words.
  const char *range;         ///< In words; empty for any value of its kind.
  double least, most;        ///< Limits of a number; infinite for none.
} llamac_option;

/// Option number `index` of `scope`, from 0 on; NULL past the last. Lives as
/// long as the library.
LLAMAC_API const llamac_option *llamac_option_at(llamac_scope scope,
                                                 size_t index);

/// Options that are all as they are by default. They may be used any number of
/// times, and are copied where they are.
LLAMAC_API llamac_code llamac_options_new(llamac_scope scope,
                                          llamac_options **options);
LLAMAC_API llamac_code llamac_options_free(llamac_options *options);

/// Sets an option. Usage error for an unknown name, another kind, or a value
/// that no request could have.
LLAMAC_API llamac_code llamac_options_set_integer(llamac_options *options,
                                                  const char *name,
                                                  int64_t value);
LLAMAC_API llamac_code llamac_options_set_number(llamac_options *options,
                                                 const char *name,
                                                 double value);
LLAMAC_API llamac_code llamac_options_set_text(llamac_options *options,
                                               const char *name,
                                               const char *text);
/// Adds to an option that is a list of texts.
LLAMAC_API llamac_code llamac_options_add_text(llamac_options *options,
                                               const char *name,
                                               const char *text);
LLAMAC_API llamac_code llamac_options_set_tokens(llamac_options *options,
                                                 const char *name,
                                                 const int32_t *tokens,
                                                 size_t count);
LLAMAC_API llamac_code llamac_options_set_weights(llamac_options *options,
                                                  const char *name,
                                                  const int32_t *tokens,
                                                  const float *weights,
                                                  size_t count);

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

/// A plan, loaded: its weights, kernels, device and tokenizer.
typedef struct llamac_model llamac_model;

/// Loads the plan at `path`. `options` are LLAMAC_FOR_MODEL, or NULL. A plan
/// holds machine code: load only plans you trust.
LLAMAC_API llamac_code llamac_model_load(const char *path,
                                         const llamac_options *options,
                                         llamac_model **model);
LLAMAC_API llamac_code llamac_model_free(llamac_model *model);

typedef struct llamac_model_description {
  const char *path;
  const char *target;     ///< "cpu", "cuda".
  const char *device;     ///< For people: "cpu, 8 threads".
  int64_t context;        ///< Tokens of the longest sequence.
  int64_t sequences;      ///< The most sequences at a time.
  int32_t vocab_size;     ///< Logits of a row.
  int32_t tokenizer_size; ///< Ids of the tokenizer; 0: the plan has none.
  int32_t bos_id;         ///< Put before prompts; -1: none is.
  const int32_t *stop_ids;
  size_t stop_id_count;
} llamac_model_description;

/// Valid until the model is freed.
LLAMAC_API llamac_code llamac_model_describe(
    const llamac_model *model, const llamac_model_description **description);

/// Flags of encoding and decoding.
enum {
  /// The names of special tokens stand for them; else they are plain text in
  /// encoding, and left out in decoding.
  LLAMAC_SPECIAL = 1,
  /// The text goes on from another: it gets no begin-of-sequence token, and
  /// keeps a space before its first word.
  LLAMAC_CONTINUES = 2
};

/// The ids of `size` bytes of text. Valid until the thread's next call of this
/// function.
LLAMAC_API llamac_code llamac_model_encode(const llamac_model *model,
                                           const char *text, size_t size,
                                           unsigned flags,
                                           const int32_t **tokens,
                                           size_t *count);

/// The bytes of tokens, which may end inside a character; a NUL follows them.
/// Valid until the thread's next call of this function.
LLAMAC_API llamac_code llamac_model_decode(const llamac_model *model,
                                           const int32_t *tokens, size_t count,
                                           unsigned flags, const char **text,
                                           size_t *size);

/// The bytes of one token; of a special one, its name. No NUL follows them.
/// Valid until the model is freed.
LLAMAC_API llamac_code llamac_model_token(const llamac_model *model,
                                          int32_t token, const char **text,
                                          size_t *size);

//===----------------------------------------------------------------------===//
// Engines: many requests at once
//===----------------------------------------------------------------------===//

/// Runs requests on a thread of its own.
typedef struct llamac_engine llamac_engine;

/// `options` are LLAMAC_FOR_ENGINE, or NULL.
LLAMAC_API llamac_code llamac_engine_new(const llamac_model *model,
                                         const llamac_options *options,
                                         llamac_engine **engine);

/// Waits for the step that runs. Answers that have not ended end with a usage
/// error, which their handles give. Then the prefix cache is saved, where the
/// option prefix_file names a file; what goes wrong there is a warning on
/// stderr.
LLAMAC_API llamac_code llamac_engine_free(llamac_engine *engine);

/// An engine's totals since it was made, and its current state.
typedef struct llamac_counts {
  int64_t running, waiting; ///< Answers.
  int64_t steps, preemptions;
  int64_t prompt_tokens; ///< Prompt tokens of answers that were begun.
  int64_t cached_tokens; ///< Prompt tokens found in the prefix cache.
  int64_t answer_tokens;
  int64_t finished, failed; ///< Answers; the failed ones are finished too.
  int64_t pages, free_pages;
  int64_t loaded_tokens; ///< Tokens that the prefix cache brought from its
                         ///< file.
  int64_t draft_tokens, accepted_tokens; ///< Tokens that steps verified.
} llamac_counts;

/// `size` is sizeof(llamac_counts) as the caller knows it.
LLAMAC_API llamac_code llamac_engine_count(const llamac_engine *engine,
                                           llamac_counts *counts, size_t size);

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

/// The answers to one request: one, or as many as its option `n` says.
typedef struct llamac_answer llamac_answer;

/// Queues a prompt of tokens. `options` are LLAMAC_FOR_REQUEST, or NULL; those
/// that are not set are as the model advises, and as `llamac run` has them.
/// Errors: usage, with the numbers, for what can never run; memory when more
/// wait than the engine's option max_waiting says.
LLAMAC_API llamac_code llamac_engine_submit(llamac_engine *engine,
                                            const int32_t *tokens, size_t count,
                                            const llamac_options *options,
                                            llamac_answer **answer);

/// Queues a prompt of text. The options add_special_tokens and parse_special
/// say how it becomes tokens; llamac_engine_submit() passes over them.
LLAMAC_API llamac_code llamac_engine_submit_text(llamac_engine *engine,
                                                 const char *text, size_t size,
                                                 const llamac_options *options,
                                                 llamac_answer **answer);

/// Queues a conversation, which the model's chat template or the engine's
/// option chat_template makes a prompt. `json`, of `size` bytes, is an object
/// as POST /v1/chat/completions of `llamac serve` takes it: `messages` and,
/// where wanted, `tools`, `tool_choice`, `parallel_tool_calls`,
/// `response_format`, `reasoning_effort`, `chat_template_kwargs` and
/// `documents`; options of a request in it go before `options`. Errors: those
/// of llamac_engine_submit_text(), and usage, which names the field.
LLAMAC_API llamac_code llamac_engine_submit_chat(llamac_engine *engine,
                                                 const char *json, size_t size,
                                                 const llamac_options *options,
                                                 llamac_answer **answer);

/// Cancels what has not ended.
LLAMAC_API llamac_code llamac_answer_free(llamac_answer *answer);

typedef enum llamac_reason {
  LLAMAC_LENGTH,  ///< max_tokens.
  LLAMAC_CONTEXT, ///< The context is full.
  LLAMAC_STOP_ID,
  LLAMAC_STOP_STRING,
  LLAMAC_CANCELLED,
  LLAMAC_DEADLINE ///< time_limit.
} llamac_reason;

typedef struct llamac_end {
  llamac_code code;        ///< An error ends an answer too.
  const char *message;     ///< The error's message; "" where there is none.
  llamac_reason reason;    ///< Where `code` is LLAMAC_OK.
  const char *reason_name; ///< "stop id"; "error" where there is one.
  uint64_t seed;
  int64_t prompt_tokens, cached_tokens, answer_tokens, preemptions;
  /// From submit until the prompt was begun, the first token and the end; 0 for
  /// what never came.
  double queue_seconds, first_token_seconds, seconds;
  /// Tokens that were drafted (the option speculative), and those of them that
  /// became the answer's.
  int64_t draft_tokens, accepted_tokens;
  /// In OpenAI's words: "stop", "length", "tool_calls", "abort"; "error" where
  /// there is one.
  const char *finish_reason;
} llamac_end;

/// The natural logarithm of the probability that the model, at temperature 1,
/// gives a token.
typedef struct llamac_logprob {
  int32_t token;
  float logprob;
} llamac_logprob;

typedef struct llamac_token_logprobs {
  llamac_logprob chosen;
  int64_t rank; ///< Among all tokens; the most likely is number 1.
  const llamac_logprob *alternatives; ///< The most likely ones, in order.
  size_t alternative_count;
} llamac_token_logprobs;

/// A part of a call of a tool.
typedef struct llamac_call_part {
  int32_t call;          ///< Its number in the answer, from 0 on.
  const char *name;      ///< The tool's, with the first part; else "".
  const char *arguments; ///< The next piece of their JSON text; a NUL follows.
  size_t arguments_size;
} llamac_call_part;

/// The new part of one answer, since its last one.
typedef struct llamac_part {
  int32_t answer;        ///< Its number, from 0 on.
  const int32_t *tokens; ///< Without the stop id.
  size_t token_count;
  const char *text; ///< UTF-8, whole characters; a NUL follows them.
  size_t text_size;
  const llamac_end *end; ///< NULL while the answer goes on.
  /// One for each token; NULL without the option logprobs.
  const llamac_token_logprobs *logprobs;
  /// Calls of tools, which are no text; of conversations with tools alone.
  const llamac_call_part *calls;
  size_t call_count;
} llamac_part;

/// Waits at most `seconds` for the next part, or without end where they are
/// negative. *part is NULL when none came, or no more will. Valid until the
/// next call for the answer, or until it is freed.
LLAMAC_API llamac_code llamac_answer_next(llamac_answer *answer, double seconds,
                                          const llamac_part **part);

/// Writes 1 when the ends of all answers were taken, else 0.
LLAMAC_API llamac_code llamac_answer_done(const llamac_answer *answer,
                                          int *done);

/// Ends the answers with the next step; their ends still come.
LLAMAC_API llamac_code llamac_answer_cancel(llamac_answer *answer);

//===----------------------------------------------------------------------===//
// Queues: news of many answers, for one thread or an event loop
//===----------------------------------------------------------------------===//

typedef struct llamac_queue llamac_queue;

LLAMAC_API llamac_code llamac_queue_new(llamac_queue **queue);
LLAMAC_API llamac_code llamac_queue_free(llamac_queue *queue);

/// Puts an answer in the queue now, and then whenever it has news. It leaves
/// the queue that it was in before.
LLAMAC_API llamac_code llamac_queue_add(llamac_queue *queue,
                                        llamac_answer *answer);

/// Takes the next answer that may have news, as llamac_answer_next() waits;
/// *answer is NULL when there is none. The handle is that of its submission.
LLAMAC_API llamac_code llamac_queue_next(llamac_queue *queue, double seconds,
                                         llamac_answer **answer);

/// A descriptor that is readable while the queue is not empty. To be polled
/// only; it is closed with the queue.
LLAMAC_API llamac_code llamac_queue_fd(const llamac_queue *queue, int *fd);

//===----------------------------------------------------------------------===//
// Sequences: logits, one step at a time
//===----------------------------------------------------------------------===//

/// A sequence of tokens with its KV cache. A model has as many at a time as it
/// was loaded for (option `sequences`), beside those of engines. The steps of a
/// model's sequences take turns.
typedef struct llamac_sequence llamac_sequence;

LLAMAC_API llamac_code llamac_sequence_new(llamac_model *model,
                                           llamac_sequence **sequence);
LLAMAC_API llamac_code llamac_sequence_free(llamac_sequence *sequence);

/// f32 [rows, vocab_size].
typedef struct llamac_logits llamac_logits;

typedef enum llamac_rows {
  LLAMAC_NO_ROWS,              ///< *logits is NULL.
  LLAMAC_LAST_ROW,             ///< Logits that follow the last token.
  LLAMAC_ALL_ROWS,             ///< Logits that follow each token.
  LLAMAC_ROWS_MAX = 0x7fffffff ///< No rows; makes any int a value.
} llamac_rows;

/// Appends tokens to a sequence. After an error it has the tokens that it had
/// before, or none where it cannot have them; llamac_sequence_length() says.
LLAMAC_API llamac_code llamac_sequence_step(llamac_sequence *sequence,
                                            const int32_t *tokens, size_t count,
                                            llamac_rows rows,
                                            llamac_logits **logits);

/// Tokens so far.
LLAMAC_API llamac_code llamac_sequence_length(const llamac_sequence *sequence,
                                              int64_t *length);

/// Drops all but the first `length` tokens. *left is how many there are then: 0
/// where the cache of a sliding window has no keys of so early a token.
LLAMAC_API llamac_code llamac_sequence_truncate(llamac_sequence *sequence,
                                                int64_t length, int64_t *left);

/// Row after row, without gaps. Valid until the logits are freed, whatever
/// happens to sequence and model.
LLAMAC_API llamac_code llamac_logits_data(const llamac_logits *logits,
                                          const float **data, size_t *rows,
                                          size_t *columns);
LLAMAC_API llamac_code llamac_logits_free(llamac_logits *logits);

#ifdef __cplusplus
}
#endif

// NOLINTEND(readability-identifier-naming, modernize-*)

#endif // LLAMAC_LLAMAC_H
