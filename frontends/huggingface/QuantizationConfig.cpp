//===- QuantizationConfig.cpp - How a checkpoint says it is quantised -----===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each method has a reader, or is refused by its name with what it is set to.
// docs/quantized.md has the list.
//
//===----------------------------------------------------------------------===//

#include "frontends/CheckpointFormats.h"
#include "frontends/Files.h"
#include "frontends/huggingface/Quantization.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

#include <algorithm>

namespace llamac {

//===----------------------------------------------------------------------===//
// Refusal by name
//===----------------------------------------------------------------------===//

namespace {

// A key of quantization_config that says how a method is set, and what goes
// around its number or text; of a flag, what it means.
struct QuantFact {
  enum class Type { Number, Text, Flag } type;
  absl::string_view key;
  absl::string_view before;
  absl::string_view after = "";
};

} // namespace

static constexpr QuantFact quantFacts[] = {
    {QuantFact::Type::Number, "bits", "", " bits"},
    {QuantFact::Type::Number, "w_bit", "", " bits"},
    {QuantFact::Type::Flag, "load_in_4bit", "4 bits"},
    {QuantFact::Type::Flag, "load_in_8bit", "8 bits"},
    {QuantFact::Type::Number, "group_size", "groups of "},
    {QuantFact::Type::Number, "q_group_size", "groups of "},
    {QuantFact::Type::Flag, "desc_act", "act-order"},
    {QuantFact::Type::Text, "format", "format "},
    {QuantFact::Type::Text, "quant_algo", ""},
};

/// `method` and what `object` says of it: "GPTQ with 4 bits, groups of 128".
static absl::StatusOr<std::string> describe(absl::string_view method,
                                            const JsonObject &object) {
  ConfigFields fields(object);
  std::vector<std::string> facts;
  for (const QuantFact &fact : quantFacts) {
    if (fact.type == QuantFact::Type::Number) {
      const int64_t number = fields.integer(fact.key).value_or(0);
      if (number > 0) // A group of -1 is a whole row.
        facts.push_back(absl::StrCat(fact.before, number, fact.after));
    } else if (fact.type == QuantFact::Type::Text) {
      if (const std::optional<std::string> text = fields.text(fact.key))
        facts.push_back(absl::StrCat(fact.before, quoteForMessage(*text)));
    } else if (fields.flag(fact.key).value_or(false)) {
      facts.emplace_back(fact.before);
    }
  }
  LLAMAC_RETURN_IF_ERROR(fields.status());
  return absl::StrCat(method, facts.empty() ? "" : " with ",
                      absl::StrJoin(facts, ", "));
}

//===----------------------------------------------------------------------===//
// Methods
//===----------------------------------------------------------------------===//

static constexpr QuantizedForm gptqForm = {.code = ElementCode::UInt4,
                                           .order = ElementOrder::Columns,
                                           .elements = "qweight",
                                           .scales = "scales",
                                           .zeros = "qzeros",
                                           .groups = "g_idx"};

static constexpr QuantizedForm awqForm = {.code = ElementCode::UInt4,
                                          .order = ElementOrder::Awq,
                                          .elements = "qweight",
                                          .scales = "scales",
                                          .zeros = "qzeros"};

static constexpr QuantizedForm fp8Form = {.code = ElementCode::E4M3,
                                          .order = ElementOrder::Rows,
                                          .elements = "weight",
                                          .scales = "weight_scale",
                                          .zeros = ""};

static constexpr QuantizedForm fp8BlockForm = {.code = ElementCode::E4M3,
                                               .order = ElementOrder::Rows,
                                               .elements = "weight",
                                               .scales = "weight_scale_inv",
                                               .zeros = ""};

static constexpr QuantizedForm int8Form = {.code = ElementCode::Int8,
                                           .order = ElementOrder::Rows,
                                           .elements = "weight",
                                           .scales = "weight_scale",
                                           .zeros = "weight_zero_point"};

static constexpr QuantizedForm packedForm = {.code = ElementCode::UInt4,
                                             .order = ElementOrder::Rows,
                                             .elements = "weight_packed",
                                             .scales = "weight_scale",
                                             .zeros = "weight_zero_point",
                                             .groups = "weight_g_idx",
                                             .zero = 8};

static constexpr QuantizedForm nvfp4Form = {.code = ElementCode::E2M1,
                                            .order = ElementOrder::Rows,
                                            .elements = "weight_packed",
                                            .scales = "weight_scale",
                                            .zeros = "",
                                            .factor = "weight_global_scale",
                                            .isDivisor = true};

static constexpr QuantizedForm modelOptFp4Form = {.code = ElementCode::E2M1,
                                                  .order = ElementOrder::Rows,
                                                  .elements = "weight",
                                                  .scales = "weight_scale",
                                                  .zeros = "",
                                                  .factor = "weight_scale_2"};

static constexpr QuantizedForm mxfp4Form = {.code = ElementCode::E2M1,
                                            .order = ElementOrder::Rows,
                                            .elements = "weight_packed",
                                            .scales = "weight_scale",
                                            .zeros = ""};

using Fields = ConfigFields<JsonObject>;

/// Refuses elements of other than `wanted` bits.
static void checkBits(Fields &fields, absl::string_view key, int64_t wanted) {
  const std::optional<int64_t> bits = fields.integer(key);
  fields.requireSupported(bits == wanted, key, wanted,
                          bits ? absl::StrCat(*bits) : "none");
}

/// Reads a group's size, of which -1 is a whole row, into `to`.
static void readGroupSize(Fields &fields, absl::string_view key,
                          Quantization &to) {
  const int64_t size = fields.integer(key).value_or(-1);
  fields.require(size == -1 || size > 0, key, "-1 or above 0", size);
  to.groupSize = std::max<int64_t>(size, 0);
}

/// Reads [rows, columns] of the blocks that have one scale into `to`.
static absl::Status readBlock(const JsonObject &object, absl::string_view key,
                              Quantization &to) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int64_t> block,
                          object.intOrInts(key));
  if (block.size() != 2 || block[0] <= 0 || block[1] <= 0)
    return object.fail(key, "two sizes above 0",
                       absl::StrCat("[", absl::StrJoin(block, ", "), "]"));
  to.blockRows = block[0];
  to.blockColumns = block[1];
  return absl::OkStatus();
}

static absl::Status readGptq(const JsonObject &object, Quantization &to) {
  Fields fields(object);
  to.form = gptqForm;
  checkBits(fields, "bits", 4);
  readGroupSize(fields, "group_size", to);
  // Some versions of GPTQModel call it "format".
  const absl::string_view formatKey =
      object.has("checkpoint_format") ? "checkpoint_format" : "format";
  const std::string format = fields.text(formatKey).value_or("gptq");
  fields.requireSupported(format == "gptq" || format == "gptq_v2", formatKey,
                          "\"gptq\" or \"gptq_v2\"", quoteForMessage(format));
  to.addedToZeros = format == "gptq" ? 1 : 0;
  to.needsGroups = fields.flag("desc_act").value_or(false);
  const std::string word = fields.text("pack_dtype").value_or("int32");
  fields.requireSupported(word == "int32", "pack_dtype", "\"int32\"",
                          quoteForMessage(word));
  LLAMAC_RETURN_IF_ERROR(fields.status());
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> dynamic,
                          object.optionalObject("dynamic"));
  if (dynamic && !dynamic->raw().empty())
    return object.unsupported("dynamic", "one setting for all matrices",
                              "settings for some");
  return absl::OkStatus();
}

static absl::Status readAwq(const JsonObject &object, Quantization &to) {
  Fields fields(object);
  to.form = awqForm;
  checkBits(fields, object.has("w_bit") ? "w_bit" : "bits", 4);
  readGroupSize(fields,
                object.has("group_size") ? "group_size" : "q_group_size", to);
  const std::string version = fields.text("version").value_or("gemm");
  fields.requireSupported(absl::AsciiStrToLower(version) == "gemm", "version",
                          "\"gemm\"", quoteForMessage(version));
  return fields.status();
}

static absl::Status readFp8(const JsonObject &object, Quantization &to) {
  Fields fields(object);
  const std::string format = fields.text("fmt").value_or("e4m3");
  fields.requireSupported(format == "e4m3", "fmt", "\"e4m3\"",
                          quoteForMessage(format));
  LLAMAC_RETURN_IF_ERROR(fields.status());
  to.form = fp8Form;
  if (!object.has("weight_block_size"))
    return absl::OkStatus();
  to.form = fp8BlockForm;
  return readBlock(object, "weight_block_size", to);
}

static absl::Status readFbgemm(const JsonObject & /*object*/,
                               Quantization &to) {
  to.form = fp8Form;
  return absl::OkStatus();
}

static absl::Status readModelOpt(const JsonObject &object, Quantization &to) {
  Fields fields(object);
  const std::string algorithm = fields.text("quant_algo").value_or("");
  fields.requireSupported(algorithm == "FP8" || algorithm == "NVFP4",
                          "quant_algo", "\"FP8\" or \"NVFP4\"",
                          quoteForMessage(algorithm));
  to.form = algorithm == "FP8" ? fp8Form : modelOptFp4Form;
  return fields.status();
}

namespace {

/// A format of compressed-tensors, of elements of a type.
struct CompressedFormat {
  absl::string_view name, type;
  int64_t bits;
  const QuantizedForm &form;
};

} // namespace

static constexpr CompressedFormat compressedFormats[] = {
    {"float-quantized", "float", 8, fp8Form},
    {"int-quantized", "int", 8, int8Form},
    {"naive-quantized", "float", 8, fp8Form},
    {"naive-quantized", "int", 8, int8Form},
    {"pack-quantized", "int", 4, packedForm},
    {"nvfp4-pack-quantized", "float", 4, nvfp4Form},
    {"mxfp4-pack-quantized", "float", 4, mxfp4Form}};

/// Reads how a group of matrices is quantised, in compressed-tensors' words.
static absl::Status readScheme(const JsonObject &weights,
                               absl::string_view format, Quantization &to) {
  Fields fields(weights);
  const std::string type = fields.text("type").value_or("int");
  const auto *row =
      std::find_if(std::begin(compressedFormats), std::end(compressedFormats),
                   [&](const CompressedFormat &known) {
                     return known.name == format && known.type == type;
                   });
  if (row == std::end(compressedFormats))
    return weights.unsupported("type", absl::StrCat("that of ", format),
                               quoteForMessage(type));
  to.form = row->form;
  checkBits(fields, "num_bits", row->bits);
  const std::string strategy = fields.text("strategy").value_or("tensor");
  const bool hasGroups = strategy == "group" || strategy == "tensor_group";
  fields.requireSupported(hasGroups || strategy == "tensor" ||
                              strategy == "channel" || strategy == "block",
                          "strategy", "tensor, channel, group or block",
                          quoteForMessage(strategy));
  if (hasGroups)
    readGroupSize(fields, "group_size", to);
  // "static" and "weight" order the columns while they are quantised alone.
  // True is an older word for "group".
  const auto order = weights.raw().find("actorder");
  if (order != weights.raw().end() && order->is_boolean())
    to.needsGroups = order->get<bool>();
  else
    to.needsGroups = fields.text("actorder") == "group";
  LLAMAC_RETURN_IF_ERROR(fields.status());
  return strategy == "block" ? readBlock(weights, "block_structure", to)
                             : absl::OkStatus();
}

static absl::Status readCompressedTensors(const JsonObject &object,
                                          Quantization &to) {
  Fields fields(object);
  const std::string format = fields.text("format").value_or("");
  fields.requireSupported(
      std::any_of(
          std::begin(compressedFormats), std::end(compressedFormats),
          [&](const CompressedFormat &known) { return known.name == format; }),
      "format", "one that docs/quantized.md lists", quoteForMessage(format));
  const std::string status =
      fields.text("quantization_status").value_or("compressed");
  fields.requireSupported(status == "compressed", "quantization_status",
                          "\"compressed\"", quoteForMessage(status));
  LLAMAC_RETURN_IF_ERROR(fields.status());
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> sparsity,
                          object.optionalObject("sparsity_config"));
  if (sparsity) {
    Fields sparse(*sparsity);
    const std::string layout = sparse.text("format").value_or("dense");
    sparse.requireSupported(layout == "dense", "format", "\"dense\"",
                            quoteForMessage(layout));
    LLAMAC_RETURN_IF_ERROR(sparse.status());
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> groups,
                          object.optionalObject("config_groups"));
  if (!groups || groups->raw().size() != 1)
    return object.unsupported("config_groups", "one group",
                              groups ? absl::StrCat(groups->raw().size())
                                     : "none");
  LLAMAC_ASSIGN_OR_RETURN(
      const std::optional<JsonObject> group,
      groups->optionalObject(groups->raw().items().begin().key()));
  if (!group)
    return object.fail("config_groups", "an object", "null");
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> weights,
                          group->optionalObject("weights"));
  if (!weights)
    return group->fail("weights", "an object", "none");
  return readScheme(*weights, format, to);
}

namespace {

// A quantisation of Hugging Face's form: what quant_method calls it, its name,
// and what reads it, if anything does.
struct QuantMethod {
  absl::string_view key;
  absl::string_view name;
  absl::Status (*read)(const JsonObject &object, Quantization &to) = nullptr;
};

} // namespace

static constexpr QuantMethod quantMethods[] = {
    {"aqlm", "AQLM"},
    {"awq", "AWQ", readAwq},
    {"bitnet", "BitNet"},
    {"bitsandbytes", "bitsandbytes"},
    {"compressed-tensors", "compressed-tensors", readCompressedTensors},
    {"eetq", "EETQ"},
    {"fbgemm_fp8", "FBGEMM FP8", readFbgemm},
    {"fp8", "FP8", readFp8},
    {"gptq", "GPTQ", readGptq},
    {"hqq", "HQQ"},
    {"modelopt", "ModelOpt", readModelOpt},
    {"mxfp4", "MXFP4"},
    {"quanto", "Quanto"},
    {"torchao", "TorchAO"},
};

/// Reads quantization_config of `root`, a config.json.
static absl::StatusOr<std::optional<Quantization>>
readQuantizationConfig(const JsonObject &root) {
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> object,
                          root.optionalObject("quantization_config"));
  if (!object)
    return std::nullopt;
  Fields fields(*object);
  const std::string key = fields.text("quant_method").value_or("");
  LLAMAC_RETURN_IF_ERROR(fields.status());
  const auto *method =
      std::find_if(std::begin(quantMethods), std::end(quantMethods),
                   [&](const QuantMethod &known) { return known.key == key; });
  Quantization quantization;
  LLAMAC_ASSIGN_OR_RETURN(
      quantization.name,
      describe(method != std::end(quantMethods) ? std::string(method->name)
               : key.empty()                    ? "a method without a name"
                             : "the method " + quoteForMessage(key),
               *object));
  if (method == std::end(quantMethods) || !method->read)
    return root.unsupported(
        "quantization_config",
        "plain weights: the checkpoint before quantisation, or a GGUF file of "
        "it, such as q8_0 or q4_k",
        quantization.name);
  LLAMAC_RETURN_IF_ERROR(method->read(*object, quantization));
  return quantization;
}

absl::StatusOr<std::optional<Quantization>>
readQuantization(const JsonObject &root, const std::string &directory,
                 Checkpoint &checkpoint) {
  LLAMAC_ASSIGN_OR_RETURN(std::optional<Quantization> configured,
                          readQuantizationConfig(root));
  const std::string path = joinPath(directory, "hf_quant_config.json");
  if (!fileExists(path))
    return configured;
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          readConfigFile(path, checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::root(document));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> object,
                          file.optionalObject("quantization"));
  if (!object)
    return file.fail("quantization", "an object", "none");
  Quantization beside;
  LLAMAC_ASSIGN_OR_RETURN(beside.name, describe("ModelOpt", *object));
  LLAMAC_RETURN_IF_ERROR(readModelOpt(*object, beside));
  if (!configured)
    return beside;
  if (configured->form != beside.form)
    return object->unsupported(
        "quant_algo",
        absl::StrCat("what quantization_config of config.json says, ",
                     configured->name),
        beside.name);
  return configured;
}

} // namespace llamac
