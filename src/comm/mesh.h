// Mesh: the collectives over the links of a fabric. One of these for the whole group and one for
// each split of it, all over the same links.
#pragma once

#include <memory>
#include <vector>

#include "comm/exchange.h"
#include "comm/fabric.h"
#include "comm/transport.h"

namespace tandem::comm {

class Mesh final : public Transport {
 public:
  /// `members` are the fabric's ranks in this group, in group order.
  Mesh(std::shared_ptr<Fabric> fabric,  // shared with the groups split off
       std::vector<uint32_t> members,
       uint32_t context,
       std::chrono::milliseconds deadline);

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return static_cast<uint32_t>(members_.size()); }
  Status all_sum(void* data, size_t count, Dtype dtype) override;
  Status all_gather(std::span<const std::byte> part,
                    std::span<const size_t> sizes,
                    std::byte* out) override;
  Status reduce_scatter(const float* data,
                        size_t width,
                        std::span<const size_t> begins,
                        float* out) override;
  Status send(std::span<const std::byte> data, uint32_t to) override;
  Status recv(std::span<std::byte> data, uint32_t from) override;
  Result<std::unique_ptr<Transport>> split(int color, int key) override;
  void set_deadline(std::chrono::milliseconds deadline) override { deadline_ = deadline; }
  void abort() override;

  /// Returns when every rank has called it.
  Status barrier();

 private:
  struct Sum;
  Status alive() const;
  Status finish(Status status);
  Status run_sum(const Sum& sum);
  Status sum_by_parts(std::byte* data, size_t count, Dtype dtype);
  Status gather(std::span<const std::byte> part, std::span<const size_t> sizes, std::byte* out);
  std::span<std::byte> scratch(size_t bytes);

  std::shared_ptr<Fabric> fabric_;
  std::vector<uint32_t> members_;
  uint32_t rank_ = 0;
  uint32_t context_;
  uint32_t splits_ = 0;
  std::chrono::milliseconds deadline_;
  std::vector<std::byte> scratch_;
};

}  // namespace tandem::comm
