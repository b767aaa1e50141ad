#include "app/model_info.h"

#include <doctest/doctest.h>

namespace tandem::app {
namespace {

/// The config of a small model; `positions` as it stands in the file.
nlohmann::json header(const nlohmann::json& positions, const nlohmann::json& vocab = 101) {
  return {{"hidden_size", 64},        {"num_hidden_layers", 2},
          {"num_attention_heads", 4}, {"intermediate_size", 96},
          {"vocab_size", vocab},      {"max_position_embeddings", positions}};
}

TEST_CASE(
    "model info: the context is the header's, or the ranks' default, under the user's bound") {
  CHECK(model_info(header(4096), 0).native_context == 4096);
  CHECK(model_info(header(4096), 0).max_context == 4096);
  CHECK(model_info(header(4096), 0).vocab == 101);
  CHECK(model_info(header(4096), 1000).max_context == 1000);
  CHECK(model_info(header(4096), 1000).max_output == 1000);
  CHECK(model_info(header(4096), 9000).max_context == 4096);
  CHECK(model_info(header(nullptr), 0).max_context == 32768);
  CHECK(model_info(header(nullptr), 0).native_context == 32768);
}

TEST_CASE("model info: a bound above what the model was made for is told with both numbers") {
  const auto notice = [](uint32_t context) {
    return context_notice(model_info(header(4096), context), context);
  };
  CHECK(notice(0).empty());
  CHECK(notice(4096).empty());
  CHECK(notice(1'000'000) ==
        "--context 1000000 is more than the 4096 tokens that the model was made for: requests may "
        "have 4096");
  CHECK(context_notice(model_info(header("4096"), 9), 9).empty());
}

TEST_CASE("model info: a header with fields of a wrong type is left to the ranks to refuse") {
  for (const chat::ModelInfo& info :
       {model_info(header("4096"), 0), model_info(header(4096, nullptr), 0),
        model_info(nlohmann::json::array(), 7)}) {
    CHECK(info.max_context == 0);
    CHECK(info.vocab == 0);
  }
}

}  // namespace
}  // namespace tandem::app
