// Times prefill and decode of a model on one rank: step_bench MODEL [threads] [prompt tokens]
// [decoded tokens] [fast|plain|plain-serial] [host|reuse]; host: also the time outside kernels;
// reuse: the answer by turns with choices of key blocks that are exact and up to 48 positions old.
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "runner/plans_test.h"

namespace {

using namespace tandem;
using Seconds = std::chrono::duration<double>;

std::chrono::nanoseconds in_kernels{0};  // measuring costs some 10 us a step

/// Keeps as many steps in flight as the runner allows.
double timed(runner::ModelRunner& runner, const std::vector<plan::StepPlan>& plans) {
  const auto begin = std::chrono::steady_clock::now();
  size_t issued = 0;
  for (size_t done = 0; done < plans.size(); ++done) {
    for (; issued < plans.size() && issued - done < runner.info().depth; ++issued)
      TANDEM_CHECK(runner.issue(plans[issued]).has_value(), "a plan was refused");
    const auto result = runner.complete();
    TANDEM_CHECK(result.has_value(), "{}", result.error().message);
  }
  return Seconds(std::chrono::steady_clock::now() - begin).count();
}

void report(const char* what, double tokens, double seconds) {
  fmt::print("{}: {:.1f} tok/s ({:.0f} in {:.3f} s)\n", what, tokens / seconds, tokens, seconds);
}

/// The same answer again and again, after the same prompt.
void take_turns(runner::ModelRunner& runner, std::vector<plan::StepPlan> decode) {
  constexpr int kTurns = 6;
  uint64_t sequence = decode.front().sequence;
  for (int turn = 0; turn < kTurns; ++turn) {
    const bool reuses = turn % 2 == 1;
    for (plan::StepPlan& plan : decode) {
      plan.sequence = sequence++;
      plan.rows[0].numeric_class = plan::NumericClass::kStep;
      plan.rows[0].reuse.reset();
      if (reuses)
        plan.rows[0].reuse = {.most_age = gen::kMostIndexReuse, .from = decode[0].rows[0].start};
    }
    report(reuses ? "decode, choices up to 48 positions old" : "decode, each token chooses",
           static_cast<double>(decode.size()), timed(runner, decode));
  }
}

/// Where the runner draws, rows of an answer go on with the token that the row before drew.
void run(runner::ModelRunner& runner, size_t prompt, size_t decoded, bool reuses) {
  runner::Pages pool(runner.info().pages, runner.info().page_tokens, 1);
  runner::History history{
      .id = 1, .tokens = runner::random_tokens(prompt + decoded, runner.info().vocab, 1)};
  std::vector<plan::StepPlan> prefill, decode;
  while (history.done < history.tokens.size()) {
    const bool is_prefill = history.done < prompt;
    plan::StepPlan plan{.sequence = prefill.size() + decode.size()};
    plan::Row row = history.next(is_prefill ? std::min<size_t>(512, prompt - history.done) : 1,
                                 pool, !is_prefill);
    if (!is_prefill && runner.info().draws) {
      row.wants_logits = false;
      row.draw = plan::Draw{};
      if (!decode.empty()) row.tokens = {plan::kDrawn};
    }
    plan.rows.push_back(std::move(row));
    (is_prefill ? prefill : decode).push_back(std::move(plan));
  }
  report("prefill", static_cast<double>(prompt), timed(runner, prefill));
  if (reuses) return take_turns(runner, std::move(decode));
  const auto before = in_kernels;
  const double seconds = timed(runner, decode);
  report("decode", static_cast<double>(decoded), seconds);
  const double inside = Seconds(in_kernels - before).count();
  if (inside == 0) return;
  const auto steps = static_cast<double>(decoded);
  fmt::print("a decode step: {:.0f} us, {:.0f} of them outside kernels\n", seconds / steps * 1e6,
             (seconds - inside) / steps * 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int index, int otherwise) {
    return argc > index ? std::atoi(argv[index]) : otherwise;
  };
  const auto checkpoint = format::open_checkpoint(argc > 1 ? argv[1] : "");
  if (!checkpoint) return fmt::print("{}\n", checkpoint.error().message), 1;
  const std::string_view path = argc > 5 ? argv[5] : "fast";
  const std::string_view more = argc > 6 ? argv[6] : "";
  const auto begin = std::chrono::steady_clock::now();
  auto runner = runner::ModelRunner::load(
      *checkpoint, {.path = path == "fast" ? tensor::Path::kFast : tensor::Path::kPlain,
                    .threads = static_cast<uint32_t>(number(2, 2)),
                    .memory_limit = uint64_t{more == "reuse" ? 6U : 4U} << 30,
                    .overlap = path != "plain-serial",
                    .kernel_time = more == "host" ? &in_kernels : nullptr});
  if (!runner) return fmt::print("{}\n", runner.error().message), 1;
  fmt::print("loaded in {:.3f} s, {} MB of weights, {} pages\n",
             Seconds(std::chrono::steady_clock::now() - begin).count(),
             (*runner)->weight_bytes() >> 20, (*runner)->info().pages);
  run(**runner, static_cast<size_t>(number(3, 512)), static_cast<size_t>(number(4, 64)),
      more == "reuse");
  return 0;
}
