#include "model/arch.h"

#include <fmt/format.h>

namespace tandem::model {

#define X(name) Arch name();
namespace arch {
#include "model/arch/registry.inc"
}
#undef X

const std::vector<Arch>& archs() {
#define X(name) arch::name(),
  static const std::vector<Arch> all = {
#include "model/arch/registry.inc"
  };
#undef X
  return all;
}

Result<Arch> find_arch(const nlohmann::json& config) {
  const auto type = config.find("model_type");
  const std::string name =
      type != config.end() && type->is_string() ? type->get<std::string>() : std::string("(none)");
  std::string known;
  for (const Arch& a : archs()) {
    if (a.model_type == name) return a;
    known += (known.empty() ? "" : ", ") + std::string(a.model_type);
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("model_type {} is not supported; these are: {}", name, known)};
}

Result<Description> describe(const format::Checkpoint& checkpoint) {
  const auto arch = find_arch(checkpoint.config());
  if (!arch) return arch.error();
  auto config = arch->decode(checkpoint.config());
  if (!config) return config.error();
  if (!checkpoint.config().contains("tie_word_embeddings"))
    config->has_tied_head = !checkpoint.has("lm_head.weight");
  return Description{*arch, *std::move(config)};
}

}  // namespace tandem::model
