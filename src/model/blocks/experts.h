// A layer's MLP made of experts.
#pragma once

#include "model/blocks/mlp.h"
#include "model/config.h"
#include "tensor/experts.h"
#include "tensor/linear.h"

namespace tandem::model {

/// Places below the block, where a family has them. Biases of the router and of experts are used
/// where the checkpoint has them.
struct ExpertMlpOptions {
  const char* router = "gate";
  const char* bias = nullptr;         // of scores, for the choice alone
  const char* shared = nullptr;       // the expert that every token takes
  const char* shared_gate = nullptr;  // whose sigmoid weighs it
  float limit = 0;                    // in experts: see tensor::gated()
  float shared_limit = 0;             // in the one that every token takes
  const char* latent_in = nullptr;    // what experts take in and what becomes of their sum, where
  const char* latent_out = nullptr;   // the config says that they work on latent vectors
};

/// A router and the experts among which it chooses, the inside of each cut over the ranks; beside
/// them perhaps an expert that every token takes. The router is whole on every rank, so that all
/// choose alike, and so are the projections to latent vectors and from them.
class ExpertMlp {
 public:
  ExpertMlp(const tensor::Weights& w, const Config& config, ExpertMlpOptions options = {});

  /// [tokens, hidden] → the same.
  tensor::array operator()(const tensor::array& x) const;
  /// What this rank adds to that.
  tensor::array part(const tensor::array& x) const;

 private:
  void load_shared(const tensor::Weights& w, const Config& config, const ExpertMlpOptions& options);

  tensor::Context context_;
  std::optional<tensor::ColumnLinear> router_;  // all absent on a rank without columns
  std::optional<tensor::Experts> experts_;
  std::optional<tensor::ColumnLinear> latent_in_, latent_out_;
  std::optional<SwiGlu> shared_;
  std::optional<tensor::ColumnLinear> shared_gate_;
};

}  // namespace tandem::model
