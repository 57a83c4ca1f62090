//===- ChatTest.cpp - A conversation with a model -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "tests/TemporaryFolder.h"
#include "tests/engine/toy/ToyModel.h"
#include "text/request/RequestOptions.h"
#include "tools/ChatCommand.h"
#include "tools/ChatSettings.h"
#include "tools/Conversation.h"
#include "tools/LineInput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void expectUsage(const absl::Status &status, const char *message) {
  EXPECT_EQ(exitCode(status), ExitCode::Usage);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

void expectBadFile(const absl::Status &status, const char *message) {
  EXPECT_EQ(exitCode(status), ExitCode::BadFile);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

//===----------------------------------------------------------------------===//
// Conversations
//===----------------------------------------------------------------------===//

/// The toy model's form of each message: its content alone.
constexpr const char *bareTemplate =
    "{% for m in messages %}{{ m.content }}{% endfor %}";

/// With the toy model, and a conversation in a file.
class ConversationTest : public testing::Test {
protected:
  void SetUp() override {
    const auto loaded = Model::load(plan.path(), {.threads = 1});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model = *loaded;
    format = *ChatFormat::create(*model->tokenizer(), bareTemplate, "given");
  }

  std::string write(const std::string &text) const {
    const std::string path = folder.file("conversation.json");
    std::ofstream(path) << text;
    return path;
  }

  absl::StatusOr<Conversation> load(const std::string &path) const {
    return Conversation::load(path, *format);
  }

  toy::ToyPlanFile plan;
  std::shared_ptr<const Model> model;
  std::unique_ptr<const ChatFormat> format;
  TemporaryFolder folder;
};

TEST_F(ConversationTest, IsOpenAIsMessages) {
  Conversation conversation;
  conversation.add("user", "a\"\n");
  conversation.setSystem("s");
  conversation.add("assistant", "é");
  EXPECT_EQ(conversation.json(), R"([{"role":"system","content":"s"},)"
                                 R"({"role":"user","content":"a\"\n"},)"
                                 R"({"role":"assistant","content":"é"}])");
}

TEST_F(ConversationTest, TheSystemMessageOutlivesTheOthers) {
  Conversation conversation;
  EXPECT_TRUE(conversation.isEmpty());
  conversation.setSystem("s");
  conversation.add("user", "a");
  EXPECT_FALSE(conversation.isEmpty());
  conversation.clear();
  EXPECT_TRUE(conversation.isEmpty());
  EXPECT_EQ(conversation.system(), "s");
  conversation.setSystem(std::nullopt);
  EXPECT_TRUE(conversation.messages().empty());
}

TEST_F(ConversationTest, IsReadAsItWasWritten) {
  Conversation conversation;
  conversation.setSystem("s");
  conversation.add("user", "日本 \x01\n");
  conversation.add("assistant", "");
  const std::string path = folder.file("saved.json");
  ASSERT_TRUE(conversation.save(path).ok());
  const auto loaded = load(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->json(), conversation.json());
}

TEST_F(ConversationTest, RefusesWhatIsNone) {
  for (const auto &[text, message] :
       {std::pair("[]", "object"), std::pair("{}", "messages: expected an arr"),
        std::pair(R"({"messages": 5})", "messages: expected"),
        std::pair(R"({"messages": ["a"]})", "expected"),
        std::pair(R"({"messages": [{"role": "user"}]})",
                  "content: expected a string or an array of parts, got none"),
        std::pair(R"({"messages": [{"content": "a"}]})", "role: expected one"),
        std::pair(R"({"messages": [{"role": "user", "content": "a", "x": 1}]})",
                  "x: expected one of role, content")})
    expectBadFile(load(write(text)).status(), message);
  expectBadFile(load("/nowhere.json").status(), "/nowhere.json");
}

TEST_F(ConversationTest, IsReadAsTheServerReadsIt) {
  const auto loaded = load(write(R"({"messages": [
      {"role": "developer", "content": [{"type": "text", "text": "a"}]},
      {"role": "assistant", "content": null, "tool_calls": [{"type": "function",
       "function": {"name": "f", "arguments": "{}"}}]},
      {"role": "tool", "content": "5", "tool_call_id": "x"}]})"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->system(), "a");
  EXPECT_EQ(loaded->json(),
            R"([{"role":"system","content":"a"},)"
            R"({"role":"assistant","content":"","tool_calls":[{"type":)"
            R"("function","function":{"name":"f","arguments":"{}"}}]},)"
            R"({"role":"tool","content":"5","tool_call_id":"x"}])");
}

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

absl::Status accept(Request &) { return absl::OkStatus(); }

TEST(ChatSettingsTest, TakesNumbersTextsAndJson) {
  ChatSettings settings({});
  ASSERT_TRUE(settings.set("temperature", "0.7", accept).ok());
  ASSERT_TRUE(settings.set("seed", "18446744073709551615", accept).ok());
  ASSERT_TRUE(settings.set("stop", "5 o'clock", accept).ok());
  ASSERT_TRUE(settings.set("logit_bias", R"({"5": -1.5})", accept).ok());
  ASSERT_TRUE(settings.set("ignore_eos", "true", accept).ok());
  const GenerateOptions &options = settings.request().options;
  EXPECT_EQ(options.sampling.temperature, 0.7);
  EXPECT_EQ(options.sampling.seed, UINT64_MAX);
  EXPECT_THAT(options.stopStrings, ElementsAre("5 o'clock"));
  EXPECT_THAT(options.sampling.logitBias, ElementsAre(std::pair(5, -1.5f)));
  EXPECT_FALSE(options.stopAtStopIds);
  ASSERT_TRUE(settings.set("stop", R"(["a", "5"])", accept).ok());
  EXPECT_THAT(settings.request().options.stopStrings, ElementsAre("a", "5"));
  ASSERT_TRUE(settings.set("regex", "5", accept).ok());
  EXPECT_EQ(settings.request().grammar->text, "5");
}

TEST(ChatSettingsTest, ABeginningThatIsTheOnlyOneWillDo) {
  ChatSettings settings({});
  ASSERT_TRUE(settings.set("temp", "1", accept).ok());
  EXPECT_EQ(*settings.show("temp"), "temperature 1");
  expectUsage(settings.set("top", "1", accept), "which begins top_k, top_p");
  expectUsage(settings.set("tempratur", "1", accept),
              "did you mean temperature?");
  expectUsage(settings.set("n", "2", accept), "expected an option");
}

TEST(ChatSettingsTest, DefaultIsWhatItBeganWith) {
  Request defaults;
  defaults.options.sampling.topK = 7;
  ChatSettings settings(defaults);
  ASSERT_TRUE(settings.set("top_k", "9", accept).ok());
  ASSERT_TRUE(settings.set("regex", "a+", accept).ok());
  ASSERT_TRUE(settings.set("json_object", "true", accept).ok());
  EXPECT_EQ(*settings.show("regex"), "regex none");
  EXPECT_EQ(*settings.show("json_object"), "json_object true");
  ASSERT_TRUE(settings.set("top_k", "default", accept).ok());
  ASSERT_TRUE(settings.set("json_object", "default", accept).ok());
  EXPECT_EQ(*settings.show("top_k"), "top_k 7");
  EXPECT_FALSE(settings.request().grammar);
}

TEST(ChatSettingsTest, AWrongValueChangesNothing) {
  ChatSettings settings({});
  expectUsage(settings.set("top_k", "0.5", accept),
              "/set top_k: expected a value such as 0, got \"0.5\"");
  expectUsage(settings.set("top_k", "many", accept), "got \"many\"");
  expectUsage(settings.set("top_k", R"(1,"seed":2)", accept), "/set top_k");
  expectUsage(
      settings.set("top_k", "3", [](Request &) { return usageError("no"); }),
      "no");
  EXPECT_EQ(*settings.show("top_k"), "top_k 0");
}

TEST(ChatSettingsTest, ListsAllThatConcernsOneAnswer) {
  const std::string list = ChatSettings({}).list();
  for (const NamedOption<Request> &option : requestOptions()) {
    const std::string name = option.name;
    const bool isOffered = name != "n" && name != "priority" &&
                           name != "detokenize" && name != "logprobs" &&
                           name != "add_special_tokens" &&
                           name != "parse_special";
    EXPECT_EQ(list.find("  " + name + " ") != std::string::npos, isOffered)
        << name;
  }
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

TEST(PlainLinesTest, AreThoseOfTheFile) {
  std::string text = "a\r\n\nlast";
  std::FILE *file = fmemopen(text.data(), text.size(), "r");
  const auto input = plainLines(file);
  std::string line;
  for (const char *expected : {"a", "", "last"}) {
    ASSERT_EQ(input->next("> ", line), LineInput::Outcome::Line);
    EXPECT_EQ(line, expected);
  }
  EXPECT_EQ(input->next("> ", line), LineInput::Outcome::End);
  std::fclose(file);
}

TEST(StateFileTest, IsInAFolderOfTheUserAlone) {
  const TemporaryFolder folder;
  setenv("XDG_STATE_HOME", folder.file("state").c_str(), 1);
  const auto path = stateFile("history");
  unsetenv("XDG_STATE_HOME");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, folder.file("state/llamac/history"));
  struct stat info;
  ASSERT_EQ(stat(folder.file("state/llamac").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

//===----------------------------------------------------------------------===//
// The command, through pipes
//===----------------------------------------------------------------------===//

class ChatCommandTest : public ConversationTest {
protected:
  void SetUp() override {
    ConversationTest::SetUp();
    options.request.options.maxTokens = 3;
    options.given = {&requestOptions().front()};
    options.chat.templateFile = "given";
    options.chat.templateText = bareTemplate;
  }

  /// Sends `lines`; what came is in `out` and `log`.
  absl::Status chat(std::string lines) {
    std::FILE *in = fmemopen(lines.data(), lines.size(), "r");
    std::FILE *outFile = std::tmpfile(), *logFile = std::tmpfile();
    const absl::Status status =
        chatCommand(model, options, in, outFile, logFile);
    std::fclose(in);
    out = contentsOf(outFile);
    log = contentsOf(logFile);
    return status;
  }

  static std::string contentsOf(std::FILE *file) {
    std::string text;
    std::rewind(file);
    for (int byte; (byte = std::fgetc(file)) != EOF;)
      text += static_cast<char>(byte);
    std::fclose(file);
    return text;
  }

  /// The toy model's answer of three tokens to the text of ids.
  static std::string answerTo(const std::vector<int> &prompt) {
    std::string text;
    for (int id : toy::greedyAfter(prompt, 3))
      text += id < 2 ? "" : toy::tokenText(id); // Control tokens have none.
    return text;
  }

  ChatCommandOptions options;
  std::string out, log;
};

TEST_F(ChatCommandTest, AnswersEachLineAndEndsWell) {
  ASSERT_TRUE(chat("a\n\n").ok());
  EXPECT_EQ(out, answerTo({2}) + "\n");
  EXPECT_THAT(log, HasSubstr("cut at max_tokens 3"));
}

TEST_F(ChatCommandTest, AWrongCommandGetsASuggestionAndTheNextLineItsAnswer) {
  ASSERT_TRUE(
      chat("/claer\na\n/clear x\n/save\n/load /nowhere\n/regenerat\n").ok());
  EXPECT_EQ(out, answerTo({2}) + "\n");
  EXPECT_THAT(log, HasSubstr("/claer: unknown command; did you mean /clear?"));
  EXPECT_THAT(log, HasSubstr("/clear: expected nothing after it, got \"x\""));
  EXPECT_THAT(log, HasSubstr("/save: expected a file, got none"));
  EXPECT_THAT(log, HasSubstr("/nowhere"));
  EXPECT_THAT(log, HasSubstr("did you mean /regenerate?"));
}

TEST_F(ChatCommandTest, LinesThatGoOnAreOneMessage) {
  options.chat.templateText = "{{ 'a' if messages[0].content == 'a\\nb' else "
                              "raise_exception(messages[0].content) }}";
  for (const char *lines :
       {"a\\\nb\n", "\"\"\"a\nb\"\"\"\n", "\"\"\"\na\nb\n\"\"\"\n"}) {
    ASSERT_TRUE(chat(lines).ok());
    EXPECT_THAT(log, testing::Not(HasSubstr("error"))) << lines;
  }
}

TEST_F(ChatCommandTest, TwoSlashesBeginAMessageWithOne) {
  options.chat.templateText = "{{ raise_exception(messages[0].content) }}";
  ASSERT_TRUE(chat("//a\n").ok());
  EXPECT_THAT(log, HasSubstr("line 1: /a\n"));
}

TEST_F(ChatCommandTest, AMessageThatFailsIsNotInTheConversation) {
  options.chat.templateText =
      "{{ raise_exception('no') if messages[-1].content == 'b' }}"
      "{{ messages[0].content }}{{ raise_exception('two') if messages|length > "
      "1 }}";
  ASSERT_TRUE(chat("b\na\n").ok());
  EXPECT_THAT(log, HasSubstr("line 1: no"));
  EXPECT_EQ(out, answerTo({2}) + "\n");
}

TEST_F(ChatCommandTest, AFullContextIsSaidWithBothNumbers) {
  ASSERT_TRUE(chat(std::string(toy::context + 9, 'a') + "\n").ok());
  EXPECT_EQ(out, "");
  EXPECT_THAT(log,
              HasSubstr("the context is full: the conversation has 39 tokens"));
  EXPECT_THAT(log, HasSubstr(" and " + std::to_string(toy::context) + " fit"));
  EXPECT_THAT(log, HasSubstr("/clear"));
}

TEST_F(ChatCommandTest, BytesThatAreNoUtf8AreRefused) {
  ASSERT_TRUE(chat("\xff\n").ok());
  EXPECT_EQ(out, "");
  EXPECT_THAT(log, HasSubstr("message: expected UTF-8"));
}

TEST_F(ChatCommandTest, AConversationIsSavedAndGoneOnWith) {
  const std::string path = folder.file("saved.json");
  options.chat.system = "a";
  ASSERT_TRUE(chat("a\n/save " + path + "\n/clear\n/load " + path + "\n/save " +
                   path + "2\n")
                  .ok());
  const auto first = load(path), second = load(path + "2");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->json(), second->json());
  EXPECT_EQ(first->system(), "a");
  ASSERT_EQ(first->messages().size(), 3u);
  EXPECT_EQ(first->messages()[2]["content"].get<std::string>() + "\n", out);
}

TEST_F(ChatCommandTest, RegeneratesTheLastAnswer) {
  const std::string path = folder.file("saved.json");
  ASSERT_TRUE(chat("/regenerate\na\n/set max_tokens 2\n/regenerate\n/save " +
                   path + "\n")
                  .ok());
  EXPECT_THAT(log, HasSubstr("/regenerate: expected an answer before it"));
  const auto saved = load(path);
  ASSERT_TRUE(saved.ok()) << saved.status();
  ASSERT_EQ(saved->messages().size(), 2u);
  const std::string all = answerTo({2});
  const auto kept = saved->messages()[1]["content"].get<std::string>();
  EXPECT_EQ(out, all + "\n" + kept + "\n");
  EXPECT_EQ(all.find(kept), 0u);
  EXPECT_LT(kept.size(), all.size());
}

TEST_F(ChatCommandTest, ExitEndsBeforeTheRest) {
  ASSERT_TRUE(chat("/exit\na\n").ok());
  EXPECT_EQ(out, "");
}

TEST_F(ChatCommandTest, AModelWithoutATokenizerIsAUsageError) {
  const toy::ToyPlanFile bare(
      [](toy::ToyPlan &toy) { toy.plan.tokenizer.reset(); });
  model = *Model::load(bare.path(), {.threads = 1});
  expectUsage(chat("a\n"),
              "expected a model with a tokenizer, got one without");
}

TEST_F(ChatCommandTest, AModelWithoutATemplateIsAUsageError) {
  options.chat = {};
  expectUsage(chat("a\n"), "chat template: expected one called default");
}

} // namespace
} // namespace llamac
