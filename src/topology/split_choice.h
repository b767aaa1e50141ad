// Which split `--split auto` takes, and why.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "topology/placement.h"

namespace tandem::topology {

/// What reaches from rank to rank.
enum class Link : uint8_t {
  kHost,    // ranks of one machine: a sum over them takes microseconds
  kFabric,  // between machines, about as fast: RDMA, NVLink
  kNetwork  // between machines, a tenth of a millisecond or more
};

struct SplitQuestion {
  ModelShape shape;
  uint32_t ranks = 1;
  std::span<const double> shares = {};
  Link link = Link::kHost;
  uint64_t weight_bytes = 0;  // of the whole model; 0: not known
};

struct SplitChoice {
  Split split = Split::kTensor;
  std::string reason;  // the rest of a sentence: "tensor, because …"
  bool alone = false;  // better one rank than those asked for
};

/// The first of these that applies:
///   1. one rank: tensor (nothing is cut)
///   2. equal ranks of one machine and a model so small that the sums of a tensor split would eat
///      half of what it gains: one rank alone, which can have all cores
///   3. fewer layers than ranks, or too many that share keys and values: tensor, the only way
///   4. some rank that has a share would get no query head, or no column of the MLP or the experts:
///      pipeline, since it would hold and compute next to nothing in a tensor split
///   5. ranks reach each other over a network: pipeline, since a tensor split waits for two sums a
///      layer and token, a pipeline for one hand-over a stage
///   6. copies of KV heads would more than double the cache: pipeline
///   7. otherwise tensor, where every rank works on every token
SplitChoice choose_split(const SplitQuestion& question);

/// "tensor" or "pipeline".
const char* name(Split split);

}  // namespace tandem::topology
