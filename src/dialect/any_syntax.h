// Several syntaxes of one dialect: the first that fits what follows a marker reads it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dialect/syntax.h"

namespace tandem::dialect {

class AnySyntax final : public Syntax {
 public:
  /// With `is_markup`, a marker with which none of them can do anything is not delivered.
  AnySyntax(std::vector<SyntaxPtr> parts, bool is_markup)
      : parts_(std::move(parts)), is_markup_(is_markup) {}

  std::vector<std::string> starts() const override;
  std::vector<std::string> literals() const override;
  char bare_start() const override;
  std::vector<std::string> bare_name_keys() const override;
  Task<Found> read(Scope scope) const override;

 private:
  std::vector<SyntaxPtr> parts_;
  bool is_markup_;
};

}  // namespace tandem::dialect
