//===- Native.cpp - The library in C as a Python module -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thin: a class for each handle, errors as llamac.Error. The package's modules
// make an interface of it. Whatever may take time runs without the GIL.
//
//===----------------------------------------------------------------------===//

#include "llamac/llamac.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

//===----------------------------------------------------------------------===//
// Errors and handles
//===----------------------------------------------------------------------===//

/// An error of the library on its way to Python.
struct NativeError : std::exception {
  NativeError(llamac_code code, std::string text)
      : code(code), text(std::move(text)) {}
  const char *what() const noexcept override { return text.c_str(); }

  llamac_code code;
  std::string text;
};

/// Throws the thread's last error, if `code` is one.
void check(llamac_code code) {
  if (code != LLAMAC_OK)
    throw NativeError(code, llamac_last_error());
}

/// Raises llamac.Error, or UsageError.
void translate(const std::exception_ptr &thrown, void *) {
  try {
    std::rethrow_exception(thrown);
  } catch (const NativeError &error) {
    const nb::object value =
        nb::module_::import_("llamac._errors")
            .attr("error_of")(static_cast<int>(error.code), error.text);
    PyErr_SetObject(value.type().ptr(), value.ptr());
  }
}

/// A handle, freed by close() or with the object, without the GIL: engines wait
/// for their last step.
template <typename T, llamac_code (*free)(T *)> class Handle {
public:
  /// `name`: what messages call it.
  explicit Handle(const char *name) : name(name) {}
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() {
    if (isOpen) {
      const nb::gil_scoped_release release;
      free(handle);
    }
  }

  void close() {
    if (std::exchange(isOpen, false)) {
      const nb::gil_scoped_release release;
      check(free(handle));
    }
  }

  bool closed() const { return !isOpen; }

  /// The handle; a usage error of one that is closed.
  T *get() const {
    if (!isOpen)
      throw NativeError(LLAMAC_USAGE,
                        std::string(name) +
                            ": expected an open one, got one that "
                            "was closed");
    return handle;
  }

  /// Its number, which a closed one keeps.
  uintptr_t number() const { return reinterpret_cast<uintptr_t>(handle); }

protected:
  /// Opens it: `make` writes a handle.
  template <typename Make> void open(Make make) {
    const nb::gil_scoped_release release;
    check(make(&handle));
    isOpen = true;
  }

private:
  const char *name;
  T *handle = nullptr;
  bool isOpen = false;
};

using Tokens = std::vector<int32_t>;
using Ids = nb::typed<nb::list, nb::int_>;            ///< Ints of any size.
using Values = nb::typed<nb::dict, nb::str, nb::any>; ///< Options by name.

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// `value` for a message: the beginning of what Python calls it.
std::string shown(const nb::handle &value) {
  constexpr size_t most = 80;
  try {
    std::string text = nb::repr(value).c_str();
    return text.size() > most ? text.substr(0, most) + "..." : text;
  } catch (const nb::python_error &) {
    // Such as of an int of thousands of digits.
    return std::string("one that has no text, of type ") +
           nb::type_name(value.type()).c_str();
  }
}

/// Whether `value` is True or False, which Python takes for numbers.
bool isBool(const nb::handle &value) {
  return nb::isinstance<nb::bool_>(value);
}

/// `value` as an integer of type Integer. A usage error of `name` for what is
/// none, or does not fit; `most` is the largest that is taken.
template <typename Integer>
Integer integerOf(const nb::handle &value, const std::string &name,
                  uint64_t most = std::numeric_limits<Integer>::max()) {
  Integer number = 0;
  if (!isBool(value) && nb::try_cast(value, number))
    return number;
  std::string expected = "an int";
  if (!isBool(value) && nb::isinstance<nb::int_>(value)) // It is too large.
    expected += " from " + std::to_string(std::numeric_limits<Integer>::min()) +
                " to " + std::to_string(most);
  throw NativeError(LLAMAC_USAGE,
                    name + ": expected " + expected + ", got " + shown(value));
}

/// The bits of a seed, with a sign or without.
int64_t seedOf(const nb::handle &value, const std::string &name) {
  uint64_t bits = 0;
  return !isBool(value) && nb::try_cast(value, bits)
             ? static_cast<int64_t>(bits)
             : integerOf<int64_t>(value, name,
                                  std::numeric_limits<uint64_t>::max());
}

/// The ids in `values`. A usage error of `name` for what is no list of them.
Tokens tokensOf(const nb::handle &values, const std::string &name) {
  Tokens tokens;
  if (nb::try_cast(values, tokens))
    return tokens;
  tokens.clear();
  for (const nb::handle value : nb::cast<nb::iterable>(values))
    tokens.push_back(integerOf<int32_t>(value, name));
  return tokens;
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

std::vector<std::tuple<std::string, int, std::string>> listOptions(int scope) {
  std::vector<std::tuple<std::string, int, std::string>> list;
  const auto of = static_cast<llamac_scope>(scope);
  for (size_t i = 0; const llamac_option *option = llamac_option_at(of, i); ++i)
    list.emplace_back(option->name, option->kind, option->help);
  return list;
}

class Options : public Handle<llamac_options, llamac_options_free> {
public:
  /// Sets the options that `given` names; None leaves one unset.
  Options(llamac_scope scope, const Values &given) : Handle("options") {
    open([&](llamac_options **out) { return llamac_options_new(scope, out); });
    for (const auto &[name, value] : given)
      if (!value.is_none())
        set(scope, nb::cast<std::string>(name), value);
  }

private:
  void set(llamac_scope scope, const std::string &name,
           const nb::handle &value) {
    const llamac_option *option = nullptr;
    for (size_t i = 0; (option = llamac_option_at(scope, i)); ++i)
      if (name == option->name)
        break;
    if (!option) // An error with all names.
      check(llamac_options_set_integer(get(), name.c_str(), 0));
    try {
      check(setAs(*option, "option " + name, value));
    } catch (const nb::cast_error &) {
      static constexpr const char *kinds[] = {"a bool",
                                              "an int",
                                              "a float",
                                              "a str",
                                              "str or a list of them",
                                              "a list of ids",
                                              "a dict from ids to numbers",
                                              "an int"};
      throw NativeError(LLAMAC_USAGE, "option " + name + ": expected " +
                                          kinds[option->kind] + ", got " +
                                          shown(value));
    }
  }

  llamac_code setAs(const llamac_option &option, const std::string &name,
                    const nb::handle &value) {
    llamac_options *to = get();
    switch (option.kind) {
    case LLAMAC_BOOLEAN:
      return llamac_options_set_integer(to, option.name,
                                        nb::cast<bool>(value) ? 1 : 0);
    case LLAMAC_INTEGER:
      return llamac_options_set_integer(to, option.name,
                                        integerOf<int64_t>(value, name));
    case LLAMAC_SEED:
      return llamac_options_set_integer(to, option.name, seedOf(value, name));
    case LLAMAC_NUMBER:
      if (isBool(value))
        throw nb::cast_error();
      return llamac_options_set_number(to, option.name,
                                       nb::cast<double>(value));
    case LLAMAC_TEXT:
      return llamac_options_set_text(to, option.name, textOf(value).c_str());
    case LLAMAC_TEXTS:
      if (nb::isinstance<nb::str>(value))
        return llamac_options_add_text(to, option.name, textOf(value).c_str());
      for (const nb::handle text : nb::cast<nb::sequence>(value))
        check(llamac_options_add_text(to, option.name, textOf(text).c_str()));
      return LLAMAC_OK;
    case LLAMAC_TOKENS: {
      const Tokens tokens = tokensOf(value, name);
      return llamac_options_set_tokens(to, option.name, tokens.data(),
                                       tokens.size());
    }
    case LLAMAC_WEIGHTS: {
      Tokens tokens;
      std::vector<float> weights;
      for (const auto &[token, weight] : nb::cast<nb::dict>(value)) {
        tokens.push_back(integerOf<int32_t>(token, name));
        weights.push_back(nb::cast<float>(weight));
      }
      return llamac_options_set_weights(to, option.name, tokens.data(),
                                        weights.data(), tokens.size());
    }
    }
    return LLAMAC_OK;
  }

  static std::string textOf(const nb::handle &value) {
    auto text = nb::cast<std::string>(value);
    if (text.find('\0') != std::string::npos)
      throw nb::cast_error();
    return text;
  }
};

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

unsigned flagsOf(bool special, bool continues) {
  return (special ? LLAMAC_SPECIAL : 0U) | (continues ? LLAMAC_CONTINUES : 0U);
}

class Model : public Handle<llamac_model, llamac_model_free> {
public:
  Model(const std::string &path, const Values &given) : Handle("model") {
    const Options options(LLAMAC_FOR_MODEL, given);
    open([&](llamac_model **out) {
      return llamac_model_load(path.c_str(), options.get(), out);
    });
  }

  Values describe() const {
    const llamac_model_description *it = nullptr;
    check(llamac_model_describe(get(), &it));
    Values result;
    result["path"] = it->path;
    result["target"] = it->target;
    result["device"] = it->device;
    result["context"] = it->context;
    result["sequences"] = it->sequences;
    result["vocab_size"] = it->vocab_size;
    result["tokenizer_size"] = it->tokenizer_size;
    result["bos_id"] = it->bos_id < 0 ? nb::none() : nb::cast(it->bos_id);
    result["stop_ids"] = Tokens(it->stop_ids, it->stop_ids + it->stop_id_count);
    return result;
  }

  Tokens encode(const nb::bytes &text, bool special, bool continues) const {
    const int32_t *tokens = nullptr;
    size_t count = 0;
    const char *bytes = text.c_str();
    const size_t size = text.size();
    const nb::gil_scoped_release release;
    check(llamac_model_encode(get(), bytes, size, flagsOf(special, continues),
                              &tokens, &count));
    return {tokens, tokens + count};
  }

  nb::bytes decode(const Ids &ids, bool special, bool continues) const {
    const Tokens tokens = tokensOf(ids, "tokens");
    const char *text = nullptr;
    size_t size = 0;
    {
      const nb::gil_scoped_release release;
      check(llamac_model_decode(get(), tokens.data(), tokens.size(),
                                flagsOf(special, continues), &text, &size));
    }
    return nb::bytes(text, size);
  }

  nb::bytes token(const nb::int_ &id) const {
    const char *text = nullptr;
    size_t size = 0;
    check(llamac_model_token(get(), integerOf<int32_t>(id, "token"), &text,
                             &size));
    return nb::bytes(text, size);
  }
};

//===----------------------------------------------------------------------===//
// Engines, answers and queues
//===----------------------------------------------------------------------===//

/// Code, message, and the fields of llamac.End.
using End = std::tuple<int, std::string, std::string, uint64_t, int64_t,
                       int64_t, int64_t, int64_t, double, double, double,
                       int64_t, int64_t, std::string>;
/// The fields of llamac.TokenLogprobs.
using Logprobs =
    std::tuple<int32_t, float, int64_t, std::vector<std::pair<int32_t, float>>>;
/// The number of a call, the tool's name and a piece of its arguments.
using CallPart = std::tuple<int, nb::str, nb::str>;
/// The fields of llamac.Part.
using Part = std::tuple<int, Tokens, nb::str, std::optional<End>,
                        std::vector<Logprobs>, std::vector<CallPart>>;

End endOf(const llamac_end &end) {
  return {end.code,
          end.message,
          end.reason_name,
          end.seed,
          end.prompt_tokens,
          end.cached_tokens,
          end.answer_tokens,
          end.preemptions,
          end.queue_seconds,
          end.first_token_seconds,
          end.seconds,
          end.draft_tokens,
          end.accepted_tokens,
          end.finish_reason};
}

std::vector<Logprobs> logprobsOf(const llamac_part &part) {
  std::vector<Logprobs> all;
  for (size_t i = 0; part.logprobs && i < part.token_count; ++i) {
    const llamac_token_logprobs &token = part.logprobs[i];
    std::vector<std::pair<int32_t, float>> alternatives;
    for (size_t k = 0; k < token.alternative_count; ++k)
      alternatives.emplace_back(token.alternatives[k].token,
                                token.alternatives[k].logprob);
    all.emplace_back(token.chosen.token, token.chosen.logprob, token.rank,
                     std::move(alternatives));
  }
  return all;
}

/// Characters are whole but for those that the model left unfinished.
nb::str textOf(const char *bytes, size_t size) {
  PyObject *text =
      PyUnicode_DecodeUTF8(bytes, static_cast<Py_ssize_t>(size), "replace");
  if (!text)
    throw nb::python_error();
  return nb::steal<nb::str>(text);
}

std::vector<CallPart> callsOf(const llamac_part &part) {
  std::vector<CallPart> calls;
  for (size_t i = 0; i < part.call_count; ++i) {
    const llamac_call_part &call = part.calls[i];
    calls.emplace_back(call.call, textOf(call.name, std::strlen(call.name)),
                       textOf(call.arguments, call.arguments_size));
  }
  return calls;
}

class Answer : public Handle<llamac_answer, llamac_answer_free> {
public:
  template <typename Submit> explicit Answer(Submit submit) : Handle("answer") {
    open(submit);
  }

  /// The next part, as llamac_answer_next() waits for it. Python's handlers of
  /// signals run meanwhile.
  std::optional<Part> next(double seconds) {
    using Clock = std::chrono::steady_clock;
    constexpr double slice = 0.05;
    const auto start = Clock::now();
    while (true) {
      const double waited =
          std::chrono::duration<double>(Clock::now() - start).count();
      const double left =
          seconds < 0 ? slice : std::clamp(seconds - waited, 0.0, slice);
      const llamac_part *part = nullptr;
      {
        const nb::gil_scoped_release release;
        check(llamac_answer_next(get(), left, &part));
      }
      if (part)
        return Part(part->answer,
                    Tokens(part->tokens, part->tokens + part->token_count),
                    textOf(part->text, part->text_size),
                    part->end ? std::optional(endOf(*part->end)) : std::nullopt,
                    logprobsOf(*part), callsOf(*part));
      if ((seconds >= 0 && waited >= seconds) || done())
        return std::nullopt;
      if (PyErr_CheckSignals() != 0)
        throw nb::python_error();
    }
  }

  bool done() const {
    int done = 0;
    check(llamac_answer_done(get(), &done));
    return done != 0;
  }

  void cancel() const { check(llamac_answer_cancel(get())); }
};

class Engine : public Handle<llamac_engine, llamac_engine_free> {
public:
  Engine(const Model &model, const Values &given) : Handle("engine") {
    const Options options(LLAMAC_FOR_ENGINE, given);
    open([&](llamac_engine **out) {
      return llamac_engine_new(model.get(), options.get(), out);
    });
  }

  Answer *submit(const Ids &ids, const Values &given) const {
    const Tokens tokens = tokensOf(ids, "prompt");
    const Options options(LLAMAC_FOR_REQUEST, given);
    return new Answer([&](llamac_answer **out) {
      return llamac_engine_submit(get(), tokens.data(), tokens.size(),
                                  options.get(), out);
    });
  }

  Answer *submitText(const nb::bytes &text, const Values &given) const {
    return submitBytes(llamac_engine_submit_text, text, given);
  }

  Answer *submitChat(const nb::bytes &json, const Values &given) const {
    return submitBytes(llamac_engine_submit_chat, json, given);
  }

  /// The fields of llamac.Counts.
  std::vector<int64_t> counts() const {
    llamac_counts it;
    check(llamac_engine_count(get(), &it, sizeof(it)));
    return {it.running,       it.waiting,        it.steps,
            it.preemptions,   it.prompt_tokens,  it.cached_tokens,
            it.answer_tokens, it.finished,       it.failed,
            it.pages,         it.free_pages,     it.loaded_tokens,
            it.draft_tokens,  it.accepted_tokens};
  }

private:
  Answer *submitBytes(decltype(&llamac_engine_submit_text) submit,
                      const nb::bytes &text, const Values &given) const {
    const Options options(LLAMAC_FOR_REQUEST, given);
    const char *bytes = text.c_str();
    const size_t size = text.size();
    return new Answer([&](llamac_answer **out) {
      return submit(get(), bytes, size, options.get(), out);
    });
  }
};

class Queue : public Handle<llamac_queue, llamac_queue_free> {
public:
  Queue() : Handle("queue") {
    open([](llamac_queue **out) { return llamac_queue_new(out); });
  }

  void add(const Answer &answer) const {
    check(llamac_queue_add(get(), answer.get()));
  }

  /// The number of the next answer; 0 for none. Does not wait.
  uintptr_t next() const {
    llamac_answer *answer = nullptr;
    check(llamac_queue_next(get(), 0, &answer));
    return reinterpret_cast<uintptr_t>(answer);
  }

  int descriptor() const {
    int fd = -1;
    check(llamac_queue_fd(get(), &fd));
    return fd;
  }
};

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

using Logits = nb::ndarray<nb::numpy, float, nb::ndim<2>>;

class Sequence : public Handle<llamac_sequence, llamac_sequence_free> {
public:
  explicit Sequence(const Model &model) : Handle("sequence") {
    open([&](llamac_sequence **out) {
      return llamac_sequence_new(model.get(), out);
    });
  }

  /// Logits [rows, vocabulary] in the library's memory, which is freed with the
  /// array; of no rows, [0, 0].
  Logits step(const Ids &ids, int rows) const {
    const Tokens tokens = tokensOf(ids, "tokens");
    llamac_logits *logits = nullptr;
    const float *data = nullptr;
    size_t count = 0, columns = 0;
    {
      const nb::gil_scoped_release release;
      check(llamac_sequence_step(get(), tokens.data(), tokens.size(),
                                 static_cast<llamac_rows>(rows), &logits));
      if (logits)
        check(llamac_logits_data(logits, &data, &count, &columns));
    }
    nb::object owner = nb::none();
    if (logits)
      owner = nb::capsule(logits, [](void *handle) noexcept {
        llamac_logits_free(static_cast<llamac_logits *>(handle));
      });
    // Nobody else has the memory.
    return Logits(const_cast<float *>(data), {count, columns}, owner);
  }

  int64_t truncate(const nb::int_ &given) const {
    const auto length = integerOf<int64_t>(given, "length");
    int64_t left = 0;
    const nb::gil_scoped_release release;
    check(llamac_sequence_truncate(get(), length, &left));
    return left;
  }

  int64_t length() const {
    int64_t length = 0;
    const nb::gil_scoped_release release;
    check(llamac_sequence_length(get(), &length));
    return length;
  }
};

} // namespace

NB_MODULE(_native, module) {
  nb::register_exception_translator(translate);
  module.def("version", &llamac_version);
  module.def("list_options", &listOptions, "scope"_a,
             "Name, kind and help of each option of a scope.");
  module.def(
      "check_options",
      [](int scope, const Values &given) {
        const Options options(static_cast<llamac_scope>(scope), given);
      },
      "scope"_a, "options"_a, "Raises what is wrong with options of a scope.");
  module.def("shown", &shown, "value"_a.none(), "A value as messages have it.");
  nb::class_<Model>(module, "Model")
      .def("closed", &Model::closed)
      .def(nb::init<const std::string &, const Values &>(), "path"_a,
           "options"_a)
      .def("describe", &Model::describe)
      .def("encode", &Model::encode, "text"_a, "special"_a, "continues"_a)
      .def("decode", &Model::decode, "tokens"_a, "special"_a, "continues"_a)
      .def("token", &Model::token, "id"_a)
      .def("close", &Model::close);
  nb::class_<Answer>(module, "Answer")
      .def("closed", &Answer::closed)
      .def("next", &Answer::next, "seconds"_a)
      .def("done", &Answer::done)
      .def("cancel", &Answer::cancel)
      .def("number", &Answer::number)
      .def("close", &Answer::close);
  nb::class_<Engine>(module, "Engine")
      .def("closed", &Engine::closed)
      .def(nb::init<const Model &, const Values &>(), "model"_a, "options"_a)
      .def("submit", &Engine::submit, "tokens"_a, "options"_a)
      .def("submit_text", &Engine::submitText, "text"_a, "options"_a)
      .def("submit_chat", &Engine::submitChat, "json"_a, "options"_a)
      .def("counts", &Engine::counts)
      .def("close", &Engine::close);
  nb::class_<Queue>(module, "Queue")
      .def(nb::init<>())
      .def("add", &Queue::add, "answer"_a)
      .def("next", &Queue::next)
      .def("descriptor", &Queue::descriptor)
      .def("close", &Queue::close);
  nb::class_<Sequence>(module, "Sequence")
      .def("closed", &Sequence::closed)
      .def(nb::init<const Model &>(), "model"_a)
      .def("step", &Sequence::step, "tokens"_a, "rows"_a)
      .def("truncate", &Sequence::truncate, "length"_a)
      .def("length", &Sequence::length)
      .def("close", &Sequence::close);
}
