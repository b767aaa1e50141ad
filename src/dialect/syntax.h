// How calls are written: one reader for each way, which families fill with their markers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dialect/input.h"
#include "dialect/output.h"
#include "dialect/tools.h"

namespace tandem::dialect {

/// What a syntax reads from and writes to.
struct Scope {
  Input& in;
  Output& out;
  const Tools& tools;
  std::string_view start = {};    // the marker that was read; empty after a bare start
  bool ends_after_calls = false;  // see Rules; for syntaxes that own the answer
};

/// What followed a start marker.
enum class Found : uint8_t {
  kProse,      // no call: the marker was a word of the text. Nothing was put out
  kBroken,     // the beginning of a call that is none. Nothing was put out
  kCalls,      // calls, to the end of the block
  kOpenCalls,  // calls; what follows is text, and somewhere the block may still be closed
  kNoCall,     // the marker is markup, what follows is text
};

/// Immutable; thread-safe.
class Syntax {
 public:
  virtual ~Syntax() = default;

  /// Markers with which a block of calls begins.
  virtual std::vector<std::string> starts() const = 0;

  /// Every string of the syntax that may be a special token or that must not reach a client.
  virtual std::vector<std::string> literals() const = 0;

  /// A byte with which calls may begin without a marker, at the start of the answer's text; 0:
  /// none.
  virtual char bare_start() const { return 0; }

  /// Where there is a bare start: members whose value names the tool of such a call.
  virtual std::vector<std::string> bare_name_keys() const { return {}; }

  /// Reads what follows a start marker (or begins with the bare start).
  virtual Task<Found> read(Scope scope) const = 0;

  /// True when the syntax reads all of the answer itself, by read_all().
  virtual bool owns_answer() const { return false; }
  virtual Task<bool> read_all(Scope scope) const;
  /// Of such a syntax: what stands between a thought and what follows; empty when it has no
  /// thinking.
  virtual std::string thinking_close() const { return {}; }
};

using SyntaxPtr = std::shared_ptr<const Syntax>;

}  // namespace tandem::dialect
