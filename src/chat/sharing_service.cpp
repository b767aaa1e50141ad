#include "chat/sharing_service.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace tandem::chat {
namespace {

/// What must be equal.
Request without_names(Request request) {
  request.id.clear();
  request.client.clear();
  return request;
}

/// Nothing of its answer is left to chance, and its client gets no handle, which names one answer.
bool is_determined(const Request& request) {
  if (request.gives_handle) return false;
  return request.seed.has_value() || request.sampling.temperature == 0;
}

}  // namespace

/// One generation and those who watch it.
class SharingService::Shared {
 public:
  Shared(Service& inner, const Request& request)
      : asked(without_names(request)),
        inner_(inner),
        id_(request.id + "/shared"),
        ended_(request.choices) {}

  const Request asked;

  /// As the service behind knows it; nobody's own.
  const std::string& id() const { return id_; }

  /// Others may join from here on.
  void accept(const Accepted& accepted) {
    const std::lock_guard lock(mutex_);
    accepted_ = accepted;
    is_joinable_ = true;
  }
  Accepted accepted() {
    const std::lock_guard lock(mutex_);
    return accepted_;
  }

  void begin(const std::string& id, const Sink& sink) {
    const std::lock_guard lock(mutex_);
    members_.emplace_back(id, sink, asked.choices);
  }

  /// False when it is over, or about to be. All events so far come before this returns, the others
  /// as they come.
  bool join(const std::string& id, const Sink& sink) {
    const std::lock_guard lock(mutex_);
    if (!is_joinable_ || is_over()) return false;
    Member& member = members_.emplace_back(id, sink, asked.choices);
    for (size_t i = 0; i < events_.size() && !member.left; ++i) tell(member, events_[i]);
    return true;
  }

  void take(const Event& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    if (event.is_last()) ended_[event.choice] = true;
    // By index: a sink may cancel, and so add nothing, but mark.
    for (size_t i = 0; i < members_.size(); ++i) tell(members_[i], event);
  }

  /// Ends the member's choices; the last member's end is the generation's.
  bool leave(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto member =
        std::ranges::find_if(members_, [&](const Member& at) { return at.id == id && !at.left; });
    if (member == members_.end()) return false;
    if (std::ranges::count(members_, false, &Member::left) == 1) {
      is_joinable_ = false;
      return inner_.cancel(id_);  // whose events end the member's choices
    }
    member->left = true;
    for (uint32_t choice = 0; choice < asked.choices; ++choice) {
      if (member->told_end[choice]) continue;
      member->sink({.choice = choice,
                    .body = Failed{.error = {.code = ErrorCode::kCancelled,
                                             .message = "the request was cancelled"},
                                   .usage = {}}});
    }
    return true;
  }

  bool is_ended() {
    const std::lock_guard lock(mutex_);
    return is_over();
  }

 private:
  struct Member {
    Member(std::string name, Sink to, uint32_t choices)
        : id(std::move(name)), sink(std::move(to)), told_end(choices) {}

    std::string id;
    Sink sink;
    std::vector<bool> told_end;  // by choice
    bool left = false;
  };

  bool is_over() const { return std::ranges::find(ended_, false) == ended_.end(); }

  static void tell(Member& member, const Event& event) {
    if (member.left) return;
    if (event.is_last()) member.told_end[event.choice] = true;
    member.sink(event);
  }

  Service& inner_;
  const std::string id_;

  // Sinks are called under it, so that who joins misses nothing, and may cancel.
  std::recursive_mutex mutex_;
  std::vector<Event> events_;
  std::vector<bool> ended_;  // by choice
  std::deque<Member> members_;
  Accepted accepted_;
  bool is_joinable_ = false;
};

/// The generations that may be joined, and who watches which.
class SharingService::Table {
 public:
  std::shared_ptr<Shared> equal_to(const Request& request) {
    const Request asked = without_names(request);
    const std::lock_guard lock(mutex_);
    for (const auto& [member, shared] : by_member_) {
      if (shared->asked == asked) return shared;
    }
    return nullptr;
  }

  void add(const std::string& member, std::shared_ptr<Shared> shared) {
    const std::lock_guard lock(mutex_);
    by_member_.insert_or_assign(member, std::move(shared));
  }

  std::shared_ptr<Shared> of(const std::string& member) {
    const std::lock_guard lock(mutex_);
    const auto found = by_member_.find(member);
    return found == by_member_.end() ? nullptr : found->second;
  }

  void remove(const std::string& member) {
    const std::lock_guard lock(mutex_);
    by_member_.erase(member);
  }

  void remove_all(const Shared* shared) {
    const std::lock_guard lock(mutex_);
    std::erase_if(by_member_, [&](const auto& entry) { return entry.second.get() == shared; });
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Shared>> by_member_;
};

SharingService::SharingService(Service& inner) : inner_(inner), table_(std::make_shared<Table>()) {}

SharingService::~SharingService() = default;

Result<Accepted> SharingService::submit(Request request, Sink sink) {
  if (!is_determined(request)) return inner_.submit(std::move(request), std::move(sink));
  if (table_->of(request.id) != nullptr) {
    return Error{.code = ErrorCode::kConflict,
                 .message = "a request with id \"" + request.id + "\" is running",
                 .field = "id"};
  }
  if (const auto running = table_->equal_to(request)) {
    table_->add(request.id, running);
    const bool has_joined = running->join(request.id, sink);
    if (!has_joined || running->is_ended()) table_->remove(request.id);
    if (has_joined) {
      ++joined_;
      return running->accepted();
    }
  }
  const auto shared = std::make_shared<Shared>(inner_, request);
  shared->begin(request.id, sink);
  table_->add(request.id, shared);
  request.id = shared->id();
  auto accepted = inner_.submit(std::move(request), [shared, table = table_](const Event& event) {
    shared->take(event);
    if (event.is_last() && shared->is_ended()) table->remove_all(shared.get());
  });
  if (accepted) {
    shared->accept(*accepted);
  } else {
    table_->remove_all(shared.get());
  }
  return accepted;
}

bool SharingService::cancel(const std::string& id) {
  const auto shared = table_->of(id);
  if (shared == nullptr) return inner_.cancel(id);
  return shared->leave(id);
}

}  // namespace tandem::chat
