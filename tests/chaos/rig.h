// An instance of tandem-rank processes with the fake model, which tests break in every way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "client.h"
#include "control/instance_generator.h"
#include "silent_proxy.h"

namespace tandem::chaos {

struct RigOptions {
  uint32_t ranks = 1;
  std::vector<std::string> fake = {};  // further --fake-… options
  bool has_proxies = false;            // control links pass relays that can fall silent
  bool keeps_plans = false;            // every rank process records its plans
};

class Rig {
 public:
  explicit Rig(RigOptions options);
  /// Stops it and checks that nothing is left.
  ~Rig();

  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  control::InstanceGenerator& generator() { return *generator_; }
  Client& client() { return client_; }
  control::InstanceSnapshot snapshot();

  void signal(uint32_t rank, int number);
  /// The rank's control link stays open, and nothing passes it any more.
  void cut_off(uint32_t rank);

  /// True when an epoch was lost since `before`; the time until that was known.
  bool wait_lost(uint64_t before, Duration limit, Duration& took);
  bool wait_ready();

  /// Ends the ranks, checks that no process and no port is left, and replays every recorded plan.
  void stop();
  /// Plans that were replayed by stop().
  size_t replayed() const { return replayed_; }

 private:
  control::InstanceGeneratorOptions generator_options();
  /// Where a new process of the rank finds the head: itself, or a relay to it.
  std::string dialled(uint32_t rank, const std::string& head);
  void check_nothing_left();
  void replay_plans();

  const RigOptions options_;
  std::string name_;
  std::filesystem::path plans_;
  std::set<std::string> shared_memory_before_;

  std::mutex mutex_;
  std::string control_address_;                               // guarded by mutex_
  std::map<uint32_t, std::unique_ptr<SilentProxy>> proxies_;  // guarded by mutex_, by rank

  std::set<uint64_t> pids_;
  size_t replayed_ = 0;
  std::unique_ptr<control::InstanceGenerator> generator_;
  Client client_;
};

}  // namespace tandem::chaos
