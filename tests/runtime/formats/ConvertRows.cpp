//===- ConvertRows.cpp - Rows from one element type to another ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// convert-rows quantize|dequantize TYPE: reads stdin to its end, fp32 to TYPE
// or TYPE to fp32, and writes the result to stdout.
//
//===----------------------------------------------------------------------===//

#include "runtime/formats/Dequantize.h"

#include <iostream>
#include <iterator>
#include <string>
#include <vector>

using namespace llamac;

int main(int argc, char **argv) {
  const std::string verb = argc == 3 ? argv[1] : "";
  const auto type = parseDataType(argc == 3 ? argv[2] : "");
  if (!type || (verb != "quantize" && verb != "dequantize")) {
    std::cerr << "usage: convert-rows quantize|dequantize TYPE\n";
    return 2;
  }
  const std::vector<char> in(std::istreambuf_iterator<char>(std::cin), {});
  const DataTypeInfo &info = dataTypeInfo(*type);
  std::vector<float> values;
  std::vector<char> out;
  if (verb == "quantize") {
    values.resize(in.size() / sizeof(float));
    std::copy(in.begin(), in.end(), reinterpret_cast<char *>(values.data()));
    out.resize(dataTypeBytes(*type, values.size()));
    quantizeRow(*type, values.data(), static_cast<int64_t>(values.size()),
                reinterpret_cast<uint8_t *>(out.data()));
  } else {
    values.resize(in.size() / info.blockBytes * info.blockElements);
    dequantizeRow(*type, reinterpret_cast<const uint8_t *>(in.data()),
                  static_cast<int64_t>(values.size()), values.data());
    const auto *bytes = reinterpret_cast<const char *>(values.data());
    out.assign(bytes, bytes + values.size() * sizeof(float));
  }
  std::cout.write(out.data(), static_cast<std::streamsize>(out.size()));
  return std::cout.good() ? 0 : 1;
}
