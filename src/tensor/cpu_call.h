// A kernel call whose arguments are bound.
#pragma once

#include <concepts>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace tandem::tensor {

/// A function without arguments that lies in place, so that calls in a vector lie in memory in the
/// order in which they run. Empty, or callable any number of times; moved, not copied.
class CpuCall {
 public:
  CpuCall() = default;

  template <class F>
    requires(!std::same_as<F, CpuCall> && std::invocable<F&>)
  CpuCall(F function) : type_(&kType<F>) {
    static_assert(sizeof(F) <= kBytes && alignof(F) <= kAlignment, "this call binds too much");
    static_assert(std::is_nothrow_move_constructible_v<F>);
    ::new (static_cast<void*>(memory_)) F(std::move(function));
  }

  CpuCall(CpuCall&& other) noexcept : type_(std::exchange(other.type_, nullptr)) {
    if (type_ != nullptr) type_->move(other.memory_, memory_);
  }

  CpuCall& operator=(CpuCall&& other) noexcept {
    if (this == &other) return *this;
    clear();
    type_ = std::exchange(other.type_, nullptr);
    if (type_ != nullptr) type_->move(other.memory_, memory_);
    return *this;
  }

  ~CpuCall() { clear(); }

  explicit operator bool() const { return type_ != nullptr; }

  /// Requires one that is not empty.
  void operator()() { type_->run(memory_); }

 private:
  static constexpr size_t kAlignment = 16;
  static constexpr size_t kBytes = 256 - kAlignment;

  struct Type {
    void (*run)(void* at);
    void (*move)(void* from, void* to);  // `from` is destroyed
    void (*destroy)(void* at);
  };

  template <class F>
  static constexpr Type kType = {.run = [](void* at) { (*static_cast<F*>(at))(); },
                                 .move =
                                     [](void* from, void* to) {
                                       F& old = *static_cast<F*>(from);
                                       ::new (to) F(std::move(old));
                                       old.~F();
                                     },
                                 .destroy = [](void* at) { static_cast<F*>(at)->~F(); }};

  void clear() {
    if (type_ != nullptr) std::exchange(type_, nullptr)->destroy(memory_);
  }

  const Type* type_ = nullptr;
  alignas(kAlignment) std::byte memory_[kBytes];
};

}  // namespace tandem::tensor
