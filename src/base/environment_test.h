// An environment variable that is set, or not, as long as an object lives: for tests.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace tandem {

class TestVariable {
 public:
  /// Null: not set.
  TestVariable(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    set(value);
  }
  ~TestVariable() { set(before_ ? before_->c_str() : nullptr); }
  TestVariable(const TestVariable&) = delete;
  TestVariable& operator=(const TestVariable&) = delete;

 private:
  void set(const char* value) const {
    if (value == nullptr)
      ::unsetenv(name_.c_str());
    else
      ::setenv(name_.c_str(), value, 1);
  }

  const std::string name_;
  std::optional<std::string> before_;
};

}  // namespace tandem
