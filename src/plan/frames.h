// Control frames: what head, rank 0 and followers say to each other. The format is in FORMAT.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "gen/event.h"
#include "gen/generator.h"
#include "gen/request.h"
#include "plan/figures.h"
#include "plan/step_plan.h"
#include "plan/wire.h"

namespace tandem::plan {

/// How a group's ranks move tensors.
enum class CommKind : uint8_t { kSharedMemory, kTcp, kRing, kJaccl, kNccl, kMpi };

/// Groups of MLX's own backends live as long as their processes: none of them forms a second epoch.
constexpr bool ends_with_process(CommKind kind) { return kind >= CommKind::kRing; }

// ---- rank to head -------------------------------------------------------------------------------

/// First frame of a rank, sent once a connection.
struct Hello {
  static constexpr uint8_t kKind = 1;
  uint32_t protocol = 0;      // kFormatVersion of the rank
  std::string build = {};     // version and commit of the rank's executable
  std::string instance = {};  // as given to the rank when it was started
  uint32_t rank = 0;          // as given; Form may assign another
  uint32_t size = 0;
  uint64_t pid = 0;
  std::string plan_address = {};       // "host:port" of this rank's listener for plan links
  std::string data_address = {};       // "host:port" for tensors; empty when it has none
  std::string model_fingerprint = {};  // equal on ranks that loaded the same checkpoint
  uint64_t memory_bytes = 0;           // of this rank's device

  bool operator==(const Hello&) const = default;
};

/// The rank joined the group of this epoch. Rank 0's limits count; every rank's must agree.
struct Ready {
  static constexpr uint8_t kKind = 2;
  uint32_t epoch = 0;
  gen::Limits limits = {};
  uint32_t pages = 0;
  uint32_t page_tokens = 0;
  uint32_t depth = 0;

  bool operator==(const Ready&) const = default;
};

/// Every second from a thread of its own (liveness). What it says of the engine feeds the progress
/// clock: busy and the same `steps` for too long means stuck.
struct Beat {
  static constexpr uint8_t kKind = 3;
  uint32_t epoch = 0;
  uint64_t steps = 0;                          // completed in this process's life
  bool busy = false;                           // work is in flight or queued
  std::chrono::nanoseconds predicted_step{0};  // of the step in flight; 0 when unknown

  bool operator==(const Beat&) const = default;
};

/// Events of requests, in order (rank 0 only).
struct Report {
  static constexpr uint8_t kKind = 4;
  uint32_t epoch = 0;
  std::vector<gen::Event> events = {};

  bool operator==(const Report&) const = default;
};

/// A Submit was not accepted: no event follows.
struct Refused {
  static constexpr uint8_t kKind = 5;
  uint32_t epoch = 0;
  gen::RequestId request = 0;
  Error error = {};

  bool operator==(const Refused&) const = default;
};

/// The epoch cannot go on (peer lost, deadline, state hash mismatch, …), or could not form. The
/// rank waits for Abort.
struct Fault {
  static constexpr uint8_t kKind = 6;
  uint32_t epoch = 0;
  Error error = {};

  bool operator==(const Fault&) const = default;
};

/// Answer to Abort: everything of the epoch is dropped; the rank waits for Form.
struct Aborted {
  static constexpr uint8_t kKind = 7;
  uint32_t epoch = 0;

  bool operator==(const Aborted&) const = default;
};

/// Answer to Drain, when the last request has ended.
struct Drained {
  static constexpr uint8_t kKind = 8;
  bool operator==(const Drained&) const = default;
};

/// Progress of loading, before Hello's rank can be formed.
struct Loading {
  static constexpr uint8_t kKind = 9;
  std::string text = {};
  float fraction = 0;  // 0 … 1

  bool operator==(const Loading&) const = default;
};

// ---- head to rank -------------------------------------------------------------------------------

/// Join (or, after Abort, re-join) a group. Addresses are indexed by rank.
struct Form {
  static constexpr uint8_t kKind = 32;
  uint32_t epoch = 0;  // grows with every forming of the instance, never 0
  uint32_t rank = 0;
  uint32_t size = 1;
  std::vector<std::string> plan_addresses = {};
  std::vector<std::string> data_addresses = {};
  CommKind comm = CommKind::kSharedMemory;
  std::string shared_memory_name = {};        // unique to instance and epoch
  Bytes secret = {};                          // of this epoch's plan and data links; never logged
  std::chrono::milliseconds timeout{10'000};  // to meet all peers

  bool operator==(const Form&) const = default;
};

/// To rank 0. Answered by Refused, or by Reports that end with exactly one last event.
struct Submit {
  static constexpr uint8_t kKind = 33;
  uint32_t epoch = 0;
  gen::Request request = {};

  bool operator==(const Submit&) const = default;
};

struct Cancel {
  static constexpr uint8_t kKind = 34;
  uint32_t epoch = 0;
  gen::RequestId request = 0;

  bool operator==(const Cancel&) const = default;
};

/// Drop the epoch: requests end without an event, then Aborted. Valid at any time after Form; an
/// older epoch is answered and otherwise ignored.
struct Abort {
  static constexpr uint8_t kKind = 35;
  uint32_t epoch = 0;

  bool operator==(const Abort&) const = default;
};

/// Accept no more requests, finish those there are, say Drained, go on beating.
struct Drain {
  static constexpr uint8_t kKind = 36;
  bool operator==(const Drain&) const = default;
};

/// Every second: a rank that hears none for three exits, since its head is gone.
struct HeadBeat {
  static constexpr uint8_t kKind = 37;
  bool operator==(const HeadBeat&) const = default;
};

/// Exit with code 0 now.
struct Shutdown {
  static constexpr uint8_t kKind = 38;
  bool operator==(const Shutdown&) const = default;
};

// ---- rank 0 and followers -----------------------------------------------------------------------

/// A follower's first frame on a plan link.
struct Join {
  static constexpr uint8_t kKind = 64;
  uint32_t rank = 0;
  uint32_t epoch = 0;

  bool operator==(const Join&) const = default;
};

/// From rank 0, to every follower in sequence order.
struct Execute {
  static constexpr uint8_t kKind = 65;
  StepPlan plan = {};

  bool operator==(const Execute&) const = default;
};

/// The follower completed a plan.
struct Ack {
  static constexpr uint8_t kKind = 66;
  uint64_t sequence = 0;
  uint64_t state_hash = 0;

  bool operator==(const Ack&) const = default;
};

/// The follower cannot go on.
struct FollowerFault {
  static constexpr uint8_t kKind = 67;
  uint64_t sequence = 0;
  Error error = {};

  bool operator==(const FollowerFault&) const = default;
};

using Frame = std::variant<Hello,
                           Ready,
                           Beat,
                           Report,
                           Refused,
                           Fault,
                           Aborted,
                           Drained,
                           Loading,
                           Figures,
                           Form,
                           Submit,
                           Cancel,
                           Abort,
                           Drain,
                           HeadBeat,
                           Shutdown,
                           Join,
                           Execute,
                           Ack,
                           FollowerFault>;

/// Canonical: equal frames give equal bytes.
Bytes encode(const Frame& frame);

/// encode(Execute{plan}) without copying the plan first.
Bytes encode_execute(const StepPlan& plan);

/// Accepts only what encode() makes. Errors: kUnsupported (another version, unknown kind),
/// kCorrupt.
Result<Frame> decode_frame(std::span<const std::byte> bytes);

/// The frame's name for logs, such as "Hello".
const char* name(const Frame& frame);

}  // namespace tandem::plan
