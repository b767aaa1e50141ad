// What block-sparse attention promises beyond the reference's logits.
#include <cmath>

#include "golden_files.h"
#include "runner/ranks_test.h"

namespace tandem {
namespace {

constexpr const char* kSparse = "minimax_m3-g32";
constexpr uint32_t kSparseVocab = 320;

std::shared_ptr<const format::Checkpoint> sparse_checkpoint() {
  auto checkpoint = format::open_checkpoint(checkpoints_folder / kSparse);
  REQUIRE(checkpoint.has_value());
  return *checkpoint;
}

TEST_CASE("sparse: a prompt of many blocks gives the same bits however it is cut, in any pages") {
  const auto tokens = runner::random_tokens(203, kSparseVocab, 3);
  const auto last_logits = [&](size_t chunk, uint32_t page_tokens) {
    const uint32_t pages = 256 / page_tokens;
    const auto outcome =
        runner::run_ranks({.checkpoint = sparse_checkpoint(),
                           .kv_type = runner::KvType::kF16,
                           .page_tokens = page_tokens,
                           .pages = pages},
                          runner::chunked_plans(tokens, chunk, pages, page_tokens));
    for (const Error& error : outcome.errors) FAIL(error.message);
    return outcome.logits.back();
  };
  const auto whole = last_logits(tokens.size(), 8);
  CHECK(std::isfinite(whole[0]));
  CHECK(last_logits(7, 8) == whole);
  CHECK(last_logits(64, 4) == whole);
}

TEST_CASE("sparse: pages that do not divide the blocks are refused with both sizes") {
  const auto runner =
      runner::ModelRunner::load(sparse_checkpoint(), {.page_tokens = 6, .pages = 8});
  REQUIRE(!runner.has_value());
  CHECK(runner.error().code == ErrorCode::kInvalid);
  CHECK(runner.error().message.find("pages hold 6 tokens, but this model reads keys in blocks of "
                                    "8") != std::string::npos);
}

TEST_CASE("sparse: what is estimated for a rank is about what it loads") {
  const auto plans = runner::chunked_plans(runner::random_tokens(4, kSparseVocab, 1), 4, 64, 4);
  const auto checkpoint = sparse_checkpoint();
  const auto model = model::describe(*checkpoint);
  REQUIRE(model.has_value());
  for (const auto split : {topology::Split::kTensor, topology::Split::kPipeline}) {
    const auto outcome =
        runner::run_ranks({.checkpoint = checkpoint, .split = split, .ranks = 2}, plans);
    REQUIRE(outcome.errors.empty());
    const auto parts = topology::place(model->config.shape(32), split, 2);
    for (size_t rank = 0; rank < 2; ++rank) {
      CAPTURE(rank);
      const auto need = runner::estimate(*checkpoint, *model, (*parts)[rank], {});
      CHECK(static_cast<double>(need->weights) ==
            doctest::Approx(static_cast<double>(outcome.weight_bytes[rank])).epsilon(0.05));
    }
  }
}

}  // namespace
}  // namespace tandem
