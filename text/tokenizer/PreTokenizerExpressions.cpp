//===- PreTokenizerExpressions.cpp - The expressions of pre-tokenizers ----===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Groups of three digits, counted from the end of a number, are expressions
// with a lookahead to that end. For a long number they would take the square of
// its length, so that they are cut by hand.
//
//===----------------------------------------------------------------------===//

#include "text/tokenizer/PreTokenizerExpressions.h"

#include "runtime/base/Status.h"
#include "text/tokenizer/CharClasses.h"

#include "absl/strings/str_cat.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <iterator>
#include <string>

namespace llamac {

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES R"(\s+(?!\S)|\s+)"
#define LINE_BREAKS R"(\s*[\r\n]+|)" SPACES
// Behind a contraction: words, numbers, other characters and space.
#define CL100K(numbers)                                                        \
  R"([^\r\n\p{L}\p{N}]?\p{L}+|)" numbers                                       \
  R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LINE_BREAKS
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define CASED(contraction, numbers)                                            \
  R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+" contraction                      \
  R"(|[^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER "*" contraction "|" numbers         \
  R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" LINE_BREAKS
#define THREES R"(\p{N}{1,3})"
#define CJK                                                                    \
  "[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83"   \
  "\xBF]+"
#define ASCII_PUNCTUATION R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~])"
// DeepSeek 3's words, whose other characters end with `other`.
#define DEEPSEEK3_WORDS(other)                                                 \
  ASCII_PUNCTUATION R"([A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"       \
                    R"( ?[\p{P}\p{S}]+)" other

// These are cut by hand: groups of three digits from the end of a number, and
// the places in front of such groups.
static constexpr absl::string_view groupsInWords = R"(\d{1,3}(?=(?:\d{3})*\b))";
static constexpr absl::string_view placesOfGroups = R"((?=(\d{3})+(?!\d)))";

// Letters of alphabets with cases, as DeepSeek's first models list them. Those
// that an editor could compose are escaped.
static constexpr const char *deepSeekLetters =
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-"
    "ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1F7Dᾀ-ᾴᾶ-ᾼ"
    "\u1FBEῂ-ῄῆ-ῌῐ-\u1FD3ῖ-\u1FDBῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ"
    "\u212A-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-"
    "Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+";
static constexpr const char *deepSeekPunctuation =
    R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";
static constexpr const char *deepSeekIdeographs =
    "[\xE4\xB8\x80-\xE9\xBE\xA5\xE0\xA0\x80-\xE4\xB8\x80\xEA\xB0\x80-\xED\x9F"
    "\xBF]+";

// Han characters are not in these, as the expression's "&&[^\p{Han}]" says.
#define NO_HAN(letters) "(?:(?!\\p{Han})" letters ")"

namespace {

struct KindExpressions {
  PreTokenizerKind kind;
  const char *expressions[7];
};

} // namespace

static constexpr KindExpressions kindExpressions[] = {
    {PreTokenizerKind::Llama3, {CONTRACTION "|" CL100K(THREES)}},
    {PreTokenizerKind::Gpt2, {gpt2Expression}},
    {PreTokenizerKind::SmolLM, {digitExpression, gpt2Expression}},
    {PreTokenizerKind::Qwen2, {CONTRACTION "|" CL100K(R"(\p{N})")}},
    {PreTokenizerKind::Gpt4o, {CASED(CONTRACTION "?", THREES)}},
    {PreTokenizerKind::Tekken, {CASED("", R"(\p{N})")}},
    {PreTokenizerKind::BailingMoe,
     {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}|)"
      R"( ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|)" SPACES}},
    {PreTokenizerKind::Bloom, {" ?[^(\\s|.,!?…。，、।۔،)]+"}},
    {PreTokenizerKind::Chameleon,
     {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
      R"(([\t\n]|    |  ))", digitExpression, R"([\p{P}!-/:-@\[-`{-~])",
      gpt2Expression}},
    {PreTokenizerKind::Coarse,
     {R"([\p{P}\$\+<=>\^~\|]+)", gpt2Expression, R"(\p{N}+)",
      "[0-9][0-9][0-9]"}},
    {PreTokenizerKind::DeepSeekCoder,
     {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", deepSeekIdeographs,
      digitExpression}},
    {PreTokenizerKind::DeepSeekLlm,
     {R"([\r\n])", deepSeekLetters, deepSeekPunctuation, R"(\s+$)",
      deepSeekIdeographs, R"(\p{N}+)"}},
    {PreTokenizerKind::DeepSeek3,
     {THREES, CJK, DEEPSEEK3_WORDS(R"([\r\n]*|)" LINE_BREAKS)}},
    {PreTokenizerKind::ExaoneMoe,
     {CONTRACTION R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|)"
                  R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|)" SPACES}},
    {PreTokenizerKind::Falcon,
     {R"([\p{P}\$\+<=>\^~\|`]+)", gpt2Expression, "[0-9][0-9][0-9]"}},
    {PreTokenizerKind::Jais2,
     {CONTRACTION
      R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
      R"(\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|)"
      R"(\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|)"
      R"(\s{1,2}(?!\S)|\s{1})"}},
    {PreTokenizerKind::KimiK2,
     {R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?)" NO_HAN(UPPER) "*" NO_HAN(
         LOWER) "+" CONTRACTION
                R"(?|[^\r\n\p{L}\p{N}]?)" NO_HAN(UPPER) "+" NO_HAN(
                    LOWER) "*" CONTRACTION
                           R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LINE_BREAKS}},
    {PreTokenizerKind::Laguna,
     {R"([^\n]+|[\n]+)", CONTRACTION "|" CL100K(R"(\p{N})")}},
    {PreTokenizerKind::MiniCpm5, {THREES, CONTRACTION "|" CL100K(R"(\p{N}+)")}},
    {PreTokenizerKind::Qwen35,
     {CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
                  R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" LINE_BREAKS}},
    {PreTokenizerKind::SeedCoder,
     {CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}|)"
                  R"( ?[^\s\p{L}\p{N}\r\n]+|)" LINE_BREAKS}},
    {PreTokenizerKind::Spark,
     {THREES, CJK, DEEPSEEK3_WORDS(R"(|[\r\n]|)" SPACES), digitExpression}},
    {PreTokenizerKind::SuperBpe, {R"(\p{N}+)", placesOfGroups.data()}},
    {PreTokenizerKind::TinyAya,
     {groupsInWords.data(), CASED(CONTRACTION "?", THREES)}},
    {PreTokenizerKind::UfakZeka, {CL100K(R"(\p{N})")}},
    {PreTokenizerKind::Viking, {" ?[^(\\s|.,!?…。，、।۔،)]+", digitExpression}},
    {PreTokenizerKind::Youtu,
     {"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-"
      "龥぀-"
      "ゟ゠-"
      "ヿ]"
      "+",
      CASED(CONTRACTION "?", R"(\p{N})")}},
};

absl::Span<const char *const> preTokenizerExpressions(PreTokenizerKind kind) {
  for (const KindExpressions &row : kindExpressions)
    if (row.kind == kind)
      return absl::MakeSpan(row.expressions,
                            std::find(std::begin(row.expressions),
                                      std::end(row.expressions), nullptr) -
                                std::begin(row.expressions));
  return {};
}

//===----------------------------------------------------------------------===//
// Running them
//===----------------------------------------------------------------------===//

// `expression` with `\s` as the property White_Space: PCRE2's has U+180E too,
// which is none.
static std::string withExactSpaces(absl::string_view expression) {
  constexpr absl::string_view spaces = R"(\t-\r\x{85}\p{Z})";
  std::string out;
  bool isInClass = false;
  for (size_t at = 0; at < expression.size(); ++at) {
    const char c = expression[at];
    if (c == '\\' && at + 1 < expression.size()) {
      const char escaped = expression[++at];
      if (escaped == 's')
        absl::StrAppend(&out, isInClass ? "" : "[", spaces,
                        isInClass ? "" : "]");
      else if (escaped == 'S' && !isInClass)
        absl::StrAppend(&out, "[^", spaces, "]");
      else
        out.append({c, escaped});
      continue;
    }
    isInClass = isInClass ? c != ']' : c == '[';
    out.push_back(c);
  }
  return out;
}

namespace {

struct FreePcre2 {
  void operator()(pcre2_code *code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data *data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context *context) const {
    pcre2_match_context_free(context);
  }
};

} // namespace

// One expression.
class PiecePattern {
public:
  enum class Groups : uint8_t { None, InWords, Places };

  static absl::StatusOr<std::unique_ptr<PiecePattern>>
  compile(absl::string_view expression) {
    auto pattern = std::make_unique<PiecePattern>();
    if (expression == groupsInWords)
      pattern->groups = Groups::InWords;
    else if (expression == placesOfGroups)
      pattern->groups = Groups::Places;
    const std::string compiled = pattern->groups == Groups::None
                                     ? withExactSpaces(expression)
                                     : R"(\p{Nd}+)";
    int error = 0;
    PCRE2_SIZE at = 0;
    pattern->code.reset(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(compiled.data()), compiled.size(),
        PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE,
        &error, &at, nullptr));
    // A long run of letters takes memory and steps in proportion; those of an
    // expression never grow faster.
    pattern->context.reset(pcre2_match_context_create(nullptr));
    if (!pattern->code || !pattern->context)
      return internalError(absl::StrCat("the expression ", expression,
                                        " does not compile at ", at));
    pcre2_set_heap_limit(pattern->context.get(), maxHeapKiB);
    pcre2_set_match_limit(pattern->context.get(), maxSteps);
    return pattern;
  }

  // Cuts `text`, at which `ends` has the ends of words, at its own places.
  absl::Status cut(absl::string_view text, std::vector<size_t> &ends) const {
    const std::unique_ptr<pcre2_match_data, FreePcre2> match(
        pcre2_match_data_create_from_pattern(code.get(), nullptr));
    if (!match)
      return memoryError("no memory to cut a text into words");
    std::vector<size_t> out;
    size_t begin = 0;
    for (const size_t end : ends) {
      LLAMAC_RETURN_IF_ERROR(
          cutWord(text.substr(begin, end - begin), begin, *match, out));
      begin = end;
    }
    ends = std::move(out);
    return absl::OkStatus();
  }

private:
  static constexpr uint32_t maxHeapKiB = 1 << 20;
  static constexpr uint32_t maxSteps = 1u << 30;

  // Appends the ends of what the matches in `word`, at `offset` of the text,
  // make of it.
  absl::Status cutWord(absl::string_view word, size_t offset,
                       pcre2_match_data &match,
                       std::vector<size_t> &out) const {
    const auto add = [&](size_t end) {
      if (end > 0 && (out.empty() || out.back() < offset + end))
        out.push_back(offset + end);
    };
    for (size_t at = 0; at < word.size();) {
      const int found = pcre2_match(
          code.get(), reinterpret_cast<PCRE2_SPTR>(word.data()), word.size(),
          at, PCRE2_NO_UTF_CHECK, &match, context.get());
      if (found == PCRE2_ERROR_NOMATCH)
        break;
      if (found < 0)
        return memoryError(
            absl::StrCat("a text of ", word.size(),
                         " bytes without a place to cut it: expected words "
                         "that take less than 1 GiB to find, got more"));
      const PCRE2_SIZE *span = pcre2_get_ovector_pointer(&match);
      addMatch(word, span[0], span[1], add);
      at = span[1];
    }
    add(word.size());
    return absl::OkStatus();
  }

  template <class Add>
  void addMatch(absl::string_view word, size_t begin, size_t end,
                const Add &add) const {
    if (groups == Groups::None) {
      add(begin);
      add(end);
      return;
    }
    std::vector<size_t> starts;
    for (size_t at = begin; at < end; at += decodeChar(word, at).length)
      starts.push_back(at);
    // Letters behind the digits make them one word with these.
    if (groups == Groups::InWords && end < word.size() &&
        isWordChar(decodeChar(word, end).codepoint))
      return;
    const bool cutsEnds = groups != Groups::Places;
    for (size_t i = 0; i < starts.size(); ++i)
      if ((i == 0 && cutsEnds) || (starts.size() - i) % 3 == 0)
        add(starts[i]);
    if (cutsEnds)
      add(end);
  }

  std::unique_ptr<pcre2_code, FreePcre2> code;
  std::unique_ptr<pcre2_match_context, FreePcre2> context;
  Groups groups = Groups::None;
};

ExpressionPreTokenizer::ExpressionPreTokenizer() = default;
ExpressionPreTokenizer::ExpressionPreTokenizer(
    ExpressionPreTokenizer &&) noexcept = default;
ExpressionPreTokenizer::~ExpressionPreTokenizer() = default;

absl::StatusOr<ExpressionPreTokenizer>
ExpressionPreTokenizer::create(PreTokenizerKind kind) {
  ExpressionPreTokenizer preTokenizer;
  for (const char *expression : preTokenizerExpressions(kind)) {
    LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<PiecePattern> pattern,
                            PiecePattern::compile(expression));
    preTokenizer.patterns.push_back(std::move(pattern));
  }
  return preTokenizer;
}

// `text` with each byte that is no character as a control character, and each
// surrogate as one of private use: of no class, and of the same length.
static std::string asValidUtf8(absl::string_view text) {
  std::string out(text);
  for (size_t at = 0; at < text.size();) {
    const DecodedChar next = decodeChar(text, at);
    if (next.length == 1 && static_cast<uint8_t>(text[at]) >= 0x80)
      out[at] = '\x7F';
    else if (next.codepoint >= 0xD800 && next.codepoint < 0xE000)
      out.replace(at, 3, "\xEE\x80\x80");
    at += next.length;
  }
  return out;
}

absl::Status ExpressionPreTokenizer::split(
    absl::string_view text,
    absl::FunctionRef<void(absl::string_view)> word) const {
  if (text.empty())
    return absl::OkStatus();
  const std::string valid = asValidUtf8(text);
  std::vector<size_t> ends = {text.size()};
  for (const std::unique_ptr<PiecePattern> &pattern : patterns)
    LLAMAC_RETURN_IF_ERROR(pattern->cut(valid, ends));
  size_t begin = 0;
  for (const size_t end : ends) {
    word(text.substr(begin, end - begin));
    begin = end;
  }
  return absl::OkStatus();
}

} // namespace llamac
