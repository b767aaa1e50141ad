// What the operator decides about the wires.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "chat/guards.h"
#include "gen/request.h"
#include "store/blob_table.h"

namespace tandem::protocol {

struct Options {
  std::vector<std::string> aliases;  // further names of the served model
  std::string owner = "tandem";      // owned_by of model entries
  std::string fingerprint;           // system_fingerprint
  store::Limits state;               // of responses that are kept
  std::string signing_key;           // of handles on answers (replay/handle.h)
  gen::Sampling sampling;            // for fields that a request leaves out
  chat::GuardSettings guards;        // the same
  bool side_rules = true;            // recognise requests beside the work, and run them low
  bool share_identical = false;      // one generation for identical requests at the same time
  bool strict_fields = false;        // refuse unknown fields instead of ignoring them
  bool separate_clients = false;     // several API keys: no prefix reuse and no stop across them
  uint32_t max_choices = 32;         // n
  uint32_t max_stop_strings = 16;
  uint32_t max_top_logprobs = 20;
  std::chrono::milliseconds keep_alive{10'000};  // comments into silent streams; 0: none
  std::chrono::milliseconds stall{60'000};       // work in flight and nothing delivered: not ready
};

}  // namespace tandem::protocol
