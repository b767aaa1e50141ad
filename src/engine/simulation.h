// Simulation: a Core over a FakeRunner in virtual time, driven by random arrivals, cancels and
// rank deaths, with every answer compared to its solo oracle. For tests.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/core.h"
#include "engine/fake_runner.h"

namespace tandem::engine {

/// What a random world may contain.
struct SimulationOptions {
  uint64_t seed = 0;
  uint32_t requests = 100;
  bool faults = false;
  bool strict_classes = false;
  bool windows = false;  // the model has layers that see a window
  bool states = false;   // and recurrent ones
  bool draws = false;    // the runner draws, two to four steps in flight
  bool reuses = false;   // some requests reuse choices of key blocks
  bool pools = false;    // some want an embedding
};

/// Runs one world to its end. Empty when everything held, else what did not.
class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options);
  ~Simulation();

  std::string run();

  uint64_t pauses() const { return pauses_; }
  uint64_t faults() const { return faults_; }
  uint64_t reused_tokens() const { return reused_; }
  /// Rows that were planned before the token that they begin with was known.
  uint64_t rows_ahead() const { return rows_ahead_; }

 private:
  class Watch;

  struct Client {
    gen::Request request;  // as first submitted
    TimePoint arrives;
    std::optional<TimePoint> cancels;
    std::vector<gen::TokenId> answer;
    std::optional<gen::FinishReason> finished;
    std::optional<std::vector<float>> embedding = {};
    bool submitted = false;
    bool started = false;    // since the last submission
    uint32_t cached = 0;     // as Started said
    uint32_t prefilled = 0;  // since the last submission
    int ends = 0;
    bool was_cancelled = false;
    bool ran_out_of_time = false;
  };

  uint32_t pick(uint32_t low, uint32_t high);
  gen::Request random_request(gen::RequestId id);
  std::vector<gen::TokenId> random_prompt();
  void arrive();
  void submit(Client& client, gen::RequestId id);
  void receive(const gen::Event& event);
  void recover();
  std::string check_end();
  std::vector<gen::TokenId> oracle(const gen::Request& request, gen::FinishReason& reason) const;
  std::string check_embedding(const Client& client) const;
  void fail(std::string what);

  const SimulationOptions options_;
  std::mt19937_64 random_;
  ManualClock clock_;
  std::unique_ptr<FakeRunner> fake_;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Core> core_;
  std::map<gen::RequestId, Client> clients_;
  std::vector<std::vector<gen::TokenId>> texts_;  // what prompts may begin with
  uint32_t vocab_ = 64;
  uint32_t max_context_ = 0;
  uint32_t epoch_ = 1;
  bool faulted_ = false;
  uint64_t pauses_ = 0;
  uint64_t faults_ = 0;
  uint64_t reused_ = 0;
  uint64_t rows_ahead_ = 0;
  std::string failure_;
};

}  // namespace tandem::engine
