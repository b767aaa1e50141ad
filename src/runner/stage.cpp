#include "runner/stage.h"

#include <exception>

#include "tensor/evaluator.h"
#include "tensor/gather.h"
#include "tensor/host.h"

namespace tandem::runner {

using tensor::array;
namespace mx = tensor::mx;

namespace {

void check(const Status& status) {
  if (!status) throw tensor::CommFailure(status.error());
}

Error step_failed(const std::exception& failure) {
  return {ErrorCode::kInternal, fmt::format("the step failed: {}", failure.what())};
}

tensor::Context make_context(const topology::Part& part, const StageOptions& o) {
  tensor::Context context{.path = o.path,
                          .dtype = o.dtype,
                          .kv_dtype = o.kv_dtype,
                          .workers = nullptr,
                          .collective = nullptr};
  if (context.is_fast()) {
    context.dtype = mx::float32;
    context.workers =
        std::make_shared<kernels::WorkerPool>(std::max(o.threads, 1U), o.level, o.cores);
  }
  if (part.split == topology::Split::kTensor && part.ranks > 1)
    context.collective = std::make_shared<tensor::Collective>(part.rank, part.ranks);
  return context;
}

/// A block of keys that is chosen must be whole pages.
Status check_pages(const model::Config& config, uint32_t page_tokens) {
  if (config.sparse.block % page_tokens == 0) return {};
  return Error{
      ErrorCode::kInvalid,
      fmt::format("pages hold {} tokens, but this model reads keys in blocks of {}: choose "
                  "a page size that divides those",
                  page_tokens, config.sparse.block)};
}

mx::Device device_of(const StageOptions& o) {
  return o.path == tensor::Path::kFast ? mx::Device(mx::Device::cpu) : o.device;
}

}  // namespace

Result<std::unique_ptr<Stage>> Stage::load(std::shared_ptr<const format::Checkpoint> checkpoint,
                                           const std::vector<topology::Part>& parts,
                                           uint32_t rank,
                                           const StageOptions& options) {
  try {
    tensor::use_device(device_of(options));
    const tensor::Context context = make_context(parts[rank], options);
    auto decoder = model::Decoder::load(std::move(checkpoint), context, parts, rank);
    if (!decoder) return decoder.error();
    if (Status fit = check_pages((*decoder)->config(), options.page_tokens); !fit)
      return fit.error();
    return std::unique_ptr<Stage>(
        new Stage(std::move(decoder).value(), context, parts[rank], options));
  } catch (const std::exception& failure) {
    return Error{ErrorCode::kInternal, fmt::format("loading failed: {}", failure.what())};
  }
}

Stage::Stage(std::unique_ptr<model::Decoder> decoder,
             tensor::Context context,
             topology::Part part,
             const StageOptions& o)
    : decoder_(std::move(decoder)),
      context_(std::move(context)),
      device_(device_of(o)),
      part_(part),
      before_layers_(o.before_layers),
      kernel_time_(o.kernel_time) {
  const kv::CacheShape room = {.page_tokens = o.page_tokens,
                               .pages = o.pages,
                               .window_pages = o.window_pages,
                               .state_slots = o.state_slots};
  cache_ = std::make_unique<kv::Cache>(decoder_->layer_shapes(o.window_pages > 0), room, context_);
}

void Stage::set_transport(comm::Transport* transport) {
  transport_ = transport;
  if (context_.collective) context_.collective->set_transport(transport);
}

void Stage::set_group(std::optional<mx::distributed::Group> group) {
  programs_.clear();  // other nodes now
  if (context_.collective) context_.collective->set_group(std::move(group));
}

void Stage::reset() {
  tensor::use_device(device_);
  cache_->forget_pending();
}

void Stage::forget_results() {
  logits_ = {};
  pooled_ = {};
  computed_.reset();
  computed_pooled_.reset();
}

Status Stage::run(tensor::Step step, const kv::Copies& copies) {
  forget_results();
  try {
    tensor::use_device(device_);
    cache_->copy(copies);
    if (!copies.is_empty() || step.tokens() == 0)
      for (const array& order : cache_->orders()) finish(order);
    if (step.tokens() == 0) return {};
    receive(step);
    if (before_layers_) before_layers_();
    if (context_.is_fast())
      run_program(std::move(step));
    else
      run_rows(step);
    return {};
  } catch (const tensor::CommFailure& failure) {
    return failure.error();
  } catch (const std::exception& failure) {
    return step_failed(failure);
  }
}

Result<Launch> Stage::launch(tensor::Step step,
                             const kv::Copies& copies,
                             const std::vector<uint32_t>& to_host,
                             const std::vector<DrawRow>& draws) {
  try {
    tensor::use_device(device_);
    Launch out{.step = std::move(step)};
    cache_->copy(copies);
    if (out.step.tokens() > 0) build(out, to_host, draws);
    std::vector<array> all = cache_->orders();
    if (out.last.empty()) out.last = all;
    all.insert(all.end(), out.last.begin(), out.last.end());
    mx::async_eval(std::move(all));
    return out;
  } catch (const std::exception& failure) {
    return step_failed(failure);
  }
}

void Stage::build(Launch& out,
                  const std::vector<uint32_t>& to_host,
                  const std::vector<DrawRow>& draws) {
  const array x = input(out.step);
  if (before_layers_) before_layers_();
  const array hidden = decoder_->run_layers(x, *cache_, out.step);
  if (!out.step.pooled().empty()) {
    out.pooled = decoder_->pooled(hidden, out.step);
    out.last = {*out.pooled};
  }
  if (out.step.outputs().empty()) {
    out.last.push_back(hidden);
    return;
  }
  const array logits = decoder_->logits(hidden, out.step);
  if (!draws.empty()) {
    out.drawn = draw(logits, draws);
    out.last.push_back(out.drawn->ids);
    out.last.push_back(out.drawn->next);
  }
  if (to_host.empty()) return;
  out.logits = draws.empty() ? logits : tensor::take_rows(logits, to_host);
  out.last.push_back(*out.logits);
}

Status Stage::land(Launch& launch) {
  forget_results();
  drawn_.clear();
  try {
    tensor::use_device(device_);
    for (array& each : launch.last) each.eval();
    if (launch.logits) keep_logits(*launch.logits);
    if (launch.pooled) {
      computed_pooled_ = launch.pooled;
      pooled_ = {tensor::on_host<float>(*computed_pooled_), computed_pooled_->size()};
    }
    if (!launch.drawn) return {};
    const int32_t* ids = tensor::on_host<int32_t>(launch.drawn->ids);
    for (const uint32_t at : launch.drawn->place) drawn_.push_back(ids[at]);
    return {};
  } catch (const std::exception& failure) {
    return step_failed(failure);
  }
}

void Stage::run_program(tensor::Step step) {
  const bool has_logits = !step.outputs().empty();
  Program* program = programs_.find(step);
  if (program == nullptr) return deliver(record(std::move(step)), has_logits);
  if (kernel_time_ != nullptr)
    *kernel_time_ += program->tape.replay_timed();
  else
    program->tape.replay();
  deliver(program->results, has_logits);
}

/// Runs the step from its graph, and keeps the calls where it is worth it.
Results Stage::record(tensor::Step step) {
  auto program = std::make_unique<Program>(std::move(step));
  Results results;
  {
    const tensor::StepMemory::Scope scope(memory_);
    compute(program->step);
    tensor::run_graph(*computed_, &program->tape);
    results.root = {computed_->data<float>(), computed_->size()};
    if (computed_pooled_) {
      tensor::run_graph(*computed_pooled_, &program->tape);
      results.pooled = {computed_pooled_->data<float>(), computed_pooled_->size()};
    }
  }
  if (!program->tape.is_whole() || !Programs::wants(program->step)) return results;
  computed_.reset();  // its memory stays, and is the next program's too
  computed_pooled_.reset();
  program->results = results;
  programs_.keep(std::move(program));
  return results;
}

void Stage::run_rows(const tensor::Step& step) {
  compute(step);
  finish(*computed_);
  const bool has_logits = !step.outputs().empty();
  Results results;
  if (!part_.has_head || (part_.rank == 0 && has_logits))
    results.root = {tensor::on_host<float>(*computed_), computed_->size()};
  if (computed_pooled_) {
    computed_pooled_->eval();
    results.pooled = {tensor::on_host<float>(*computed_pooled_), computed_pooled_->size()};
  }
  deliver(results, has_logits);
}

/// Builds what the next stage or the sampler needs, or what makes the step happen, and what is
/// pooled.
void Stage::compute(const tensor::Step& step) {
  const array hidden = decoder_->run_layers(input(step), *cache_, step);
  if (!part_.has_head) {
    computed_ = mx::astype(hidden, mx::float32);
    return;
  }
  computed_ = step.outputs().empty() ? hidden : decoder_->logits(hidden, step);
  if (part_.rank == 0 && !step.pooled().empty()) computed_pooled_ = decoder_->pooled(hidden, step);
}

array Stage::input(const tensor::Step& step) {
  if (part_.has_embedding) return decoder_->embed(step);
  const mx::Shape shape = {static_cast<int>(step.tokens()), static_cast<int>(config().hidden)};
  if (!context_.is_fast()) return mx::astype(tensor::from_host(received_, shape), context_.dtype);
  return tensor::cpu_op("Received", shape, mx::float32, {},
                        [this](const auto&, auto& out) -> tensor::CpuCall {
                          tensor::allocate(out[0]);
                          return [this, to = out[0].template data<float>()] {
                            std::copy(received_.begin(), received_.end(), to);
                          };
                        });
}

/// From the stage before, where there is one.
void Stage::receive(const tensor::Step& step) {
  if (part_.has_embedding) return;
  received_.resize(step.tokens() * config().hidden);
  check(transport().recv(std::as_writable_bytes(std::span(received_)), part_.rank + 1));
}

/// Evaluates everything that the step has built: the root, and what the next step's pools wait for.
void Stage::finish(const array& root) {
  if (context_.is_fast() || (context_.collective && mx::default_device() == mx::Device::cpu)) {
    tensor::run_graph(root);
    if (context_.is_fast()) return;
  }
  std::vector<array> all = cache_->orders();
  all.push_back(root);
  mx::eval(std::move(all));
}

comm::Transport& Stage::transport() const {
  if (transport_ == nullptr)
    throw tensor::CommFailure({ErrorCode::kPeerLost, "no transport: the epoch has not begun"});
  return *transport_;
}

/// To the next stage, or to who samples.
void Stage::deliver(const Results& results, bool has_logits) {
  if (!part_.has_head) return check(transport().send(std::as_bytes(results.root), part_.rank - 1));
  if (part_.rank == 0 && has_logits) logits_ = results.root;
  pooled_ = results.pooled;
}

void Stage::keep_logits(const array& logits) {
  computed_ = logits;
  logits_ = {tensor::on_host<float>(logits), logits.size()};
}

}  // namespace tandem::runner
