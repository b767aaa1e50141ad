#include "protocol/openai/embeddings_request.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::protocol::openai {
namespace {

/// One text, or one array of ids.
void read_input(Fields& fields,
                const std::string& name,
                const Json& value,
                const ParseContext& context,
                std::vector<chat::RawPrompt>& out) {
  const bool is_text = value.is_string();
  if (!is_text && !value.is_array())
    return fields.refuse(name, "must be a string or an array of token ids, not " + excerpt(value));
  if (is_text ? value.get_ref<const std::string&>().empty() : value.empty())
    return fields.refuse(name, "must not be empty");
  if (is_text)
    out.emplace_back().prompt = value.get<std::string>();
  else if (auto ids = read_ids(fields, name.c_str(), value, context))
    out.emplace_back().prompt = *std::move(ids);
}

void read_inputs(Fields& fields, const ParseContext& context, std::vector<chat::RawPrompt>& out) {
  const Json* value = fields.any("input");
  if (!value) return fields.refuse("input", "is missing");
  const bool is_one = !value->is_array() || value->empty() || (*value)[0].is_number();
  if (is_one) return read_input(fields, "input", *value, context, out);
  if (value->size() > kMostInputs)
    return fields.refuse(
        "input", fmt::format("must have at most {} inputs, not {}", kMostInputs, value->size()));
  for (size_t i = 0; i < value->size() && !fields.error(); ++i)
    read_input(fields, fmt::format("input[{}]", i), (*value)[i], context, out);
}

void read_pooling(Fields& fields, gen::Pooling& out) {
  const auto pooling = fields.string("pooling", 16);
  if (!pooling) return;
  if (*pooling != "mean" && *pooling != "last")
    fields.refuse_value("pooling", R"(must be "mean" or "last")");
  if (*pooling == "last") out = gen::Pooling::kLast;
}

void read_encoding(Fields& fields, bool& is_base64) {
  const auto encoding = fields.string("encoding_format", 16);
  if (!encoding) return;
  if (*encoding != "float" && *encoding != "base64")
    fields.refuse_value("encoding_format", R"(must be "float" or "base64")");
  is_base64 = *encoding == "base64";
}

}  // namespace

Result<EmbeddingsRequest> parse_embeddings(std::string_view body, const ParseContext& context) {
  const auto json = parse_body(body);
  if (!json) return json.error();
  Fields fields(*json);
  EmbeddingsRequest out;
  WireRequest shared;  // what all wires have
  read_model(fields, context, shared);
  read_inputs(fields, context, out.request.inputs);
  read_pooling(fields, out.request.pooling);
  read_encoding(fields, out.is_base64);
  if (const auto dimensions = fields.integer("dimensions", 1, INT32_MAX))
    out.request.dimensions = static_cast<uint32_t>(*dimensions);
  read_scheduling(fields, shared.request);
  fields.accept({"user"});
  if (const Status ok = finish_fields(fields, context, shared); !ok) return ok.error();
  out.model = shared.model;
  out.ignored = std::move(shared.ignored);
  out.request.priority = shared.request.priority;
  out.request.deadline = shared.request.deadline;
  return out;
}

}  // namespace tandem::protocol::openai
