#include "engine/simulation.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace tandem::engine {

/// Stands before the fake runner and looks at every plan.
class Simulation::Watch final : public Runner {
 public:
  Watch(FakeRunner& inner, Simulation& simulation) : inner_(inner), simulation_(simulation) {}

  RunnerInfo info() const override { return inner_.info(); }
  Result<StepResult> complete() override { return inner_.complete(); }
  void abort() override { inner_.abort(); }
  Status reset(uint32_t epoch) override {
    begun_.clear();
    return inner_.reset(epoch);
  }

  Status issue(const plan::StepPlan& plan) override {
    for (const plan::Row& row : plan.rows) {
      if (begun_.insert(row.request).second) look_at_first(row);
      look_at(row);
    }
    Status status = inner_.issue(plan);
    if (!status) simulation_.fail("plan refused: " + status.error().message);
    return status;
  }

  void forget(gen::RequestId id) { begun_.erase(id); }

 private:
  /// The first row of a request since its last submission: Started came before it and told the
  /// truth.
  void look_at_first(const plan::Row& row) {
    const Client& client = simulation_.clients_.at(row.request);
    const auto prompt = static_cast<uint32_t>(client.request.prompt.size());
    if (!client.started) simulation_.fail("a step before Started");
    if (client.cached != std::min(row.start, prompt)) simulation_.fail("cached_tokens is not true");
  }

  void look_at(const plan::Row& row) {
    const Client& client = simulation_.clients_.at(row.request);
    const auto prompt = static_cast<uint32_t>(client.request.prompt.size());
    const auto end = row.start + static_cast<uint32_t>(row.tokens.size());
    const bool is_chunk = row.numeric_class == plan::NumericClass::kChunk;
    if (client.ends > 0) simulation_.fail("a row of an ended request");
    if (is_chunk != (row.start < prompt)) simulation_.fail("a row of the wrong class");
    const auto& pooling = client.request.pooling;
    const uint64_t limit = uint64_t{prompt} + (pooling ? 1 : client.request.max_tokens);
    if (end >= limit) simulation_.fail("a row past the end");
    const bool pools = pooling == gen::Pooling::kMean || (pooling && end == prompt);
    if (row.pooling != (pools ? pooling : std::nullopt)) simulation_.fail("a row pools wrongly");
    if (row.reuse.has_value() != (!is_chunk && client.request.index_reuse > 0))
      simulation_.fail("a row that should not reuse choices, or should");
    simulation_.rows_ahead_ += row.tokens[0] == plan::kDrawn;
    if (!is_chunk) return;
    if (end > prompt) simulation_.fail("a chunk beyond its prompt");
    if (end < prompt && end % info().page_tokens != 0) simulation_.fail("a chunk ends in a page");
  }

  FakeRunner& inner_;
  Simulation& simulation_;
  std::set<gen::RequestId> begun_;  // had a row since their last submission
};

Simulation::Simulation(const SimulationOptions& options)
    : options_(options), random_(options.seed * 7919 + 1) {
  const uint32_t page_tokens = 1U << pick(1, 4);
  max_context_ = pick(40, 160);
  const uint32_t least_pages = (max_context_ + page_tokens - 1) / page_tokens;
  FakeOptions fake{.vocab = vocab_,
                   .max_context = max_context_,
                   .page_tokens = page_tokens,
                   .pages = least_pages * pick(1, 6) + pick(0, 5),
                   .depth = pick(options.draws ? 2 : 1, 4),
                   .draws = options.draws,
                   .chooses_blocks = options.reuses,
                   .step_delay = std::chrono::microseconds(500),
                   .token_delay = std::chrono::microseconds(20),
                   .classes_matter = options.strict_classes};
  if (options.windows) {
    fake.window = pick(1, 40);
    fake.window_pages = (fake.window + 80 + page_tokens) / page_tokens * pick(1, 3) + 4;
  }
  if (options.states) {
    fake.state_slots = pick(2, 24);
    fake.state_step = page_tokens * pick(1, 4);
  }
  fake.pass_time = [this](Duration by) { clock_.advance(by); };
  fake.before_complete = [this](const plan::StepPlan&) -> Status {
    if (!options_.faults || pick(0, 149) != 0) return {};
    return Error{.code = ErrorCode::kPeerLost, .message = "a rank died"};
  };
  fake_ = std::make_unique<FakeRunner>(fake);
  watch_ = std::make_unique<Watch>(*fake_, *this);
  core_ = std::make_unique<Core>(
      *watch_, clock_,
      EngineOptions{.schedule = {.max_rows = pick(1, 12),
                                 .step_tokens = pick(2, 80),
                                 .admit_answer_tokens = pick(1, 30),
                                 .prefix_reuse = pick(0, 7) != 0,
                                 .strict_classes = options.strict_classes,
                                 .low_priority_patience = std::chrono::milliseconds(200)},
                    .resumable = true,
                    .on_fault = [this](const Error&) { faulted_ = true; }});
}

Simulation::~Simulation() = default;

uint32_t Simulation::pick(uint32_t low, uint32_t high) {
  return std::uniform_int_distribution<uint32_t>(low, high)(random_);
}

void Simulation::fail(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
}

/// Often the beginning of an earlier prompt with its answer, as the next turn of a chat.
std::vector<gen::TokenId> Simulation::random_prompt() {
  std::vector<gen::TokenId> prompt;
  if (!texts_.empty() && pick(0, 4) != 0) {
    prompt = texts_[pick(0, static_cast<uint32_t>(texts_.size()) - 1)];
    if (pick(0, 1) == 0) prompt.resize(pick(1, static_cast<uint32_t>(prompt.size())));
  }
  for (uint32_t more = pick(prompt.empty() ? 1 : 0, 30); more > 0; --more) {
    prompt.push_back(static_cast<gen::TokenId>(pick(0, 3)));
  }
  if (prompt.size() >= max_context_) prompt.resize(max_context_ - 1);
  return prompt;
}

gen::Request Simulation::random_request(gen::RequestId id) {
  gen::Request request{.id = id,
                       .client = "client " + std::to_string(pick(0, 3)),
                       .salt = pick(0, 5) == 0 ? "other" : "",
                       .prompt = random_prompt(),
                       .max_tokens = pick(0, 60)};
  if (pick(0, 1) == 0) {
    request.sampling.temperature = 0.8F;
    request.sampling.seed = random_();
    request.sampling.choice = pick(0, 2);
    if (pick(0, 1) == 0) request.sampling.top_p = 0.9F;
    if (options_.draws && pick(0, 1) == 0) request.sampling.top_k = pick(1, 10);
  }
  if (pick(0, 3) == 0) request.sampling.frequency = {.value = 0.3F, .context = pick(0, 20)};
  for (uint32_t stops = pick(0, 3); stops > 0; --stops) {
    request.stop_ids.push_back(static_cast<gen::TokenId>(pick(0, vocab_ - 1)));
  }
  request.min_tokens = pick(0, 2) == 0 ? pick(0, 20) : 0;
  request.ignore_eos = pick(0, 5) == 0;
  if (pick(0, 4) == 0) request.priority = gen::Priority::kLow;
  if (pick(0, 9) == 0) request.deadline = std::chrono::milliseconds(pick(1, 60));
  if (options_.reuses && pick(0, 1) == 0) request.index_reuse = pick(1, gen::kMostIndexReuse);
  if (options_.pools && pick(0, 2) == 0) {
    request.pooling = pick(0, 1) == 0 ? gen::Pooling::kMean : gen::Pooling::kLast;
    request.index_reuse = 0;
    if (pick(0, 3) == 0) request.prompt.resize(max_context_, 1);
  }
  texts_.push_back(request.prompt);
  return request;
}

void Simulation::submit(Client& client, gen::RequestId id) {
  if (!client.submitted) client.request = random_request(id);
  gen::Request request = client.request;
  request.emitted = client.answer;
  client.submitted = true;
  client.started = false;
  client.prefilled = 0;
  watch_->forget(request.id);
  if (const Status status = check_request(request, core_->limits()); !status) {
    fail("refused: " + status.error().message);
  }
  core_->submit(std::move(request), [this](const gen::Event& event) { receive(event); });
}

void Simulation::arrive() {
  for (auto& [id, client] : clients_) {
    if (!client.submitted && client.arrives <= clock_.now()) submit(client, id);
    if (client.submitted && client.cancels && *client.cancels <= clock_.now()) {
      client.cancels.reset();
      core_->cancel(id);
    }
  }
}

void Simulation::receive(const gen::Event& event) {
  Client& client = clients_.at(event.request);
  const auto prompt = static_cast<uint32_t>(client.request.prompt.size());
  if (client.ends > 0) fail("an event after the last one");
  if (const auto* started = std::get_if<gen::Started>(&event.body)) {
    if (client.started) fail("started twice");
    client.started = true;
    client.cached = started->cached_tokens;
  } else if (const auto* prefilled = std::get_if<gen::Prefilled>(&event.body)) {
    if (prefilled->done < client.prefilled || prefilled->total != prompt) fail("prefill went back");
    client.prefilled = prefilled->done;
  } else if (const auto* tokens = std::get_if<gen::Tokens>(&event.body)) {
    if (client.prefilled != prompt && client.answer.empty()) fail("a token before its prompt");
    for (const gen::Token& token : tokens->tokens) client.answer.push_back(token.id);
  } else if (const auto* embedding = std::get_if<gen::Embedding>(&event.body)) {
    if (client.prefilled != prompt || client.cached != 0) fail("an embedding before its prompt");
    client.embedding = embedding->values;
  } else if (const auto* finished = std::get_if<gen::Finished>(&event.body)) {
    client.finished = finished->reason;
  } else if (const auto* failed = std::get_if<gen::Failed>(&event.body)) {
    client.ran_out_of_time = failed->error.code == ErrorCode::kDeadline && client.request.deadline;
    if (!client.ran_out_of_time) fail("failed: " + failed->error.message);
  } else {
    client.was_cancelled = true;
  }
  client.ends += event.is_last();
  if (client.finished) {
    std::vector<gen::TokenId> text = client.request.prompt;
    text.insert(text.end(), client.answer.begin(), client.answer.end());
    texts_.push_back(std::move(text));
  }
}

/// What the head does: a new epoch, then everything unfinished again with what was sent.
void Simulation::recover() {
  faulted_ = false;
  ++faults_;
  if (!core_->empty()) fail("a fault left requests behind");
  if (!core_->reset(++epoch_)) fail("reset failed");
  for (auto& [id, client] : clients_) {
    if (client.submitted && client.ends == 0) submit(client, id);
  }
}

std::string Simulation::run() {
  if (!core_->reset(epoch_)) return "reset failed";
  TimePoint at = clock_.now();
  for (gen::RequestId id = 1; id <= options_.requests; ++id) {
    at += std::chrono::microseconds(pick(0, 1) == 0 ? pick(0, 100) : pick(0, 20'000));
    Client client{.request = {}, .arrives = at, .cancels = {}, .answer = {}, .finished = {}};
    if (pick(0, 6) == 0) client.cancels = at + std::chrono::microseconds(pick(0, 60'000));
    clients_.emplace(id, std::move(client));
  }
  const uint64_t most_steps = uint64_t{options_.requests} * max_context_ * 4;
  for (uint64_t step = 0; failure_.empty(); ++step) {
    if (step > most_steps) return "some request never ends";
    arrive();
    const bool worked = core_->step();
    if (faulted_) {
      recover();
      continue;
    }
    if (step % 16 == 0 && !core_->scheduler()->is_consistent()) return "pages do not balance";
    if (const auto counts = core_->stats().schedule; true) {
      pauses_ = std::max(pauses_, counts.pauses);
      reused_ = std::max(reused_, counts.reused_tokens);
    }
    if (worked) continue;
    const auto next = std::find_if(clients_.begin(), clients_.end(),
                                   [](const auto& entry) { return !entry.second.submitted; });
    if (next == clients_.end()) break;
    clock_.advance(std::max(Duration(1), next->second.arrives - clock_.now()));
  }
  return failure_.empty() ? check_end() : failure_;
}

std::vector<gen::TokenId> Simulation::oracle(const gen::Request& request,
                                             gen::FinishReason& reason) const {
  sample::Sampler sampler;
  std::vector<gen::TokenId> history = request.prompt;
  std::vector<FakePosition> positions;
  for (const gen::TokenId token : request.prompt) positions.push_back({.token = token});
  const auto prompt = static_cast<uint32_t>(history.size());
  const uint32_t most = std::min(request.max_tokens, core_->limits().max_context - prompt);
  const auto& stops = request.stop_ids;
  reason = gen::FinishReason::kLength;
  while (history.size() < prompt + most) {
    const bool banned = !request.ignore_eos && history.size() - prompt < request.min_tokens;
    const auto token =
        sampler.draw({.logits = options_.strict_classes ? fake_logits(positions, vocab_)
                                                        : fake_logits(history, vocab_),
                      .history = history,
                      .sampling = request.sampling,
                      .banned = banned ? stops : std::vector<gen::TokenId>{}});
    history.push_back(token->id);
    positions.push_back({.token = token->id, .numeric_class = plan::NumericClass::kStep});
    if (request.ignore_eos || std::count(stops.begin(), stops.end(), token->id) == 0) continue;
    reason = gen::FinishReason::kStop;
    break;
  }
  return {history.begin() + prompt, history.end()};
}

/// The mean of all positions' hidden states, or the last one's.
std::string Simulation::check_embedding(const Client& client) const {
  if (client.finished && !client.embedding) return " ended without its embedding";
  if (!client.answer.empty()) return " drew tokens";
  if (!client.finished) return {};
  std::vector<FakePosition> positions;
  for (const gen::TokenId token : client.request.prompt) positions.push_back({.token = token});
  const bool is_mean = client.request.pooling == gen::Pooling::kMean;
  const size_t first = is_mean ? 0 : positions.size() - 1;
  std::vector<double> sums(client.embedding->size());
  for (size_t end = first + 1; end <= positions.size(); ++end) {
    const std::span<const FakePosition> history(positions.data(), end);
    const auto one = fake_hidden(history, static_cast<uint32_t>(sums.size()));
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += double{one[i]};
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const double expected = sums[i] / static_cast<double>(positions.size() - first);
    if (std::abs(double{(*client.embedding)[i]} - expected) > 1e-4)
      return " differs from its solo embedding";
  }
  return {};
}

std::string Simulation::check_end() {
  const auto counts = core_->stats().schedule;
  if (!core_->empty() || counts.pages.referenced != 0) return "pages are held at the end";
  if (!core_->scheduler()->is_consistent()) return "pages do not balance at the end";
  for (const auto& [id, client] : clients_) {
    const std::string name = "request " + std::to_string(id);
    if (client.ends != 1) return name + " has " + std::to_string(client.ends) + " last events";
    if (client.request.pooling) {
      if (const std::string wrong = check_embedding(client); !wrong.empty()) return name + wrong;
      continue;
    }
    gen::FinishReason reason{};
    const auto expected = oracle(client.request, reason);
    if (client.finished) {
      if (client.answer != expected) return name + " differs from its solo answer";
      if (*client.finished != reason) return name + " has a wrong finish reason";
    } else if (client.answer.size() > expected.size() ||
               !std::equal(client.answer.begin(), client.answer.end(), expected.begin())) {
      return name + " differs from its solo answer before it was ended";
    }
  }
  return {};
}

}  // namespace tandem::engine
