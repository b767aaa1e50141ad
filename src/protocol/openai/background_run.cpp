#include "protocol/openai/background_run.h"

#include <string_view>
#include <utility>

#include "net/sse.h"
#include "protocol/openai/responses_events.h"

namespace tandem::protocol::openai {
namespace {

using std::chrono::milliseconds;

/// What goes to a watcher at once that is behind: less than a connection may have waiting.
constexpr size_t kPieceBytes = 256 * 1024;
constexpr milliseconds kCatchUp{5};
/// How often a record that is still to be finished is looked for.
constexpr std::chrono::seconds kLook{2};

}  // namespace

BackgroundRun::BackgroundRun(const KeptResponses& kept,
                             std::string owner,
                             KeptResponse record,
                             milliseconds keep_alive)
    : kept_(kept),
      owner_(std::move(owner)),
      keep_alive_(keep_alive),
      record_(std::move(record)),
      events_(std::make_shared<std::vector<std::string>>()),
      looked_(std::chrono::steady_clock::now()) {}

void BackgroundRun::send(net::Response response) {
  {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(response);
    over_ = true;
  }
  changed_.notify_all();
  if (on_over_) on_over_();
}

void BackgroundRun::start(int, net::Headers) {}
void BackgroundRun::on_closed(std::function<void()>) {}
void BackgroundRun::keep_alive(milliseconds, std::function<std::string()>) {}

bool BackgroundRun::write(std::string piece) {
  const std::lock_guard lock(mutex_);
  for (const std::string_view event : events_in(piece)) {
    note(event);
    events_->emplace_back(event);
  }
  look_whether_kept();
  std::erase_if(watchers_, [this](const auto& watcher) {
    if (push(*watcher)) return false;
    if (watcher->reply) pull(watcher);
    return true;
  });
  return true;
}

/// Follows the response as its events tell of it.
void BackgroundRun::note(std::string_view event) {
  const std::string_view name = event_name(event);
  if (name == "response.output_item.done") {
    const Json data = event_data(event);
    if (data.contains("item")) record_.response["output"].push_back(data["item"]);
  } else if (name == "response.created") {
    record_.response = event_data(event).value("response", Json::object());
    const bool left = kept_.put_later(owner_, record_, [self = shared_from_this()](Error why) {
      const std::lock_guard lock(self->mutex_);
      self->trouble_ = std::move(why);
    });
    if (!left) trouble_ = Error{ErrorCode::kBusy, "too much waits to be written: try again later"};
  } else if (name == "response.in_progress") {
    record_.response["status"] = "in_progress";
  } else if (is_end(name)) {
    record_.response = event_data(event).value("response", Json::object());
  }
}

void BackgroundRun::look_whether_kept() {
  const auto now = std::chrono::steady_clock::now();
  if (!on_gone_ || now - looked_ < kLook) return;
  looked_ = now;
  kept_.check_later(owner_, record_.id(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && !self->is_over()) self->on_gone_();
  });
}

void BackgroundRun::finish() {
  std::vector<std::shared_ptr<Watcher>> done;
  {
    const std::lock_guard lock(mutex_);
    if (on_answer_ && record_.has_answer()) on_answer_(record_);
    kept_.replace_later(owner_, record_,
                        record_.streamed ? events_ : std::make_shared<std::vector<std::string>>());
    over_ = true;
    done.swap(watchers_);
  }
  changed_.notify_all();
  for (const auto& watcher : done) {
    if (watcher->reply) watcher->reply->finish();
  }
  if (on_over_) on_over_();
}

std::optional<net::Response> BackgroundRun::refusal() const {
  const std::lock_guard lock(mutex_);
  return refusal_;
}

std::optional<Error> BackgroundRun::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

KeptResponse BackgroundRun::record() const {
  const std::lock_guard lock(mutex_);
  return record_;
}

bool BackgroundRun::wait_over(milliseconds limit) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return over_; });
}

bool BackgroundRun::is_over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

/// A watcher that has all but the last events gets them. False: it is gone, or too much may wait
/// for it.
bool BackgroundRun::push(Watcher& watcher) {
  while (watcher.next < events_->size()) {
    if (watcher.bytes > kPieceBytes) return false;
    const std::string& event = (*events_)[watcher.next++];
    watcher.bytes += event.size();
    if (!watcher.reply->write(event)) {
      watcher.reply.reset();
      return false;
    }
  }
  return true;
}

/// What a watcher lacks goes out as its connection takes it: beats come when it has taken all. It
/// lets go of this at its end.
void BackgroundRun::pull(const std::shared_ptr<Watcher>& watcher) {
  watcher->reply->keep_alive(kCatchUp, [self = shared_from_this(), watcher] {
    self->catch_up(watcher);
    return std::string();
  });
}

void BackgroundRun::watch(const ReplyPtr& reply, size_t first) {
  const auto watcher = std::make_shared<Watcher>(Watcher{.reply = reply, .next = first});
  net::Headers headers = net::sse_headers();
  headers.push_back({"X-Request-Id", record().id()});
  reply->start(200, std::move(headers));
  if (!catch_up(watcher)) pull(watcher);
}

/// Writes the next piece. True: there was no more, and the watcher waits for events, or has ended.
bool BackgroundRun::catch_up(const std::shared_ptr<Watcher>& watcher) {
  const std::unique_lock lock(mutex_);
  const ReplyPtr reply = watcher->reply;
  if (!reply) return true;
  std::string piece;
  while (watcher->next < events_->size() && piece.size() < kPieceBytes) {
    piece += (*events_)[watcher->next++];
  }
  watcher->bytes = piece.size();
  const bool all = watcher->next >= events_->size();
  if (!piece.empty()) reply->write(std::move(piece));
  if (!all) return false;
  if (over_) {
    watcher->reply.reset();
    reply->finish();
    return true;
  }
  watchers_.push_back(watcher);
  reply->keep_alive(keep_alive_, [] { return net::encode_sse_comment("keepalive"); });
  return true;
}

void BackgroundRuns::add(const std::string& id, std::shared_ptr<BackgroundRun> run) {
  run->on_over([this, id] { remove(id); });
  const std::lock_guard lock(mutex_);
  runs_[id] = std::move(run);
}

void BackgroundRuns::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  runs_.erase(id);
}

std::shared_ptr<BackgroundRun> BackgroundRuns::find(const std::string& owner,
                                                    const std::string& id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(runs_, [](const auto& entry) { return entry.second->is_over(); });
  const auto found = runs_.find(id);
  const bool ours = found != runs_.end() && found->second->owner() == owner;
  return ours ? found->second : nullptr;
}

}  // namespace tandem::protocol::openai
