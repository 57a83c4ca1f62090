//===- Signal.h - Wakes a coroutine -----------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SERVE_HTTP_SIGNAL_H
#define LLAMAC_SERVE_HTTP_SIGNAL_H

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <utility>

namespace llamac::serve {

namespace asio = boost::asio;
template <typename T> using Task = asio::awaitable<T>;
using Clock = std::chrono::steady_clock;

/// For operations whose errors are values: gives a tuple of an error code and
/// the result.
inline constexpr auto asValue = asio::as_tuple(asio::use_awaitable);

/// A signal that one coroutine waits for and others of the same thread set off.
class Signal {
public:
  explicit Signal(const asio::any_io_executor &executor) : timer(executor) {}

  void notify() {
    isSet = true;
    timer.cancel();
  }

  /// Until notify() was called since the last time, or it is `latest`: false.
  Task<bool> wait(Clock::time_point latest = Clock::time_point::max()) {
    if (!isSet) {
      timer.expires_at(latest);
      co_await timer.async_wait(asValue);
    }
    co_return std::exchange(isSet, false);
  }

private:
  asio::steady_timer timer;
  bool isSet = false;
};

} // namespace llamac::serve

#endif // LLAMAC_SERVE_HTTP_SIGNAL_H
