// What `tandem serve` needs of this machine: the agent, the control listener and one instance.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/instance_generator.h"

namespace tandem::control {

struct HeadOptions {
  std::string rank_program;                      // path of tandem-rank
  std::vector<std::string> rank_arguments = {};  // of every rank: model, split, shares, …
  std::string name = "default";                  // of the instance
  uint32_t ranks = 1;
  plan::CommKind comm = plan::CommKind::kSharedMemory;
  std::string listen_host = "127.0.0.1";  // of control, plan and data links
  std::string log_path = {};              // of the ranks; empty: this process's stderr
  std::string plan_log_folder = {};       // each rank process records its plans here; empty: none
  bool verbose = false;
  InstanceOptions instance = {};  // name, ranks and comm are filled in
};

/// Starts everything at construction; its destructor leaves no process, port or memory behind.
/// There is no named shared memory: ranks pass descriptors, so nothing has to be swept either.
class Head {
 public:
  /// Does not wait for readiness. Errors: kInvalid, kIo.
  static Result<std::unique_ptr<Head>> start(HeadOptions options);

  gen::Generator& generator() { return *generator_; }

  /// True once it is ready; false when the time is over or it has failed: snapshot() says why.
  bool wait_ready(Duration time) { return generator_->wait_ready(time); }

  InstanceSnapshot snapshot() { return generator_->snapshot(); }

  /// Refuses new requests, gives running ones this long to end, then stops. True when all ended.
  bool drain(Duration time);

  /// Ends what is left with Failed and stops the ranks.
  void stop() { generator_->stop(); }

 private:
  explicit Head(std::unique_ptr<InstanceGenerator> generator) : generator_(std::move(generator)) {}

  std::unique_ptr<InstanceGenerator> generator_;
};

/// Arguments of a rank's process; `start` numbers the processes of the head. Exposed for tests.
std::vector<std::string> rank_command(const HeadOptions& options,
                                      uint32_t rank,
                                      const std::string& control_address,
                                      uint64_t start);

}  // namespace tandem::control
