#include "rig.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <thread>

#include "cluster/replay.h"
#include "control/rank_command.h"
#include "control/secret.h"
#include "engine/fake_runner.h"
#include "net/link.h"
#include "plan/plan_log.h"

namespace tandem::chaos {
namespace {

using namespace std::chrono_literals;

namespace fs = std::filesystem;

std::set<std::string> shared_memory() {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/dev/shm", none)) {
    const std::string name = entry.path().filename().string();
    if (name.find("tandem") != std::string::npos) names.insert(name);
  }
  return names;
}

/// Processes of this machine whose command line has a word.
size_t processes_with(const std::string& word) {
  size_t count = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc", none)) {
    std::ifstream file(entry.path() / "cmdline");
    const std::string line{std::istreambuf_iterator<char>(file), {}};
    if (line.find(word) != std::string::npos) ++count;
  }
  return count;
}

std::string unique_name() {
  static std::atomic<int> count = 0;
  return fmt::format("chaos-{}-{}", ::getpid(), count++);
}

}  // namespace

Rig::Rig(RigOptions options)
    : options_(std::move(options)),
      name_(unique_name()),
      shared_memory_before_(shared_memory()),
      generator_([this] {
        auto started = control::InstanceGenerator::start(generator_options());
        REQUIRE(started.has_value());
        return std::move(*started);
      }()),
      client_(*generator_) {}

Rig::~Rig() {
  if (generator_ != nullptr) stop();
}

control::InstanceGeneratorOptions Rig::generator_options() {
  control::RankCommand command{
      .instance = name_,
      .ranks = options_.ranks,
      .model = {"--fake", "--fake-step-us", "2000", "--fake-token-us", "30"}};
  command.model.insert(command.model.end(), options_.fake.begin(), options_.fake.end());
  if (options_.keeps_plans) {
    plans_ = fs::temp_directory_path() / name_;
    fs::create_directory(plans_);
  }
  control::InstanceGeneratorOptions generator{.instance = {.name = name_, .ranks = options_.ranks},
                                              .program = TANDEM_RANK,
                                              .arguments = {},
                                              .output_path = "/dev/null"};
  generator.arguments = [this, command, starts = uint64_t{0}](uint32_t rank,
                                                              const std::string& head) mutable {
    auto arguments = control::rank_arguments(command, rank, dialled(rank, head));
    if (options_.keeps_plans) {
      arguments.emplace_back("--plan-log");
      arguments.push_back(plans_ / fmt::format("{:06}-rank{}.plans", starts++, rank));
    }
    return arguments;
  };
  return generator;
}

std::string Rig::dialled(uint32_t rank, const std::string& head) {
  const std::lock_guard lock(mutex_);
  control_address_ = head;
  if (!options_.has_proxies) return head;
  auto& proxy = proxies_[rank];
  if (proxy == nullptr) proxy = std::make_unique<SilentProxy>(head);
  return proxy->address();
}

control::InstanceSnapshot Rig::snapshot() {
  control::InstanceSnapshot taken = generator_->snapshot();
  for (const auto& rank : taken.ranks) {
    if (rank.pid != 0) pids_.insert(rank.pid);
  }
  return taken;
}

void Rig::signal(uint32_t rank, int number) {
  const uint64_t pid = snapshot().ranks.at(rank).pid;
  if (pid != 0) ::kill(static_cast<pid_t>(pid), number);
}

void Rig::cut_off(uint32_t rank) {
  const std::lock_guard lock(mutex_);
  proxies_.at(rank)->silence();
}

bool Rig::wait_lost(uint64_t before, Duration limit, Duration& took) {
  const SteadyClock clock;
  const TimePoint start = clock.now();
  while (snapshot().lost_epochs == before) {
    if (clock.now() - start > limit) return false;
    std::this_thread::sleep_for(2ms);  // another process's doing: there is nothing to wait on
  }
  took = clock.now() - start;
  return true;
}

bool Rig::wait_ready() { return generator_->wait_ready(60s); }

void Rig::stop() {
  snapshot();
  generator_->stop();
  check_nothing_left();
  generator_.reset();
  if (options_.keeps_plans) replay_plans();
}

void Rig::check_nothing_left() {
  for (const uint64_t pid : pids_) {
    CAPTURE(pid);
    CHECK((::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH));
  }
  CHECK(processes_with(name_) == 0);
  const std::lock_guard lock(mutex_);
  const auto link =
      net::connect_link(control_address_, {.secret = control::random_secret()}, 1000ms);
  REQUIRE(!link.has_value());
  CHECK(link.error().code == ErrorCode::kUnavailable);  // nobody listens
  for (const std::string& name : shared_memory()) {
    CAPTURE(name);
    CHECK(shared_memory_before_.contains(name));
  }
}

void Rig::replay_plans() {
  for (const auto& entry : fs::directory_iterator(plans_)) {
    CAPTURE(entry.path().string());
    const auto log = plan::read_plan_log(entry.path());
    REQUIRE(log.has_value());
    engine::FakeRunner lone({.depth = 2, .draws = true});
    const auto hash = cluster::replay(*log, lone);
    if (!hash) FAIL_CHECK(hash.error().message);
    replayed_ += log->records.size();
  }
  fs::remove_all(plans_);
}

}  // namespace tandem::chaos
