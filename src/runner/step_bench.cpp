// Times prefill and decode of a model on one rank: step_bench MODEL [threads] [prompt tokens]
// [decoded tokens].
#include <chrono>
#include <cstdlib>

#include "runner/plans_test.h"

namespace {

using namespace tandem;
using Seconds = std::chrono::duration<double>;

double timed(runner::ModelRunner& runner, const plan::StepPlan& plan) {
  const auto begin = std::chrono::steady_clock::now();
  TANDEM_CHECK(runner.issue(plan).has_value(), "a plan was refused");
  const auto result = runner.complete();
  TANDEM_CHECK(result.has_value(), "{}", result.error().message);
  return Seconds(std::chrono::steady_clock::now() - begin).count();
}

void report(const char* what, double tokens, double seconds) {
  fmt::print("{}: {:.1f} tok/s ({:.0f} in {:.3f} s)\n", what, tokens / seconds, tokens, seconds);
}

void run(runner::ModelRunner& runner, size_t prompt, size_t decoded) {
  runner::Pages pool(runner.info().pages, runner.info().page_tokens, 1);
  runner::History history{
      .id = 1, .tokens = runner::random_tokens(prompt + decoded, runner.info().vocab, 1)};
  double prefill = 0, decode = 0;
  for (uint64_t sequence = 0; history.done < history.tokens.size(); ++sequence) {
    const bool is_prefill = history.done < prompt;
    plan::StepPlan plan{.sequence = sequence};
    plan.rows.push_back(history.next(is_prefill ? std::min<size_t>(512, prompt - history.done) : 1,
                                     pool, !is_prefill));
    (is_prefill ? prefill : decode) += timed(runner, plan);
  }
  report("prefill", static_cast<double>(prompt), prefill);
  report("decode", static_cast<double>(decoded), decode);
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int index, int otherwise) {
    return argc > index ? std::atoi(argv[index]) : otherwise;
  };
  const auto checkpoint = format::open_checkpoint(argc > 1 ? argv[1] : "");
  if (!checkpoint) return fmt::print("{}\n", checkpoint.error().message), 1;
  const auto begin = std::chrono::steady_clock::now();
  auto runner = runner::ModelRunner::load(
      *checkpoint,
      {.threads = static_cast<uint32_t>(number(2, 2)), .memory_limit = uint64_t{4} << 30});
  if (!runner) return fmt::print("{}\n", runner.error().message), 1;
  fmt::print("loaded in {:.3f} s, {} MB of weights, {} pages\n",
             Seconds(std::chrono::steady_clock::now() - begin).count(),
             (*runner)->weight_bytes() >> 20, (*runner)->info().pages);
  run(**runner, static_cast<size_t>(number(3, 512)), static_cast<size_t>(number(4, 64)));
  return 0;
}
