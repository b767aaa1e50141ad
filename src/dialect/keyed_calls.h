// Calls written as a name, then keys and values in tags of their own (GLM, LongCat).
#pragma once

#include <string>
#include <vector>

#include "dialect/json_body.h"
#include "dialect/syntax.h"
#include "dialect/tagged_values.h"

namespace tandem::dialect {

struct KeyedCallMarkers {
  std::string start = {};
  std::string end = {};
  std::string key_open = {};
  std::string key_close = {};
  std::string value_open = {};
  std::string value_close = {};
};

/// Also takes the forms into which these models drift: a JSON call, a name with a JSON object, a
/// name with key=value pairs on its line.
class KeyedCalls final : public Syntax {
 public:
  explicit KeyedCalls(KeyedCallMarkers markers);

  std::vector<std::string> starts() const override { return {markers_.start}; }
  std::vector<std::string> literals() const override;
  Task<Found> read(Scope scope) const override;

 private:
  Task<Found> read_pairs(Scope scope, std::string name) const;
  Task<Found> read_object(Scope scope, std::string name) const;
  Task<Found> read_line(Scope scope, std::string name) const;
  Task<Found> finish(Scope scope) const;

  KeyedCallMarkers markers_;
  TaggedValueStyle values_;
  std::vector<std::string> keys_;  // what begins a pair
  std::vector<std::string> ends_;  // what ends a block
  JsonBody json_;
};

}  // namespace tandem::dialect
