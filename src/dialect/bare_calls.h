// Calls written as call:NAME{key:value}, with values in the family's own spelling (Gemma).
#pragma once

#include <string>
#include <vector>

#include "dialect/syntax.h"
#include "dialect/value_reader.h"

namespace tandem::dialect {

struct BareCallMarkers {
  std::string start = {};
  std::string end = {};
  std::string quote = {};  // around strings
};

class BareCalls final : public Syntax {
 public:
  explicit BareCalls(BareCallMarkers markers);

  std::vector<std::string> starts() const override { return {markers_.start}; }
  std::vector<std::string> literals() const override {
    return {markers_.start, markers_.end, markers_.quote};
  }
  Task<Found> read(Scope scope) const override;

 private:
  BareCallMarkers markers_;
  ValueStyle values_;
};

}  // namespace tandem::dialect
