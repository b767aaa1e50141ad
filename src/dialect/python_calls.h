// Calls written as Python: [name(key=value), …], or name.call(key=value).
#pragma once

#include <string>
#include <vector>

#include "dialect/syntax.h"
#include "dialect/value_reader.h"

namespace tandem::dialect {

struct PythonCallMarkers {
  std::vector<std::string> starts = {};
  std::string end = {};
  bool in_list = true;      // calls stand in brackets
  std::string suffix = {};  // of names, not part of them
};

/// Arguments must be named: what cannot be a call with names is text.
class PythonCalls final : public Syntax {
 public:
  explicit PythonCalls(PythonCallMarkers markers) : markers_(std::move(markers)) {}

  std::vector<std::string> starts() const override { return markers_.starts; }
  std::vector<std::string> literals() const override;
  Task<Found> read(Scope scope) const override;

 private:
  Task<Found> read_call(Scope scope) const;
  Task<bool> looks_like_keywords(Scope scope) const;
  Task<bool> read_keywords(Scope scope, class CallBuilder& call) const;

  PythonCallMarkers markers_;
};

}  // namespace tandem::dialect
