// A response that is made without its client's connection, and those who watch it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/handlers.h"
#include "protocol/openai/kept_responses.h"

namespace tandem::protocol::openai {

/// Takes the events of a Call in a client's place. Keeps them as long as it runs, hands them to any
/// number of watchers from any of them on, and leaves the record to be written when it begins and
/// when it ends. Events come from the thread of the Call, watchers from handlers.
class BackgroundRun final : public net::Reply, public std::enable_shared_from_this<BackgroundRun> {
 public:
  /// `record`: without a response. `keep_alive`: between comments to watchers.
  BackgroundRun(const KeptResponses& kept,
                std::string owner,
                KeptResponse record,
                std::chrono::milliseconds keep_alive);

  // For the Call.
  void send(net::Response response) override;
  void start(int status, net::Headers headers) override;
  bool write(std::string piece) override;
  void finish() override;
  void on_closed(std::function<void()> callback) override;
  void keep_alive(std::chrono::milliseconds period, std::function<std::string()> text) override;

  // For handlers.

  /// What was answered in place of a response that began; why it could not be kept, known once what
  /// was left to write is written.
  std::optional<net::Response> refusal() const;
  std::optional<Error> trouble() const;

  /// As it is now.
  KeptResponse record() const;
  const std::string& owner() const { return owner_; }

  /// Streams events from this sequence number on.
  void watch(const ReplyPtr& reply, size_t first);

  /// False: it goes on after this time.
  bool wait_over(std::chrono::milliseconds limit) const;
  bool is_over() const;

  /// What is called once it is over, from the thread of the Call. Set before that begins.
  void on_over(std::function<void()> callback) { on_over_ = std::move(callback); }

  /// What is called with its record when it has ended with an answer, before that is written. Set
  /// before that begins.
  void on_answer(std::function<void(const KeptResponse&)> callback) {
    on_answer_ = std::move(callback);
  }

  /// What is called, from another thread, when its record is found gone while it is made: another
  /// server of the folder erased it, or a purge did. Set before that begins.
  void on_gone(std::function<void()> callback) { on_gone_ = std::move(callback); }

 private:
  struct Watcher {
    ReplyPtr reply;
    size_t next = 0;   // the event that it gets next
    size_t bytes = 0;  // that its connection may not have taken yet
  };

  void note(std::string_view event);
  void look_whether_kept();
  bool push(Watcher& watcher);
  void pull(const std::shared_ptr<Watcher>& watcher);
  bool catch_up(const std::shared_ptr<Watcher>& watcher);

  const KeptResponses& kept_;
  const std::string owner_;
  const std::chrono::milliseconds keep_alive_;
  std::function<void()> on_over_;
  std::function<void()> on_gone_;
  std::function<void(const KeptResponse&)> on_answer_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  KeptResponse record_;
  const std::shared_ptr<std::vector<std::string>> events_;  // by sequence number
  std::vector<std::shared_ptr<Watcher>> watchers_;          // that have all events so far
  std::optional<net::Response> refusal_;
  std::optional<Error> trouble_;
  std::chrono::steady_clock::time_point looked_;  // for its record
  bool over_ = false;
};

/// The runs of a server, by id: those that are over are let go of. Thread-safe; must outlive them.
class BackgroundRuns {
 public:
  void add(const std::string& id, std::shared_ptr<BackgroundRun> run);
  void remove(const std::string& id);
  /// Null: no such run, or another owner's.
  std::shared_ptr<BackgroundRun> find(const std::string& owner, const std::string& id);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<BackgroundRun>> runs_;
};

}  // namespace tandem::protocol::openai
