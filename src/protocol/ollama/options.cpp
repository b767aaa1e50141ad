#include "protocol/ollama/options.h"

#include <fmt/format.h>

#include <limits>

#include "protocol/message_rules.h"

namespace tandem::protocol::ollama {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr uint32_t kPenaltyContext = 64;  // Ollama's, for repeat_penalty

/// Changes what is drawn there, unless it has this value.
struct Sampler {
  const char* name;
  double neutral;
};
constexpr Sampler kForeignSamplers[] = {{"mirostat", 0}, {"tfs_z", 1}, {"typical_p", 1}};

void read_penalty(Fields& options, gen::Penalty& out) {
  if (const auto value = options.number("repeat_penalty", 0, 100)) {
    out = {.value = static_cast<float>(*value), .context = kPenaltyContext};
  }
  const auto context = options.integer("repeat_last_n", -1, kMost);
  if (!context) return;
  if (*context == 0) out.value = 0;                                     // switched off
  out.context = static_cast<uint32_t>(std::max<int64_t>(*context, 0));  // -1: all, which is 0 here
}

/// -1 and -2 are "as much as there is room for", as is 0.
void read_length(Fields& options, chat::Request& out) {
  const auto most = options.integer("num_predict", -2, kMost);
  if (most && *most > 0) out.max_tokens = static_cast<uint32_t>(*most);
}

void warn_of(const std::string& what, std::vector<chat::Warning>& warnings) {
  warn(warnings, {.code = "option_without_effect", .message = what});
}

void read_without_effect(Fields& options, const ParseContext& context, WireRequest& out) {
  for (const Sampler& sampler : kForeignSamplers) {
    const auto value = options.number(sampler.name, -1e9, 1e9);
    if (value && *value != sampler.neutral) {
      warn_of(fmt::format("options.{} has no effect here", sampler.name), out.warnings);
    }
  }
  const auto room = options.integer("num_ctx", -1, kMost);
  if (room && context.model.max_context > 0 && *room > int64_t{context.model.max_context}) {
    warn_of(fmt::format("options.num_ctx is {}, and the model has a context of {} here", *room,
                        context.model.max_context),
            out.warnings);
  }
  options.accept({"num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap",
                  "use_mlock", "numa", "low_vram", "f16_kv", "logits_all", "vocab_only",
                  "penalize_newline", "embedding_only", "mirostat_tau", "mirostat_eta"});
}

}  // namespace

void read_options(Fields& fields, const ParseContext& context, WireRequest& out) {
  out.request.sampling = context.options.sampling;
  const Json* given = fields.object("options");
  if (!given) return;
  Fields options(*given, "options.");
  read_sampling(options, context, out.request.sampling);
  read_penalty(options, out.request.sampling.repetition);
  // Ollama's clients send -1 for "any".
  if (given->value("seed", Json()) == -1) {
    options.accept({"seed"});
  } else {
    read_seed(options, out.request.seed);
  }
  read_length(options, out.request);
  read_stop(options, "stop", context, out.request.stop);
  read_without_effect(options, context, out);
  if (options.error()) fields.keep(*options.error());
  for (const std::string& name : options.unknown()) out.ignored.push_back("options." + name);
}

}  // namespace tandem::protocol::ollama
