#include "protocol/openapi/answers.h"

#include <utility>

namespace tandem::protocol::openapi {
namespace {

/// By name. More fields than these may come.
constexpr const char* kAnswers[] = {R"json({
  "Warnings": {"type": "array", "items": {"type": "object", "required": ["code", "message"],
    "properties": {"code": {"type": "string"}, "message": {"type": "string"}}}},
  "Count": {"type": "integer", "minimum": 0},
  "Usage": {"type": "object", "required": ["prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details"],
    "properties": {"prompt_tokens": {"$ref": "#/components/schemas/Count"}, "completion_tokens": {"$ref": "#/components/schemas/Count"}, "total_tokens": {"$ref": "#/components/schemas/Count"},
      "prompt_tokens_details": {"type": "object", "required": ["cached_tokens"], "properties": {"cached_tokens": {"$ref": "#/components/schemas/Count"}}},
      "completion_tokens_details": {"type": "object", "required": ["reasoning_tokens"], "properties": {"reasoning_tokens": {"$ref": "#/components/schemas/Count"}}}}},
  "TokenLogprob": {"type": "object", "required": ["token", "logprob", "bytes"],
    "properties": {"token": {"type": "string"}, "logprob": {"type": "number", "maximum": 0},
      "bytes": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}},
      "top_logprobs": {"type": "array", "items": {"$ref": "#/components/schemas/TokenLogprob"}}}},
  "AnsweredCall": {"anyOf": [
    {"type": "object", "required": ["id", "type", "function"],
      "properties": {"id": {"type": "string"}, "type": {"const": "function"},
        "function": {"type": "object", "required": ["name", "arguments"], "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}}}}},
    {"type": "object", "required": ["id", "type", "custom"],
      "properties": {"id": {"type": "string"}, "type": {"const": "custom"},
        "custom": {"type": "object", "required": ["name", "input"], "properties": {"name": {"type": "string"}, "input": {"type": "string"}}}}}]},
  "ChatCompletion": {"type": "object", "required": ["id", "object", "created", "model", "choices", "usage"],
    "properties": {"id": {"type": "string"}, "object": {"const": "chat.completion"}, "created": {"type": "integer"}, "model": {"type": "string"},
      "system_fingerprint": {"type": "string"}, "usage": {"$ref": "#/components/schemas/Usage"}, "warnings": {"$ref": "#/components/schemas/Warnings"},
      "choices": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["index", "message", "logprobs", "finish_reason"],
        "properties": {"index": {"$ref": "#/components/schemas/Count"}, "finish_reason": {"enum": ["stop", "length", "tool_calls"]},
          "finish_detail": {"type": "array", "items": {"type": "string"}},
          "logprobs": {"type": ["object", "null"], "required": ["content"], "properties": {"content": {"type": "array", "items": {"$ref": "#/components/schemas/TokenLogprob"}}, "refusal": {"type": "null"}}},
          "message": {"type": "object", "required": ["role", "content"],
            "properties": {"role": {"const": "assistant"}, "content": {"type": ["string", "null"]}, "refusal": {"type": "null"},
              "reasoning": {"type": "string"}, "reasoning_content": {"type": "string"},
              "tool_calls": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/AnsweredCall"}}}}}}}}},
  "Completion": {"type": "object", "required": ["id", "object", "created", "model", "choices", "usage"],
    "properties": {"id": {"type": "string"}, "object": {"const": "text_completion"}, "created": {"type": "integer"}, "model": {"type": "string"},
      "system_fingerprint": {"type": "string"}, "usage": {"$ref": "#/components/schemas/Usage"}, "warnings": {"$ref": "#/components/schemas/Warnings"},
      "choices": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["index", "text", "logprobs", "finish_reason"],
        "properties": {"index": {"$ref": "#/components/schemas/Count"}, "text": {"type": "string"}, "logprobs": {"type": ["object", "null"]},
          "finish_reason": {"enum": ["stop", "length", "tool_calls"]}}}}}},
  "Embeddings": {"type": "object", "required": ["object", "data", "model", "usage"],
    "properties": {"object": {"const": "list"}, "model": {"type": "string"},
      "data": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["object", "index", "embedding"],
        "properties": {"object": {"const": "embedding"}, "index": {"$ref": "#/components/schemas/Count"},
          "embedding": {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": {"type": "number"}}]}}}},
      "usage": {"type": "object", "required": ["prompt_tokens", "total_tokens"],
        "properties": {"prompt_tokens": {"$ref": "#/components/schemas/Count"}, "total_tokens": {"$ref": "#/components/schemas/Count"}}}}}
})json",
                                    R"json({
  "OutputItem": {"type": "object", "required": ["id", "type"],
    "properties": {"id": {"type": "string"}, "type": {"type": "string"}, "status": {"enum": ["in_progress", "completed", "incomplete"]},
      "role": {"type": "string"}, "content": {"type": ["array", "null"], "items": {"type": "object", "required": ["type"]}},
      "call_id": {"type": "string"}, "name": {"type": "string"}, "namespace": {"type": "string"}, "arguments": {"type": "string"}, "input": {"type": "string"},
      "summary": {"type": "array"}, "encrypted_content": {"type": ["string", "null"]}}},
  "Response": {"type": "object",
    "required": ["id", "object", "created_at", "status", "background", "error", "incomplete_details", "instructions", "model", "output", "parallel_tool_calls", "previous_response_id", "store", "text", "tools", "usage"],
    "properties": {"id": {"type": "string"}, "object": {"const": "response"}, "created_at": {"type": "integer"},
      "status": {"enum": ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]},
      "background": {"type": "boolean"}, "store": {"type": "boolean"}, "parallel_tool_calls": {"type": "boolean"},
      "conversation": {"type": ["object", "null"], "required": ["id"], "properties": {"id": {"type": "string"}}},
      "error": {"type": ["object", "null"], "required": ["code", "message"], "properties": {"code": {"type": "string"}, "message": {"type": "string"}}},
      "incomplete_details": {"type": ["object", "null"], "required": ["reason"], "properties": {"reason": {"type": "string"}}},
      "instructions": {"type": ["string", "null"]}, "model": {"type": "string"}, "metadata": {"type": "object"},
      "output": {"type": "array", "items": {"$ref": "#/components/schemas/OutputItem"}},
      "previous_response_id": {"type": ["string", "null"]}, "text": {"type": "object"}, "tools": {"type": "array"}, "warnings": {"$ref": "#/components/schemas/Warnings"},
      "usage": {"type": ["object", "null"], "required": ["input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details", "total_tokens"],
        "properties": {"input_tokens": {"$ref": "#/components/schemas/Count"}, "output_tokens": {"$ref": "#/components/schemas/Count"}, "total_tokens": {"$ref": "#/components/schemas/Count"}}}}},
  "ItemList": {"type": "object", "required": ["object", "data", "first_id", "last_id", "has_more"],
    "properties": {"object": {"const": "list"}, "data": {"type": "array", "items": {"$ref": "#/components/schemas/OutputItem"}},
      "first_id": {"type": ["string", "null"]}, "last_id": {"type": ["string", "null"]}, "has_more": {"type": "boolean"}}},
  "InputTokens": {"type": "object", "required": ["object", "input_tokens"], "properties": {"object": {"const": "response.input_tokens"}, "input_tokens": {"$ref": "#/components/schemas/Count"}}},
  "Deleted": {"type": "object", "required": ["id", "object", "deleted"], "properties": {"id": {"type": "string"}, "object": {"enum": ["response", "conversation.deleted"]}, "deleted": {"const": true}}},
  "Conversation": {"type": "object", "required": ["id", "object", "created_at", "metadata"],
    "properties": {"id": {"type": "string"}, "object": {"const": "conversation"}, "created_at": {"type": "integer"}, "metadata": {"$ref": "#/components/schemas/Metadata"}}},
  "MessageAnswer": {"type": "object", "required": ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"],
    "properties": {"id": {"type": "string"}, "type": {"const": "message"}, "role": {"const": "assistant"}, "model": {"type": "string"},
      "content": {"type": "array", "items": {"type": "object", "required": ["type"], "properties": {"type": {"enum": ["text", "thinking", "tool_use"]},
        "text": {"type": "string"}, "thinking": {"type": "string"}, "signature": {"type": "string"}, "id": {"type": "string"}, "name": {"type": "string"}, "input": {"type": "object"}}}},
      "stop_reason": {"enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use"]}, "stop_sequence": {"type": ["string", "null"]},
      "warnings": {"$ref": "#/components/schemas/Warnings"},
      "usage": {"type": "object", "required": ["input_tokens", "output_tokens"],
        "properties": {"input_tokens": {"$ref": "#/components/schemas/Count"}, "output_tokens": {"$ref": "#/components/schemas/Count"}, "cache_read_input_tokens": {"$ref": "#/components/schemas/Count"}}}}},
  "MessageTokens": {"type": "object", "required": ["input_tokens"], "properties": {"input_tokens": {"$ref": "#/components/schemas/Count"}}}
})json",
                                    R"json({
  "ModelEntry": {"type": "object", "required": ["id"],
    "anyOf": [{"required": ["object", "created", "owned_by"]}, {"required": ["type", "display_name", "created_at"]}],
    "properties": {"id": {"type": "string"}, "object": {"const": "model"}, "created": {"type": "integer"}, "owned_by": {"type": "string"},
      "context_length": {"$ref": "#/components/schemas/Count"}, "max_model_len": {"$ref": "#/components/schemas/Count"},
      "native_context_length": {"$ref": "#/components/schemas/Count"}, "max_output_tokens": {"$ref": "#/components/schemas/Count"},
      "type": {"const": "model"}, "display_name": {"type": "string"}, "created_at": {"type": "string"}}},
  "ModelList": {"type": "object", "required": ["data"],
    "properties": {"object": {"const": "list"}, "data": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/ModelEntry"}}}},
  "Requests": {"type": "object", "required": ["active", "recent"], "properties": {"active": {"type": "array", "items": {"type": "object"}}, "recent": {"type": "array", "items": {"type": "object"}}}},
  "Status": {"type": "object", "required": ["model", "max_context", "requests"],
    "properties": {"model": {"type": "string"}, "max_context": {"$ref": "#/components/schemas/Count"}, "version": {"type": "string"},
      "instances": {"type": "array", "items": {"type": "object"}}, "requests": {"type": "array", "items": {"type": "object"}}}},
  "Health": {"type": "object", "required": ["status"],
    "properties": {"status": {"enum": ["ok", "ready", "live", "unready"]}, "reason": {"type": ["string", "null"]}, "model": {"type": "string"},
      "requests_running": {"$ref": "#/components/schemas/Count"}, "version": {"type": "string"}}},
  "Stopped": {"type": "object", "required": ["request_id", "stopped"], "properties": {"request_id": {"type": "string"}, "stopped": {"const": true}}},
  "Prompt": {"type": "object", "required": ["prompt"], "properties": {"prompt": {"type": "string"}, "content": {"type": "string"}, "warnings": {"$ref": "#/components/schemas/Warnings"}}},
  "Tokens": {"type": "object", "required": ["count", "max_model_len", "tokens", "token_strs"],
    "properties": {"count": {"$ref": "#/components/schemas/Count"}, "max_model_len": {"$ref": "#/components/schemas/Count"}, "tokens": {"type": "array"}, "token_strs": {"type": ["array", "null"], "items": {"type": "string"}}}},
  "OllamaAnswer": {"type": "object", "required": ["model", "created_at", "done", "done_reason"],
    "properties": {"model": {"type": "string"}, "created_at": {"type": "string"}, "done": {"const": true}, "done_reason": {"enum": ["stop", "length", "load"]},
      "response": {"type": "string"}, "thinking": {"type": "string"}, "warnings": {"$ref": "#/components/schemas/Warnings"},
      "message": {"type": "object", "required": ["role", "content"],
        "properties": {"role": {"const": "assistant"}, "content": {"type": "string"}, "thinking": {"type": "string"}, "tool_calls": {"type": "array", "items": {"type": "object", "required": ["function"]}}}},
      "logprobs": {"type": "array", "items": {"$ref": "#/components/schemas/TokenLogprob"}},
      "prompt_eval_count": {"$ref": "#/components/schemas/Count"}, "eval_count": {"$ref": "#/components/schemas/Count"}, "total_duration": {"$ref": "#/components/schemas/Count"}}},
  "OllamaModels": {"type": "object", "required": ["models"],
    "properties": {"models": {"type": "array", "items": {"type": "object", "required": ["name", "model", "size", "digest", "details"]}}}},
  "OllamaModel": {"type": "object", "required": ["details", "model_info", "capabilities", "modified_at"],
    "properties": {"details": {"type": "object"}, "model_info": {"type": "object"}, "capabilities": {"type": "array", "items": {"type": "string"}}, "modified_at": {"type": "string"}}},
  "OllamaVersion": {"type": "object", "required": ["version"], "properties": {"version": {"type": "string"}}},
  "Greeting": {"type": "object", "required": ["service"], "properties": {"service": {"type": "string"}}},
  "Document": {"type": "object", "required": ["openapi", "info", "paths"]}
})json"};

/// The schemas of whole answers.
constexpr std::pair<const char*, const char*> kWhole[] = {
    {"DELETE /conversations/{id}", "Deleted"},
    {"DELETE /conversations/{id}/items/{item}", "Conversation"},
    {"DELETE /responses/{id}", "Deleted"},
    {"GET /", "Greeting"},
    {"GET /api/ps", "OllamaModels"},
    {"GET /api/tags", "OllamaModels"},
    {"GET /api/version", "OllamaVersion"},
    {"GET /conversations/{id}", "Conversation"},
    {"GET /conversations/{id}/items", "ItemList"},
    {"GET /conversations/{id}/items/{item}", "OutputItem"},
    {"GET /health", "Health"},
    {"GET /health/live", "Health"},
    {"GET /health/ready", "Health"},
    {"GET /models", "ModelList"},
    {"GET /models/{id...}", "ModelEntry"},
    {"GET /openapi.json", "Document"},
    {"GET /requests", "Requests"},
    {"GET /responses/{id}", "Response"},
    {"GET /responses/{id}/input_items", "ItemList"},
    {"GET /status", "Status"},
    {"POST /api/chat", "OllamaAnswer"},
    {"POST /api/generate", "OllamaAnswer"},
    {"POST /api/show", "OllamaModel"},
    {"POST /apply-template", "Prompt"},
    {"POST /chat/completions", "ChatCompletion"},
    {"POST /completions", "Completion"},
    {"POST /conversations", "Conversation"},
    {"POST /conversations/{id}", "Conversation"},
    {"POST /conversations/{id}/items", "ItemList"},
    {"POST /detokenize", "Prompt"},
    {"POST /embeddings", "Embeddings"},
    {"POST /messages", "MessageAnswer"},
    {"POST /messages/count_tokens", "MessageTokens"},
    {"POST /responses", "Response"},
    {"POST /responses/input_tokens", "InputTokens"},
    {"POST /responses/{id}/cancel", "Response"},
    {"POST /stop", "Stopped"},
    {"POST /tokenize", "Tokens"},
};

}  // namespace

const Json& answer_components() {
  static const Json kParsed = [] {
    Json all = Json::object();
    for (const char* part : kAnswers) all.update(Json::parse(part));
    return all;
  }();
  return kParsed;
}

Json answer_of(const std::string& method, const std::string& path) {
  const std::string wanted = method + " " + path;
  for (const auto& [route, name] : kWhole) {
    if (wanted == route) return Json{{"$ref", "#/components/schemas/" + std::string(name)}};
  }
  return nullptr;
}

}  // namespace tandem::protocol::openapi
