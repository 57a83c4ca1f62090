//===- SequenceApi.cpp - llamac_sequence_ and llamac_logits_ functions ----===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "capi/Errors.h"
#include "capi/Handles.h"
#include "capi/ModelObject.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace llamac {

absl::StatusOr<std::shared_ptr<SequenceEngine>> ModelObject::sequenceEngine() {
  const std::lock_guard lock(mutex);
  if (std::shared_ptr<SequenceEngine> shared = engine.lock())
    return shared;
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Engine> created,
                          Engine::create(loaded));
  auto shared = std::make_shared<SequenceEngine>();
  shared->engine = std::move(created);
  engine = shared;
  return shared;
}

class LogitsObject {
public:
  LogitsObject(size_t rows, size_t columns)
      : rows(rows), columns(columns),
        values(std::make_unique_for_overwrite<float[]>(rows * columns)) {}

  const size_t rows, columns;
  const std::unique_ptr<float[]> values;
};

class SequenceObject {
public:
  static absl::StatusOr<std::shared_ptr<SequenceObject>>
  create(ModelObject &model) {
    LLAMAC_ASSIGN_OR_RETURN(const auto engine, model.sequenceEngine());
    const std::lock_guard lock(engine->mutex);
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine->engine->newSequence());
    return std::make_shared<SequenceObject>(engine, std::move(sequence));
  }

  SequenceObject(std::shared_ptr<SequenceEngine> engine, Sequence sequence)
      : engine(std::move(engine)),
        sequence(std::make_unique<Sequence>(std::move(sequence))) {}

  ~SequenceObject() {
    const std::lock_guard lock(engine->mutex);
    sequence.reset();
  }

  absl::StatusOr<std::shared_ptr<LogitsObject>>
  step(absl::Span<const int32_t> tokens, OutputRows outputs) {
    const std::lock_guard lock(engine->mutex);
    Engine &runs = *engine->engine;
    // A step that cannot run takes no memory for its logits.
    if (static_cast<int64_t>(tokens.size()) > runs.model().context())
      outputs = OutputRows::None;
    const size_t rows = outputs == OutputRows::None   ? 0
                        : outputs == OutputRows::Last ? 1
                                                      : tokens.size();
    auto logits = std::make_shared<LogitsObject>(
        rows, static_cast<size_t>(runs.model().config().vocabSize));
    size_t row = 0;
    const int64_t before = sequence->length();
    absl::Status status =
        runs.step({{sequence.get(), tokens, outputs}},
                  [&](const LogitsRow &given) -> absl::Status {
                    std::ranges::copy(given.values, logits->values.get() +
                                                        row * logits->columns);
                    ++row;
                    return absl::OkStatus();
                  });
    if (!status.ok()) {
      runs.truncate(*sequence, before);
      return status;
    }
    return logits;
  }

  absl::StatusOr<int64_t> length() const {
    const std::lock_guard lock(engine->mutex);
    return sequence->length();
  }

  absl::StatusOr<int64_t> truncate(int64_t length) {
    const std::lock_guard lock(engine->mutex);
    if (length < 0 || length > sequence->length())
      return usageError(absl::StrCat("length: expected 0 to ",
                                     sequence->length(), ", got ", length));
    return engine->engine->truncate(*sequence, length);
  }

private:
  const std::shared_ptr<SequenceEngine> engine;
  std::unique_ptr<Sequence> sequence;
};

} // namespace llamac

using namespace llamac;

llamac_code llamac_sequence_new(llamac_model *model,
                                llamac_sequence **sequence) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(sequence, "sequence"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(model));
    LLAMAC_ASSIGN_OR_RETURN(auto created, SequenceObject::create(*object));
    *sequence = openHandle<llamac_sequence>(std::move(created));
    return absl::OkStatus();
  });
}

llamac_code llamac_sequence_free(llamac_sequence *sequence) {
  return callFromC([&] { return closeHandle(sequence).status(); });
}

llamac_code llamac_sequence_step(llamac_sequence *sequence,
                                 const int32_t *tokens, size_t count,
                                 llamac_rows rows, llamac_logits **logits) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(logits, "logits"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(sequence));
    LLAMAC_RETURN_IF_ERROR(checkArray(tokens, count, "tokens"));
    static constexpr OutputRows outputs[] = {OutputRows::None, OutputRows::Last,
                                             OutputRows::All};
    if (rows < LLAMAC_NO_ROWS || rows > LLAMAC_ALL_ROWS)
      return usageError(
          absl::StrCat("rows: expected 0 to 2, got ", static_cast<int>(rows)));
    LLAMAC_ASSIGN_OR_RETURN(auto made,
                            object->step({tokens, count}, outputs[rows]));
    if (rows != LLAMAC_NO_ROWS)
      *logits = openHandle<llamac_logits>(std::move(made));
    return absl::OkStatus();
  });
}

llamac_code llamac_sequence_length(const llamac_sequence *sequence,
                                   int64_t *length) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(length, "length"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(sequence));
    LLAMAC_ASSIGN_OR_RETURN(*length, object->length());
    return absl::OkStatus();
  });
}

llamac_code llamac_sequence_truncate(llamac_sequence *sequence, int64_t length,
                                     int64_t *left) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(left, "left"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectHere(sequence));
    LLAMAC_ASSIGN_OR_RETURN(*left, object->truncate(length));
    return absl::OkStatus();
  });
}

llamac_code llamac_logits_data(const llamac_logits *logits, const float **data,
                               size_t *rows, size_t *columns) {
  return callFromC([&]() -> absl::Status {
    LLAMAC_RETURN_IF_ERROR(clearOutput(data, "data"));
    LLAMAC_RETURN_IF_ERROR(clearOutput(rows, "rows"));
    LLAMAC_RETURN_IF_ERROR(clearOutput(columns, "columns"));
    LLAMAC_ASSIGN_OR_RETURN(const auto object, objectOf(logits));
    *data = object->values.get();
    *rows = object->rows;
    *columns = object->columns;
    return absl::OkStatus();
  });
}

llamac_code llamac_logits_free(llamac_logits *logits) {
  return callFromC([&] { return closeHandle(logits).status(); });
}
