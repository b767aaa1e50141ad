// The other side of the streams: a process that reads them all.
#pragma once

#include <cstdint>
#include <string>

#include "wires/paced_generator.h"

namespace tandem::bench {

/// What came of one wire's streams.
struct Reading {
  double first_byte_ms = 0;       // the median, from the first token to its bytes here
  double last_first_byte_ms = 0;  // the worst
  uint64_t bytes = 0;
  uint64_t whole = 0;  // streams that ended well
};

/// Sends the request (with SEED in its body replaced by the stream's number) over so many
/// connections at once and reads to their ends.
Reading read_streams(uint16_t port,
                     const std::string& path,
                     const std::string& body,
                     size_t streams,
                     const FirstTokens& first);

}  // namespace tandem::bench
