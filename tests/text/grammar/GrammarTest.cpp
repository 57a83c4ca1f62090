//===- GrammarTest.cpp - What an answer must match ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests with a vocabulary with every byte and some longer pieces. Whole answers
// of a real one, judged by Python's jsonschema, are in
// tests/e2e/test_grammar.py.
//
//===----------------------------------------------------------------------===//

#include "text/grammar/Grammar.h"
#include "text/request/ChatMessages.h"

#include "engine/sampling/Sampler.h"
#include "frontends/TokenizerBlobWriter.h"
#include "runtime/base/FatalEvents.h"
#include "runtime/base/Status.h"
#include "text/request/ChatMessages.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <set>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace llamac {
namespace {

/// Ids: a stop token, another control token, the bytes from 2 on, the pieces.
class GrammarTest : public testing::Test {
protected:
  static constexpr int32_t stop = 0, firstByte = 2, firstPiece = 258;
  static constexpr int64_t vocabSize = 300; ///< Rows; there are fewer tokens.

  void SetUp() override {
    if (exitCode(compile(GrammarSource::Regex, "a").status()) ==
        ExitCode::Unsupported)
      GTEST_SKIP() << "built without XGrammar";
  }

  static std::unique_ptr<Tokenizer> makeTokenizer() {
    TokenizerData data;
    data.preTokenizer = PreTokenizerKind::Gpt2;
    data.tokens = {"<stop>", "{"}; // Control tokens, whatever their text.
    data.types = {TokenType::Control, TokenType::Control};
    for (int byte = 0; byte < 256; ++byte)
      data.tokens.push_back(std::string(1, static_cast<char>(byte)));
    // The last two cut a character in the middle.
    for (const char *piece :
         {"{\"", "\": ", "yes", "ye", "es", "true", "\xe6\x97", "\xa5x"})
      data.tokens.emplace_back(piece);
    data.types.resize(data.tokens.size(), TokenType::Normal);
    return *loadTokenizer(*writeTokenizerBlob(std::move(data), "test"));
  }

  absl::StatusOr<std::shared_ptr<const Grammar>>
  compile(GrammarSource::Kind kind, const std::string &text) {
    return compiler.compile({kind, text});
  }

  std::shared_ptr<const Grammar> grammar(GrammarSource::Kind kind,
                                         const std::string &text) {
    auto result = compile(kind, text);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : nullptr;
  }

  static std::set<int32_t> next(GrammarMatcher &matcher) {
    TokenMask mask;
    const absl::Status status = matcher.nextTokens(mask);
    EXPECT_TRUE(status.ok()) << status;
    std::set<int32_t> ids;
    for (size_t id = 0; id < mask.size() * 32; ++id)
      if (mask[id / 32] >> id % 32 & 1)
        ids.insert(static_cast<int32_t>(id));
    return ids;
  }

  /// Goes on byte by byte; the bytes taken.
  static size_t follow(GrammarMatcher &matcher, absl::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const int32_t id = firstByte + static_cast<uint8_t>(text[i]);
      const absl::StatusOr<bool> isAccepted = matcher.accept(id);
      EXPECT_TRUE(isAccepted.ok()) << isAccepted.status();
      if (!isAccepted.value_or(false))
        return i;
    }
    return text.size();
  }

  /// Whether `text` is a whole answer.
  static bool matches(const Grammar &grammar, absl::string_view text) {
    const std::unique_ptr<GrammarMatcher> matcher = *grammar.newMatcher();
    return follow(*matcher, text) == text.size() &&
           next(*matcher).count(stop) != 0;
  }

  const std::unique_ptr<Tokenizer> tokenizer = makeTokenizer();
  GrammarCompiler compiler{*tokenizer, vocabSize, {stop}};
};

TEST_F(GrammarTest, ARegexMatchesTheWholeAnswer) {
  const auto date = grammar(GrammarSource::Regex, R"(\d{4}-\d{2}(-\d{2})?)");
  EXPECT_TRUE(matches(*date, "2024-02"));
  EXPECT_TRUE(matches(*date, "2024-02-29"));
  EXPECT_FALSE(matches(*date, "2024-0"));
  EXPECT_FALSE(matches(*date, "on 2024-02"));
  EXPECT_FALSE(matches(*date, "2024-02-"));
}

TEST_F(GrammarTest, RulesMayNest) {
  const auto sums =
      grammar(GrammarSource::Ebnf, "root ::= value (\"+\" value)*\n"
                                   "value ::= [0-9]+ | \"(\" root \")\"\n");
  EXPECT_TRUE(matches(*sums, "1+(22+(3))+4"));
  EXPECT_FALSE(matches(*sums, "1+(2"));
  EXPECT_FALSE(matches(*sums, "1+2)"));
}

TEST_F(GrammarTest, AnyObjectIsJson) {
  const auto object = grammar(GrammarSource::JsonObject, "");
  EXPECT_TRUE(matches(*object, "{}"));
  EXPECT_TRUE(matches(*object, R"({"a": [1, -2.5e3, "x\n", null], "b": {}})"));
  EXPECT_FALSE(matches(*object, "[]"));
  EXPECT_FALSE(matches(*object, R"({"a": 01})"));
  EXPECT_FALSE(matches(*object, R"({"a" 1})"));
}

TEST_F(GrammarTest, ASchemaNamesWhatAnObjectHas) {
  const auto schema = grammar(
      GrammarSource::JsonSchema,
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":3},)"
      R"("age":{"type":"integer","minimum":0,"maximum":150}},)"
      R"("required":["name"]})");
  EXPECT_TRUE(matches(*schema, R"({"name": "Ada", "age": 36})"));
  EXPECT_TRUE(matches(*schema, "{\n  \"name\" : \"\u65e5\u672c\u8a9e\"\n}"));
  EXPECT_FALSE(matches(*schema, R"({"age": 36})"));
  EXPECT_FALSE(matches(*schema, R"({"name": "Grace"})"));
  EXPECT_FALSE(matches(*schema, R"({"name": "Ada", "age": 151})"));
  EXPECT_FALSE(matches(*schema, R"({"name": "Ada", "other": 1})"));
}

TEST_F(GrammarTest, APatternMayEndInALongCount) {
  const auto quoted = [](size_t count, const char *text, const char *before) {
    std::string quoted = absl::StrCat("\"", before);
    for (size_t i = 0; i < count; ++i)
      quoted += text;
    return quoted + "\"";
  };
  const auto any =
      grammar(GrammarSource::JsonSchema, R"({"pattern":"^.{1,200}$"})");
  EXPECT_FALSE(matches(*any, quoted(0, "x", "")));
  EXPECT_TRUE(matches(*any, quoted(1, "x", "")));
  EXPECT_TRUE(matches(*any, quoted(200, "\u65e5", "")));
  EXPECT_FALSE(matches(*any, quoted(201, "x", "")));
  EXPECT_FALSE(matches(*any, quoted(1, "\\n", "")));
  // All that are short with their escapes, and none that the pattern has not.
  EXPECT_TRUE(matches(*any, quoted(100, "\\\"", "")));
  EXPECT_FALSE(matches(*any, quoted(201, "\\\"", "")));

  const auto digits = grammar(GrammarSource::JsonSchema,
                              R"({"pattern":"^(a|bc)-?[0-9]{0,40}$"})");
  for (const char *before : {"a", "bc", "a-", "bc-"}) {
    EXPECT_TRUE(matches(*digits, quoted(0, "7", before)));
    EXPECT_TRUE(matches(*digits, quoted(40, "7", before)));
    EXPECT_FALSE(matches(*digits, quoted(41, "7", before)));
    EXPECT_FALSE(matches(*digits, quoted(1, "x", before)));
  }
  // The last character is of another set.
  const auto ends = grammar(GrammarSource::JsonSchema,
                            R"re({"pattern":"^[a-c]{0,20}([0-9]|$)"})re");
  EXPECT_TRUE(matches(*ends, quoted(20, "b", "")));
  EXPECT_TRUE(matches(*ends, R"("abc7 and more")"));
  EXPECT_FALSE(matches(*ends, quoted(21, "b", "")));
}

TEST_F(GrammarTest, PropertiesAreThereOnce) {
  const auto schema = grammar(GrammarSource::JsonSchema,
                              R"({"properties":{"a":{"type":"integer"}},)"
                              R"("additionalProperties":true})");
  EXPECT_TRUE(matches(*schema, R"({"a": 1, "b": "x"})"));
  // Readers take the last one.
  EXPECT_FALSE(matches(*schema, R"({"a": 1, "a": "x"})"));
  EXPECT_FALSE(matches(*schema, R"({"a": "x"})"));
  EXPECT_FALSE(matches(*schema, R"({"b": 1, "a": "x"})"));
}

TEST_F(GrammarTest, CallsOfStrictToolsMatchTheirSchemas) {
  const std::vector<Tool> tools = {
      {"count",
       R"({"type": "object", "properties": {"to": {"$ref": "#/$defs/n"}},)"
       R"( "required": ["to"], "additionalProperties": false,)"
       R"( "$defs": {"n": {"type": "integer"}}})",
       /*isStrict=*/true},
      {"note", R"({"type": "object", "properties": {"a": false}})"}};
  const std::string right = R"({"name": "count", "ARGS": {"to": 12}})";
  const std::string other = R"({"name": "note", "ARGS": {"any": [1, "x"]}})";
  const std::string wrong[] = {R"({"name": "count", "ARGS": {"to": "x"}})",
                               R"({"name": "count", "ARGS": {}})",
                               R"({"name": "another", "ARGS": {}})",
                               R"({"name": "count"})"};
  for (const ToolCallSyntax &syntax : toolCallSyntaxes()) {
    SCOPED_TRACE(syntax.name);
    const auto source = strictCalls(tools, syntax);
    const auto answer = grammar(source.kind, source.text);
    const auto call = [&](absl::string_view text) {
      const std::string json =
          absl::StrReplaceAll(text, {{"ARGS", syntax.arguments}});
      return *syntax.open
                 ? absl::StrCat(syntax.open, "\n", json, "\n", syntax.close)
                 : json;
    };
    EXPECT_TRUE(matches(*answer, "Any <text>, { too"));
    EXPECT_TRUE(matches(*answer, call(right)));
    EXPECT_TRUE(matches(*answer, call(other)));
    for (const std::string &text : wrong)
      EXPECT_FALSE(matches(*answer, call(text))) << text;
    if (*syntax.open) {
      EXPECT_TRUE(matches(*answer, absl::StrCat("So: ", call(right), " and ",
                                                call(other), " it is.")));
      EXPECT_FALSE(matches(*answer, absl::StrCat(call(right), call(wrong[0]))));
    }
  }
}

TEST_F(GrammarTest, TheNextTokensAreThoseThatGoOn) {
  const auto answer = grammar(GrammarSource::Ebnf, R"(root ::= "yes" | "no")");
  const std::unique_ptr<GrammarMatcher> matcher = *answer->newMatcher();
  const auto y = firstByte + 'y', n = firstByte + 'n';
  EXPECT_EQ(next(*matcher),
            (std::set<int32_t>{y, n, firstPiece + 2, firstPiece + 3}));
  ASSERT_TRUE(*matcher->accept(y));
  EXPECT_EQ(next(*matcher),
            (std::set<int32_t>{firstByte + 'e', firstPiece + 4}));
  EXPECT_FALSE(*matcher->accept(n)); // And nothing has changed.
  ASSERT_TRUE(*matcher->accept(firstPiece + 4));
  EXPECT_EQ(next(*matcher), std::set<int32_t>{stop}); // It can only end.
  ASSERT_TRUE(*matcher->accept(stop));
  EXPECT_EQ(next(*matcher), std::set<int32_t>{});
}

TEST_F(GrammarTest, TokensMayCutACharacter) {
  const auto letters = grammar(GrammarSource::Regex, "[\u65e0-\u65ef]x");
  const std::unique_ptr<GrammarMatcher> matcher = *letters->newMatcher();
  EXPECT_EQ(next(*matcher),
            (std::set<int32_t>{firstByte + 0xe6, firstPiece + 6}));
  ASSERT_TRUE(*matcher->accept(firstPiece + 6));
  EXPECT_EQ(next(*matcher).count(firstPiece + 7), 1u);
  ASSERT_TRUE(*matcher->accept(firstPiece + 7));
  EXPECT_EQ(next(*matcher), std::set<int32_t>{stop});
}

TEST_F(GrammarTest, ControlTokensAreNoText) {
  const auto object = grammar(GrammarSource::JsonObject, "");
  EXPECT_EQ(next(**object->newMatcher()),
            (std::set<int32_t>{firstByte + '{', firstPiece}));
}

TEST_F(GrammarTest, AGrammarIsCompiledOnceForTheSameText) {
  const auto first = grammar(GrammarSource::Regex, "ab");
  EXPECT_EQ(grammar(GrammarSource::Regex, "ab"), first);
  EXPECT_NE(grammar(GrammarSource::Ebnf, "root ::= \"ab\""), first);
  EXPECT_EQ(grammar(GrammarSource::Regex, "ab"), first);
}

TEST_F(GrammarTest, GrammarsUsedLeastRecentlyGoFirst) {
  const int64_t size = grammar(GrammarSource::Regex, "a")->bytes();
  GrammarCompiler small(*tokenizer, vocabSize, {stop},
                        {.keptBytes = 2 * size + size / 2});
  auto compiled = [&](const char *text) {
    return *small.compile({GrammarSource::Regex, text});
  };
  const auto a = compiled("a"), b = compiled("b");
  EXPECT_EQ(compiled("a"), a);
  compiled("c");
  EXPECT_EQ(compiled("a"), a);
  EXPECT_NE(compiled("b"), b);
}

TEST_F(GrammarTest, ThreadsShareACompilerAndItsGrammars) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 10; ++round) {
        const auto shared = compiler.compile({GrammarSource::JsonObject, ""});
        ASSERT_TRUE(shared.ok());
        EXPECT_TRUE(matches(**shared, absl::StrCat("{\"a\": ", i, "}")));
        const auto own = compiler.compile(
            {GrammarSource::Regex, absl::StrCat("x", i, "y", round)});
        ASSERT_TRUE(own.ok());
        EXPECT_TRUE(matches(**own, absl::StrCat("x", i, "y", round)));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(GrammarTest, ErrorsAreOneLineAndNameWhatIsWrong) {
  struct Case {
    GrammarSource::Kind kind;
    std::string text;
    const char *mentions;
  };
  const std::string nested(65, '(');
  const Case cases[] = {
      {GrammarSource::Regex, "(a", "regex: "},
      {GrammarSource::Regex, "(?=a)b", "ookahead"},
      {GrammarSource::Regex, nested + "a",
       "at most 64 levels of brackets, got"},
      {GrammarSource::Regex, std::string(70000, 'a'), "at most 65536 bytes"},
      {GrammarSource::Regex, std::string("a\0b", 3), "zero byte"},
      {GrammarSource::Ebnf, "root ::= other", "other"},
      {GrammarSource::Ebnf, "other ::= \"a\"", "root"},
      {GrammarSource::Ebnf, "root ::= root", "no text matches it"},
      {GrammarSource::Ebnf, "", "grammar: "},
      {GrammarSource::JsonSchema, "{",
       "JSON schema: schema:1:2: JSON: expected well-formed"},
      {GrammarSource::JsonSchema, R"({"type":"thing"})",
       "JSON schema: #: type"},
      // Larger than XGrammar's numbers, which it would take for 2.
      {GrammarSource::Regex, "a{4294967298}b",
       "regex: offset 1: expected counts of at most 10000"},
      {GrammarSource::Ebnf, "root ::= \"a\"{4294967298} \"b\"",
       "grammar: expected counts of at most 10000"},
      {GrammarSource::Regex, "a^b", "anchor"},
  };
  for (const Case &test : cases) {
    const absl::Status status = compile(test.kind, test.text).status();
    EXPECT_EQ(exitCode(status), ExitCode::Usage) << test.text.substr(0, 99);
    EXPECT_NE(status.message().find(test.mentions), std::string::npos)
        << status;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    EXPECT_LT(status.message().size(), 400u);
  }
}

TEST_F(GrammarTest, AGrammarThatTakesTooLongIsRefused) {
  GrammarCompiler quick(*tokenizer, vocabSize, {stop},
                        {.compileSeconds = 0.01});
  std::string regex;
  for (int i = 0; i < 300; ++i)
    regex += ".*";
  const absl::Status status =
      quick.compile({GrammarSource::Regex, regex}).status();
  EXPECT_EQ(exitCode(status), ExitCode::Usage);
  EXPECT_EQ(status.message(),
            "regex: it takes more than 0.01 s of a processor; "
            "make it simpler or less ambiguous");
}

TEST_F(GrammarTest, AGrammarThatTakesTooMuchMemoryIsRefused) {
  GrammarCompiler small(*tokenizer, vocabSize, {stop},
                        {.compileBytes = int64_t{1} << 20});
  // XGrammar's own, the rules of a schema, and the places in one.
  std::string wide =
      R"({"properties":{")" + std::string(20000, 'a') + R"(":{"properties":{)";
  for (int i = 0; i < 1000; ++i)
    absl::StrAppend(&wide, i ? "," : "", "\"p", i, "\":{}");
  wide += "}}}}";
  std::string words = "root ::= \"\"";
  for (int i = 0; i < 4000; ++i)
    absl::StrAppend(&words, " | \"", i * 7919, "\"");
  const GrammarSource sources[] = {
      {GrammarSource::Ebnf, words},
      {GrammarSource::JsonSchema,
       R"({"items":{"pattern":"^(a|b)*a(a|b){10}$"},"maxItems":3})"},
      {GrammarSource::JsonSchema, wide}};
  for (const GrammarSource &source : sources) {
    const absl::Status status = small.compile(source).status();
    EXPECT_EQ(exitCode(status), ExitCode::Usage) << source.text.substr(0, 99);
    EXPECT_NE(status.message().find("it takes more than 1 MB of memory; make "
                                    "it simpler"),
              std::string::npos)
        << status << source.text.substr(0, 99);
  }
  EXPECT_TRUE(small.compile({GrammarSource::JsonObject, ""}).ok());
}

TEST_F(GrammarTest, MemoryThatAGrammarLacksEndsNoTool) {
  std::string patterns = R"({"properties":{)";
  for (int i = 0; i < 100; ++i)
    absl::StrAppend(&patterns, i ? "," : "", "\"p", i,
                    R"(":{"pattern":"(a|b)*a(a|b){)", 4 + i % 7, "}\"}");
  patterns += "}}";
  // The translator lacks it, or XGrammar, by what there is besides.
  const auto compileWith = [&](uint64_t bytes) {
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto size = static_cast<uint64_t>(pages * sysconf(_SC_PAGESIZE));
    installFatalHandlers("test");
    const rlimit limit{size + bytes, size + bytes};
    setrlimit(RLIMIT_AS, &limit);
    const absl::Status status =
        compile(GrammarSource::JsonSchema, patterns).status();
    _exit(exitCode(status) == ExitCode::Memory ? 0 : 1);
  };
  EXPECT_EXIT(compileWith(1 << 20), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(compileWith(16 << 20), testing::ExitedWithCode(0), "");
}

TEST_F(GrammarTest, ASchemaIsTranslatedInTheSameTime) {
  // A value of each list is looked for in the others.
  std::string lists = R"({"allOf":[)";
  for (int list = 0; list < 8; ++list) {
    absl::StrAppend(&lists, list ? "," : "", R"({"enum":[)");
    for (int i = 0; i < 1200; ++i)
      absl::StrAppend(&lists, i ? "," : "", 1000 * list + i);
    lists += "]}";
  }
  lists += R"(,{"const":1}]})";
  // Each part has two that are the same; and choices that combine.
  std::string doubled = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 40; ++i)
    absl::StrAppend(&doubled, "\"d", i, R"(":{"allOf":[{"$ref":"#/$defs/d)",
                    i + 1, R"("},{"$ref":"#/$defs/d)", i + 1, "\"}]},");
  doubled += R"("d40":{"type":"null"}}})";
  std::string combined = R"({"type":"string","allOf":[)";
  for (int i = 0; i < 9; ++i) {
    absl::StrAppend(&combined, i ? "," : "", R"({"anyOf":[)");
    for (int j = 0; j < 6; ++j)
      absl::StrAppend(&combined, j ? "," : "", R"({"minLength":)", i * 7 + j,
                      "}");
    combined += "]}";
  }
  combined += "]}";
  const auto status = [&](const std::string &text, double seconds = 0.5) {
    GrammarCompiler quick(*tokenizer, vocabSize, {stop},
                          {.compileSeconds = seconds});
    return quick.compile({GrammarSource::JsonSchema, text}).status();
  };
  EXPECT_NE(status(lists).message().find("no value is valid"),
            std::string::npos);
  EXPECT_TRUE(status(doubled).ok()) << status(doubled);
  EXPECT_NE(status(combined, 0.02)
                .message()
                .find("it takes more than 0.02 s of a "
                      "processor"),
            std::string::npos)
      << status(combined, 0.02);
}

TEST_F(GrammarTest, AKeptGrammarIsFoundWhileAnotherIsCompiled) {
  const auto kept = grammar(GrammarSource::Regex, "a");
  std::atomic<bool> isUnwanted = false;
  absl::Status status;
  std::string slow;
  for (int i = 0; i < 300; ++i)
    slow += ".*";
  std::thread other([&] {
    status =
        compiler.compile({GrammarSource::Regex, slow}, &isUnwanted).status();
  });
  EXPECT_EQ(compiler.find({GrammarSource::Regex, "a"}), kept);
  EXPECT_EQ(grammar(GrammarSource::Regex, "a"), kept);
  EXPECT_EQ(compiler.find({GrammarSource::Regex, "b"}), nullptr);
  // Who waits for it may leave.
  isUnwanted = true;
  other.join();
  EXPECT_EQ(status.message(), "regex: nobody waits for it any more");
}

TEST_F(GrammarTest, MemoryOfGrammarsGoesBackToTheSystem) {
  const auto resident = [] {
    int64_t all = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * sysconf(_SC_PAGESIZE);
  };
  const int64_t before = resident();
  std::vector<std::string> texts(200000);
  for (std::string &text : texts)
    text = std::string(500, 'a');
  // An allocation above keeps those below.
  const std::string last(500, 'a');
  EXPECT_GT(resident() - before, int64_t{80} << 20);
  texts = {};
  giveMemoryBack(int64_t{100} << 20);
  EXPECT_LT(resident() - before, int64_t{40} << 20);
}

TEST_F(GrammarTest, AnAnswerThatIsTooAmbiguousEnds) {
  GrammarCompiler quick(*tokenizer, vocabSize, {stop},
                        {.answerSeconds = 0.05, .tokenSeconds = 1e-4});
  const auto ambiguous =
      quick.compile({GrammarSource::Ebnf,
                     "root ::= s\ns ::= s s s | [a-z] | s \"a\" s | \"\""});
  ASSERT_TRUE(ambiguous.ok()) << ambiguous.status();
  const std::unique_ptr<GrammarMatcher> matcher = *(*ambiguous)->newMatcher();
  absl::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    TokenMask mask;
    status = matcher->nextTokens(mask);
    if (status.ok())
      status = matcher->accept(firstByte + 'a').status();
  }
  EXPECT_EQ(exitCode(status), ExitCode::Usage) << status;
}

TEST_F(GrammarTest, TextThatTheVocabularyLacksIsRefused) {
  TokenizerData data;
  data.preTokenizer = PreTokenizerKind::Gpt2;
  data.tokens = {"<stop>", "a", "b"};
  data.types = {TokenType::Control, TokenType::Normal, TokenType::Normal};
  const auto words = *loadTokenizer(*writeTokenizerBlob(std::move(data), "ab"));
  GrammarCompiler small(*words, 3, {0});
  EXPECT_EQ(exitCode(small.compile({GrammarSource::Regex, "c"}).status()),
            ExitCode::Usage);
  // Later it is the sampler's error, and no crash.
  const auto dead = small.compile({GrammarSource::Regex, "ac"});
  ASSERT_TRUE(dead.ok());
  auto sampler = Sampler::create({.grammar = *dead}, {0});
  ASSERT_TRUE(sampler.ok());
  EXPECT_EQ(*sampler->sample({1, 2, 3}), 1);
  EXPECT_EQ(exitCode(sampler->sample({1, 2, 3}).status()), ExitCode::Usage);
}

//===----------------------------------------------------------------------===//
// The sampler
//===----------------------------------------------------------------------===//

TEST_F(GrammarTest, ASamplerChoosesWhatTheGrammarAllows) {
  const auto answer = grammar(GrammarSource::Ebnf, R"(root ::= "yes" | "no")");
  std::vector<float> logits(vocabSize);
  for (size_t id = 0; id < logits.size(); ++id)
    logits[id] = static_cast<float>(id) / 100;
  for (const double temperature : {0.0, 1.0})
    for (const bool isPrepared : {false, true}) {
      auto sampler = Sampler::create(
          {.temperature = temperature, .topK = 1, .grammar = answer}, {stop});
      ASSERT_TRUE(sampler.ok());
      EXPECT_FALSE(sampler->samplesOnDevice());
      std::vector<int32_t> ids;
      for (int i = 0; i < 2; ++i) {
        if (isPrepared)
          std::thread([&] { sampler->prepare(); }).join();
        ids.push_back(*sampler->sample(logits));
      }
      // The longest pieces have the largest ids; then it can only end.
      const std::vector<int32_t> yeS = {firstPiece + 3, firstByte + 's'};
      EXPECT_EQ(ids, yeS);
      EXPECT_EQ(*sampler->sample(logits), stop);
      EXPECT_EQ(exitCode(sampler->sample(logits).status()), ExitCode::Usage);
    }
}

TEST_F(GrammarTest, LeastTokensGiveWayToAGrammarThatCanOnlyEnd) {
  const auto letters = grammar(GrammarSource::Regex, "a{1,3}");
  std::vector<float> logits(vocabSize);
  logits[stop] = 9;
  auto sampler = Sampler::create({.minTokens = 2, .grammar = letters}, {stop});
  ASSERT_TRUE(sampler.ok());
  const int32_t a = firstByte + 'a';
  for (const int32_t expected : {a, a, stop})
    EXPECT_EQ(*sampler->sample(logits), expected);
  auto more = Sampler::create({.minTokens = 9, .grammar = letters}, {stop});
  ASSERT_TRUE(more.ok());
  for (const int32_t expected : {a, a, a, stop})
    EXPECT_EQ(*more->sample(logits), expected);
}

TEST_F(GrammarTest, StopIdsThatAreIgnoredEndNoGrammar) {
  const auto letter = grammar(GrammarSource::Regex, "a");
  EXPECT_EQ(exitCode(Sampler::create({.grammar = letter}).status()),
            ExitCode::Usage);
}

} // namespace
} // namespace llamac
