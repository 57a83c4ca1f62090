//===- OnPool.h - Work on another thread ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_HTTP_ONPOOL_H
#define LLAMAC_SERVE_HTTP_ONPOOL_H

#include "runtime/base/Exceptions.h"
#include "serve/http/Signal.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>

#include <type_traits>
#include <utility>

namespace llamac::serve {

/// `run`, on one of the threads of `pool`. What it throws, also for want of
/// memory, comes to who waits for it.
template <typename Function>
auto onPool(asio::thread_pool &pool, Function run)
    -> Task<std::invoke_result_t<Function>> {
  co_return co_await asio::co_spawn(
      pool,
      [run = std::move(run)]() -> Task<std::invoke_result_t<Function>> {
        const MemoryThrows throws;
        co_return run();
      },
      asio::use_awaitable);
}

} // namespace llamac::serve

#endif // LLAMAC_SERVE_HTTP_ONPOOL_H
