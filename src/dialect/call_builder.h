// Builds the arguments of a call, one named value after the other, as they are read.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "dialect/json_text.h"
#include "dialect/output.h"

namespace tandem::dialect {

/// Puts out a call's start, then an object with the added members, then its end.
class CallBuilder {
 public:
  CallBuilder(Output& out, std::string name, std::string id) : out_(out) {
    out_.start_call(std::move(name), std::move(id));
  }

  /// To which the value of a new member is to be appended, as one JSON value.
  std::string& add(std::string_view key) { return add_json(json_string(key)); }

  /// The same with the key as JSON text.
  std::string& add_json(std::string_view key) {
    out_.arguments() += is_empty_ ? "{" : ", ";
    out_.arguments() += key;
    out_.arguments() += ": ";
    is_empty_ = false;
    return out_.arguments();
  }

  void end(bool complete) {
    out_.arguments() += is_empty_ ? "{}" : "}";
    out_.end_call(complete);
  }

 private:
  Output& out_;
  bool is_empty_ = true;
};

}  // namespace tandem::dialect
