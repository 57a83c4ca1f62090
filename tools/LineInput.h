//===- LineInput.h - Lines that are typed or sent ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_LINEINPUT_H
#define LLAMAC_TOOLS_LINEINPUT_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

/// Where lines come from: somebody at a terminal, or a file or pipe.
class LineInput {
public:
  enum class Outcome {
    Line,
    Interrupted, ///< Ctrl-C was typed; what came before is dropped.
    End,         ///< The file has ended, or Ctrl-D was typed.
  };

  virtual ~LineInput();

  /// Sets `line` to the next line, without its line feed; to what was typed
  /// before Ctrl-C. `prompt` is shown to somebody at a terminal.
  virtual Outcome next(const std::string &prompt, std::string &line) = 0;

  /// Keeps `entry`, which may have several lines, to be called back.
  virtual void remember(const std::string &entry);
};

/// Lines of `in`, byte for byte but for a carriage return at the end.
std::unique_ptr<LineInput> plainLines(std::FILE *in);

/// Lines that are typed and edited at the terminal `in`, shown at `out`, by
/// libedit, whose settings are in ~/.editrc. What is pasted is a part of one
/// line, line feeds and all, where the terminal marks it. Tab completes the
/// beginnings of `completions`, word by word. While no line is edited, what is
/// typed is not shown, and kept for the next line. What is remembered is read
/// from and written to the file `history`, which its owner alone may read;
/// empty: it ends with the process. Errors: those of opening the terminal; a
/// history that cannot be kept is a warning.
absl::StatusOr<std::unique_ptr<LineInput>>
editedLines(std::FILE *in, std::FILE *out, const std::string &history,
            std::vector<std::string> completions);

/// File llamac/`name` of XDG_STATE_HOME, or of ~/.local/state, in a folder that
/// is made for the user alone. Usage error when the environment names neither,
/// and those of makePrivateFolder().
absl::StatusOr<std::string> stateFile(absl::string_view name);

} // namespace llamac

#endif // LLAMAC_TOOLS_LINEINPUT_H
