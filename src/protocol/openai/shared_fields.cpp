#include "protocol/openai/shared_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "protocol/openai/forced_output.h"

namespace tandem::protocol::openai {
namespace {

constexpr size_t kMaxPairs = 16;
constexpr size_t kMaxName = 64;
constexpr size_t kMaxText = 512;

/// In characters: bytes that go on with one do not count.
size_t length(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

void read_logprobs(Fields& fields, const ParseContext& context, int64_t least, chat::Request& out) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", least, context.options.max_top_logprobs);
  if (wanted) out.logprobs = top ? static_cast<uint32_t>(std::max<int64_t>(*top, 0)) : 0;
  if (!wanted && top.value_or(0) > 0) fields.refuse("top_logprobs", "needs logprobs to be true");
}

void check_metadata(Fields& fields) {
  const Json* metadata = fields.object("metadata");
  if (!metadata) return;
  if (metadata->size() > kMaxPairs) {
    return fields.refuse("metadata", fmt::format("must have at most {} entries, not {}", kMaxPairs,
                                                 metadata->size()));
  }
  for (const auto& [name, value] : metadata->items()) {
    const bool fits = length(name) <= kMaxName && value.is_string() &&
                      length(value.get_ref<const std::string&>()) <= kMaxText;
    if (fits) continue;
    return fields.refuse(
        "metadata", fmt::format("must map names of at most {} characters to strings of at most {}, "
                                "unlike the entry {}",
                                kMaxName, kMaxText, literal(shortened(name, 80))));
  }
}

void read_shared(Fields& fields, const ParseContext& context, WireRequest& out) {
  read_generation(fields, context, out);
  if (const Json* options = fields.object("stream_options")) {
    Fields inner(*options, "stream_options.");
    out.include_usage = inner.boolean("include_usage").value_or(false) && out.stream;
    if (inner.error()) fields.keep(*inner.error());
  }
  out.request.choices =
      static_cast<uint32_t>(fields.integer("n", 1, context.options.max_choices).value_or(1));
  read_stop(fields, "stop", context, out.request.stop);
  if (const Json* format = fields.object("response_format")) {
    read_format(*format, "response_format", fields, out.request);
  }
  check_metadata(fields);
  fields.accept({"user", "store", "service_tier", "prompt_cache_key", "safety_identifier",
                 "num_draft_tokens"});
}

}  // namespace tandem::protocol::openai
