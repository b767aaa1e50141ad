// What a parser asks of a body: from it endpoints are described.
#pragma once

#include <string>
#include <vector>

#include "protocol/json.h"

namespace tandem::protocol {

/// One field and what it takes.
struct FieldRule {
  enum class Kind : uint8_t { kAny, kBoolean, kInteger, kNumber, kString, kObject, kArray };

  std::string name = {};
  Kind kind = Kind::kAny;
  Json least = {};         // of numbers
  Json most = {};          // of numbers
  bool refused = false;    // known and not offered
  bool no_effect = false;  // accepted, and changes nothing
};

using FieldLog = std::vector<FieldRule>;

}  // namespace tandem::protocol
