//===- ClangCompilerTest.cpp - Objects compiled and cached ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/clang/ClangCompiler.h"
#include "runtime/io/DiskCache.h"
#include "tests/runtime/io/TestFiles.h"

#include "absl/strings/str_cat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace llamac {
namespace {

using testing::HasSubstr;
using testing::Not;

class CachedObjects : public testing::Test {
protected:
  CachedObjects() {
    setenv("LLAMAC_OBJECT_CACHE", folder.path("").c_str(), /*overwrite=*/1);
  }
  ~CachedObjects() override {
    unsetenv("LLAMAC_OBJECT_CACHE");
    unsetenv("TMPDIR");
  }

  /// A shared object with the bytes of `text` in it.
  static ClangJob job(const std::string &text) {
    ClangJob job;
    job.what = "a test";
    job.headers = {{"word.h", "#define WORD \"\"\n"}};
    job.units = {
        {{"unit.cpp", absl::StrCat("#include \"word.h\"\n"
                                   "extern \"C\" const char text[] = \"",
                                   text, "\" WORD;\n")},
         {}}};
    return job;
  }

  static std::string compile(const ClangJob &job) {
    const absl::StatusOr<std::string> object = compileSharedObject(job);
    EXPECT_TRUE(object.ok()) << object.status();
    return object.value_or("");
  }

  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    const std::filesystem::path in = folder.path("objects");
    if (std::filesystem::exists(in))
      for (const auto &file : std::filesystem::directory_iterator(in))
        found.push_back(file.path());
    return found;
  }

  static std::string contentOf(const std::filesystem::path &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TestDirectory folder;
};

TEST_F(CachedObjects, TheSameUnitIsCompiledOnce) {
  compile(job("first words"));
  ASSERT_EQ(files().size(), 1u);
  const std::filesystem::path first = files().front();
  std::filesystem::rename(first, folder.path("first"));
  compile(job("other words"));
  ASSERT_EQ(files().size(), 1u);
  // The first's place in the cache now has the object of the other.
  std::filesystem::rename(files().front(), first);
  EXPECT_THAT(compile(job("first words")), HasSubstr("other words"));
}

TEST_F(CachedObjects, ADamagedOneIsMadeAgain) {
  const std::string before = compile(job("some words"));
  ASSERT_EQ(files().size(), 1u);
  const std::filesystem::path cached = files().front();
  {
    std::fstream file(cached, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('x');
  }
  EXPECT_EQ(compile(job("some words")), before);
  std::filesystem::resize_file(cached, 3);
  EXPECT_EQ(compile(job("some words")), before);
  EXPECT_GT(std::filesystem::file_size(cached), 100u) << "it was cached again";
}

TEST_F(CachedObjects, OneThatDoesNotLinkIsMadeAgain) {
  const std::string before = compile(job("some words"));
  ASSERT_EQ(files().size(), 1u);
  const std::string key = files().front().stem();
  const DiskCache cache(CacheKind::Objects);
  for (const std::string &content :
       {std::string("no object at all"), std::string(), *cache.find(key)}) {
    cache.keep(key, content.substr(0, 100));
    EXPECT_EQ(compile(job("some words")), before);
    EXPECT_GT(cache.find(key)->size(), 100u) << "it was cached again";
  }
}

TEST_F(CachedObjects, TheLinkerLeavesNothingOnDisk) {
  // A folder that it made here would stay behind when the process is killed.
  setenv("TMPDIR", folder.path("none").c_str(), 1);
  EXPECT_THAT(compile(job("some words")), HasSubstr("some words"));
}

TEST_F(CachedObjects, WhateverDecidesAnObjectNamesIt) {
  const ClangJob plain = job("words");
  compile(plain);
  std::vector<ClangJob> others(6, plain);
  others[0].headers = {{"word.h", "#define WORD \" and more\"\n"}};
  others[1].args = {"-O1"};
  others[2].units.front().args = {"-O1"};
  others[3].units.front().source.name = "other.cpp";
  others[4].settings = "an option of LLVM";
  others[5] = job("more words");
  for (size_t i = 0; i < others.size(); ++i) {
    compile(others[i]);
    EXPECT_EQ(files().size(), i + 2);
  }
  EXPECT_THAT(compile(others[0]), HasSubstr("words and more"));
  EXPECT_THAT(compile(plain), Not(HasSubstr("words and more")));
  EXPECT_EQ(files().size(), others.size() + 1);
}

TEST_F(CachedObjects, HeadersThatAreParsedOnceGiveTheSameObjects) {
  ClangJob three = job("words");
  three.headers = {{"word.h", "#pragma once\n"
                              "#define WORD \" here\"\n"
                              "template <int n> int add(int i) { return i + n; "
                              "}\n"}};
  const ClangUnit unit = three.units.front();
  three.units.clear();
  for (const char *n : {"1", "2", "3"}) {
    three.units.push_back(unit);
    std::string &text = three.units.back().source.text;
    // Each has a name of its own for the words.
    text = absl::StrCat("#define text text", n, "\n", text, "int f", n,
                        "(int i) { return add<", n, ">(i); }\n");
  }
  EXPECT_THAT(compile(three), HasSubstr("words here"));
  std::map<std::filesystem::path, std::string> together;
  for (const std::filesystem::path &file : files()) {
    together[file] = contentOf(file);
    std::filesystem::remove(file);
  }
  ASSERT_EQ(together.size(), 4u) << "three objects, and the headers";
  for (const ClangUnit &each : three.units) {
    ClangJob alone = three;
    alone.units = {each};
    compile(alone);
  }
  ASSERT_EQ(files().size(), 3u);
  for (const std::filesystem::path &file : files())
    EXPECT_EQ(contentOf(file), together[file]);
}

TEST_F(CachedObjects, AUnitThatDoesNotCompileIsNotCached) {
  ClangJob wrong = job("words");
  wrong.units.front().source.text += "int x = nothing;\n";
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(std::string(compileSharedObject(wrong).status().message()),
                HasSubstr("'nothing'"));
  EXPECT_TRUE(files().empty());
}

TEST_F(CachedObjects, NothingIsCachedWhereThatIsNotWantedOrNotPossible) {
  const std::string before = compile(job("words"));
  setenv("LLAMAC_OBJECT_CACHE", "", 1);
  EXPECT_EQ(compile(job("words")), before);
  // A folder cannot be made below a file.
  setenv("LLAMAC_OBJECT_CACHE", folder.write("file", "x").append("/x").c_str(),
         1);
  EXPECT_EQ(compile(job("words")), before);
  EXPECT_EQ(files().size(), 1u);
}

} // namespace
} // namespace llamac
