//===- GrammarQueue.h - Grammars that are being compiled --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A grammar may take seconds to compile, so that a thread of its own does it,
// in the order of arrival, and no other request waits. Requests that ask for
// the same grammar share a place. A place is free again when all of them have
// left, also while it is compiled.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_API_GRAMMARQUEUE_H
#define LLAMAC_SERVE_API_GRAMMARQUEUE_H

#include "serve/http/HttpConnection.h"
#include "text/grammar/Grammar.h"

#include "absl/status/statusor.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <cstddef>
#include <deque>
#include <memory>

namespace llamac::serve {

/// Used by the thread of `context`, which has ended when it is destroyed.
class GrammarQueue {
public:
  /// Grammars that may wait behind the one that is compiled.
  static constexpr size_t mostWaiting = 8;

  explicit GrammarQueue(asio::io_context &context)
      : context(context), worker(1) {}
  ~GrammarQueue() { worker.join(); }

  /// The grammar of `source` by `compiler`, which outlives the queue, for the
  /// request of `exchange`. Errors: those of the compiler; memory where too
  /// many wait; cancelled where the client has left.
  Task<absl::StatusOr<std::shared_ptr<const Grammar>>>
  compile(HttpExchange &exchange, GrammarCompiler &compiler,
          const GrammarSource &source);

  /// Grammars that are compiled or wait.
  size_t size() const { return places.size(); }

private:
  struct Place;
  Task<void> work();

  asio::io_context &context;
  asio::thread_pool worker;
  std::deque<std::shared_ptr<Place>> places; ///< The first is compiled.
};

} // namespace llamac::serve

#endif // LLAMAC_SERVE_API_GRAMMARQUEUE_H
