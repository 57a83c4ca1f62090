//===- DrawTokens.cpp - The tokens that many keys draw --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: draw-tokens TEMPERATURE MIN_P TOP_K TOP_P DRAWS < LOGITS > IDS
//
// Logits are float32; of each of DRAWS noise keys, which count up from 0, the
// id of its token is written as int32.
//
//===----------------------------------------------------------------------===//

#include "engine/sampling/Sampler.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace llamac;

int main(int argc, char **argv) {
  if (argc != 6) {
    std::fputs("usage: draw-tokens TEMPERATURE MIN_P TOP_K TOP_P DRAWS\n",
               stderr);
    return 2;
  }
  std::vector<float> logits;
  for (float logit; std::fread(&logit, sizeof(logit), 1, stdin) == 1;)
    logits.push_back(logit);
  auto sampler = Sampler::create({.temperature = std::atof(argv[1]),
                                  .topK = std::atoll(argv[3]),
                                  .topP = std::atof(argv[4]),
                                  .minP = std::atof(argv[2])});
  if (!sampler.ok()) {
    std::fprintf(stderr, "%s\n",
                 std::string(sampler.status().message()).c_str());
    return 2;
  }
  const auto draws = static_cast<uint32_t>(std::atoi(argv[5]));
  for (uint32_t noiseKey = 0; noiseKey < draws; ++noiseKey) {
    const int32_t id = sampler->choose(logits, noiseKey);
    std::fwrite(&id, sizeof(id), 1, stdout);
  }
  return 0;
}
