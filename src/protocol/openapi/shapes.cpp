#include "protocol/openapi/shapes.h"

namespace tandem::protocol::openapi {
namespace {

/// By name. Fields that are not listed are free.
constexpr const char* kComponents = R"json({
  "TextPart": {"type": "object", "required": ["type", "text"],
    "properties": {"type": {"enum": ["text", "input_text", "output_text"]}, "text": {"type": "string"}}},
  "Content": {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "array", "items": {"$ref": "#/components/schemas/TextPart"}}]},
  "FunctionCall": {"type": "object", "required": ["function"],
    "properties": {"id": {"type": "string"}, "type": {"const": "function"},
      "function": {"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string", "minLength": 1}, "arguments": {"type": ["string", "object", "null"]}}}}},
  "CustomCall": {"type": "object", "required": ["type", "custom"],
    "properties": {"id": {"type": "string"}, "type": {"const": "custom"},
      "custom": {"type": "object", "required": ["name", "input"],
        "properties": {"name": {"type": "string", "minLength": 1}, "input": {"type": "string"}}}}},
  "Call": {"anyOf": [{"$ref": "#/components/schemas/FunctionCall"}, {"$ref": "#/components/schemas/CustomCall"}]},
  "ChatMessage": {"type": "object", "required": ["role", "content"],
    "properties": {
      "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
      "content": {"$ref": "#/components/schemas/Content"},
      "name": {"type": "string"}, "tool_call_id": {"type": "string"},
      "reasoning_content": {"type": "string"}, "reasoning": {"type": "string"},
      "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/Call"}}}},
  "Function": {"type": "object", "required": ["name"],
    "properties": {"name": {"type": "string", "minLength": 1}, "description": {"type": "string"}, "parameters": {"type": "object"}}},
  "FunctionTool": {"type": "object", "required": ["type", "function"],
    "properties": {"type": {"const": "function"}, "function": {"$ref": "#/components/schemas/Function"}}},
  "Grammar": {"type": "object", "required": ["syntax", "definition"],
    "properties": {"syntax": {"enum": ["lark", "regex"]}, "definition": {"type": "string", "minLength": 1}}},
  "TextFormat": {"anyOf": [{"type": "object", "required": ["type"], "properties": {"type": {"const": "text"}}},
    {"type": "object", "required": ["type", "grammar"], "properties": {"type": {"const": "grammar"}, "grammar": {"$ref": "#/components/schemas/Grammar"}}}]},
  "CustomTool": {"type": "object", "required": ["type", "custom"],
    "properties": {"type": {"const": "custom"}, "custom": {"type": "object", "required": ["name"],
      "properties": {"name": {"type": "string", "minLength": 1}, "description": {"type": "string"}, "format": {"$ref": "#/components/schemas/TextFormat"}}}}},
  "ChatTool": {"anyOf": [{"$ref": "#/components/schemas/FunctionTool"}, {"$ref": "#/components/schemas/CustomTool"}]},
  "Block": {"type": "object", "required": ["type"],
    "properties": {"type": {"enum": ["text", "thinking", "redacted_thinking", "tool_use", "tool_result", "document", "search_result"]},
      "text": {"type": "string"}, "thinking": {"type": "string"}, "signature": {"type": "string"},
      "id": {"type": "string"}, "name": {"type": "string"}, "input": {"type": "object"},
      "tool_use_id": {"type": "string"}, "content": {"type": "string"}, "is_error": {"type": "boolean"}}},
  "Message": {"type": "object", "required": ["role", "content"],
    "properties": {"role": {"enum": ["user", "assistant", "system"]},
      "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/components/schemas/Block"}}]}}},
  "MessageTool": {"type": "object", "required": ["name"],
    "properties": {"type": {"type": "string"}, "name": {"type": "string", "minLength": 1}, "description": {"type": "string"}, "input_schema": {"type": "object"}}},
  "Item": {"type": "object",
    "properties": {"type": {"enum": ["message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning"]},
      "id": {"type": "string"}, "role": {"enum": ["user", "assistant", "system", "developer"]},
      "content": {"$ref": "#/components/schemas/Content"}, "name": {"type": "string"}, "namespace": {"type": "string"},
      "call_id": {"type": "string"}, "arguments": {"type": "string"}, "input": {"type": "string"},
      "output": {"$ref": "#/components/schemas/Content"}}},
  "Metadata": {"type": ["object", "null"], "maxProperties": 16, "propertyNames": {"maxLength": 64},
    "additionalProperties": {"type": "string", "maxLength": 512}},
  "ResponseTool": {"type": "object", "required": ["type"],
    "properties": {"type": {"type": "string"}, "name": {"type": "string"}, "description": {"type": "string"}, "parameters": {"type": "object"}}},
  "OllamaMessage": {"type": "object", "required": ["role"],
    "properties": {"role": {"enum": ["system", "user", "assistant", "tool"]}, "content": {"type": "string"},
      "thinking": {"type": "string"}, "tool_name": {"type": "string"}, "tool_call_id": {"type": "string"},
      "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/FunctionCall"}}}},
  "Error": {"type": "object", "required": ["error"],
    "properties": {"error": {"type": "object", "required": ["message", "type", "code"],
      "properties": {"message": {"type": "string"}, "type": {"type": "string"}, "param": {"type": ["string", "null"]}, "code": {"type": "string"}}}}},
  "MessagesError": {"type": "object", "required": ["type", "error"],
    "properties": {"type": {"const": "error"}, "error": {"type": "object", "required": ["type", "message"],
      "properties": {"type": {"type": "string"}, "message": {"type": "string"}}}}},
  "OllamaError": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
})json";

/// Of fields by name, or by endpoint and name.
constexpr const char* kShapes = R"json({
  "model": {"$ref": "#/components/schemas/Model"},
  "guards": {"$ref": "#/components/schemas/Guards"},
  "seed": {"type": "integer", "minimum": -9223372036854775808, "maximum": 18446744073709551615},
  "stop": {"anyOf": [{"type": "string"}, {"type": "array", "maxItems": 16, "items": {"type": "string", "minLength": 1}}]},
  "stop_sequences": {"type": "array", "maxItems": 16, "items": {"type": "string", "minLength": 1}},
  "logit_bias": {"type": "object", "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100}},
  "stream_options": {"type": "object", "properties": {"include_usage": {"type": ["boolean", "null"]}}},
  "thinking": {"type": "object", "required": ["type"],
    "properties": {"type": {"enum": ["enabled", "disabled", "adaptive"]}, "budget_tokens": {"type": "integer"}}},
  "role_mapping": {"type": "object", "additionalProperties": {"type": "string"}},
  "modalities": {"const": ["text"]},
  "chat.messages": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/ChatMessage"}},
  "chat.tools": {"type": "array", "items": {"$ref": "#/components/schemas/ChatTool"}},
  "apply_template.messages": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/ChatMessage"}},
  "apply_template.tools": {"type": "array", "items": {"$ref": "#/components/schemas/ChatTool"}},
  "completions.prompt": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}}]},
  "messages.messages": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Message"}},
  "messages.tools": {"type": "array", "items": {"$ref": "#/components/schemas/MessageTool"}},
  "messages.system": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/components/schemas/Block"}}]},
  "count_tokens.messages": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Message"}},
  "count_tokens.tools": {"type": "array", "items": {"$ref": "#/components/schemas/MessageTool"}},
  "count_tokens.system": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/components/schemas/Block"}}]},
  "output_config": {"type": "object", "properties": {"effort": {"type": "string"}}},
  "thread": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}},
  "conversation": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}]},
  "metadata": {"$ref": "#/components/schemas/Metadata"},
  "messages.metadata": {"type": "object"}, "count_tokens.metadata": {"type": "object"},
  "responses.input": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/components/schemas/Item"}}]},
  "responses.tools": {"type": "array", "items": {"$ref": "#/components/schemas/ResponseTool"}},
  "reasoning": {"type": "object", "properties": {"effort": {"type": ["string", "null"]}, "summary": {}}},
  "text": {"type": "object", "properties": {"format": {"type": "object"}, "verbosity": {}}},
  "ollama_chat.messages": {"type": "array", "items": {"$ref": "#/components/schemas/OllamaMessage"}},
  "ollama_chat.tools": {"type": "array", "items": {"$ref": "#/components/schemas/FunctionTool"}},
  "think": {"anyOf": [{"type": "boolean"}, {"enum": ["low", "medium", "high", "none"]}]},
  "options": {"type": "object",
    "properties": {
      "num_predict": {"type": "integer", "minimum": -2, "maximum": 2147483647},
      "temperature": {"type": "number", "minimum": 0, "maximum": 100},
      "top_k": {"type": "integer", "minimum": -1, "maximum": 2147483647},
      "top_p": {"type": "number", "minimum": 0, "maximum": 1},
      "min_p": {"type": "number", "minimum": 0, "maximum": 1},
      "repeat_penalty": {"type": "number", "minimum": 0, "maximum": 100},
      "repeat_last_n": {"type": "integer", "minimum": -1, "maximum": 2147483647},
      "presence_penalty": {"type": "number", "minimum": -10, "maximum": 10},
      "frequency_penalty": {"type": "number", "minimum": -10, "maximum": 10},
      "seed": {"type": "integer"}, "num_ctx": {"type": "integer", "minimum": -1, "maximum": 2147483647},
      "stop": {"type": "array", "maxItems": 16, "items": {"type": "string", "minLength": 1}}}},
  "images": {"const": []}, "ollama_generate.context": {"const": []},
  "suffix": {"const": ""}, "template": {"const": ""}
})json";

}  // namespace

const Json& components() {
  static const Json kParsed = Json::parse(kComponents);
  return kParsed;
}

Json shape_of(const std::string& endpoint, const std::string& field) {
  static const Json kParsed = Json::parse(kShapes);
  for (const std::string& key : {endpoint + "." + field, field}) {
    if (const auto found = kParsed.find(key); found != kParsed.end()) return *found;
  }
  return nullptr;
}

}  // namespace tandem::protocol::openapi
