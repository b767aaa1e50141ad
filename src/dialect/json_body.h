// Calls written as JSON objects: {"name": …, "arguments": {…}}, alone, in a list, or in a row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dialect/syntax.h"

namespace tandem::dialect {

struct JsonBodyMarkers {
  std::vector<std::string> starts = {};
  std::string end = {};
  bool bare = false;  // a call may begin with '{' at the start of the answer, if it names a tool
  bool id_comes_last = false;  // members are read to the end, so that the model's id is known
};

/// Members may come in any order, and under the names that models use for them. Where the name
/// comes first, arguments are put out as they come.
class JsonBody final : public Syntax {
 public:
  explicit JsonBody(JsonBodyMarkers markers) : markers_(std::move(markers)) {}

  std::vector<std::string> starts() const override { return markers_.starts; }
  std::vector<std::string> literals() const override;
  char bare_start() const override { return markers_.bare ? '{' : '\0'; }
  std::vector<std::string> bare_name_keys() const override;
  Task<Found> read(Scope scope) const override;

 private:
  struct Call;

  Task<Found> read_list(Scope scope) const;
  Task<Found> read_call(Scope scope) const;
  Task<bool> read_members(Scope scope, Call& call, int depth) const;
  Task<bool> read_member(Scope scope, Call& call, std::string key, int depth) const;
  Task<bool> read_arguments(Scope scope, Call& call) const;
  Task<bool> read_name(Scope scope, Call& call, int depth) const;
  bool is_bare(const Scope& scope) const { return markers_.bare && scope.start.empty(); }
  bool put_out(Scope scope, Call& call) const;

  JsonBodyMarkers markers_;
};

/// The object that a value stands for: itself, or what a string holds of one; "{}" for null.
std::optional<std::string> arguments_object(const std::string& json);

}  // namespace tandem::dialect
