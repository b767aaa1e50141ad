#include "runner/model_runner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/check_plan.h"
#include "format/quantization_group.h"
#include "tensor/host.h"

namespace tandem::runner {
namespace {

constexpr uint32_t kCopiesToDraw = 8;  // sorted, summed, masked, of two steps

/// Whether a rank alone draws on the device and runs ahead.
bool overlaps(const ModelOptions& o) {
  return o.overlap && o.ranks == 1 && o.path == tensor::Path::kPlain;
}

bool is_pipeline(const ModelOptions& o) {
  return o.split == topology::Split::kPipeline && o.ranks > 1;
}

uint32_t step_tokens(const ModelOptions& o) {
  const bool short_steps = is_pipeline(o) && o.path == tensor::Path::kFast;
  return short_steps ? std::min(o.max_step_tokens, kStageStepTokens) : o.max_step_tokens;
}

/// What every rank needs.
Result<std::vector<MemoryNeed>> needs_of(const format::Checkpoint& checkpoint,
                                         const model::Description& model,
                                         const std::vector<topology::Part>& parts,
                                         const ModelOptions& o,
                                         bool frees_windows) {
  const auto element =
      static_cast<uint32_t>(o.path == tensor::Path::kFast ? 4 : tensor::mx::size_of(o.dtype));
  const auto kv_bytes = static_cast<uint32_t>(
      o.path == tensor::Path::kFast ? tensor::mx::size_of(kv_dtype(checkpoint, o.kv_type))
                                    : element);
  std::vector<MemoryNeed> needs;
  for (const topology::Part& part : parts) {
    const auto need = estimate(checkpoint, model, part,
                               {.page_tokens = o.page_tokens,
                                .step_tokens = step_tokens(o),
                                .element_bytes = element,
                                .kv_bytes = kv_bytes,
                                .logit_copies = overlaps(o) ? kCopiesToDraw : 1,
                                .frees_windows = frees_windows,
                                .is_packed = o.path == tensor::Path::kFast});
    if (!need) return need.error();
    needs.push_back(*need);
  }
  return needs;
}

CacheWants wants_of(const model::Config& config, const ModelOptions& o) {
  CacheWants wants = {
      .page_tokens = o.page_tokens,
      .step_tokens = step_tokens(o),
      .max_context = o.max_context == 0 ? config.max_positions : o.max_context,
      .is_recurrent = std::ranges::find(config.is_recurrent, true) != config.is_recurrent.end(),
      .limit = o.memory_limit,
      .pages = o.pages,
      .window_pages = o.window_pages,
      .state_slots = o.state_slots,
      .state_step = o.state_step};
  const uint32_t window = model::widest_window(config);
  const bool saves = uint64_t{window} + wants.step_tokens < wants.max_context;
  if (o.frees_windows && (saves || o.window_pages != 0)) wants.window = window;
  return wants;
}

std::vector<tensor::StateSave> saves_of(const plan::Row& row) {
  std::vector<tensor::StateSave> saves;
  for (const plan::StateSave& save : row.saves)
    saves.push_back({.tokens = save.tokens, .slot = save.slot});
  return saves;
}

std::optional<tensor::IndexReuse> reuse_of(const plan::Row& row) {
  if (!row.reuse) return std::nullopt;
  return tensor::IndexReuse{.most_age = row.reuse->most_age, .from = row.reuse->from};
}

/// Last tokens of the row.
uint32_t pooled_of(const plan::Row& row) {
  if (!row.pooling) return 0;
  return row.pooling == gen::Pooling::kLast ? 1 : static_cast<uint32_t>(row.tokens.size());
}

tensor::Step make_step(const plan::StepPlan& plan, const ModelOptions& o, tensor::Wanted wanted) {
  std::vector<tensor::StepRow> rows;
  for (const plan::Row& row : plan.rows)
    rows.push_back({.start = row.start,
                    .tokens = row.tokens,
                    .pages = row.pages,
                    .window_start = row.window_start,
                    .window_pages = row.window_pages,
                    .state = row.state,
                    .saves = saves_of(row),
                    .logits = row.draw           ? tensor::Wanted::kLast
                              : row.wants_logits ? wanted
                                                 : tensor::Wanted::kNone,
                    .is_chunk = !o.deterministic && row.numeric_class == plan::NumericClass::kChunk,
                    .pooled = pooled_of(row),
                    .reuse = reuse_of(row)});
  return {std::move(rows), o.page_tokens};
}

kv::PageCopies copies_of(const std::vector<plan::PageCopy>& copies) {
  kv::PageCopies out;
  for (const plan::PageCopy& copy : copies) {
    out.from.push_back(copy.from);
    out.to.push_back(copy.to);
  }
  return out;
}

kv::Copies copies_of(const plan::StepPlan& plan) {
  return {.all = copies_of(plan.copies), .window = copies_of(plan.window_copies)};
}

}  // namespace

Result<std::unique_ptr<ModelRunner>> ModelRunner::load(
    std::shared_ptr<const format::Checkpoint> checkpoint, ModelOptions options) {
  if (options.rank >= options.ranks || options.page_tokens == 0)
    return Error{ErrorCode::kInvalid,
                 "the rank is not below the number of ranks, or pages hold no tokens"};
  const auto model = model::describe(*checkpoint);
  if (!model) return model.error();
  const model::Config& config = model->config;
  const auto group = format::quantization_group(*checkpoint);
  if (!group) return group.error();
  auto parts = topology::place(config.shape(*group), options.split, options.ranks, options.shares);
  if (!parts) return parts.error();
  const CacheWants wants = wants_of(config, options);
  const auto needs = needs_of(*checkpoint, *model, *parts, options, wants.window != 0);
  if (!needs) return needs.error();
  const auto sizes = cache_sizes(wants, *needs);
  if (!sizes) return sizes.error();
  auto stage = Stage::load(checkpoint, *parts, options.rank,
                           {.path = options.path,
                            .device = options.device,
                            .dtype = options.dtype,
                            .kv_dtype = kv_dtype(*checkpoint, options.kv_type),
                            .threads = options.threads,
                            .level = options.level,
                            .cores = options.cores,
                            .page_tokens = options.page_tokens,
                            .pages = sizes->pages,
                            .window_pages = sizes->window_pages,
                            .state_slots = sizes->state_slots,
                            .before_layers = options.before_layers,
                            .kernel_time = options.kernel_time});
  if (!stage) return stage.error();
  return std::unique_ptr<ModelRunner>(new ModelRunner(std::move(options), std::move(parts).value(),
                                                      std::move(stage).value(), wants, *sizes));
}

ModelRunner::ModelRunner(ModelOptions options,
                         std::vector<topology::Part> parts,
                         std::unique_ptr<Stage> stage,
                         const CacheWants& wants,
                         const CacheSizes& sizes)
    : options_(std::move(options)), parts_(std::move(parts)), stage_(std::move(stage)) {
  info_ = {.vocab = config().vocab,
           .max_context = std::min(wants.max_context, sizes.pages * options_.page_tokens),
           .page_tokens = options_.page_tokens,
           .pages = sizes.pages,
           .window = wants.window,
           .window_pages = sizes.window_pages,
           .state_slots = sizes.state_slots,
           .state_step = sizes.state_step,
           .depth = is_pipeline(options_) ? options_.ranks : 1,
           .step_tokens = step_tokens(options_),
           .chooses_blocks = config().sparse.block != 0,
           .hidden = config().hidden};
  info_.draws = overlaps(options_);
  if (info_.draws) info_.depth = 2;
}

void ModelRunner::set_transport(std::unique_ptr<comm::Transport> transport) {
  std::unique_ptr<comm::Transport> old;
  {
    const std::lock_guard lock(mutex_);
    old = std::exchange(transport_, std::move(transport));
  }
  stage_->set_transport(transport_.get());
}

bool ModelRunner::works_ahead() const {
  return options_.split == topology::Split::kPipeline && options_.rank > 0;
}

Status ModelRunner::issue(const plan::StepPlan& plan) {
  if (is_void_ || aborted_)
    return Error{ErrorCode::kPeerLost, "the epoch is over: reset() begins the next"};
  const auto drew_last = [&](plan::RequestId id) { return drew_last_.contains(id); };
  const Status fits = engine::check_plan(
      plan, info_, {.epoch = epoch_, .sequence = next_sequence_, .in_flight = issued_.size()},
      drew_last);
  if (!fits) return fits;
  ++next_sequence_;
  issued_.push_back({.plan = plan});
  if (works_ahead()) issued_.back().outcome = run(plan);
  if (!info_.draws) return {};
  Status launched = launch(issued_.back());
  if (!launched) {
    is_void_ = true;
    issued_.clear();
  }
  return launched;
}

Result<engine::StepResult> ModelRunner::complete() {
  if (aborted_ || is_void_)
    return Error{ErrorCode::kPeerLost, "the epoch is over: reset() begins the next"};
  if (issued_.empty()) return Error{ErrorCode::kInvalid, "no step was issued"};
  Issued step = std::move(issued_.front());
  issued_.pop_front();
  const Status outcome = finish(step);
  if (!outcome || aborted_) {
    is_void_ = true;
    issued_.clear();
    return aborted_ ? Error{ErrorCode::kPeerLost, "aborted"} : outcome.error();
  }
  const uint64_t sequence = step.plan.sequence;
  return engine::StepResult{.sequence = sequence,
                            .logits = stage_->logits(),
                            .drawn = stage_->drawn(),
                            .pooled = stage_->pooled(),
                            .state_hash = hash(std::move(step.plan))};
}

/// Of the step as it ran, with the tokens that were drawn in the place of kDrawn.
uint64_t ModelRunner::hash(plan::StepPlan plan) {
  const auto before = std::exchange(known_, {});
  size_t at = 0;
  for (plan::Row& row : plan.rows) {
    if (engine::goes_on(row)) row.tokens[0] = std::max(0, before.at(row.request));
    if (row.draw) known_[row.request] = stage_->drawn()[at++];
  }
  return hash_.step(plan);
}

Status ModelRunner::finish(Issued& step) {
  if (step.launch) return stage_->land(*step.launch);
  return step.outcome ? *step.outcome : run(step.plan);
}

Status ModelRunner::run(const plan::StepPlan& plan) {
  return stage_->run(make_step(plan, options_, wanted()), copies_of(plan));
}

Status ModelRunner::launch(Issued& step) {
  tensor::Step made = make_step(step.plan, options_, wanted());
  std::vector<uint32_t> to_host;
  std::vector<DrawRow> draws;
  std::vector<plan::RequestId> drawing;
  uint32_t output = 0;
  for (const plan::Row& row : step.plan.rows) {
    const auto tokens = static_cast<uint32_t>(row.tokens.size());
    if (row.draw) {
      draws.push_back({.draw = *row.draw, .row = output++, .position = row.start + tokens});
      drawing.push_back(row.request);
    } else if (row.wants_logits) {
      for (uint32_t i = wanted() == tensor::Wanted::kAll ? tokens : 1; i > 0; --i)
        to_host.push_back(output++);
    }
  }
  go_on(made, step.plan);
  auto launched = stage_->launch(std::move(made), copies_of(step.plan), to_host, draws);
  if (!launched) return launched.error();
  step.launch = *std::move(launched);
  last_drawn_ = step.launch->drawn;
  drew_last_.clear();
  for (size_t i = 0; i < drawing.size(); ++i) drew_last_[drawing[i]] = last_drawn_->place[i];
  return {};
}

/// Lets rows that go on take their ids from where the step before drew them.
void ModelRunner::go_on(tensor::Step& step, const plan::StepPlan& plan) const {
  const auto tokens = static_cast<int32_t>(step.tokens());
  std::vector<int32_t> from(step.tokens());  // of known ids, then drawn ones
  std::iota(from.begin(), from.end(), 0);
  size_t at = 0;
  bool any = false;
  for (const plan::Row& row : plan.rows) {
    if (engine::goes_on(row)) {
      from[at] = tokens + static_cast<int32_t>(drew_last_.at(row.request));
      any = true;
    }
    at += row.tokens.size();
  }
  if (!any) return;
  const tensor::array known = tensor::from_host(step.ids().data(), {tokens}, tensor::mx::int32);
  step.set_id_array(tensor::mx::take(tensor::mx::concatenate({known, last_drawn_->next}),
                                     tensor::from_host(from)));
}

Status ModelRunner::reset(uint32_t epoch) {
  for (Issued& step : issued_)
    if (step.launch) (void)stage_->land(*step.launch);  // nothing of it may show up later
  issued_.clear();
  last_drawn_.reset();
  drew_last_.clear();
  known_.clear();
  stage_->reset();
  epoch_ = epoch;
  next_sequence_ = 0;
  hash_.reset(epoch);
  aborted_ = false;
  is_void_ = false;
  return {};
}

void ModelRunner::abort() {
  aborted_ = true;
  const std::lock_guard lock(mutex_);
  if (transport_) transport_->abort();
}

}  // namespace tandem::runner
