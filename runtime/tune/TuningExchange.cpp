//===- TuningExchange.cpp - Tuning results as a JSON file -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/TuningExchange.h"

#include "runtime/base/Status.h"
#include "runtime/io/JsonReader.h"

#include "absl/strings/str_cat.h"

#include <nlohmann/json.hpp>

namespace llamac {

static constexpr const char *formatName = "llamac-tuning";
static constexpr int64_t formatVersion = 1;
static constexpr JsonLimits limits = {.maxBytes = uint64_t{64} << 20,
                                      .maxDepth = 8};

namespace {
struct OriginName {
  TuningOrigin origin;
  const char *name;
};
} // namespace
static constexpr OriginName originNames[] = {
    {TuningOrigin::Modelled, "modelled"},
    {TuningOrigin::Imported, "imported"},
    {TuningOrigin::Measured, "measured"},
};

static const char *nameOf(TuningOrigin origin) {
  for (const OriginName &row : originNames)
    if (row.origin == origin)
      return row.name;
  return "";
}

std::string tuningToJson(const std::vector<KeptTuning> &entries) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto &[key, entry] : entries)
    rows.push_back({{"device", key.device},
                    {"generator", key.generator},
                    {"kernel", key.kernel},
                    {"tiles", entry.tiles},
                    {"seconds", entry.seconds},
                    {"first_seconds", entry.firstSeconds},
                    {"predicted", entry.predicted},
                    {"runner_up", entry.runnerUp},
                    {"runner_up_seconds", entry.runnerUpSeconds},
                    {"origin", nameOf(entry.origin)},
                    {"time", entry.time}});
  const nlohmann::ordered_json root = {{"format", formatName},
                                       {"version", formatVersion},
                                       {"entries", std::move(rows)}};
  // Bytes that are no UTF-8 would be an exception otherwise.
  return root.dump(1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

static absl::StatusOr<std::string> requiredString(const JsonObject &object,
                                                  absl::string_view key) {
  LLAMAC_ASSIGN_OR_RETURN(std::optional<std::string> text,
                          object.optionalString(key));
  if (!text)
    return object.fail(key, "a string", "no such key");
  return *std::move(text);
}

static absl::StatusOr<double> requiredNumber(const JsonObject &object,
                                             absl::string_view key) {
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> number,
                          object.optionalNumber(key));
  if (!number)
    return object.fail(key, "a number", "no such key");
  return *number;
}

static absl::StatusOr<TuningOrigin> requiredOrigin(const JsonObject &object) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string name,
                          requiredString(object, "origin"));
  for (const OriginName &row : originNames)
    if (name == row.name)
      return row.origin;
  return object.fail("origin", "modelled, imported or measured",
                     name.substr(0, 80));
}

static absl::StatusOr<KeptTuning> readEntry(const JsonObject &object) {
  TuningKey key;
  TuningEntry entry;
  LLAMAC_ASSIGN_OR_RETURN(key.device, requiredString(object, "device"));
  LLAMAC_ASSIGN_OR_RETURN(key.generator, requiredString(object, "generator"));
  LLAMAC_ASSIGN_OR_RETURN(key.kernel, requiredString(object, "kernel"));
  LLAMAC_ASSIGN_OR_RETURN(entry.tiles, requiredString(object, "tiles"));
  LLAMAC_ASSIGN_OR_RETURN(entry.seconds, requiredNumber(object, "seconds"));
  LLAMAC_ASSIGN_OR_RETURN(entry.firstSeconds,
                          requiredNumber(object, "first_seconds"));
  LLAMAC_ASSIGN_OR_RETURN(entry.predicted, requiredNumber(object, "predicted"));
  LLAMAC_ASSIGN_OR_RETURN(entry.runnerUp, requiredString(object, "runner_up"));
  LLAMAC_ASSIGN_OR_RETURN(entry.runnerUpSeconds,
                          requiredNumber(object, "runner_up_seconds"));
  LLAMAC_ASSIGN_OR_RETURN(entry.origin, requiredOrigin(object));
  LLAMAC_ASSIGN_OR_RETURN(entry.time, object.requiredInt("time"));
  if (const std::optional<TuningProblem> problem = findProblem(key, entry))
    return object.fail(problem->field, problem->expected, problem->got);
  return KeptTuning(std::move(key), std::move(entry));
}

absl::StatusOr<std::vector<KeptTuning>>
readTuningJson(const std::string &path) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          parseJsonFile(path, limits));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  LLAMAC_ASSIGN_OR_RETURN(const std::string format,
                          requiredString(root, "format"));
  if (format != formatName)
    return root.fail("format", formatName, format.substr(0, 80));
  LLAMAC_ASSIGN_OR_RETURN(const int64_t version, root.requiredInt("version"));
  if (version != formatVersion)
    return root.unsupported("version", absl::StrCat(formatVersion),
                            absl::StrCat(version));
  if (!root.has("entries"))
    return root.fail("entries", "an array of objects", "no such key");
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<JsonObject> objects,
                          root.objects("entries"));
  std::vector<KeptTuning> entries;
  entries.reserve(objects.size());
  for (const JsonObject &object : objects) {
    LLAMAC_ASSIGN_OR_RETURN(KeptTuning kept, readEntry(object));
    entries.push_back(std::move(kept));
  }
  return entries;
}

} // namespace llamac
