// Compares our logits with those of mlx-lm for tiny checkpoints (see update.sh), on both paths.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>

#include "golden_files.h"
#include "runner/kv_type.h"
#include "runner/stage.h"

namespace tandem {
namespace {

constexpr uint32_t kPageTokens = 8, kPages = 64, kSlots = 4, kVocab = 320;

/// A loaded checkpoint and requests with page tables out of a shuffled pool.
class Session {
 public:
  Session(const std::string& name, tensor::Path path) : free_(kPages) {
    auto checkpoint = format::open_checkpoint(checkpoints_folder / name);
    REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
    const auto model = model::describe(**checkpoint);
    REQUIRE(model.has_value());
    const auto parts = topology::place(model->config.shape(), topology::Split::kTensor, 1);
    auto stage =
        runner::Stage::load(*checkpoint, *parts, 0,
                            {.path = path,
                             .kv_dtype = runner::kv_dtype(**checkpoint, runner::KvType::kF32),
                             .threads = 2,
                             .page_tokens = kPageTokens,
                             .pages = kPages,
                             .state_slots = kSlots});
    if (!stage) FAIL(stage.error().message);
    stage_ = std::move(stage).value();
    std::iota(free_.begin(), free_.end(), 0U);
    std::shuffle(free_.begin(), free_.end(), std::mt19937(3));
  }

  /// Appends tokens to requests in one step; logits of all of them, or of each row's last.
  Logits step(const std::vector<std::pair<size_t, Tokens>>& rows, tensor::Wanted wanted) {
    std::vector<tensor::StepRow> batch;
    for (const auto& [request, tokens] : rows) {
      requests_.resize(std::max(requests_.size(), request + 1));
      Request& r = requests_[request];
      while (r.pages.size() * kPageTokens < r.length + tokens.size()) {
        r.pages.push_back(free_.back());
        free_.pop_back();
      }
      const auto slot = static_cast<uint32_t>(request);
      batch.push_back({.start = r.length, .tokens = tokens, .pages = r.pages, .logits = wanted});
      if (r.length > 0) batch.back().state = slot;
      batch.back().saves.push_back({.tokens = static_cast<uint32_t>(tokens.size()), .slot = slot});
      r.length += static_cast<uint32_t>(tokens.size());
    }
    const Status ran = stage_->run(tensor::Step(std::move(batch), kPageTokens));
    if (!ran) FAIL(ran.error().message);
    return {stage_->logits().begin(), stage_->logits().end()};
  }

  /// A new request goes on behind the first pages of request 0. Requires a model without states.
  void share_pages(size_t request, uint32_t pages) {
    requests_.resize(std::max(requests_.size(), request + 1));
    const auto& all = requests_[0].pages;
    requests_[request] = {.length = pages * kPageTokens,
                          .pages = {all.begin(), all.begin() + pages}};
  }
  bool has_states() const { return !stage_->config().is_recurrent.empty(); }

 private:
  struct Request {
    uint32_t length = 0;
    std::vector<uint32_t> pages;
  };
  std::unique_ptr<runner::Stage> stage_;
  std::vector<uint32_t> free_;
  std::vector<Request> requests_;
};

float largest_difference(const float* a, const float* b, size_t count) {
  float most = 0;
  for (size_t i = 0; i < count; ++i) {
    const float d = std::fabs(a[i] - b[i]);
    most = d <= most ? most : d;  // a NaN stays
  }
  return most;
}

void check_near(const Logits& got, const Logits& want, float tolerance) {
  REQUIRE(got.size() == want.size());
  CHECK(largest_difference(got.data(), want.data(), got.size()) <= tolerance);
}

/// Runs `tokens` in pieces of the given sizes (the last one repeats) and returns every position's
/// logits.
Logits in_pieces(Session& session, const Tokens& tokens, const Tokens& sizes) {
  Logits out;
  for (size_t at = 0, piece = 0; at < tokens.size(); ++piece) {
    const auto size = static_cast<size_t>(sizes[std::min(piece, sizes.size() - 1)]);
    const size_t end = std::min(at + size, tokens.size());
    const Tokens part(tokens.begin() + static_cast<ptrdiff_t>(at),
                      tokens.begin() + static_cast<ptrdiff_t>(end));
    const Logits logits = session.step({{0, part}}, tensor::Wanted::kAll);
    out.insert(out.end(), logits.begin(), logits.end());
    at = end;
  }
  return out;
}

/// For each checkpoint and path: check(golden, name, path, tolerance).
template <class F>
void for_each_checkpoint(F check) {
  const auto on_both_paths = [&](const std::string& name, float tolerance) {
    if (!name.starts_with(only_checkpoints)) return;
    for (const tensor::Path path : {tensor::Path::kPlain, tensor::Path::kFast}) {
      CAPTURE(name);
      CAPTURE((path == tensor::Path::kFast));
      check(Golden(name), name, path, tolerance);
    }
  };
  for (const auto& [model, variant] : all_checkpoints())
    on_both_paths(model + "-" + variant, tolerance_of(variant));
  for (const char* name : kLayouts) on_both_paths(name, tolerance_of("layout"));
}

TEST_CASE("full: the whole prompt in one step, then greedy decoding") {
  for_each_checkpoint(
      [](const Golden& golden, const std::string& name, tensor::Path path, float tolerance) {
        Session session(name, path);
        const Tokens tokens = golden.tokens("tokens");
        check_near(in_pieces(session, tokens, {static_cast<int32_t>(tokens.size())}),
                   golden.logits("full.logits"), tolerance);
        Tokens greedy = golden.tokens("greedy.tokens");
        greedy.pop_back();  // drawn last, never fed
        check_near(in_pieces(session, greedy, {1}), golden.logits("greedy.logits"), tolerance);
      });
}

TEST_CASE("upstream: a checkpoint as it was released gives the logits of the one made from it") {
  for (const char* model : kUpstream)
    for (const tensor::Path path : {tensor::Path::kPlain, tensor::Path::kFast}) {
      CAPTURE(model);
      CAPTURE((path == tensor::Path::kFast));
      const Golden golden(std::string(model) + "-f32");
      Session session(std::string(model) + "-upstream", path);
      const Tokens tokens = golden.tokens("tokens");
      check_near(in_pieces(session, tokens, {static_cast<int32_t>(tokens.size())}),
                 golden.logits("full.logits"), tolerance_of("f32"));
    }
}

/// For each model that is there as a GGUF file, on both paths: check(golden, start of the file's
/// name, path).
template <class F>
void for_each_gguf(F check) {
  for (const char* model : kGguf) {
    const std::string name(model);
    if (!name.starts_with(only_checkpoints)) continue;
    for (const tensor::Path path : {tensor::Path::kPlain, tensor::Path::kFast}) {
      CAPTURE(name);
      CAPTURE((path == tensor::Path::kFast));
      check(Golden(name + "-f32"), name, path);
    }
  }
}

TEST_CASE("gguf: a file gives the logits of the checkpoint it was made of") {
  for_each_gguf([](const Golden& golden, const std::string& name, tensor::Path path) {
    Session session(name + "-f32.gguf", path);
    check_near(in_pieces(session, golden.tokens("tokens"), {21, 9, 1}),
               golden.logits("full.logits"), tolerance_of("f32"));
  });
}

/// The length of a token's difference over that of what is wanted: that of most tokens, since 8
/// bits may choose another expert for a few.
double usual_error(const Logits& got, const Logits& want) {
  REQUIRE(got.size() == want.size());
  std::vector<double> errors;
  for (size_t token = 0; token < got.size(); token += kVocab) {
    double error = 0, size = 0;
    for (size_t i = token; i < token + kVocab; ++i) {
      error += std::pow(double{got[i]} - double{want[i]}, 2);
      size += std::pow(double{want[i]}, 2);
    }
    errors.push_back(std::sqrt(error / size));
  }
  std::ranges::nth_element(errors, errors.begin() + static_cast<ptrdiff_t>(errors.size() / 2));
  return errors[errors.size() / 2];
}

TEST_CASE("gguf: matrices in Q8_0 are converted like those in F32") {
  for_each_gguf([](const Golden& golden, const std::string& name, tensor::Path path) {
    Session session(name + "-q8_0.gguf", path);
    const Tokens tokens = golden.tokens("tokens");
    const Logits got = in_pieces(session, tokens, {static_cast<int32_t>(tokens.size())});
    // What 8 bits cost; a matrix in another order gives an error of about 1.
    CHECK(usual_error(got, golden.logits("full.logits")) < 0.1);
  });
}

TEST_CASE("chunk: uneven chunks, then single tokens") {
  for_each_checkpoint(
      [](const Golden& golden, const std::string& name, tensor::Path path, float tolerance) {
        Session session(name, path);
        Tokens sizes = golden.tokens("chunk.sizes");
        sizes.push_back(1);
        check_near(in_pieces(session, golden.tokens("tokens"), sizes), golden.logits("full.logits"),
                   tolerance);
      });
}

TEST_CASE("warm: a prompt that begins on another's pages gives what it gives alone") {
  for_each_checkpoint(
      [](const Golden& golden, const std::string& name, tensor::Path path, float tolerance) {
        Session session(name, path);
        if (session.has_states()) return;
        const Tokens tokens = golden.tokens("tokens");
        in_pieces(session, tokens, {static_cast<int32_t>(tokens.size())});
        const Logits want = golden.logits("full.logits");
        constexpr uint32_t kShared = 3;
        session.share_pages(1, kShared);
        const Tokens rest(tokens.begin() + kShared * kPageTokens, tokens.end());
        check_near(session.step({{1, rest}}, tensor::Wanted::kAll),
                   {want.begin() + kShared * kPageTokens * kVocab, want.end()}, tolerance);
      });
}

TEST_CASE("step: one token a step") {
  for_each_checkpoint(
      [](const Golden& golden, const std::string& name, tensor::Path path, float tolerance) {
        Session session(name, path);
        check_near(in_pieces(session, golden.tokens("tokens"), {1}), golden.logits("full.logits"),
                   tolerance);
      });
}

TEST_CASE("batch: three prompts of different lengths together give what each gives alone") {
  for_each_checkpoint(
      [](const Golden& golden, const std::string& name, tensor::Path path, float tolerance) {
        Session session(name, path);
        std::vector<std::pair<size_t, Tokens>> rows;
        for (size_t i = 0; i < 3; ++i)
          rows.emplace_back(i, golden.tokens("batch." + std::to_string(i) + ".prompt"));
        for (size_t s = 0; s < 8; ++s) {
          const Logits got = session.step(rows, tensor::Wanted::kLast);
          REQUIRE(got.size() == 3 * kVocab);
          for (size_t i = 0; i < 3; ++i) {
            const std::string key = "batch." + std::to_string(i);
            const Logits want = golden.logits(key + ".logits");
            CHECK(largest_difference(got.data() + i * kVocab, want.data() + s * kVocab, kVocab) <=
                  tolerance);
            rows[i].second = {golden.tokens(key + ".tokens")[s]};
          }
        }
      });
}

}  // namespace
}  // namespace tandem
