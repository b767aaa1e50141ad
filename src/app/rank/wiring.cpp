#include "app/rank/wiring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "app/rank/checkpoint_model.h"
#include "app/rank/fake_model.h"
#include "app/rank/refused_model.h"
#include "app/version.h"

namespace tandem::app {

std::unique_ptr<RankModel> make_model(const RankOptions& options) {
  if (options.fake) return std::make_unique<FakeModel>(options.fake_options);
  auto model = CheckpointModel::open(options);
  if (!model) return std::make_unique<RefusedModel>(model.error());
  return std::move(*model);
}

Result<std::vector<std::byte>> read_secret(int fd) {
  std::vector<std::byte> secret;
  std::array<std::byte, 256> part{};
  for (;;) {
    const ssize_t got = ::read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Error{ErrorCode::kIo, fmt::format("cannot read the secret from descriptor {}: {}", fd,
                                               std::strerror(errno))};
    }
    if (got == 0) break;
    secret.insert(secret.end(), part.begin(), part.begin() + got);
  }
  ::close(fd);
  if (secret.size() >= 16) return secret;
  return Error{ErrorCode::kInvalid,
               fmt::format("the secret has {} bytes, at least 16", secret.size())};
}

Result<std::vector<std::byte>> read_secret(const RankOptions& options) {
  if (options.secret_file.empty()) return read_secret(options.secret_fd);
  const int fd = ::open(options.secret_file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) return read_secret(fd);
  return Error{ErrorCode::kIo,
               fmt::format("cannot open {}: {}", options.secret_file, std::strerror(errno))};
}

RankConfig make_config(const RankOptions& options, std::vector<std::byte> secret) {
  return {.rank = options.rank,
          .size = options.size,
          .control = options.control,
          .secret = std::move(secret),
          .instance = options.instance,
          .build = std::string(kVersion),
          .listen_host = options.listen_host,
          .plan_log = options.plan_log,
          .prefix_reuse = options.prefix_reuse,
          .head_timeout = options.head_timeout,
          .give_up = [](RankExit how) { std::_Exit(static_cast<int>(how)); }};
}

}  // namespace tandem::app
