// What a dialect's own parser makes of a value that its layout wrote.
#pragma once

#include <memory>

#include "dialect/parser.h"

namespace tandem::dialect {

/// For values of a parameter that has this schema.
class ReadBack {
 public:
  ReadBack(const Dialect& dialect, Schema schema);

  /// Whether the parser gives the value back as it was.
  bool gives(const Json& value) const;

 private:
  std::shared_ptr<const Rules> rules_;
};

}  // namespace tandem::dialect
