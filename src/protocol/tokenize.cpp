// POST /v1/tokenize, /v1/detokenize and /v1/apply-template: prompts without a generation. Bodies
// and answers are those of vLLM and of llama.cpp at once.
#include <fmt/format.h>

#include "protocol/answer.h"
#include "protocol/call.h"
#include "protocol/errors.h"
#include "protocol/handlers.h"
#include "protocol/openai/chat_request.h"

namespace tandem::protocol {
namespace {

/// A worker is busy with one text for as long: some seconds.
constexpr size_t kMaxTextBytes = 8 << 20;
constexpr size_t kMaxIds = 1'000'000;

/// A text whose tokens are asked for.
struct Source {
  WireRequest wire;
  std::string text;
  bool add_special = false;
};

Result<std::string> prompt_text(Api& api, const chat::Request& request) {
  if (const auto* conversation = std::get_if<chat::Conversation>(&request.input)) {
    return api.service().render(*conversation);
  }
  return std::get<std::string>(std::get<chat::RawPrompt>(request.input).prompt);
}

Status check_size(const std::string& text, const char* field) {
  if (text.size() <= kMaxTextBytes) return {};
  return Error{ErrorCode::kInvalid,
               fmt::format("'{}' must make a text of at most {} bytes, not {}", field,
                           kMaxTextBytes, text.size()),
               field};
}

/// The one field that says what to tokenize.
const char* text_field(Fields& fields) {
  const char* given = nullptr;
  for (const char* name : {"prompt", "content", "messages"}) {
    if (!fields.has(name)) continue;
    if (given) fields.refuse(name, fmt::format("excludes {}", literal(given)));
    given = name;
  }
  if (!given) fields.refuse("prompt", "is missing: it, content or messages must be there");
  return given;
}

/// vLLM adds special tokens to a prompt by default, llama.cpp none to a content. Messages get what
/// they would in a generation.
bool adds_special(Fields& fields, std::string_view field, const WireRequest& wire) {
  const bool is_plain = std::holds_alternative<chat::RawPrompt>(wire.request.input);
  bool out = field == "prompt" || (field == "messages" && is_plain);
  for (const char* name : {"add_special_tokens", "add_special"}) {
    out = fields.boolean(name).value_or(out);
  }
  if (!fields.boolean("parse_special").value_or(true)) {
    fields.unsupported("parse_special", "false: special tokens spelled in a text are recognised");
  }
  return out;
}

Result<Source> read_source(Api& api, const net::Request& request, Fields& fields) {
  const chat::ModelInfo model = api.service().model();
  const ParseContext context{.model = model, .options = api.options()};
  Source out;
  read_model(fields, context, out.wire);
  const char* field = text_field(fields);
  if (fields.error()) return *fields.error();
  const bool is_conversation = std::string_view(field) == "messages";
  if (is_conversation) {
    openai::read_conversation(fields, context, out.wire);
  } else if (auto text = fields.string(field, kMaxTextBytes)) {
    out.text = std::move(*text);
  }
  out.add_special = adds_special(fields, field, out.wire);
  if (const Status ok = finish_fields(fields, context, out.wire); !ok) return ok.error();
  if (!is_conversation) return out;
  set_client(api, request, out.wire.request);
  auto text = prompt_text(api, out.wire.request);
  if (!text) return text.error();
  out.text = std::move(*text);
  if (const Status fits = check_size(out.text, field); !fits) return fits.error();
  return out;
}

/// Text where the bytes are characters, else the bytes.
Json piece(const std::string& bytes) {
  if (lossy_utf8(bytes) == bytes) return bytes;
  Json out = Json::array();
  for (const char c : bytes) out.push_back(static_cast<unsigned char>(c));
  return out;
}

Json id_objects(const std::vector<gen::TokenId>& ids, const std::vector<std::string>& bytes) {
  Json out = Json::array();
  for (size_t i = 0; i < ids.size(); ++i) {
    out.push_back(Json{{"id", ids[i]}, {"piece", piece(bytes[i])}});
  }
  return out;
}

Json texts(const std::vector<std::string>& bytes) {
  Json out = Json::array();
  for (const std::string& token : bytes) out.push_back(lossy_utf8(token));
  return out;
}

/// Counts what the request had of unknown fields, and tells what has no effect.
void add_warnings(Api& api, WireRequest& wire, Json& answer) {
  for (chat::Warning& warning : api.service().warnings(wire.request)) {
    wire.warnings.push_back(std::move(warning));
  }
  api.metrics().ignored(wire.ignored);
  api.metrics().warned(wire.warnings);
  if (!wire.warnings.empty()) answer["warnings"] = encode_warnings(wire.warnings);
}

Result<Json> tokenized(Api& api, const net::Request& request) {
  const auto json = parse_body(request.body);
  if (!json) return json.error();
  Fields fields(*json);
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  const bool with_texts = fields.boolean("return_token_strs").value_or(false);
  auto source = read_source(api, request, fields);
  if (!source) return source.error();
  const auto ids = api.service().encode(source->text, source->add_special);
  if (!ids) return ids.error();
  Result<std::vector<std::string>> bytes = std::vector<std::string>();
  if (with_pieces || with_texts) bytes = api.service().token_bytes(*ids);
  if (!bytes) return bytes.error();
  Json out;
  out["count"] = ids->size();
  out["max_model_len"] = api.service().model().max_context;
  out["tokens"] = with_pieces ? id_objects(*ids, *bytes) : Json(*ids);
  out["token_strs"] = with_texts ? texts(*bytes) : Json(nullptr);
  add_warnings(api, source->wire, out);
  return out;
}

Result<Json> detokenized(Api& api, const net::Request& request) {
  const auto json = parse_body(request.body);
  if (!json) return json.error();
  const chat::ModelInfo model = api.service().model();
  const ParseContext context{.model = model, .options = api.options()};
  Fields fields(*json);
  WireRequest wire;
  read_model(fields, context, wire);
  std::optional<std::vector<gen::TokenId>> ids;
  const Json* given = fields.array("tokens");
  if (!given) {
    fields.refuse("tokens", "is missing: it must be an array of token ids");
  } else if (given->size() > kMaxIds) {
    fields.refuse("tokens",
                  fmt::format("must hold at most {} ids, not {}", kMaxIds, given->size()));
  } else {
    ids = read_ids(fields, "tokens", *given, context);
  }
  if (const Status ok = finish_fields(fields, context, wire); !ok) return ok.error();
  const auto text = api.service().decode(*ids);
  if (!text) return text.error();
  Json out{{"prompt", *text}, {"content", *text}};
  add_warnings(api, wire, out);
  return out;
}

Result<Json> templated(Api& api, const net::Request& request) {
  const chat::ModelInfo model = api.service().model();
  auto wire = openai::parse_chat(request.body, {.model = model, .options = api.options()});
  if (!wire) return wire.error();
  set_client(api, request, wire->request);
  const auto text = prompt_text(api, wire->request);
  if (!text) return text.error();
  Json out{{"prompt", *text}};
  add_warnings(api, *wire, out);
  return out;
}

void answer(Api& api, const char* endpoint, const Result<Json>& body, const ReplyPtr& reply) {
  if (body) return reply->send(net::json_response(200, dump(*body)));
  api.metrics().refused(endpoint, status_of(body.error()));
  reply->send(error_response(body.error()));
}

}  // namespace

void tokenize(Api& api, const net::Request& request, const ReplyPtr& reply) {
  answer(api, "tokenize", tokenized(api, request), reply);
}

void detokenize(Api& api, const net::Request& request, const ReplyPtr& reply) {
  answer(api, "detokenize", detokenized(api, request), reply);
}

void apply_template(Api& api, const net::Request& request, const ReplyPtr& reply) {
  answer(api, "apply_template", templated(api, request), reply);
}

}  // namespace tandem::protocol
