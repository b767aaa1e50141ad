// The same checkpoints over several ranks, against the same logits.
#include "cuts.h"

namespace tandem {
namespace {

using topology::Split;

/// Every pair of variant, split and number of ranks that can go wrong by itself; deep_test.cpp has
/// all of them.
const std::vector<Cut> kCuts = {{"f32", Split::kTensor, 2},
                                {"f32", Split::kTensor, 3},
                                {"f32", Split::kTensor, 4},
                                {"f32", Split::kPipeline, 2},
                                {"g32", Split::kTensor, 2, {0.7, 0.3}},
                                {"g32", Split::kTensor, 4},
                                {"g64", Split::kTensor, 3},
                                {"g64", Split::kPipeline, 2}};

/// The same for the micro-scaled ones: groups of 32, and of 16 with uneven shares.
const std::vector<Cut> kMicroScaledCuts = {{"mxfp4", Split::kTensor, 2},
                                           {"mxfp4", Split::kTensor, 4},
                                           {"mxfp4", Split::kPipeline, 2},
                                           {"mxfp8", Split::kTensor, 3},
                                           {"nvfp4", Split::kTensor, 2, {0.7, 0.3}}};

void check(const std::string& model, const Cut& cut) {
  const std::string name = model + "-" + cut.variant;
  check_cut(name, name, cut);
}

TEST_CASE("split: every family gives its logits over any ranks, cut by tensors or by layers") {
  for (const char* model : kModels)
    for (const Cut& cut : kCuts) check(model, cut);
}

TEST_CASE("split: so do micro-scaled ones, and the release of gpt-oss") {
  for (const char* model : kMicroScaled)
    for (const Cut& cut : kMicroScaledCuts) check(model, cut);
  check(kReleased, {"mxfp4", Split::kTensor, 3});
  check(kReleased, {"mxfp4", Split::kPipeline, 2});
}

TEST_CASE("split: checkpoints as they were released are cut like those made from them") {
  for (const char* model : kUpstream)
    check_cut(std::string(model) + "-upstream", std::string(model) + "-f32",
              {"f32", Split::kTensor, 3});
}

TEST_CASE("split: GGUF files over any ranks") {
  for (const char* model : kGguf)
    for (const Cut& cut : {Cut{"f32", Split::kTensor, 3}, Cut{"f32", Split::kPipeline, 2}})
      check_cut(std::string(model) + "-f32.gguf", std::string(model) + "-f32", cut);
}

TEST_CASE("split: models as their publishers lay them out, over any ranks") {
  for (const char* name : kLayouts)
    for (const Cut& cut : {Cut{"layout", Split::kTensor, 2, {0.7, 0.3}},
                           Cut{"layout", Split::kTensor, 3}, Cut{"layout", Split::kPipeline, 2}}) {
      check_cut(name, name, cut);
    }
}

}  // namespace
}  // namespace tandem
