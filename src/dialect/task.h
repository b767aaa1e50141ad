// A coroutine that reads an answer and gives a value when it is done.
#pragma once

#include <coroutine>
#include <utility>

namespace tandem::dialect {

/// Runs at once, until it waits for bytes that are not there yet; then the coroutine that awaits it
/// waits too. Only a coroutine that waited is resumed through another one, so that reading never
/// deepens the stack beyond the nesting of the readers. Arguments by reference must outlive it.
template <class T>
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  /// Goes on with the coroutine that waits for the end, if there is one.
  struct AtEnd {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle handle) const noexcept {
      const auto waiting = handle.promise().waiting;
      return waiting ? waiting : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };

  struct promise_type {
    T value;
    std::coroutine_handle<> waiting;

    // Written out: g++ 12 leaves members of promises uninitialized otherwise.
    promise_type() : value(), waiting(nullptr) {}
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    AtEnd final_suspend() const noexcept { return {}; }
    void return_value(T result) { value = std::move(result); }
    void unhandled_exception() { throw; }
  };

  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const { return handle_.done(); }
  void await_suspend(std::coroutine_handle<> waiting) const { handle_.promise().waiting = waiting; }
  T await_resume() const { return std::move(handle_.promise().value); }

  bool done() const { return handle_.done(); }

 private:
  explicit Task(Handle handle) : handle_(handle) {}

  Handle handle_ = nullptr;
};

}  // namespace tandem::dialect
