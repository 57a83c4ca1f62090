//===- RenderTemplates.cpp - Renders templates for tests ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// render-templates < CASES > RESULTS: a case is a line of JSON, {"template":
// ..., "messages": [...], "tools": ..., "documents": ..., "bos_token": ...,
// "eos_token": ..., "add_generation_prompt": ..., "variables": {...}}. A result
// is a line {"text": ...} or {"error": ...}. The time is 2024-07-26, 13:05:09.
//
//===----------------------------------------------------------------------===//

#include "text/templates/ChatTemplate.h"

#include <nlohmann/json.hpp>

#include <iostream>

using namespace llamac;
using nlohmann::ordered_json;

static std::string jsonOf(const ordered_json &root, const char *key) {
  return root.contains(key) ? root[key].dump() : "";
}

static ordered_json render(const ordered_json &root) {
  ChatTemplateInputs inputs;
  inputs.messages = jsonOf(root, "messages");
  inputs.tools = jsonOf(root, "tools");
  inputs.documents = jsonOf(root, "documents");
  inputs.addGenerationPrompt = root.value("add_generation_prompt", false);
  if (root.contains("bos_token"))
    inputs.bosToken = root["bos_token"].get<std::string>();
  if (root.contains("eos_token"))
    inputs.eosToken = root["eos_token"].get<std::string>();
  if (root.contains("variables"))
    for (const auto &[name, value] : root["variables"].items())
      inputs.variables.emplace_back(name, value.dump());
  inputs.now = [] {
    std::tm time{};
    time.tm_year = 2024 - 1900;
    time.tm_mon = 6;
    time.tm_mday = 26;
    time.tm_hour = 13;
    time.tm_min = 5;
    time.tm_sec = 9;
    time.tm_wday = 5;
    time.tm_yday = 207;
    return time;
  };
  const auto parsed =
      ChatTemplate::parse(root.at("template").get<std::string>());
  if (!parsed.ok())
    return {{"error", parsed.status().message()}};
  const auto text = parsed->render(inputs);
  if (!text.ok())
    return {{"error", text.status().message()}};
  return {{"text", *text}};
}

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::cout << render(ordered_json::parse(line))
                     .dump(-1, ' ', false,
                           ordered_json::error_handler_t::replace)
              << '\n';
  return 0;
}
