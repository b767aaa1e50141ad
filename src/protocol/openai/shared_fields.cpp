#include "protocol/openai/shared_fields.h"

#include "protocol/openai/forced_output.h"

namespace tandem::protocol::openai {

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
  fields.accept({"user", "metadata", "store", "service_tier", "prompt_cache_key",
                 "safety_identifier", "num_draft_tokens"});
}

}  // namespace tandem::protocol::openai
