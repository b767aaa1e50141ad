#include "comm/mesh.h"

#include <algorithm>
#include <cstring>

#include "comm/sum.h"

namespace tandem::comm {
namespace {

// Sums go block by block, so that the parts of a block are still in the cache when they are added.
constexpr size_t kBlock = size_t{32} << 10U;
// From here on, with three ranks or more, each rank sums one part and sends the result around:
// less to move than everything to everyone.
constexpr size_t kByParts = size_t{64} << 10U;

Error invalid(std::string message) {
  return {.code = ErrorCode::kInvalid, .message = std::move(message)};
}

uint32_t mix(uint32_t context, uint32_t value) {
  return (context ^ value) * 0x9e3779b1U + (context >> 15U) + 1U;
}

}  // namespace

/// A sum over the ranks of the elements that this one keeps.
struct Mesh::Sum {
  Op op;
  Dtype dtype;
  std::vector<std::span<const std::byte>> outs;  // by member: what it gets of ours
  std::span<const std::byte> own;                // our part of what we keep
  std::byte* result;                             // where the sum goes; may be own
  bool in_place;                                 // the result lies in what is being sent
};

Mesh::Mesh(std::shared_ptr<Fabric> fabric,
           std::vector<uint32_t> members,
           uint32_t context,
           std::chrono::milliseconds deadline)
    : fabric_(std::move(fabric)),
      members_(std::move(members)),
      context_(context),
      deadline_(deadline) {
  const auto own = std::ranges::find(members_, fabric_->rank());
  rank_ = static_cast<uint32_t>(own - members_.begin());
}

Status Mesh::alive() const {
  if (fabric_->aborted.load(std::memory_order_relaxed)) {
    return Error{.code = ErrorCode::kPeerLost, .message = "[comm] the group was aborted"};
  }
  if (fabric_->dead) return *fabric_->dead;
  return {};
}

Status Mesh::finish(Status status) {
  if (!status) {
    fabric_->dead = status.error();
    fabric_->tell(to_fault(status.error().code));
  }
  return status;
}

std::span<std::byte> Mesh::scratch(size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return std::span(scratch_).first(bytes);
}

Status Mesh::run_sum(const Sum& sum) {
  const size_t total = sum.own.size();
  const size_t block = std::min(kBlock, total);
  const std::span<std::byte> room = scratch(block * size());
  Exchange exchange(*fabric_, context_, deadline_);
  const uint8_t dtype = static_cast<uint8_t>(sum.dtype);
  for (uint32_t member = 0; member < size(); ++member) {
    if (member == rank_) continue;
    exchange.add({.peer = members_[member],
                  .sends = true,
                  .out_tag = {.op = sum.op, .dtype = dtype, .bytes = sum.outs[member].size()},
                  .out = sum.outs[member],
                  .receives = true,
                  .in_tag = {.op = sum.op, .dtype = dtype, .bytes = total}});
  }
  std::vector<const std::byte*> parts(size());
  for (size_t begin = 0; begin < total; begin += block) {
    const size_t bytes = std::min(block, total - begin);
    size_t next = 0;
    for (uint32_t member = 0; member < size(); ++member) {
      const auto part = room.subspan(member * block, bytes);
      parts[member] = member == rank_ ? sum.own.data() + begin : part.data();
      if (member == rank_) continue;
      Flow& flow = exchange.flows()[next++];
      flow.in = part;
      flow.in_begin = begin;
      flow.need_out = sum.in_place ? begin + bytes : 0;
    }
    if (auto status = exchange.drive(); !status) return status;
    ordered_sum(parts, bytes / size_of(sum.dtype), sum.dtype, sum.result + begin);
  }
  for (Flow& flow : exchange.flows()) {
    flow.in = {};
    flow.in_begin = total;
    flow.need_out = flow.out.size();
  }
  return exchange.drive();
}

Status Mesh::all_sum(void* data, size_t count, Dtype dtype) {
  if (auto status = alive(); !status) return status;
  auto* bytes = static_cast<std::byte*>(data);
  const std::span<const std::byte> own(bytes, count * size_of(dtype));
  if (size() >= 3 && own.size() >= kByParts) return finish(sum_by_parts(bytes, count, dtype));
  return finish(run_sum({.op = Op::kAllSum,
                         .dtype = dtype,
                         .outs = std::vector(size(), own),
                         .own = own,
                         .result = bytes,
                         .in_place = true}));
}

Status Mesh::sum_by_parts(std::byte* data, size_t count, Dtype dtype) {
  std::vector<std::span<const std::byte>> parts;
  std::vector<size_t> sizes;
  for (uint32_t member = 0; member < size(); ++member) {
    const size_t begin = count * member / size();
    const size_t end = count * (member + 1) / size();
    parts.emplace_back(data + begin * size_of(dtype), (end - begin) * size_of(dtype));
    sizes.push_back(parts.back().size());
  }
  std::byte* kept = data + (parts[rank_].data() - data);
  const Sum sum{.op = Op::kAllSum,
                .dtype = dtype,
                .outs = parts,
                .own = parts[rank_],
                .result = kept,
                .in_place = false};
  if (auto status = run_sum(sum); !status) return status;
  return gather(parts[rank_], sizes, data);
}

Status Mesh::reduce_scatter(const float* data,
                            size_t width,
                            std::span<const size_t> begins,
                            float* out) {
  if (auto status = alive(); !status) return status;
  if (begins.size() != size_t{size()} + 1 || !std::ranges::is_sorted(begins)) {
    return invalid(fmt::format("[comm.reduce_scatter] {} row bounds for {} ranks, or not in order",
                               begins.size(), size()));
  }
  std::vector<std::span<const std::byte>> parts;
  for (uint32_t member = 0; member < size(); ++member) {
    const size_t rows = begins[member + 1] - begins[member];
    parts.push_back(std::as_bytes(std::span(data + begins[member] * width, rows * width)));
  }
  return finish(run_sum({.op = Op::kReduceScatter,
                         .dtype = Dtype::kFloat32,
                         .outs = parts,
                         .own = parts[rank_],
                         .result = reinterpret_cast<std::byte*>(out),
                         .in_place = false}));
}

Status Mesh::gather(std::span<const std::byte> part,
                    std::span<const size_t> sizes,
                    std::byte* out) {
  Exchange exchange(*fabric_, context_, deadline_);
  size_t begin = 0;
  for (uint32_t member = 0; member < size(); ++member) {
    const std::span<std::byte> place(out + begin, sizes[member]);
    begin += sizes[member];
    if (member == rank_) {
      if (!part.empty() && place.data() != part.data()) {
        std::memmove(place.data(), part.data(), part.size());
      }
      continue;
    }
    exchange.add({.peer = members_[member],
                  .sends = true,
                  .out_tag = {.op = Op::kAllGather, .bytes = part.size()},
                  .out = part,
                  .need_out = part.size(),
                  .receives = true,
                  .in_tag = {.op = Op::kAllGather, .bytes = place.size()},
                  .in = place});
  }
  return exchange.drive();
}

Status Mesh::all_gather(std::span<const std::byte> part,
                        std::span<const size_t> sizes,
                        std::byte* out) {
  if (auto status = alive(); !status) return status;
  if (sizes.size() != size() || sizes[rank_] != part.size()) {
    return invalid(fmt::format("[comm.all_gather] {} sizes for {} ranks, own part of {} bytes",
                               sizes.size(), size(), part.size()));
  }
  return finish(gather(part, sizes, out));
}

Status Mesh::send(std::span<const std::byte> data, uint32_t to) {
  if (auto status = alive(); !status) return status;
  if (to >= size() || to == rank_) {
    return invalid(fmt::format("[comm.send] no other rank {} among {}", to, size()));
  }
  Exchange exchange(*fabric_, context_, deadline_);
  exchange.add({.peer = members_[to],
                .sends = true,
                .out_tag = {.op = Op::kPoint, .bytes = data.size()},
                .out = data,
                .need_out = data.size()});
  return finish(exchange.drive());
}

Status Mesh::recv(std::span<std::byte> data, uint32_t from) {
  if (auto status = alive(); !status) return status;
  if (from >= size() || from == rank_) {
    return invalid(fmt::format("[comm.recv] no other rank {} among {}", from, size()));
  }
  Exchange exchange(*fabric_, context_, deadline_);
  exchange.add({.peer = members_[from],
                .receives = true,
                .in_tag = {.op = Op::kPoint, .bytes = data.size()},
                .in = data});
  return finish(exchange.drive());
}

Status Mesh::barrier() {
  if (auto status = alive(); !status) return status;
  Exchange exchange(*fabric_, context_, deadline_);
  for (uint32_t member = 0; member < size(); ++member) {
    if (member == rank_) continue;
    exchange.add({.peer = members_[member],
                  .sends = true,
                  .out_tag = {.op = Op::kBarrier},
                  .receives = true,
                  .in_tag = {.op = Op::kBarrier}});
  }
  return finish(exchange.drive());
}

Result<std::unique_ptr<Transport>> Mesh::split(int color, int key) {
  const std::pair<int, int> own{color, key};
  std::vector<std::pair<int, int>> all(size());
  const std::vector<size_t> sizes(size(), sizeof own);
  const auto status = all_gather(std::as_bytes(std::span(&own, 1)), sizes,
                                 reinterpret_cast<std::byte*>(all.data()));
  if (!status) return status.error();
  std::vector<uint32_t> chosen;
  for (uint32_t member = 0; member < size(); ++member) {
    if (all[member].first == color) chosen.push_back(member);
  }
  std::ranges::stable_sort(chosen, {}, [&](uint32_t member) { return all[member].second; });
  for (uint32_t& member : chosen) member = members_[member];
  const uint32_t context = mix(mix(context_, ++splits_), static_cast<uint32_t>(color));
  return std::unique_ptr<Transport>(
      std::make_unique<Mesh>(fabric_, std::move(chosen), context, deadline_));
}

void Mesh::abort() {
  fabric_->aborted = true;
  fabric_->interrupt();
}

}  // namespace tandem::comm
