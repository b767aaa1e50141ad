// Published chat templates: each shows its dialect, and writes calls as we do. The data is outside
// the repository; without it the test is skipped.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "dialect/dialect.h"

namespace fs = std::filesystem;
using namespace tandem::dialect;

namespace {

const fs::path kFolder = fs::path(TANDEM_SOURCE_DIR) / "../shared/golden/templates";

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::map<std::string, std::string> kDialects = {
    {"ByteDance-Seed-OSS", "seed_oss"},
    {"Cohere2MoE", "command_r"},
    {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", "command_r"},
    {"GLM-4.5", "glm45"},
    {"GLM-4.6", "glm45"},
    {"GLM-4.7-Flash", "glm47"},
    {"Kimi-K2-Instruct", "kimi_k2"},
    {"LFM2-8B-A1B", "pythonic"},
    {"MiMo-VL", "json_tools"},
    {"MiniMax-M2", "minimax_m2"},
    {"Mistral-Small-3.2-24B-Instruct-2506", "mistral_small"},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "qwen3_5"},
    {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "json_tools"},
    {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "json_tools"},
    {"Qwen-QwQ-32B", "json_tools"},
    {"Qwen-Qwen2.5-7B-Instruct", "json_tools"},
    {"Qwen-Qwen3-0.6B", "json_tools"},
    {"Qwen3-Coder", "qwen3_coder"},
    {"Qwen3-Coder-30B", "qwen3_coder"},
    {"Qwen3.5-4B", "qwen3_5"},
    {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "deepseek_v3"},
    {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek_v3"},
    {"deepseek-ai-DeepSeek-V3.1", "deepseek_v31"},
    {"deepseek-ai-DeepSeek-V3.2", "deepseek_v32"},
    {"gemma4_31B-it", "gemma4"},
    {"google-gemma-4-31B-it", "gemma4"},
    {"google-gemma-4-31B-it-interleaved", "gemma4"},
    {"gpt-oss-20b", "gpt_oss"},
    {"ibm-granite-granite-3.3-2B-Instruct", "granite"},
    {"llama-cpp-deepseek-r1", "deepseek_v3"},
    {"meta-llama-Llama-3.1-8B-Instruct", "llama3"},
    {"meta-llama-Llama-3.2-3B-Instruct", "llama3"},
    {"meta-llama-Llama-3.3-70B-Instruct", "llama3"},
    {"mistralai-Mistral-Nemo-Instruct-2407", "mistral"},
    {"moonshotai-Kimi-K2", "kimi_k2"},
    {"openai-gpt-oss-120b", "gpt_oss"},
    {"qwen3.5_27B", "qwen3_5"},
    {"unsloth-mistral-Devstral-Small-2507", "devstral"},
};

/// Templates that leave calls out, or write values in a way of their own.
bool writes_otherwise(const std::string& name) {
  for (const char* other : {"GLM-4.5", "LFM2-8B-A1B", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
                            "ibm-granite-granite-3.3-2B-Instruct"}) {
    if (name == other) return true;
  }
  return false;
}

std::vector<Call> calls_of(const Json& conversation) {
  std::vector<Call> calls;
  for (const Json& message : conversation["messages"]) {
    if (!message.contains("tool_calls") || !calls.empty()) continue;
    for (const Json& call : message["tool_calls"]) {
      calls.push_back(
          {.name = call["function"]["name"], .arguments = call["function"]["arguments"]});
    }
  }
  return calls;
}

}  // namespace

TEST_CASE("published templates: each shows its dialect") {
  if (!fs::exists(kFolder)) {
    MESSAGE("skipped: no published templates beside the repository");
    return;
  }
  size_t known = 0;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".jinja") continue;
    const std::string name = entry.path().stem();
    const Dialect* dialect = recognize({.chat_template = read_file(entry.path())});
    const auto expected = kDialects.find(name);
    CAPTURE(name);
    CHECK((dialect ? dialect->name : "") == (expected == kDialects.end() ? "" : expected->second));
    known += expected == kDialects.end() ? 0 : 1;
  }
  CHECK(known == kDialects.size());
}

TEST_CASE("published templates: calls are rendered as the template writes them") {
  if (!fs::exists(kFolder)) return;
  const Json conversations = Json::parse(read_file(kFolder / "conversations.json"));
  std::ifstream lines(kFolder / "expected.jsonl");
  size_t compared = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json expected = Json::parse(line);
    const std::string name = expected["template"];
    const std::string conversation = expected["conversation"];
    const bool is_simple = conversation == "tool_dict" || conversation == "tool_dict_id9";
    const auto dialect = kDialects.find(name);
    if (!is_simple || !expected.contains("text") || dialect == kDialects.end()) continue;
    if (writes_otherwise(name)) continue;
    std::vector<Call> calls = calls_of(conversations[conversation]);
    if (conversation == "tool_dict_id9" && name.find("istral") != std::string::npos) {
      calls[0].id = "abcdefghi";
    }
    std::string rendered = render(find(dialect->second)->layout, calls);
    CAPTURE(name);
    CAPTURE(rendered);
    CAPTURE(expected["text"].get<std::string>());
    CHECK(expected["text"].get<std::string>().find(rendered) != std::string::npos);
    ++compared;
  }
  CHECK(compared > 40);
}
