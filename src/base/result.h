// A value or an Error, with the member names of std::expected (which libstdc++ 12 has only under
// C++23).
#pragma once

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/error.h"

namespace tandem {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  /// Requires has_value().
  T& value() & { return checked(), std::get<0>(state_); }
  const T& value() const& { return checked(), std::get<0>(state_); }
  T&& value() && { return checked(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Requires !has_value().
  const Error& error() const { return std::get<1>(state_); }

 private:
  void checked() const { TANDEM_CHECK(has_value(), "Result holds an error: {}", error().message); }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT: implicit on purpose

  bool has_value() const { return ok_; }
  explicit operator bool() const { return ok_; }
  /// Requires !has_value().
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool ok_ = true;
};

using Status = Result<void>;

}  // namespace tandem
