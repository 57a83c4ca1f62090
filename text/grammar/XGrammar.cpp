//===- XGrammar.cpp - Grammars by XGrammar --------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only file that sees XGrammar, which reports errors by exceptions. As
// scripts/setup.sh builds it, it gives messages to the functions below, asks
// them whether to go on, and has its memory from them: some grammars are never
// compiled, some take all memory, and some answers take a time that grows with
// every token. A warning is about something that it leaves out of a schema or
// regex: that is an error here.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "text/grammar/Grammar.h"
#include "text/grammar/GrammarWork.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>
#include <xgrammar/compiler.h>
#include <xgrammar/matcher.h>

//===----------------------------------------------------------------------===//
// Messages and exceptions
//===----------------------------------------------------------------------===//

namespace llamac {

namespace {

/// A call of XGrammar by this thread.
struct Call {
  GrammarWork &work;
  std::string warning = {}; ///< The first one.
};

/// Thrown to leave XGrammar.
struct WorkError : std::bad_alloc {
  explicit WorkError(absl::Status status) : status(std::move(status)) {}
  absl::Status status;
};

} // namespace

/// The one going on; null: none.
static Call *&currentCall() {
  thread_local Call *call = nullptr;
  return call;
}

static void throwIfOver(absl::Status status) {
  if (!status.ok())
    throw WorkError(std::move(status));
}

/// The approximate overhead of an allocation, in bytes.
static constexpr int64_t allocationBytes = 16;

} // namespace llamac

namespace xgrammar {

// Declared in XGrammar's own source alone, by its names.
// NOLINTBEGIN(readability-identifier-naming)
void LogMessageImpl(const std::string &file, int line, int level,
                    const std::string &message);
[[noreturn]] void LogFatalImpl(const std::string &file, int line,
                               const std::string &message);
void CheckTimeLimit();
void *Allocate(size_t bytes);
void Deallocate(void *memory, size_t bytes);
// NOLINTEND(readability-identifier-naming)

void LogMessageImpl(const std::string & /*file*/, int /*line*/, int level,
                    const std::string &message) {
  constexpr int warning = 2;
  llamac::Call *call = llamac::currentCall();
  if (level >= warning && call && call->warning.empty())
    call->warning = message;
}

void LogFatalImpl(const std::string & /*file*/, int /*line*/,
                  const std::string &message) {
  throw std::runtime_error(message);
}

void CheckTimeLimit() {
  if (llamac::Call *call = llamac::currentCall())
    llamac::throwIfOver(call->work.spend());
}

void *Allocate(size_t bytes) {
  if (llamac::Call *call = llamac::currentCall()) {
    const auto taken = static_cast<int64_t>(bytes) + llamac::allocationBytes;
    absl::Status status = call->work.take(taken);
    status.Update(call->work.spend());
    if (!status.ok())
      call->work.giveBack(taken);
    llamac::throwIfOver(std::move(status));
  }
  // Where there is none, this is the request's error, not the end.
  void *const memory = operator new(bytes, std::nothrow);
  if (!memory)
    throw std::bad_alloc();
  return memory;
}

void Deallocate(void *memory, size_t bytes) {
  if (llamac::Call *call = llamac::currentCall(); call && memory)
    call->work.giveBack(static_cast<int64_t>(bytes) + llamac::allocationBytes);
  operator delete(memory);
}

} // namespace xgrammar

namespace llamac {

/// One line of what XGrammar says is wrong.
static absl::Status errorOf(absl::string_view message) {
  constexpr absl::string_view condition = ") is false: ";
  if (const size_t at = message.find(condition);
      absl::StartsWith(message, "Check failed") && at != message.npos)
    message.remove_prefix(at + condition.size());
  constexpr size_t most = 300;
  std::string text(absl::StripAsciiWhitespace(
      absl::StrReplaceAll(message.substr(0, most), {{"\n", " "}})));
  if (absl::EndsWith(text, "but got"))
    text += " the end of the text";
  return usageError(text);
}

/// Calls `function` within `work`; an exception, or a warning where it
/// `isStrict`, becomes an error.
template <typename Function>
static auto guarded(GrammarWork &work, bool isStrict, Function function)
    -> absl::StatusOr<decltype(function())> {
  Call call{work};
  currentCall() = &call;
  absl::StatusOr<decltype(function())> result = absl::UnknownError("");
  try {
    result = function();
  } catch (const WorkError &error) {
    result = error.status;
  } catch (const std::bad_alloc &) {
    result = memoryError("there is not enough memory for it");
  } catch (const std::exception &error) {
    result = errorOf(error.what());
  }
  currentCall() = nullptr;
  if (isStrict && result.ok() && !call.warning.empty())
    return errorOf(call.warning);
  return result;
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

namespace {

class XGrammarMatcher final : public GrammarMatcher {
public:
  XGrammarMatcher(xgrammar::GrammarMatcher matcher, int64_t vocabSize,
                  const GrammarLimits &limits)
      : matcher(std::move(matcher)), vocabSize(vocabSize),
        seconds(limits.answerSeconds), tokenSeconds(limits.tokenSeconds),
        mostBytes(limits.compileBytes) {}

  absl::Status nextTokens(TokenMask &mask) override;
  absl::StatusOr<bool> accept(int32_t id) override;

private:
  /// Calls `function` within the seconds that are left.
  template <typename Function> absl::StatusOr<bool> timed(Function function) {
    GrammarWork work(seconds, mostBytes, nullptr, usedSeconds);
    absl::StatusOr<bool> result = guarded(work, false, function);
    usedSeconds = work.usedSeconds();
    if (!result.ok())
      return withContext(result.status(), "grammar");
    return result;
  }

  xgrammar::GrammarMatcher matcher;
  int64_t vocabSize;
  double seconds, usedSeconds = 0, tokenSeconds;
  int64_t mostBytes;
};

class XGrammarGrammar final : public Grammar {
public:
  /// `size` is what `compiled` takes.
  XGrammarGrammar(xgrammar::CompiledGrammar compiled, int64_t size,
                  const GrammarLimits &limits)
      : compiled(std::move(compiled)), info(this->compiled->GetTokenizerInfo()),
        limits(limits), size(size) {}
  ~XGrammarGrammar() override {
    compiled.reset();
    giveMemoryBack(size);
  }

  absl::StatusOr<std::unique_ptr<GrammarMatcher>> newMatcher() const override {
    GrammarWork work(limits.answerSeconds, limits.compileBytes);
    return guarded(work, false, [&]() -> std::unique_ptr<GrammarMatcher> {
      return std::make_unique<XGrammarMatcher>(
          xgrammar::GrammarMatcher(*compiled), info.GetVocabSize(), limits);
    });
  }
  int64_t bytes() const override { return size; }
  absl::Span<const int32_t> stopIds() const override {
    return info.GetStopTokenIds();
  }

private:
  std::optional<xgrammar::CompiledGrammar> compiled;
  xgrammar::TokenizerInfo info;
  GrammarLimits limits;
  int64_t size;
};

class XGrammarBackend final : public GrammarCompiler::Backend {
public:
  XGrammarBackend(const Tokenizer &tokenizer,
                  const xgrammar::TokenizerInfo &info,
                  const GrammarLimits &limits)
      : tokenizer(tokenizer), info(info), limits(limits) {}

  absl::StatusOr<std::shared_ptr<const Grammar>>
  compile(const GrammarSource &source, GrammarWork &work) override;

private:
  const xgrammar::TokenizerInfo &infoFor(const std::vector<int32_t> &controls);

  const Tokenizer &tokenizer;
  xgrammar::TokenizerInfo info;
  /// With the names of the control tokens that were named last.
  std::optional<xgrammar::TokenizerInfo> namedInfo;
  std::vector<int32_t> named;
  GrammarLimits limits;
};

} // namespace

/// The vocabulary in which `controls` have their names as bytes. Takes tens of
/// megabytes, so that grammars share it.
const xgrammar::TokenizerInfo &
XGrammarBackend::infoFor(const std::vector<int32_t> &controls) {
  if (controls.empty())
    return info;
  if (!namedInfo || named != controls) {
    std::vector<std::string> vocabulary = info.GetDecodedVocab();
    for (const int32_t id : controls)
      vocabulary[static_cast<size_t>(id)] =
          std::string(tokenizer.tokenBytes(id).value_or(""));
    namedInfo.emplace(vocabulary, xgrammar::VocabType::RAW, info.GetVocabSize(),
                      info.GetStopTokenIds());
    named = controls;
  }
  return *namedInfo;
}

absl::Status XGrammarMatcher::nextTokens(TokenMask &mask) {
  mask.assign((vocabSize + 31) / 32, 0);
  auto words = static_cast<int64_t>(mask.size());
  return timed([&] {
           if (matcher.IsTerminated())
             return true;
           DLTensor tensor{};
           tensor.data = mask.data();
           tensor.device = {kDLCPU, 0};
           tensor.ndim = 1;
           tensor.dtype = xgrammar::GetBitmaskDLType();
           tensor.shape = &words;
           return matcher.FillNextTokenBitmask(&tensor);
         })
      .status();
}

absl::StatusOr<bool> XGrammarMatcher::accept(int32_t id) {
  seconds += tokenSeconds;
  return timed([&] { return matcher.AcceptToken(id); });
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static xgrammar::Grammar parse(const GrammarSource &source) {
  if (source.kind == GrammarSource::Ebnf)
    return xgrammar::Grammar::FromEBNF(source.text);
  auto made = xgrammar::Grammar::FromStructuralTag(source.text);
  if (const auto *grammar = std::get_if<xgrammar::Grammar>(&made))
    return *grammar;
  std::visit([](const auto &error) { throw error; },
             std::get<xgrammar::StructuralTagError>(made));
  throw std::invalid_argument("unknown kind of grammar");
}

absl::Status parseGrammar(const GrammarSource &source, GrammarWork &work) {
  return guarded(work, true, [&] { return parse(source); }).status();
}

absl::StatusOr<std::shared_ptr<const Grammar>>
XGrammarBackend::compile(const GrammarSource &source, GrammarWork &work) {
  using Result = std::shared_ptr<const Grammar>;
  LLAMAC_ASSIGN_OR_RETURN(
      Result grammar, guarded(work, true, [&]() -> Result {
        const xgrammar::TokenizerInfo &vocabulary =
            infoFor(source.namedControls);
        const int64_t before = work.heldBytes();
        std::optional<xgrammar::CompiledGrammar> compiled;
        {
          // One thread: an exception of another would end the program.
          xgrammar::GrammarCompiler compiler(vocabulary, /*max_threads=*/1,
                                             /*cache_enabled=*/false);
          compiled = compiler.CompileGrammar(parse(source));
        }
        // XGrammar's own count leaves out some.
        const int64_t size =
            std::max(static_cast<int64_t>(compiled->MemorySizeBytes()),
                     work.heldBytes() - before);
        return std::make_shared<XGrammarGrammar>(*std::move(compiled), size,
                                                 limits);
      }));
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<GrammarMatcher> matcher,
                          grammar->newMatcher());
  TokenMask mask;
  LLAMAC_RETURN_IF_ERROR(matcher->nextTokens(mask));
  if (std::all_of(mask.begin(), mask.end(), [](auto bits) { return !bits; }))
    return usageError("no text matches it");
  return grammar;
}

absl::StatusOr<std::unique_ptr<GrammarCompiler::Backend>>
newGrammarBackend(const Tokenizer &tokenizer, int64_t vocabSize,
                  absl::Span<const int32_t> stopIds,
                  const GrammarLimits &limits) {
  if (stopIds.empty())
    return usageError("grammars: they end by a stop id, the model has none");
  std::vector<std::string> vocabulary(
      std::min<int64_t>(tokenizer.vocabSize(), vocabSize));
  for (int32_t id = 0; id < static_cast<int32_t>(vocabulary.size()); ++id) {
    // XGrammar takes a token without bytes for a special one.
    if (tokenizer.isControl(id))
      continue;
    LLAMAC_ASSIGN_OR_RETURN(const absl::string_view bytes,
                            tokenizer.tokenBytes(id));
    vocabulary[id] = std::string(bytes);
  }
  GrammarWork work(limits.compileSeconds, limits.compileBytes);
  return guarded(
      work, false, [&]() -> std::unique_ptr<GrammarCompiler::Backend> {
        return std::make_unique<XGrammarBackend>(
            tokenizer,
            xgrammar::TokenizerInfo(
                vocabulary, xgrammar::VocabType::RAW,
                static_cast<int>(vocabSize),
                std::vector<int32_t>(stopIds.begin(), stopIds.end())),
            limits);
      });
}

} // namespace llamac
