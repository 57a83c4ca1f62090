//===- GrammarQueue.cpp - Grammars that are being compiled ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/GrammarQueue.h"

#include "runtime/base/Exceptions.h"
#include "runtime/base/Status.h"
#include "serve/http/OnPool.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

#include <boost/asio/detached.hpp>

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

namespace llamac::serve {

struct GrammarQueue::Place {
  GrammarCompiler *compiler;
  GrammarSource source;
  std::vector<Signal *> waiting = {}; ///< Signals of the requests that wait.
  std::atomic<bool> isUnwanted = false;
  std::optional<absl::StatusOr<std::shared_ptr<const Grammar>>> made = {};
};

Task<absl::StatusOr<std::shared_ptr<const Grammar>>>
GrammarQueue::compile(HttpExchange &exchange, GrammarCompiler &compiler,
                      const GrammarSource &source) {
  // It may have been compiled since the request was read.
  if (auto kept = compiler.find(source))
    co_return kept;
  const auto same = std::ranges::find_if(places, [&](const auto &place) {
    return place->compiler == &compiler && place->source == source &&
           !place->isUnwanted;
  });
  std::shared_ptr<Place> place;
  if (same != places.end()) {
    place = *same;
  } else {
    if (places.size() > mostWaiting)
      co_return memoryError(absl::StrCat(
          "expected at most ", mostWaiting,
          " grammars that wait to be compiled, got more; try again later"));
    place = std::make_shared<Place>(&compiler, source);
    places.push_back(place);
    if (places.size() == 1)
      asio::co_spawn(context, work(), asio::detached);
  }
  Signal &changed = exchange.changed();
  place->waiting.push_back(&changed);
  const absl::Cleanup leave = [&] {
    std::erase(place->waiting, &changed);
    if (!place->waiting.empty() || place->made)
      return;
    place->isUnwanted = true;
    if (place != places.front())
      std::erase(places, place);
  };
  while (!place->made && !exchange.clientLeft())
    co_await changed.wait();
  if (!place->made)
    co_return absl::CancelledError("the client left");
  co_return *place->made;
}

/// Compiles until nothing waits.
Task<void> GrammarQueue::work() {
  while (!places.empty()) {
    const std::shared_ptr<Place> place = places.front();
    auto made = co_await onPool(worker, [&] {
      return withoutExceptions([&] {
        return place->compiler->compile(place->source, &place->isUnwanted);
      });
    });
    place->made = std::move(made);
    places.pop_front();
    for (Signal *const changed : place->waiting)
      changed->notify();
  }
}

} // namespace llamac::serve
