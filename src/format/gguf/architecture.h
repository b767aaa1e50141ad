// Architectures of GGUF files as tables: one file in this folder for each, and a line in
// registry.inc. Facts: gguf-py's constants.py and tensor_mapping.py, and the converters of
// llama.cpp (conversion/).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "format/gguf/conversions.h"
#include "format/gguf/metadata.h"

namespace tandem::format {

/// What a tensor is called in the file, behind "blk.N." where a layer has it, and in the Hugging
/// Face layout, behind "model.layers.N.". Either both are modules, whose weight and bias are meant,
/// or both are whole names.
using GgufName = std::pair<std::string_view, std::string_view>;

/// A field of config.json, and the metadata that says it.
struct GgufField {
  const char* field;
  std::string_view key;
  /// The field where the file does not say it, null: it is left out. Without: that is an error.
  std::optional<nlohmann::json> otherwise = {};
};

/// How some tensors differ from those that models read.
struct GgufConversion {
  std::string_view module;  // how the names of their modules end, in the Hugging Face layout
  Result<DerivedTensor> (*convert)(DerivedTensor tensor, const nlohmann::json& config);
  std::string_view becomes = {};  // in place of that end; empty: the name stays
};

struct GgufArchitecture {
  std::string_view name;               // general.architecture
  std::string_view model_type;         // of the config, unless complete() finds another
  std::vector<GgufName> names = {};    // beside those that most have, or in place of them
  std::vector<GgufField> fields = {};  // likewise
  std::vector<GgufConversion> conversions = {};
  /// Adds to the config what a table cannot say. Errors: kCorrupt, kUnsupported.
  Status (*complete)(const GgufMetadata& metadata, nlohmann::json& config) = nullptr;
};

/// kUnsupported, naming the nearest and all that are read, for one that is not.
Result<GgufArchitecture> find_gguf_architecture(std::string_view name);

/// The Hugging Face name of a tensor, such as "model.layers.3.mlp.up_proj.weight" for
/// "blk.3.ffn_up.weight"; empty when there is none.
std::string hugging_face_name(std::string_view gguf_name, const GgufArchitecture& architecture);

/// config.json from a header. Errors: kCorrupt by the key that is missing, kUnsupported.
Result<nlohmann::json> config_from_gguf(const Gguf& gguf, const GgufFloats& read);

/// The checkpoint with an architecture's conversions. Errors name the tensor.
Result<std::shared_ptr<const Checkpoint>> converted_from_gguf(
    std::shared_ptr<const Checkpoint> checkpoint, const GgufArchitecture& architecture);

// What several architectures have in common.

/// Qwen's way to say how many experts there are.
std::vector<GgufField> gguf_experts();
/// Experts as DeepSeek V3's: a biased router, shared ones, groups. The config's fields for the
/// number of experts and of shared ones are given.
void add_biased_experts(GgufArchitecture& architecture,
                        const char* experts = "n_routed_experts",
                        const char* shared = "n_shared_experts");
/// A field that is a whole number; 0 where it is none.
uint64_t gguf_count(const nlohmann::json& config, const char* field);
/// kUnsupported unless experts are chosen by the function of this number (1: softmax, 2: sigmoid),
/// where the file says it.
Status check_gguf_gating(const GgufMetadata& metadata, uint64_t function);
/// layer_types: `special` where the flag of a layer is set, else full_attention.
nlohmann::json gguf_layer_types(const std::vector<bool>& flags, const char* special);

}  // namespace tandem::format
