// The default model on real ranks, for tests.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "control/instance_generator.h"
#include "gen/request.h"

namespace tandem::default_model {

/// Where ./dev test put the model. Fails the test, saying what to do, when it is not there.
std::string model_path();

/// Whether TANDEM_TEST_MPIRUN and TANDEM_TEST_MPI_LIBRARY name Open MPI's mpirun and libmpi.
bool has_mpi();

struct Layout {
  uint32_t ranks = 1;
  std::string split = "tensor";
  std::string comm = "shared-memory";  // or tcp, or MLX's ring or mpi
};

/// Starts ranks and waits until they are ready.
std::unique_ptr<control::InstanceGenerator> start(const Layout& layout);

/// Collects the tokens of one request.
class Answer {
 public:
  /// A sink that fills this answer; the answer must outlive the request.
  gen::Sink sink();
  /// Waits for the last event; fails the test when it is not Finished.
  std::vector<gen::TokenId> wait();
  size_t length() const;

 private:
  void take(const gen::Event& event);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<gen::TokenId> tokens_;
  std::optional<gen::Event> last_;
};

/// A reference answer of the model by mlx-lm in float32 (tests/golden/make_default_model.py).
struct Reference {
  std::string prompt;
  std::vector<gen::TokenId> ids;
  std::vector<gen::TokenId> tokens;
  std::vector<float> gaps;  // between the two largest logits where each token was drawn
};

std::vector<Reference> references();

}  // namespace tandem::default_model
