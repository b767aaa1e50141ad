#include "model/decoder.h"

#include "format/mtp.h"
#include "tensor/activation.h"
#include "tensor/gather.h"
#include "tensor/pooled_rows.h"

namespace tandem::model {

using tensor::array;
using tensor::Weights;
namespace mx = tensor::mx;

Result<std::unique_ptr<Decoder>> Decoder::load(std::shared_ptr<const format::Checkpoint> checkpoint,
                                               const tensor::Context& context,
                                               const std::vector<topology::Part>& parts,
                                               uint32_t rank) {
  const auto model = describe(*checkpoint);
  if (!model) return model.error();
  const Weights w(checkpoint, context, model->config.shape(), parts[rank]);
  std::vector<topology::Range> vocab_parts;
  for (const topology::Part& part : parts) vocab_parts.push_back(part.vocab);
  try {
    auto decoder = std::unique_ptr<Decoder>(new Decoder(*model, w, std::move(vocab_parts)));
    const Status used = w.check_all_used();
    if (!used) return used.error();
    return decoder;
  } catch (const tensor::LoadFailure& failure) {
    return failure.error();
  }
}

Decoder::Decoder(Description model, const Weights& w, std::vector<topology::Range> vocab_parts)
    : model_(std::move(model)),
      context_(w.context()),
      part_(w.part()),
      vocab_parts_(std::move(vocab_parts)) {
  const Weights body = w / "model";
  for (uint32_t i = 0; i < config().layers + config().extra_layers; ++i) {
    if (part_.layers.contains(i))
      layers_.push_back(model_.arch.make_layer(config(), body / "layers" / i, i));
    else
      (body / "layers" / i).skip();
  }
  for (const std::string_view name : format::kMtpModules) (w / name).skip();
  const bool has_inputs = config().layer_inputs != 0;
  const bool needs_table =
      part_.has_embedding || has_inputs || (part_.has_head && config().has_tied_head);
  const Weights table = body / model_.arch.embedding;
  if (needs_table)
    embedding_.emplace(table, config().hidden, part_.vocab);
  else
    table.skip();
  if (has_inputs) layer_inputs_.emplace(body, config());
  load_head(w);
  weight_bytes_ = w.bytes();
}

void Decoder::load_head(const Weights& w) {
  const Weights norm = w / "model" / model_.arch.final_norm;
  if (!part_.has_head) {
    norm.skip();
    (w / "lm_head").skip();
    return;
  }
  norm_.emplace(norm, config().rms_eps, config().norm_offset);
  if (config().has_tied_head)
    (w / "lm_head").skip();  // some exporters keep a copy
  else
    head_.emplace(w / "lm_head", config().hidden, part_.vocab);
}

array Decoder::embed(const tensor::Step& step) const {
  const array rows = (*embedding_)(step);
  if (config().embed_scale == 1) return rows;
  return tensor::scaled(context_, rows, static_cast<float>(config().embed_scale));
}

array Decoder::run_layers(array x, kv::Cache& cache, const tensor::Step& step) const {
  std::vector<array> inputs;  // a later stage of a pipeline has the tokens' embeddings from here
  if (layer_inputs_) inputs = (*layer_inputs_)(part_.has_embedding ? x : embed(step), step);
  for (uint32_t i = 0; i < layers_.size(); ++i) {
    kv::Layer& kept = cache.layer(i);
    x = (*layers_[i])(x, kept.is_empty() ? nullptr : &kept, step,
                      inputs.empty() ? nullptr : &inputs[i]);
  }
  return x;
}

array Decoder::pooled(const array& x, const tensor::Step& step) const {
  return tensor::pooled_rows(context_, (*norm_)(x), step);
}

array Decoder::logits(const array& x, const tensor::Step& step) const {
  const array last = (*norm_)(tensor::take_outputs(context_, x, step));
  const tensor::Embedding& head = head_ ? *head_ : *embedding_;
  const bool is_split = context_.collective != nullptr;
  const array part = part_.vocab.empty() ? tensor::zeros_after(context_, last, 0)
                                         : mx::astype(head.as_head(last), mx::float32);
  const array all = is_split ? context_.collective->gather_columns(part, vocab_parts_) : part;
  if (config().logit_softcap == 0) return all;
  return tensor::softcap(context_, all, static_cast<float>(config().logit_softcap));
}

}  // namespace tandem::model
