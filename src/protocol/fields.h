// Strict reading of a JSON object's fields: the first broken rule is kept, with field and value.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "protocol/field_log.h"
#include "protocol/json.h"

namespace tandem::protocol {

/// kInvalid: "'PLACE' RULE".
Error broken_rule(const std::string& place, const std::string& rule);

/// Reads fields of one object. An absent field and null are the same: the default. A boolean is not
/// a number. Every reader marks its field as known. Borrows the object. Not thread-safe.
class Fields {
 public:
  /// `path` is put before names in messages, such as "messages[2].". Every field that is asked for
  /// goes to `log`, if there is one, which must outlive this.
  explicit Fields(const Json& object, std::string path = {}, FieldLog* log = nullptr);

  std::optional<bool> boolean(const std::string& name);
  std::optional<int64_t> integer(const std::string& name, int64_t least, int64_t most);
  std::optional<double> number(const std::string& name, double least, double most);
  std::optional<std::string> string(const std::string& name, size_t most_bytes);
  const Json* object(const std::string& name);
  const Json* array(const std::string& name);
  const Json* any(const std::string& name);

  bool has(const std::string& name);

  /// Keeps an error about a field, unless there is one already.
  void refuse(const std::string& name, const std::string& rule);
  /// "'name' must …, not VALUE".
  void refuse_value(const std::string& name, const std::string& rule);
  /// Refuses a field that is known and not offered, when it is there.
  void unsupported(const std::string& name, const std::string& what = {});
  /// Marks fields that change nothing here.
  void accept(std::initializer_list<const char*> names);
  void keep(Error error);

  const std::optional<Error>& error() const { return error_; }
  /// Fields that nobody asked for.
  std::vector<std::string> unknown() const;

 private:
  void note(FieldRule rule);

  const Json& object_;
  const std::string path_;
  FieldLog* const log_;
  std::set<std::string> known_;
  std::optional<Error> error_;
};

}  // namespace tandem::protocol
