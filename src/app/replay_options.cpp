#include "app/replay_options.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>

#include "base/fd.h"

namespace tandem::app {
namespace {

constexpr size_t kKeyBytes = 32;

/// Turns in a table of the state folder, written behind.
class TurnTable final : public replay::Backing {
 public:
  TurnTable(store::Store& store, store::Limits limits)
      : table_(store.database(), "replay", limits), queue_(store.queue()) {
    queue_.keep_trimmed(table_);
  }
  ~TurnTable() override { queue_.settle(std::chrono::seconds(10)); }

  void put(const std::string& owner,
           const std::string& key,
           std::string value,
           int64_t began) override {
    queue_.put(table_, owner, key, std::move(value), began);
  }

  std::optional<std::string> get(const std::string& owner, const std::string& key) override {
    auto value = table_.get(owner, key);
    return value ? std::move(*value) : std::nullopt;
  }

 private:
  store::BlobTable table_;
  store::WriteQueue& queue_;
};

std::string random_key() {
  std::random_device random;
  std::string key;
  while (key.size() < kKeyBytes) key.push_back(static_cast<char>(random()));
  return key;
}

Error trouble(const std::filesystem::path& file, std::string_view what) {
  return {ErrorCode::kIo, fmt::format("{} {}: {}", file.string(), what, std::strerror(errno))};
}

Result<std::string> read_key(const std::filesystem::path& file, int fd) {
  struct stat about{};
  if (::fstat(fd, &about) != 0) return trouble(file, "cannot be read");
  if ((about.st_mode & 077) != 0) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("others may read {}, which holds a key: chmod 600 it, or remove it so "
                             "that a new one is made",
                             file.string())};
  }
  std::array<char, kKeyBytes + 1> bytes{};
  const ssize_t size = ::read(fd, bytes.data(), bytes.size());
  if (size < 0) return trouble(file, "cannot be read");
  if (size != static_cast<ssize_t>(kKeyBytes)) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("{} holds no key of {} bytes: remove it, so that a new one is made",
                             file.string(), kKeyBytes)};
  }
  return std::string(bytes.data(), kKeyBytes);
}

/// Whole or not at all, also where several servers start at once: the first one's stays.
Status make_key(const std::filesystem::path& file) {
  static std::atomic<uint32_t> parts = 0;
  const std::filesystem::path part = file.string() + fmt::format(".{}.{}", ::getpid(), ++parts);
  const std::string key = random_key();
  {
    const Fd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    const bool written = fd.get() >= 0 &&
                         ::write(fd.get(), key.data(), key.size()) == ssize_t{kKeyBytes} &&
                         ::fsync(fd.get()) == 0;
    if (!written) return trouble(file, "cannot be written");
  }
  const bool made = ::link(part.c_str(), file.c_str()) == 0 || errno == EEXIST;
  const Status out = made ? Status() : Status(trouble(file, "cannot be made"));
  ::unlink(part.c_str());
  return out;
}

}  // namespace

void declare(CLI::App& app, ReplayOptions& options) {
  app.add_flag("--no-replay", options.none,
               "Remember no answers: conversations are as the template writes them");
  app.add_option("--replay-max-mb", options.max_mb,
                 "Megabytes of answers to remember, in memory and on disk; the least recently used "
                 "go first")
      ->check(CLI::Range(1U, 1U << 20))
      ->capture_default_str();
  app.add_option("--replay-max-age-hours", options.max_age_hours, "Hours to remember answers for")
      ->check(CLI::Range(1U, 24U * 36500U))
      ->capture_default_str();
}

std::shared_ptr<replay::Memory> make_memory(const ReplayOptions& options,
                                            store::Store* store,
                                            const Clock& clock) {
  if (options.none) return nullptr;
  const size_t bytes = size_t{options.max_mb} << 20;
  const std::chrono::hours age(options.max_age_hours);
  std::unique_ptr<replay::Backing> behind;
  if (store != nullptr) {
    behind = std::make_unique<TurnTable>(*store, store::Limits{.max_bytes = bytes, .max_age = age});
  }
  // An answer takes some kilobytes.
  return std::make_shared<replay::Memory>(
      replay::MemoryLimits{.max_bytes = bytes, .max_turns = bytes / 1024, .max_age = age}, clock,
      std::move(behind));
}

Result<std::string> handle_key(const std::filesystem::path& folder) {
  if (folder.empty()) return random_key();
  const std::filesystem::path file = folder / "replay.key";
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() >= 0) return read_key(file, fd.get());
    if (errno != ENOENT) return trouble(file, "cannot be read");
    if (const Status made = make_key(file); !made) return made.error();
  }
  return Error{ErrorCode::kIo, fmt::format("{} does not stay where it is", file.string())};
}

void write_metrics(protocol::MetricsText& out, replay::Memory& memory) {
  const replay::Counts& counts = memory.counts();
  out.family("tandem_replay_messages_total", "counter",
             "Messages of the assistant in histories, by what was shown of them.");
  const std::pair<const char*, const std::atomic<uint64_t>*> outcomes[] = {
      {"spliced", &counts.spliced},     {"unknown", &counts.unknown},
      {"edited", &counts.edited},       {"elsewhere", &counts.elsewhere},
      {"not_shown", &counts.not_shown},
  };
  for (const auto& [outcome, count] : outcomes) {
    out.sample("tandem_replay_messages_total", {{"outcome", outcome}},
               static_cast<double>(count->load()));
  }
  const auto one = [&](const char* name, const char* kind, const char* help, double value) {
    out.family(name, kind, help);
    out.sample(name, {}, value);
  };
  one("tandem_replay_tokens_total", "counter", "Tokens shown as they were drawn.",
      static_cast<double>(counts.tokens.load()));
  one("tandem_replay_thoughts_total", "counter", "Thoughts put back that a client had dropped.",
      static_cast<double>(counts.thoughts.load()));
  one("tandem_replay_turns", "gauge", "Answers remembered in memory.",
      static_cast<double>(memory.turns()));
  one("tandem_replay_bytes", "gauge", "Memory that they take.",
      static_cast<double>(memory.bytes()));
}

}  // namespace tandem::app
