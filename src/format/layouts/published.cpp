#include "format/layouts/published.h"

#include <algorithm>
#include <array>

#include "format/layouts/awq.h"
#include "format/layouts/compressed_tensors.h"
#include "format/layouts/fp8.h"
#include "format/layouts/gptq.h"
#include "format/layouts/mxfp8.h"

namespace tandem::format {
namespace {

using Json = nlohmann::json;

/// Methods whose tensors are E4M3 with scales.
constexpr std::array<std::string_view, 3> kFp8Methods = {"fp8", "fbgemm_fp8", "modelopt"};
/// What publishers keep about activations and caches.
constexpr std::array<std::string_view, 8> kOfActivations = {
    "input_scale", "activation_scale", "output_scale",   "input_zero_point",
    "k_scale",     "v_scale",          "input_scale_ub", "q_scale"};

Error not_read(const std::string& key, const Json& value) {
  return {ErrorCode::kUnsupported,
          fmt::format(
              "config: quantization_config.{} {} is not read; mlx-lm's own quantization and "
              "quant_method fp8 (E4M3), mxfp8, awq, gptq and compressed-tensors (pack-quantized, "
              "int-quantized, float-quantized) are: convert the unquantized model with "
              "mlx_lm.convert -q, or take a GGUF of it",
              key, value.dump())};
}

/// Formats that one of the layouts reads; others would be misread or are refused by their tensors.
Status check_compressed_format(const Json& method) {
  constexpr std::array<std::string_view, 6> kRead = {"pack-quantized",  "int-quantized",
                                                     "float-quantized", "naive-quantized",
                                                     "dense",           "mixed-precision"};
  const Json format = method.value("format", Json("dense"));
  const bool is_read =
      format.is_string() && std::ranges::find(kRead, format.get<std::string>()) != kRead.end();
  if (!is_read) return not_read("format", format);
  const auto sparse = method.find("sparsity_config");
  if (sparse == method.end() || !sparse->is_object() || sparse->empty()) return {};
  const Json kind = sparse->value("format", Json("dense"));
  return kind == "dense" ? Status() : not_read("sparsity_config.format", kind);
}

Status add_method(const Checkpoint& from, const Json& method, Derivations& derivations) {
  const Json name = method.value("quant_method", Json());
  if (name == "awq") return add_awq(from, method, derivations);
  if (name == "gptq") return add_gptq(from, method, derivations);
  if (name == "compressed-tensors") {
    if (Status read = check_compressed_format(method); !read) return read;
    return add_compressed_integers(from, method, derivations);
  }
  if (name == "mxfp4" && from.config().value("model_type", Json()) == "gpt_oss")
    return {};                     // its family reads it
  if (name == "mxfp8") return {};  // its tensors say the rest
  const bool is_fp8 = name.is_string() &&
                      std::ranges::find(kFp8Methods, name.get<std::string>()) != kFp8Methods.end();
  if (!is_fp8) return not_read("quant_method", name);
  if (name != "modelopt") return {};
  const Json algorithm = method.value("quant_algo", Json());
  return algorithm == "FP8" ? Status() : not_read("quant_algo", algorithm);
}

void hide_activations(const Checkpoint& from, Derivations& derivations) {
  for (std::string& name : from.names()) {
    const bool is_hidden = std::ranges::any_of(kOfActivations, [&](std::string_view end) {
      return name.size() > end.size() && name.ends_with(end) &&
             (name[name.size() - end.size() - 1] == '.' ||
              name[name.size() - end.size() - 1] == '_');
    });
    if (is_hidden) derivations.hidden.insert(std::move(name));
  }
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> published_layout(
    std::shared_ptr<const Checkpoint> checkpoint) {
  const Json& config = checkpoint->config();
  const auto of_mlx = config.find("quantization");
  if (of_mlx != config.end() && !of_mlx->is_null()) return checkpoint;
  Derivations derivations;
  const auto method = config.find("quantization_config");
  if (method != config.end() && !method->is_null()) {
    if (!method->is_object())
      return Error{ErrorCode::kCorrupt,
                   fmt::format("config: quantization_config should be an object, is {}: fetch "
                               "config.json again",
                               method->dump())};
    if (Status added = add_method(*checkpoint, *method, derivations); !added) return added.error();
    hide_activations(*checkpoint, derivations);
  }
  if (Status added = add_mxfp8(*checkpoint, derivations); !added) return added.error();
  if (Status added = add_fp8(*checkpoint, derivations); !added) return added.error();
  return derived(std::move(checkpoint), std::move(derivations));
}

}  // namespace tandem::format
