// Calls written as a name, a marker, and a JSON object of arguments.
#pragma once

#include <string>
#include <vector>

#include "dialect/syntax.h"

namespace tandem::dialect {

struct HeadedJsonMarkers {
  std::vector<std::string> starts = {};       // of a block
  std::string end = {};                       // of a block
  std::vector<std::string> call_begins = {};  // may be left out
  std::vector<std::string> before_name = {};  // words in front of the name
  std::string before_id = {};                 // between name and id
  std::vector<std::string> head_ends = {};    // between name (or id) and arguments
  std::vector<std::string> after = {};        // between arguments and the call's end
  std::vector<std::string> call_ends = {};    // may be left out
  bool name_is_id = false;                    // "functions.NAME:3" is the id
  SyntaxPtr list = {};                        // reads a block that goes on with '[' or '{'
};

class HeadedJson final : public Syntax {
 public:
  explicit HeadedJson(HeadedJsonMarkers markers) : markers_(std::move(markers)) {}

  std::vector<std::string> starts() const override { return markers_.starts; }
  std::vector<std::string> literals() const override;
  Task<Found> read(Scope scope) const override;

 private:
  struct Head;

  Task<bool> read_head(Scope scope, Head& head) const;
  Task<bool> read_arguments(Scope scope, Head head) const;
  void split_id(Head& head) const;

  HeadedJsonMarkers markers_;
};

}  // namespace tandem::dialect
