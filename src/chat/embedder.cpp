#include "chat/embedder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace tandem::chat {
namespace {

constexpr std::chrono::milliseconds kAskAgain{50};  // whether a full queue has room

}  // namespace

Result<std::vector<float>> unit_vector(std::vector<float> values,
                                       const std::optional<uint32_t>& dimensions) {
  if (dimensions && *dimensions > values.size())
    return Error{
        ErrorCode::kInvalid,
        fmt::format("'dimensions' must be from 1 to {}, not {}", values.size(), *dimensions),
        "dimensions"};
  if (dimensions) values.resize(*dimensions);
  double squares = 0;
  for (const float value : values) squares += double{value} * double{value};
  const double length = std::sqrt(squares);
  if (!(length > 0) || !std::isfinite(length))
    return Error{ErrorCode::kInternal, "the model's hidden states have no finite length"};
  for (float& value : values) value = static_cast<float>(double{value} / length);
  return values;
}

/// One request. What follows `mutex` in Shared guards all but its sink.
struct Embedder::Job {
  struct Running {
    size_t input = 0;
    uint32_t prefilled = 0;
  };

  Job(EmbeddingRequest asked, std::vector<std::vector<gen::TokenId>> ids, EmbeddingSink to)
      : request(std::move(asked)),
        sink(std::move(to)),
        prompts(std::move(ids)),
        vectors(prompts.size()) {
    for (const auto& prompt : prompts) tokens += prompt.size();
  }

  const EmbeddingRequest request;  // without its inputs
  const EmbeddingSink sink;
  std::vector<std::vector<gen::TokenId>> prompts;
  Vectors vectors;
  uint64_t tokens = 0;       // of all inputs
  uint64_t done_tokens = 0;  // of inputs that ended
  size_t next = 0;           // the first input that was not submitted
  size_t done = 0;
  std::map<gen::RequestId, Running> running = {};  // inputs with the generator
  bool waits = false;  // its queue is full: until one ends, or for a while
  bool is_over = false;

  EmbeddingProgress progress() const {
    uint64_t tokens_done = done_tokens;
    for (const auto& [id, input] : running) tokens_done += input.prefilled;
    return {.done = tokens_done, .total = tokens};
  }

  bool has_work() const {
    return !is_over && !waits && next < prompts.size() && running.size() < kMostInFlight;
  }

  /// In the order of events, none after the last one.
  void tell(EmbeddingEvent event) {
    const std::lock_guard lock(telling);
    const bool is_last = !std::holds_alternative<EmbeddingProgress>(event);
    if (std::exchange(told_last, told_last || is_last)) return;
    sink(std::move(event));
  }

  std::mutex telling;
  bool told_last = false;
};

/// Requests in the order of their turns.
struct Embedder::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::list<std::shared_ptr<Job>> jobs;
  bool is_stopping = false;

  bool waits() const {
    return std::ranges::any_of(jobs, [](const auto& job) { return job->waits; });
  }

  std::shared_ptr<Job> find(const std::string& id) const {
    for (const auto& job : jobs)
      if (job->request.id == id) return job;
    return nullptr;
  }

  /// The request is over for everybody but its sink: returns what the generator still has of it.
  /// Under the mutex.
  std::vector<gen::RequestId> end(const std::shared_ptr<Job>& job) {
    job->is_over = true;
    jobs.remove(job);
    std::vector<gen::RequestId> left;
    for (const auto& [id, input] : job->running) left.push_back(id);
    return left;
  }

  /// Not under the mutex.
  void fail(const std::shared_ptr<Job>& job, Error error, gen::Generator& generator) {
    std::vector<gen::RequestId> left;
    {
      const std::lock_guard lock(mutex);
      if (job->is_over) return;
      left = end(job);
    }
    for (const gen::RequestId id : left) generator.cancel(id);
    job->tell(std::move(error));
  }

  void take(const std::shared_ptr<Job>& job, const gen::Event& event, gen::Generator& generator) {
    if (const auto* embedding = std::get_if<gen::Embedding>(&event.body)) {
      auto vector = unit_vector(embedding->values, job->request.dimensions);
      if (!vector) return fail(job, vector.error(), generator);
      const std::lock_guard lock(mutex);
      const auto input = job->running.find(event.request);
      if (input != job->running.end()) job->vectors[input->second.input] = *std::move(vector);
    } else if (const auto* prefilled = std::get_if<gen::Prefilled>(&event.body)) {
      advance(job, event.request, prefilled->done);
    } else if (std::holds_alternative<gen::Finished>(event.body)) {
      finish(job, event.request, generator);
    } else if (const auto* failed = std::get_if<gen::Failed>(&event.body)) {
      fail(job, failed->error, generator);
    } else if (std::holds_alternative<gen::Cancelled>(event.body)) {
      fail(job, {ErrorCode::kCancelled, "the request was cancelled"}, generator);
    }
  }

  void advance(const std::shared_ptr<Job>& job, gen::RequestId id, uint32_t done) {
    EmbeddingEvent event;
    {
      const std::lock_guard lock(mutex);
      const auto input = job->running.find(id);
      if (job->is_over || input == job->running.end()) return;
      input->second.prefilled = done;
      event = job->progress();
    }
    job->tell(std::move(event));
  }

  void finish(const std::shared_ptr<Job>& job, gen::RequestId id, gen::Generator& generator) {
    EmbeddingEvent event;
    {
      std::unique_lock lock(mutex);
      const auto input = job->running.find(id);
      if (job->is_over || input == job->running.end()) return;
      if (job->vectors[input->second.input].empty()) {
        lock.unlock();
        return fail(job, {ErrorCode::kInternal, "an input ended without its vector"}, generator);
      }
      job->done_tokens += job->prompts[input->second.input].size();
      job->running.erase(input);
      job->waits = false;
      event = job->progress();
      if (++job->done == job->prompts.size()) {
        end(job);
        event = std::move(job->vectors);
      }
    }
    changed.notify_all();
    job->tell(std::move(event));
  }
};

Embedder::Embedder(gen::Generator& generator, std::function<gen::RequestId()> next_id)
    : generator_(generator), next_id_(std::move(next_id)), shared_(std::make_shared<Shared>()) {}

Embedder::~Embedder() {
  std::list<std::shared_ptr<Job>> left;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_stopping = true;
    left = shared_->jobs;
  }
  shared_->changed.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const auto& job : left)
    shared_->fail(job, {ErrorCode::kUnavailable, "the server is stopping"}, generator_);
}

Status Embedder::start(EmbeddingRequest request,
                       std::vector<std::vector<gen::TokenId>> prompts,
                       EmbeddingSink sink) {
  request.inputs.clear();
  auto job = std::make_shared<Job>(std::move(request), std::move(prompts), std::move(sink));
  {
    const std::lock_guard lock(shared_->mutex);
    const std::string& id = job->request.id;
    if (shared_->find(id) != nullptr)
      return Error{ErrorCode::kConflict, fmt::format("a request with id \"{}\" is running", id),
                   "id"};
    shared_->jobs.push_back(std::move(job));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  shared_->changed.notify_all();
  return {};
}

bool Embedder::cancel(const std::string& id) {
  std::shared_ptr<Job> job;
  {
    const std::lock_guard lock(shared_->mutex);
    job = shared_->find(id);
  }
  if (job == nullptr) return false;
  shared_->fail(job, {ErrorCode::kCancelled, "the request was cancelled"}, generator_);
  return true;
}

/// Submits for one request after the other, as long as any has work.
void Embedder::run() {
  std::unique_lock lock(shared_->mutex);
  const auto next = [&] {
    return std::ranges::find_if(shared_->jobs, [](const auto& job) { return job->has_work(); });
  };
  while (true) {
    const auto has_work = [&] { return shared_->is_stopping || next() != shared_->jobs.end(); };
    if (!shared_->waits()) {
      shared_->changed.wait(lock, has_work);
    } else if (!shared_->changed.wait_for(lock, kAskAgain, has_work)) {
      for (const auto& job : shared_->jobs) job->waits = false;
      continue;
    }
    if (shared_->is_stopping) return;
    const std::shared_ptr<Job> job = *next();
    shared_->jobs.splice(shared_->jobs.end(), shared_->jobs, next());
    const size_t input = job->next++;
    lock.unlock();
    submit(job, input);
    lock.lock();
  }
}

void Embedder::submit(const std::shared_ptr<Job>& job, size_t input) {
  const EmbeddingRequest& asked = job->request;
  gen::Request request;
  request.id = next_id_();
  request.client = asked.client;
  request.prompt = job->prompts[input];
  request.priority = asked.priority;
  request.deadline = asked.deadline;
  request.pooling = asked.pooling;
  const gen::RequestId id = request.id;
  {
    const std::lock_guard lock(shared_->mutex);
    if (job->is_over) return;
    job->running[id] = {.input = input};  // before its events come
  }
  const Status taken = generator_.submit(
      std::move(request), [shared = shared_, job, &generator = generator_](
                              const gen::Event& event) { shared->take(job, event, generator); });
  bool is_over = false, may_wait = false;
  {
    const std::lock_guard lock(shared_->mutex);
    is_over = job->is_over;
    if (!taken) {
      job->running.erase(id);
      const bool has_begun = job->done > 0 || !job->running.empty();
      may_wait = taken.error().code == ErrorCode::kBusy && has_begun;
      if (may_wait) {
        job->waits = true;
        job->next = input;
      }
    }
  }
  if (taken && is_over) return generator_.cancel(id);  // ended while it was handed over
  if (!taken && !may_wait) shared_->fail(job, taken.error(), generator_);
}

}  // namespace tandem::chat
