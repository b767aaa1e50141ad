#include "model/blocks/experts.h"

#include "tensor/activation.h"
#include "tensor/gather.h"

namespace tandem::model {
namespace {

using topology::Range;

/// The shared expert is cut where the others are, and is a multiple of one of them wide.
Range shared_columns(const tensor::Weights& w, const Config& c, Range columns) {
  if (columns.size() == c.expert_mlp) return {0, c.shared_mlp};
  const uint32_t times = c.shared_mlp / c.expert_mlp;
  if (times * c.expert_mlp != c.shared_mlp)
    throw tensor::LoadFailure(
        {ErrorCode::kUnsupported,
         fmt::format(
             "{}: a shared expert of {} beside experts of {} is not split over ranks: serve "
             "it on one rank, or with --split pipeline",
             w.path(), c.shared_mlp, c.expert_mlp)});
  return {times * columns.begin, times * columns.end};
}

}  // namespace

ExpertMlp::ExpertMlp(const tensor::Weights& w, const Config& c, ExpertMlpOptions options)
    : context_(w.context()) {
  const Range columns = w.part().expert_mlp;
  if (columns.empty()) {
    w.skip();
    return;
  }
  router_.emplace(w / options.router, c.hidden, Range{0, c.experts + c.identity_experts});
  experts_.emplace(w,
                   tensor::ExpertsShape{.hidden = c.expert_latent != 0 ? c.expert_latent : c.hidden,
                                        .width = c.expert_mlp,
                                        .experts = c.experts,
                                        .identities = c.identity_experts,
                                        .top_k = c.experts_of_token,
                                        .gate = c.gate,
                                        .has_gate = c.has_mlp_gates,
                                        .limit = options.limit,
                                        .routing = c.routing},
                   columns,
                   tensor::PerExpert{.bias = options.bias == nullptr ? std::vector<float>()
                                                                     : w.vector(options.bias)});
  if (c.expert_latent != 0) {
    latent_in_.emplace(w / options.latent_in, c.hidden, Range{0, c.expert_latent});
    latent_out_.emplace(w / options.latent_out, c.expert_latent, Range{0, c.hidden});
  }
  if (c.shared_mlp > 0) load_shared(w, c, options);
}

void ExpertMlp::load_shared(const tensor::Weights& w,
                            const Config& c,
                            const ExpertMlpOptions& options) {
  shared_.emplace(w / options.shared, c, c.shared_mlp, shared_columns(w, c, w.part().expert_mlp),
                  MlpNames{}, options.shared_limit);
  if (options.shared_gate != nullptr)
    shared_gate_.emplace(w / options.shared_gate, c.hidden, Range{0, 1});
}

tensor::array ExpertMlp::part(const tensor::array& x) const {
  if (!experts_) return tensor::zeros_after(context_, x, static_cast<uint32_t>(x.shape(1)));
  const tensor::array found = (*experts_)(latent_in_ ? (*latent_in_)(x) : x, (*router_)(x));
  const tensor::array chosen = latent_out_ ? (*latent_out_)(found) : found;
  if (!shared_) return chosen;
  const tensor::array shared = shared_->part(x);
  return chosen +
         (shared_gate_ ? tensor::times_sigmoid(context_, shared, (*shared_gate_)(x)) : shared);
}

tensor::array ExpertMlp::operator()(const tensor::array& x) const {
  return tensor::all_sum(context_, part(x));
}

}  // namespace tandem::model
