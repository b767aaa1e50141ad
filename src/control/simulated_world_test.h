// For tests: processes, links, an engine and clients in virtual time, with faults at random
// moments.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "control/instance.h"

namespace tandem::control {

/// How many faults a world has, and which.
struct WorldOptions {
  uint64_t seed = 0;
  uint32_t ranks = 1;
  uint32_t requests = 8;
  uint32_t poisoned = 0;       // requests that kill a rank at one of their tokens
  uint32_t cancels = 0;        // requests that are cancelled at some time
  Duration fault_every{};      // mean time between faults; 0: none
  Duration faults_until{};     // later no fault comes by itself
  bool loses_started = false;  // a poisoned step dies before it says anything
  InstanceOptions instance = {};
};

/// What a client got.
struct Stream {
  std::vector<gen::TokenId> tokens;
  std::vector<gen::Event> last;  // one, or the test fails
  uint32_t max_tokens = 0;
  uint32_t starts = 0;
  bool is_poisoned = false;
  bool was_cancelled = false;
  bool was_refused = false;
};

/// The token that any engine draws for a request at a place of its answer.
gen::TokenId expected_token(gen::RequestId id, size_t place);

/// Drives an Instance. Violations of its contract that can be seen from outside are collected.
class World {
 public:
  explicit World(WorldOptions options);

  /// Runs until every request has ended, or the time is over; then stops the instance.
  void run(Duration limit);

  const std::map<gen::RequestId, Stream>& streams() const { return streams_; }
  const std::vector<std::string>& violations() const { return violations_; }
  uint32_t faults() const { return faults_; }
  uint32_t deaths() const { return deaths_; }
  /// Of a rank that fell silent after its Hello.
  Duration longest_detection() const { return longest_detection_; }
  Instance& instance() { return instance_; }

 private:
  enum class Health : uint8_t {
    kWell,
    kFrozen,  // stopped: does and says nothing
    kCutOff,  // half-open: runs, but nothing passes its link
    kStuck,   // beats, but its engine thread hangs
    kDead,
  };
  struct Running {
    gen::Request request;
    size_t place = 0;  // of the next token
    bool has_started = false;
    bool is_cancelled = false;
  };
  struct Rank {
    uint64_t number = 0;
    Health health = Health::kDead;
    TimePoint sick_since{};
    bool said_hello = false;
    uint32_t epoch = 0;
    bool is_ready = false;
    uint64_t steps = 0;
    TimePoint link_free_at{};  // frames keep their order
  };

  uint64_t draw(uint64_t below) { return random_() % below; }
  Duration some_ms(int least, int most);
  void later(Duration delay, std::function<void()> what);
  void violate(std::string what) { violations_.push_back(std::move(what)); }

  void perform(Action action);
  void spawn(Incarnation who);
  void kill(Incarnation who);
  void receive(Incarnation who, const plan::Frame& frame);
  void deliver(const gen::Event& event);
  void say(uint32_t rank, plan::Frame frame);
  void die(uint32_t rank, const std::string& how);
  bool runs(Incarnation who) const;

  void form(uint32_t rank, const plan::Form& form);
  void abort(uint32_t rank, uint32_t epoch);
  void beat(Incarnation who);
  void step(uint32_t epoch);
  bool step_request(Running& running, std::vector<gen::Event>& events);
  bool group_works(uint32_t epoch) const;

  void fault();
  void add_client(gen::RequestId id);
  void detected(uint32_t rank);

  WorldOptions options_;
  std::mt19937_64 random_;
  ManualClock clock_;
  Instance instance_;
  std::multimap<TimePoint, std::function<void()>> agenda_;
  std::vector<Rank> ranks_;
  std::map<gen::RequestId, Running> engine_;
  std::map<gen::RequestId, Stream> streams_;
  std::vector<std::string> violations_;
  uint32_t highest_epoch_ = 0;
  uint32_t faults_ = 0;
  uint32_t deaths_ = 0;
  Duration longest_detection_{};
  bool is_stopping_ = false;
};

}  // namespace tandem::control
