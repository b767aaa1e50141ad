#include "format/text_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace tandem::format {
namespace {

constexpr std::array<std::string_view, 11> kTowers = {
    "vision_tower.", "vision_model.",    "visual.",      "multi_modal_projector.",
    "audio_tower.",  "embed_vision.",    "embed_audio.", "vision_embed",
    "patch_merger.", "patch_merge_mlp.", "mm_projector."};

/// Names of the type that text_config gives where a family here has another.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kTypes = {
    {{"qwen3_vl_text", "qwen3"},
     {"qwen3_vl_moe_text", "qwen3_moe"},
     {"qwen3_5_text", "qwen3_5"},
     {"qwen3_5_moe_text", "qwen3_5_moe"},
     {"gemma3", "gemma3_text"},
     {"gemma4", "gemma4_text"},
     {"kimi_k25", "kimi_k2"},
     {"minimax_m3", "minimax_m3_vl_text"},
     {"minimax_m3_vl", "minimax_m3_vl_text"}}};

bool is_of_tower(std::string_view name) {
  return std::ranges::any_of(kTowers, [&](std::string_view tower) {
    const size_t at = name.find(tower);
    return at == 0 || (at != std::string_view::npos && name[at - 1] == '.');
  });
}

/// What the tensor or module is called in a checkpoint of the text model alone.
std::string alone(std::string_view name) {
  constexpr std::string_view kInside = "language_model.", kUnderModel = "model.language_model.";
  if (name.starts_with(kUnderModel)) return "model." + std::string(name.substr(kUnderModel.size()));
  if (name.starts_with(kInside)) name.remove_prefix(kInside.size());
  return std::string(name);
}

std::string text_type(const nlohmann::json& text, const nlohmann::json& whole) {
  const auto type_of = [](const nlohmann::json& json) {
    const auto found = json.find("model_type");
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  std::string type = type_of(text);
  // As the reference does: mistral3's own text is llama's unless it says otherwise.
  if (type.empty()) type = type_of(whole) == "mistral3" ? "llama" : type_of(whole);
  for (const auto& [theirs, ours] : kTypes)
    if (type == theirs) return std::string(ours);
  return type;
}

nlohmann::json config_of(const nlohmann::json& whole) {
  nlohmann::json out = whole;
  const nlohmann::json& text = whole.at("text_config");
  for (const auto& [key, value] : text.items())
    if (!value.is_null() || !out.contains(key)) out[key] = value;
  out["model_type"] = text_type(text, whole);
  for (const char* key : {"text_config", "vision_config", "audio_config"}) out.erase(key);
  return out;
}

class TextModel final : public Checkpoint {
 public:
  explicit TextModel(std::shared_ptr<const Checkpoint> whole)
      : whole_(std::move(whole)), config_(config_of(whole_->config())) {
    for (const std::string& name : whole_->names()) {
      if (is_of_tower(name)) {
        ++dropped_;
        continue;
      }
      const auto [at, is_new] = inner_.emplace(alone(name), name);
      if (!is_new) clash_ = fmt::format("{} and {}", at->second, name);
    }
  }

  /// Two tensors that would be called the same; empty when there are none.
  const std::string& clash() const { return clash_; }

  const nlohmann::json& config() const override { return config_; }

  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, inner] : inner_) out.push_back(name);
    return out;
  }

  bool has(std::string_view name) const override { return inner_.contains(name); }

  Result<Tensor> describe(std::string_view name) const override {
    return whole_->describe(inner(name));
  }

  Result<Tensor> tensor(std::string_view name, std::optional<RowRange> rows) const override {
    return whole_->tensor(inner(name), rows);
  }

  Result<std::optional<Quantization>> quantization(std::string_view module) const override {
    const std::string weight = std::string(module) + ".weight";
    std::string name = inner(weight);
    return whole_->quantization(name.substr(0, name.size() - std::string_view(".weight").size()));
  }

  uint64_t weight_bytes() const override { return whole_->weight_bytes(); }
  std::filesystem::path directory() const override { return whole_->directory(); }
  const Gguf* gguf() const override { return whole_->gguf(); }

  std::string notice() const override {
    if (dropped_ == 0) return {};
    return fmt::format(
        "{} tensors of this checkpoint are for images or sound and are left out: its language "
        "model is served, and answers to text alone",
        dropped_);
  }

 private:
  /// The name in the whole checkpoint; an unknown one stays, and fails there by it.
  std::string inner(std::string_view name) const {
    const auto found = inner_.find(name);
    return found == inner_.end() ? std::string(name) : found->second;
  }

  std::shared_ptr<const Checkpoint> whole_;
  nlohmann::json config_;
  std::map<std::string, std::string, std::less<>> inner_;  // name alone → name in the whole
  size_t dropped_ = 0;
  std::string clash_;
};

}  // namespace

Result<std::shared_ptr<const Checkpoint>> text_model(std::shared_ptr<const Checkpoint> checkpoint) {
  const auto text = checkpoint->config().find("text_config");
  if (text == checkpoint->config().end() || text->is_null()) return checkpoint;
  if (!text->is_object())
    return Error{ErrorCode::kCorrupt,
                 fmt::format("config: text_config should be an object, is {}: fetch config.json "
                             "again",
                             text->dump())};
  auto text_alone = std::make_shared<TextModel>(std::move(checkpoint));
  if (!text_alone->clash().empty())
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("{} are both the same tensor of the language model: fetch or convert the "
                    "checkpoint again",
                    text_alone->clash())};
  return std::shared_ptr<const Checkpoint>(std::move(text_alone));
}

}  // namespace tandem::format
