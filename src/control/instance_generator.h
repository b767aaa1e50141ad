// A Generator over an instance of rank processes on this machine.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/departures.h"
#include "control/event_loop.h"
#include "control/instance.h"
#include "control/local_ranks.h"
#include "control/rank_links.h"
#include "gen/generator.h"

namespace tandem::control {

struct InstanceGeneratorOptions {
  InstanceOptions instance;
  std::string listen = "127.0.0.1:0";  // control links of the ranks
  std::string program;                 // path of tandem-rank
  /// The rank's command line, given the address to dial and the instance's name and size.
  std::function<std::vector<std::string>(uint32_t rank, const std::string& head)> arguments;
  std::string output_path = {};  // log of the ranks; empty: inherited
  std::string mpirun = {};       // path of Open MPI's, which then starts the ranks; empty: none
};

/// Thread-safe. Sinks are called on one thread of its own.
class InstanceGenerator final : public gen::Generator {
 public:
  /// Starts listening and the ranks; does not wait for them. Errors: kInvalid, kIo.
  static Result<std::unique_ptr<InstanceGenerator>> start(InstanceGeneratorOptions options);
  /// stop()
  ~InstanceGenerator() override;

  /// While no engine is ready, a bounded number of requests waits for one; see InstanceOptions.
  /// Before the first readiness lengths and ids are unknown and wrong ones end with Failed.
  Status submit(gen::Request request, gen::Sink sink) override;
  void cancel(gen::RequestId id) override;
  /// All 0 until it was ready once.
  gen::Limits limits() const override;

  /// True once it is ready; false when the time is over or it has failed.
  bool wait_ready(Duration time);
  /// Refuses new requests from now on.
  void drain();
  /// True when the last request has ended after drain().
  bool wait_drained(Duration time);
  /// Fails what is left, ends all ranks and waits for them: no process or port is left after it.
  void stop();

  /// Never blocks for long: when the loop does not answer within a second, the last known picture,
  /// marked unhealthy.
  InstanceSnapshot snapshot();

 private:
  explicit InstanceGenerator(InstanceGeneratorOptions options);
  Status open();

  void tick();
  void perform();
  void perform(const Send& action);
  void deliver(gen::Event event);
  void settle_departures();
  void on_link_frame(LinkId id, plan::Frame frame);
  void on_link_closed(LinkId id, Error why);
  void on_hello(LinkId id, const plan::Hello& hello);
  std::optional<LinkId> link_to(Incarnation who) const;
  void publish();
  Status check(const gen::Request& request) const;
  bool wait_until(const std::function<bool()>& condition, Duration time);

  const InstanceGeneratorOptions options_;
  const SteadyClock clock_;

  // On the loop's thread only.
  Instance instance_;
  Departures departures_;
  std::map<gen::RequestId, gen::Sink> sinks_;
  std::map<LinkId, Incarnation> who_of_;
  std::map<uint32_t, LinkId> link_of_;  // by rank

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // What the loop publishes after every task; guarded by mutex_.
  InstanceState state_ = InstanceState::kStarting;
  bool is_drained_ = false;
  gen::Limits limits_;
  InstanceSnapshot last_snapshot_;

  // Last, in this order: links and ranks post to the loop, whose tasks use what is above.
  EventLoop loop_;
  std::unique_ptr<LocalRanks> ranks_;
  std::unique_ptr<RankLinks> links_;
};

}  // namespace tandem::control
