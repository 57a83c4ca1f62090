//===- FuzzServer.h - What a client may send to a server --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_FUZZ_FUZZSERVER_H
#define LLAMAC_TESTS_FUZZ_FUZZSERVER_H

#include "absl/strings/string_view.h"

#include <string>
#include <vector>

namespace llamac {

// Each aborts where `bytes` bring about what must not be; see FuzzReaders.cpp.

/// A connection's bytes, in pieces.
void fuzzHttp(absl::string_view bytes);
std::vector<std::string> httpSeeds();

/// The body of a chat: messages and tools.
void fuzzChatRequest(absl::string_view bytes);
std::vector<std::string> chatRequestSeeds();

/// A model's answer with calls of tools, cut anywhere.
void fuzzToolCalls(absl::string_view bytes);
std::vector<std::string> toolCallSeeds();

} // namespace llamac

#endif // LLAMAC_TESTS_FUZZ_FUZZSERVER_H
