//===- ServeCommand.cpp - Serves models over HTTP -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/ServeCommand.h"

#include "runtime/base/DamagedFiles.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/MappedFile.h"
#include "serve/api/Service.h"
#include "serve/http/Signal.h"
#include "tools/ChatOptions.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <utility>

namespace llamac {

using namespace serve;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

namespace {
/// A model as the command line names it.
struct NamedPath {
  std::string name, path;
};
} // namespace

/// "NAME=PATH", or a path, whose last part is the name, or the name of a pulled
/// model, which stays as it is.
static NamedPath parseModel(const std::string &text) {
  // A path may have a = in it, behind a / or in a file's name.
  const size_t equal = text.find('=');
  if (equal != std::string::npos && equal > 0 && text.find('/') > equal &&
      !std::filesystem::exists(text))
    return {text.substr(0, equal), text.substr(equal + 1)};
  std::filesystem::path path(text);
  if (!path.has_filename())
    path = path.parent_path();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return {path.filename().string(), text};
  const bool isFile = path.extension() == ".gguf" ||
                      path.extension() == ".plan" ||
                      std::filesystem::exists(path, ignored);
  return {isFile ? path.stem().string() : text, text};
}

void loadFor(const ServeOptions &options, ModelOptions &loading) {
  loadForSharing(options.parallel, options.hostParallel, loading);
}

absl::Status checkServe(const ServeOptions &options) {
  std::set<std::string> names;
  for (const std::string &text : options.models)
    if (const NamedPath model = parseModel(text);
        !names.insert(model.name).second)
      return usageError(absl::StrCat("MODEL: expected models of different "
                                     "names, got two of ",
                                     model.name, "; NAME=", model.path,
                                     " gives another one"));
  if (options.models.size() > 1 && !options.scheduler.prefixFile.empty())
    return usageError(absl::StrCat("--prefix-cache: expected one model, whose "
                                   "file it is, got ",
                                   options.models.size()));
  if (options.certificate.empty() != options.key.empty())
    return usageError("--tls-cert and --tls-key: expected both, got one");
  for (const std::string &origin : options.origins)
    if (origin != "*" && !absl::StrContains(origin, "://"))
      return usageError(absl::StrCat("--cors: expected an origin such as "
                                     "https://example.org, or *, got ",
                                     origin));
  return absl::OkStatus();
}

/// The keys in the file at `path`, one a line; # begins a comment.
static absl::StatusOr<std::vector<std::string>>
readKeys(const std::string &path) {
  std::vector<std::string> keys;
  if (path.empty())
    return keys;
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  for (const absl::string_view line : absl::StrSplit(file->text(), '\n'))
    if (const absl::string_view key = absl::StripAsciiWhitespace(line);
        !key.empty() && key.front() != '#')
      keys.emplace_back(key);
  if (keys.empty())
    return badFileError(
        absl::StrCat(path, ": expected a key on each line, got none"));
  std::error_code ignored;
  const auto rights = std::filesystem::status(path, ignored).permissions();
  if ((rights & std::filesystem::perms::others_read) !=
      std::filesystem::perms::none)
    printWarning(absl::StrCat(path, ": every user of this machine can read "
                                    "the keys; chmod 600 mends that"));
  return keys;
}

//===----------------------------------------------------------------------===//
// Serving
//===----------------------------------------------------------------------===//

/// Closes `server` when nothing runs any more, or `seconds` are over.
static Task<void> drain(asio::io_context &context, HttpServer &server,
                        Service &service, int64_t seconds) {
  service.drain();
  server.drain();
  asio::steady_timer pause(context);
  const auto waitFor = [&](auto isDone, Clock::duration longest) -> Task<void> {
    const Clock::time_point end = Clock::now() + longest;
    while (!isDone() && Clock::now() < end) {
      pause.expires_after(std::chrono::milliseconds(10));
      co_await pause.async_wait(asValue);
    }
  };
  co_await waitFor([&] { return service.running() == 0; },
                   std::chrono::seconds(seconds));
  // The clients' last bytes.
  co_await waitFor([&] { return server.connections() == 0; },
                   std::chrono::milliseconds(500));
  server.close();
}

/// Runs `context` until `ending` or a signal came and `server` has drained, or
/// a second signal. What waits for a client or an engine then ends by itself;
/// a third signal ends the process.
static void runUntil(Signal &ending, asio::io_context &context,
                     HttpServer &server, Service &service, int64_t drainSeconds,
                     std::FILE *log) {
  std::signal(SIGPIPE, SIG_IGN);
  asio::signal_set signals(context, SIGTERM, SIGINT);
  signals.async_wait([&](const boost::system::error_code &ended, int) {
    if (ended)
      return;
    ending.notify();
    signals.async_wait([&](const boost::system::error_code &error, int) {
      if (!error)
        server.close();
      signals.clear();
    });
  });
  asio::co_spawn(
      context,
      [&]() -> Task<void> {
        while (!co_await ending.wait()) {
        }
        if (const size_t running = service.running(); running > 0)
          absl::FPrintF(log,
                        "ending: waits up to %d s for requests that run: %d; "
                        "Ctrl-C again ends at once\n",
                        drainSeconds, running);
        co_await drain(context, server, service, drainSeconds);
        signals.cancel();
        signals.clear();
      },
      asio::detached);
  context.run();
}

/// The share of what is free now that model number `served` of `sharing` takes,
/// so that all take as much, and `share` in all: 0 for the default.
static double partOfMemory(double share, int64_t served, int64_t sharing) {
  if (share == 0)
    share = defaultKvMemory;
  return share /
         (static_cast<double>(sharing) - static_cast<double>(served) * share);
}

absl::Status
serveCommand(const ServeOptions &options,
             absl::FunctionRef<absl::StatusOr<std::shared_ptr<const Model>>(
                 const std::string &path)>
                 load,
             std::FILE *log) {
  LLAMAC_RETURN_IF_ERROR(checkServe(options));
  ChatOptions chat;
  chat.templateFile = options.chatTemplate;
  LLAMAC_RETURN_IF_ERROR(prepareChat(chat));
  ServiceOptions serving;
  LLAMAC_ASSIGN_OR_RETURN(serving.keys, readKeys(options.keyFile));
  serving.origins = options.origins;
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<AccessLog> accessLog,
                          AccessLog::open(options.accessLog));
  asio::io_context context(1);
  ListenOptions listening;
  listening.host = options.host;
  listening.port = options.port;
  listening.certificate = options.certificate;
  listening.key = options.key;
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server,
                          HttpServer::bind(context, listening));
  if (!server->isLoopback() && serving.keys.empty() && options.authenticates)
    return usageError(absl::StrCat(
        "--host ", options.host,
        ": expected --api-key-file FILE, as other machines can reach this "
        "address; --no-auth serves all who can"));

  // A server whose GPU can do nothing more, or of whose models one cannot be
  // read any more, ends, for its supervisor to start it again: that alone gives
  // it the GPU back. Other models' answers are finished first.
  Signal ending(context.get_executor());
  absl::Status lost;
  // Models on a GPU share its memory: all are loaded before one takes pages.
  std::vector<std::shared_ptr<const Model>> loaded;
  std::vector<bool> onGpu;
  for (const std::string &text : options.models) {
    LLAMAC_ASSIGN_OR_RETURN(loaded.emplace_back(), load(parseModel(text).path));
    LLAMAC_ASSIGN_OR_RETURN(const auto memory,
                            loaded.back()->loaded().memory());
    onGpu.push_back(memory.has_value());
  }
  const int64_t sharing = std::ranges::count(onGpu, true);
  int64_t served = 0; // Models on a GPU that have their share.
  ServedModels models;
  for (size_t i = 0; i < loaded.size(); ++i) {
    const NamedPath named = parseModel(options.models[i]);
    const std::shared_ptr<const Model> &model = loaded[i];
    auto format = chatFormatOf(model->name(), model->tokenizer(), chat);
    // Prompts that are no conversations need no template of the model.
    if (!format.ok() && !(model->tokenizer() && chat.templateFile.empty()))
      return format.status();
    AsyncEngineOptions engine;
    engine.scheduler = options.scheduler;
    if (onGpu[i] && options.scheduler.kvPages == 0)
      engine.scheduler.kvMemory =
          partOfMemory(options.scheduler.kvMemory, served++, sharing);
    engine.scheduler.profileInterval = 1;
    engine.maxWaiting = options.maxQueue;
    engine.onDeviceLost = [&, name = named.name](const absl::Status &error) {
      asio::post(context, [&, error = withContext(error, name)] {
        lost.Update(error);
        ending.notify();
      });
    };
    LLAMAC_ASSIGN_OR_RETURN(
        models.emplace_back(),
        ServedModel::create(named.name, model, std::move(format), engine));
  }
  Service service(context, std::move(models), serving, *accessLog);
  service.requireLocalHost(server->isLoopback() && serving.keys.empty());
  outliveDamagedFiles();
  LLAMAC_RETURN_IF_ERROR(
      server->start(service.handler(), [&] { service.keepFigures(); }));
  absl::FPrintF(log, "listening on %s\n", server->url());
  std::fflush(log);
  runUntil(ending, context, *server, service, options.drainSeconds, log);
  absl::FPrintF(log, "stopped\n");
  return lost;
}

} // namespace llamac
