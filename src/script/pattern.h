// Regular expressions whose named groups are variables.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tandem::script {

using Variables = std::map<std::string, std::string>;

/// Perl's syntax; (?<name>…) names a variable. Immutable; copies share.
class Pattern {
 public:
  /// kInvalid with what is wrong with it, and where.
  static Result<Pattern> compile(const std::string& source);

  /// What the named groups of its first match took; nothing where it does not match. kInvalid when
  /// the search takes too many steps.
  Result<std::optional<Variables>> search(const std::string& text) const;

  const std::vector<std::string>& names() const { return names_; }
  const std::string& source() const { return source_; }

 private:
  struct Compiled;

  std::string source_;
  std::vector<std::string> names_;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace tandem::script
