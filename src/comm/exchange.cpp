#include "comm/exchange.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tandem::comm {
namespace {

// A peer that is gone may have gone because a third one disagreed with it: its tag is awaited so
// long, so that every rank reports the disagreement and not its consequence.
constexpr std::chrono::milliseconds kLinger{100};
constexpr std::chrono::milliseconds kLongestSleep{100};

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class T>
auto bytes_of(T& tag) {
  return std::as_writable_bytes(std::span(&tag, 1));
}

std::string describe(const Tag& tag) {
  return fmt::format("{} of {} bytes (type {}, epoch {}, group {:x}, sequence {})", name(tag.op),
                     tag.bytes, tag.dtype, tag.epoch, tag.context, tag.sequence);
}

}  // namespace

Flow& Exchange::add(Flow flow) {
  LinkState& link = fabric_.link(flow.peer);
  for (Tag* tag : {&flow.out_tag, &flow.in_tag}) {
    tag->epoch = fabric_.epoch();
    tag->context = context_;
  }
  if (flow.sends) flow.out_tag.sequence = link.sent++;
  if (flow.receives) flow.in_tag.sequence = link.received++;
  flows_.push_back(flow);
  return flows_.back();
}

Error Exchange::lost(uint32_t peer, const char* why) const {
  return {.code = ErrorCode::kPeerLost, .message = fmt::format("[comm] rank {} {}", peer, why)};
}

Status Exchange::outside() const {
  if (fabric_.aborted.load(std::memory_order_relaxed)) {
    return Error{.code = ErrorCode::kPeerLost, .message = "[comm] the group was aborted"};
  }
  if (const Fault fault = fabric_.told(); fault != Fault::kNone) {
    const ErrorCode code = to_code(fault);
    return Error{.code = code,
                 .message = fmt::format("[comm] another rank ended the group: {}", name(code))};
  }
  return {};
}

Status Exchange::check(const Flow& flow) const {
  if (flow.got == flow.in_tag) return {};
  if (flow.got.magic == Tag::kMagic && flow.got.op == Op::kFault) {
    const ErrorCode code = to_code(static_cast<Fault>(flow.got.bytes));
    return Error{
        .code = code,
        .message = fmt::format("[comm] rank {} ended the group: {}", flow.peer, name(code))};
  }
  return Error{.code = ErrorCode::kCorrupt,
               .message = fmt::format("[comm] expected {} from rank {}, got {}",
                                      describe(flow.in_tag), flow.peer, describe(flow.got))};
}

Result<bool> Exchange::push(Flow& flow) {
  if (flow.out_complete()) return false;
  const size_t head = std::min(flow.sent, sizeof(Tag));
  const auto wrote = fabric_.write(flow.peer, bytes_of(flow.out_tag).subspan(head),
                                   flow.out.subspan(flow.sent - head));
  if (!wrote) return wrote.error();
  flow.sent += *wrote;
  LinkState& link = fabric_.link(flow.peer);
  if (flow.sent > 0) link.open = !flow.out_complete();
  return *wrote > 0;
}

Result<bool> Exchange::pull(Flow& flow) {
  if (flow.in_done()) return false;
  const size_t head = std::min(flow.received, sizeof(Tag));
  const size_t body = flow.received > sizeof(Tag) ? flow.received - sizeof(Tag) - flow.in_begin : 0;
  const auto got = fabric_.read(flow.peer, bytes_of(flow.got).subspan(head), flow.in.subspan(body));
  if (!got) return got.error();
  flow.received += *got;
  if (head < sizeof(Tag) && flow.received >= sizeof(Tag)) {
    if (auto same = check(flow); !same) return same.error();
  }
  return *got > 0;
}

Result<Exchange::Pass> Exchange::pass() {
  Pass result;
  for (Flow& flow : flows_) {
    for (const auto step : {&Exchange::push, &Exchange::pull}) {
      const auto moved = (this->*step)(flow);
      if (!moved && moved.error().code != ErrorCode::kPeerLost) return moved.error();
      // The link may be half closed: what the peer wrote before it went is still read.
      if (!moved && (step == &Exchange::pull || flow.in_done())) flow.lost = true;
      if (moved && *moved) result.moved = true;
    }
    result.done = result.done && flow.out_done() && flow.in_done();
  }
  return result;
}

std::optional<Error> Exchange::give_up(TimePoint now, TimePoint last_move) {
  const auto gone = std::ranges::find(flows_, true, &Flow::lost);
  if (gone != flows_.end()) {
    if (!lost_at_) lost_at_ = now;
    const bool tags_in = std::ranges::all_of(flows_, [](const Flow& flow) {
      return flow.lost || !flow.receives || flow.received >= sizeof(Tag);
    });
    if (tags_in || now - *lost_at_ > kLinger) {
      return lost(gone->peer, "closed its link or died");
    }
  }
  if (now - last_move < deadline_) return std::nullopt;
  std::string who;
  for (const Flow& flow : flows_) {
    if (!flow.out_done() || !flow.in_done()) who += fmt::format(" {}", flow.peer);
  }
  const Tag& tag = flows_.front().sends ? flows_.front().out_tag : flows_.front().in_tag;
  return Error{.code = ErrorCode::kDeadline,
               .message = fmt::format("[comm] rank(s){} silent for {} ms in {} of {} bytes", who,
                                      deadline_.count(), name(tag.op), tag.bytes)};
}

void Exchange::sleep(uint32_t ticket, TimePoint until) {
  interests_.clear();
  for (const Flow& flow : flows_) {
    if (flow.lost) continue;
    const Interest interest{
        .peer = flow.peer, .read = !flow.in_done(), .write = !flow.out_complete()};
    if (interest.read || interest.write) interests_.push_back(interest);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.now());
  fabric_.wait(ticket, interests_, std::clamp(left, std::chrono::milliseconds{0}, kLongestSleep));
}

Status Exchange::drive() {
  TimePoint last_move = clock_.now();
  while (true) {
    const uint32_t ticket = fabric_.ticket();
    const auto result = pass();
    if (!result) return result.error();
    if (result->done) return {};
    const TimePoint now = clock_.now();
    if (result->moved && !fabric_.aborted.load(std::memory_order_relaxed)) {
      last_move = now;
      continue;
    }
    // Only now: what a rank sent before it met the trouble still counts.
    if (auto status = outside(); !status) return status;
    if (auto error = give_up(now, last_move)) return *error;
    if (now - last_move < fabric_.spin()) {
      pause();
    } else {
      sleep(ticket, lost_at_ ? *lost_at_ + kLinger : last_move + deadline_);
    }
  }
}

}  // namespace tandem::comm
