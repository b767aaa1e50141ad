#include "format/layouts/derived_checkpoint.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

namespace tandem::format {
namespace {

constexpr size_t kWorthThreads = size_t{1} << 24;  // elements: some 10 ms on one thread
constexpr size_t kMostThreads = 8;

class DerivedCheckpoint final : public Checkpoint {
 public:
  DerivedCheckpoint(std::shared_ptr<const Checkpoint> from, Derivations derivations)
      : from_(std::move(from)), derivations_(std::move(derivations)) {
    for (std::string& name : from_->names())
      if (!derivations_.hidden.contains(name)) names_.insert(std::move(name));
    for (const auto& [name, tensor] : derivations_.tensors) names_.insert(name);
  }

  const nlohmann::json& config() const override { return from_->config(); }
  std::vector<std::string> names() const override { return {names_.begin(), names_.end()}; }
  bool has(std::string_view name) const override { return names_.contains(name); }

  Result<Tensor> describe(std::string_view name) const override {
    const auto found = derivations_.tensors.find(name);
    if (found != derivations_.tensors.end())
      return Tensor{found->second.dtype, found->second.shape, {}, nullptr};
    if (has(name)) return from_->describe(name);
    return missing(name);
  }

  Result<Tensor> tensor(std::string_view name, std::optional<RowRange> rows) const override {
    const auto found = derivations_.tensors.find(name);
    if (found == derivations_.tensors.end())
      return has(name) ? from_->tensor(name, rows) : missing(name);
    const int64_t all = found->second.shape.empty() ? 0 : found->second.shape[0];
    if (rows)
      if (Status inside = check_rows(name, *rows, all); !inside) return inside.error();
    return found->second.make(rows.value_or(RowRange{0, all}));
  }

  Result<std::optional<Quantization>> quantization(std::string_view module) const override {
    const auto found = derivations_.quantizations.find(module);
    if (found != derivations_.quantizations.end()) return std::optional(found->second);
    const bool is_plain = !has(fmt::format("{}.scales", module));
    return is_plain ? std::optional<Quantization>() : from_->quantization(module);
  }

  uint64_t weight_bytes() const override { return from_->weight_bytes(); }
  std::filesystem::path directory() const override { return from_->directory(); }
  std::string notice() const override {
    const std::string below = from_->notice();
    if (below.empty() || derivations_.notice.empty()) return below + derivations_.notice;
    return below + "; " + derivations_.notice;
  }
  const Gguf* gguf() const override { return from_->gguf(); }

 private:
  /// The error of the checkpoint below, which knows where it lies.
  Result<Tensor> missing(std::string_view name) const {
    if (!from_->has(name)) return from_->describe(name);
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} is kept in another form than this model reads", name)};
  }

  const std::shared_ptr<const Checkpoint> from_;  // shared: as the interface hands it out
  const Derivations derivations_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace

std::shared_ptr<const Checkpoint> derived(std::shared_ptr<const Checkpoint> from,
                                          Derivations derivations) {
  if (derivations.is_empty()) return from;
  return std::make_shared<DerivedCheckpoint>(std::move(from), std::move(derivations));
}

NewTensor::NewTensor(Dtype dtype, std::vector<int64_t> shape) {
  size_t size = size_of(dtype);
  for (const int64_t axis : shape) size *= static_cast<size_t>(axis);
  // shared: with the tensor's views; not a vector, which would write zeros first
  const std::shared_ptr<std::byte[]> data(new std::byte[size]);
  bytes = {data.get(), size};
  tensor = {.dtype = dtype, .shape = std::move(shape), .bytes = bytes, .owner = data};
}

Status check_rows(std::string_view name, const RowRange& rows, int64_t all) {
  if (rows.begin >= 0 && rows.begin <= rows.end && rows.end <= all) return {};
  return Error{ErrorCode::kInvalid,
               fmt::format("{}: rows {} to {} of {}", name, rows.begin, rows.end, all)};
}

void over_threads(size_t items,
                  size_t elements,
                  const std::function<void(size_t begin, size_t end)>& part) {
  const size_t threads = std::min(
      {items, elements / kWorthThreads, kMostThreads, size_t{std::thread::hardware_concurrency()}});
  std::vector<std::future<void>> others;
  for (size_t i = 1; i < threads; ++i)
    others.push_back(
        std::async(std::launch::async, part, items * i / threads, items * (i + 1) / threads));
  part(0, threads > 1 ? items / threads : items);
  for (auto& other : others) other.get();
}

}  // namespace tandem::format
