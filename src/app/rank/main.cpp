// tandem-rank: one rank of an instance. Started by tandem, ends with it. Exit codes: RankExit.
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <unistd.h>

#include <csignal>

#include "app/rank/backend_group.h"
#include "app/rank/device_choice.h"
#include "app/rank/logits.h"
#include "app/rank/wiring.h"
#include "base/log.h"

namespace {

using namespace tandem;
using namespace tandem::app;

int run_logits(const RankOptions& options) {
  const Status written = write_logits(options);
  if (written) return static_cast<int>(RankExit::kDone);
  TANDEM_LOG(kError, "{}", written.error().message);
  return static_cast<int>(RankExit::kLoadFailed);
}

int run(const RankOptions& options) {
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // what libraries print is no answer of the command
  set_log_name(fmt::format("rank {}", options.rank));
  auto secret = read_secret(options);
  if (!secret) {
    TANDEM_LOG(kError, "{}", secret.error().message);
    return static_cast<int>(RankExit::kUsage);
  }
  Rank rank(make_config(options, *std::move(secret)), make_model(options));
  const RankExit how = rank.run();
  TANDEM_LOG(kInfo, "ends with code {}", static_cast<int>(how));
  return static_cast<int>(how);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a second belt: the control link ends with the head too
#endif
  set_mlx_environment();
  const auto options = parse_rank_options(argc, argv);
  if (const int* code = std::get_if<int>(&options)) return *code;
  const auto& given = std::get<RankOptions>(options);
  set_backend_environment(given);
  return given.logits_tokens.empty() ? run(given) : run_logits(given);
}
