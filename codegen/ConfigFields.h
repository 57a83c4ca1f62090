//===- ConfigFields.h - The members of config structs -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A list of the members of a config struct gives its text in emitted source,
// takes the sizes that an op's tiles set, and gives those that reports show.
// Each target has such lists, in the order of declaration:
//
//   LLAMAC_CONFIG_FIELDS       defines visitFields(config, visit), which calls
//                              visit(kind, name, member) for each member
//   enumeratorText(value)      is the C++ of an enumeration: "KvFormat::F16"
//
// A structured binding in each list does not compile when a member is missing.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CONFIGFIELDS_H
#define LLAMAC_CODEGEN_CONFIGFIELDS_H

#include "codegen/ExpKind.h"
#include "codegen/KernelOps.h"
#include "codegen/SourceText.h"

#include "llvm/ADT/StringExtras.h"

#include <concepts>
#include <ranges>
#include <string>
#include <type_traits>
#include <vector>

namespace llamac {

/// A member follows from one of these.
enum class FieldKind {
  Shape, ///< The op.
  Size,  ///< The target.
  Tile   ///< The tiles of the op, where they have its name, or the target.
};

/// A list takes its struct as one to read or one to write.
template <typename Config, typename Of>
concept FieldsOf = std::same_as<std::remove_const_t<Config>, Of>;

/// Calls visit(kind, name, member) for `members`, which have the `names`, in
/// their order: "format, depth". Words of `sizes` and of `tiles` name those of
/// these kinds.
template <typename Visit, typename... Members>
void visitNamed(Visit &visit, llvm::StringRef sizes, llvm::StringRef tiles,
                llvm::StringRef names, Members &...members) {
  auto visitNext = [&](auto &member) {
    const auto [name, rest] = names.split(", ");
    const auto isOneOf = [name](llvm::StringRef words) {
      return llvm::is_contained(llvm::split(words, ' '), name);
    };
    visit(isOneOf(tiles)   ? FieldKind::Tile
          : isOneOf(sizes) ? FieldKind::Size
                           : FieldKind::Shape,
          name, member);
    names = rest;
  };
  (visitNext(members), ...);
}

/// Defines visitFields() for `Struct`, whose members are the last arguments.
#define LLAMAC_CONFIG_FIELDS(Struct, sizes, tiles, ...)                        \
  template <FieldsOf<Struct> Config, typename Visit>                           \
  void visitFields(Config &config, Visit visit) {                              \
    auto &[__VA_ARGS__] = config;                                              \
    visitNamed(visit, sizes, tiles, #__VA_ARGS__, __VA_ARGS__);                \
  }

inline std::string enumeratorText(ExpKind kind) {
  static constexpr const char *names[] = {"Exact", "Poly3", "Table256"};
  return std::string("ExpKind::") + names[static_cast<size_t>(kind)];
}

template <typename Config> std::string configText(const Config &config);

/// The C++ of `value`.
template <typename T> std::string fieldText(const T &value) {
  if constexpr (std::same_as<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::integral<T>)
    return std::to_string(value);
  else if constexpr (std::floating_point<T>)
    return literal(value) + "f";
  else if constexpr (std::is_enum_v<T>)
    return enumeratorText(value);
  else if constexpr (std::ranges::range<T>) {
    std::vector<std::string> elements;
    for (const auto &element : value)
      elements.push_back(fieldText(element));
    return "{" + llvm::join(elements, ", ") + "}";
  } else
    return configText(value);
}

/// `config` as a designated initialiser. Formats stand there, and sizes, for
/// people to change; what else has its default, and sizes of 0, which stand for
/// one that the kernel has, are left out.
template <typename Config> std::string configText(const Config &config) {
  std::vector<std::string> defaults, members;
  const Config plain{};
  visitFields(plain, [&](FieldKind, llvm::StringRef, const auto &value) {
    defaults.push_back(fieldText(value));
  });
  size_t next = 0;
  visitFields(config,
              [&](FieldKind kind, llvm::StringRef name, const auto &value) {
                const std::string text = fieldText(value);
                const bool isShown =
                    kind == FieldKind::Shape ? name == "format" : text != "0";
                if (text != defaults[next++] || isShown)
                  members.push_back(("." + name + " = " + text).str());
              });
  return "{" + llvm::join(members, ", ") + "}";
}

/// Gives the tiles among the members of `config` the sizes that `attr`, an op's
/// own config, has for them.
template <typename Config, typename Attr>
void setTiles(Config &config, Attr attr) {
  visitFields(config, [&](FieldKind kind, llvm::StringRef name, auto &value) {
    if constexpr (std::integral<std::remove_cvref_t<decltype(value)>>)
      if (kind == FieldKind::Tile)
        value = static_cast<std::remove_cvref_t<decltype(value)>>(
            tileOf(attr, name, value));
  });
}

/// The members of `config` that the op does not decide.
template <typename Config> Tiles sizesOf(const Config &config) {
  Tiles sizes;
  visitFields(
      config, [&](FieldKind kind, llvm::StringRef name, const auto &value) {
        if constexpr (std::integral<std::remove_cvref_t<decltype(value)>>)
          if (kind != FieldKind::Shape)
            sizes.emplace_back(name, value);
      });
  return sizes;
}

} // namespace llamac

#endif // LLAMAC_CODEGEN_CONFIGFIELDS_H
