//===- WrappersTest.cpp - Every PTX wrapper on every device ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/Sources.h"
#include "tests/conformance/wrappers/WrapperCases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace llamac::conformance {

//===----------------------------------------------------------------------===//
// Every wrapper has a case
//===----------------------------------------------------------------------===//

/// `text` without comments and without the definitions of macros.
static std::string codeOf(const std::string &text) {
  std::stringstream in(text);
  std::string code, line;
  for (bool inDefine = false; std::getline(in, line);) {
    inDefine = inDefine || line.rfind("#define", 0) == 0;
    if (!inDefine)
      code += line.substr(0, line.find("//")) + "\n";
    inDefine = inDefine && !line.empty() && line.back() == '\\';
  }
  return code;
}

static std::set<std::string> allMatches(const std::string &text,
                                        const std::string &pattern) {
  const std::regex regex(pattern);
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end;
       ++it)
    names.insert((*it)[1]);
  return names;
}

/// The functions that a header of wrappers declares, by itself or by a macro
/// that declares one: LLAMAC_MMA(mmaBf16, ...).
static std::set<std::string> wrappersIn(const std::string &header) {
  const std::string code = codeOf(header);
  std::set<std::string> names = allMatches(
      code, R"(\bLLAMAC_DEVICE\s+[\w:<>,&*\s]*?\b(\w+)\s*(?:<\w+>)?\()");
  names.merge(allMatches(code, R"((?:^|\n)LLAMAC_[A-Z]\w*\((\w+),)"));
  return names;
}

/// Wrappers of `header` that no kernel of `kernels` calls.
static std::vector<std::string> uncalled(const std::string &header,
                                         const std::string &kernels) {
  const std::set<std::string> called =
      allMatches(codeOf(kernels), R"(\b(\w+)\s*(?:<[^;(){}]*>)?\()");
  std::vector<std::string> missing;
  for (const std::string &name : wrappersIn(header))
    if (!called.contains(name))
      missing.push_back(name);
  return missing;
}

/// The text of a device header.
static std::string headerText(const std::string &name) {
  static constexpr struct {
    const char *name;
    const char *text;
  } headers[] = {
#include "DeviceHeaders.inc"
  };
  for (const auto &header : headers)
    if (header.name == "llamac/" + name)
      return header.text;
  return {};
}

TEST(Wrappers, EveryWrapperIsCalledByAMicroKernel) {
  for (const char *name : {"ptx.cuh", "ptx_sm90.cuh", "ptx_sm90a.cuh"}) {
    const std::string header = headerText(name);
    ASSERT_GT(wrappersIn(header).size(), 5U) << name;
    // An address is what every wrapper on shared memory begins with; the
    // simulator needs none.
    EXPECT_THAT(uncalled(header, wrappersSource().text),
                testing::IsSubsetOf({"sharedAddress"}))
        << "declared in " << name
        << ": add a kernel to Wrappers.cu and a case to WrapperCases.cpp";
  }
}

TEST(Wrappers, EveryMicroKernelHasACase) {
  std::set<std::string> cases;
  for (const WrapperCase &wrapper : wrapperCases())
    EXPECT_TRUE(cases.insert(wrapper.kernel).second)
        << wrapper.kernel << " has two cases";
  EXPECT_EQ(cases, allMatches(codeOf(wrappersSource().text),
                              R"(WRAPPER\((\w+)\) \{)"));
}

TEST(Wrappers, AWrapperWithoutAMicroKernelIsFound) {
  const std::string header = R"(
#define LLAMAC_PAIR(name, ptx)                                                 \
  LLAMAC_DEVICE uint32_t name(uint32_t value) { return value; }
LLAMAC_PAIR(viaMacro, "x")
LLAMAC_PAIR(viaMacroUncalled, "y")
template <int size>
LLAMAC_DEVICE void copy(void *to, const void *from) {}
template <> LLAMAC_DEVICE float convert<float>(float value) { return value; }
LLAMAC_DEVICE uint32_t uncalledFunction(const uint32_t *from) {}
)";
  const std::string kernels = R"(
WRAPPER(a) { viaMacro(1); copy<16>(out, in); convert<float>(1); }
// uncalledFunction(in)
)";
  EXPECT_THAT(uncalled(header, kernels),
              testing::ElementsAre("uncalledFunction", "viaMacroUncalled"));
}

} // namespace llamac::conformance
