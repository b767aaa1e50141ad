#include "tensor/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "format/float_type.h"
#include "kernels/scalar_type.h"
#include "tensor/dtype.h"

namespace tandem::tensor {

struct Weights::Shared {
  std::shared_ptr<const format::Checkpoint>
      checkpoint;  // shared: the head's tokenizer may hold it too
  Context context;
  topology::ModelShape shape;
  topology::Part part;
  bool is_in_float32 = false;
  std::mutex used_mutex;
  std::set<std::string, std::less<>> used;  // guarded by used_mutex
  std::vector<std::string> skipped;         // prefixes
  uint64_t bytes = 0;
};

namespace {

template <class T>
T checked(Result<T> result) {
  if (!result) throw LoadFailure(result.error());
  return std::move(result).value();
}

/// Buffers that some exporters keep beside the weights and that every loader recomputes.
bool is_recomputed(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

/// Elements of a tensor of one axis, perhaps beside axes of 1; below 0 for another.
int64_t length_of(const std::vector<int64_t>& shape) {
  int64_t all = 1, longest = 1;
  for (const int64_t axis : shape) {
    all *= axis;
    longest = std::max(longest, axis);
  }
  return shape.empty() || all != longest ? -1 : all;
}

}  // namespace

Weights::Weights(std::shared_ptr<const format::Checkpoint> checkpoint,
                 Context context,
                 topology::ModelShape shape,
                 topology::Part part)
    : shared_(std::make_shared<Shared>()) {
  shared_->is_in_float32 = format::is_in_float32(*checkpoint);
  shared_->checkpoint = std::move(checkpoint);
  shared_->context = std::move(context);
  shared_->shape = shape;
  shared_->part = part;
}

Weights Weights::operator/(std::string_view name) const { return {shared_, name_of(name)}; }

std::string Weights::name_of(std::string_view leaf) const {
  return path_.empty() ? std::string(leaf) : fmt::format("{}.{}", path_, leaf);
}

const Context& Weights::context() const { return shared_->context; }
const topology::ModelShape& Weights::shape() const { return shared_->shape; }
const topology::Part& Weights::part() const { return shared_->part; }

bool Weights::is_in_float32() const { return shared_->is_in_float32; }

bool Weights::has(std::string_view leaf) const { return shared_->checkpoint->has(name_of(leaf)); }

std::optional<format::Quantization> Weights::quantization() const {
  return checked(shared_->checkpoint->quantization(path_));
}

format::Tensor Weights::raw(std::string_view leaf, std::optional<topology::Range> rows) const {
  std::string name = name_of(leaf);
  std::optional<format::RowRange> range;
  if (rows) range = format::RowRange{rows->begin, rows->end};
  auto tensor = checked(shared_->checkpoint->tensor(name, range));
  const std::lock_guard lock(shared_->used_mutex);
  shared_->used.insert(std::move(name));
  return tensor;
}

std::vector<float> Weights::vector(std::string_view leaf,
                                   std::optional<topology::Range> range) const {
  const int64_t all = length_of(checked(shared_->checkpoint->describe(name_of(leaf))).shape);
  if (all < 0 || (range && int64_t{range->end} > all))
    throw LoadFailure(
        {ErrorCode::kCorrupt, fmt::format("{} should be a vector of {} numbers", name_of(leaf),
                                          range ? fmt::format("{} or more", range->end) : "some")});
  const format::Tensor tensor = raw(leaf);
  const topology::Range wanted = range.value_or(topology::Range{0, static_cast<uint32_t>(all)});
  const kernels::ScalarType type = scalar_type(tensor.dtype);
  std::vector<float> out(wanted.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = kernels::load_scalar(tensor.bytes.data(), type, wanted.begin + i);
  if (!std::ranges::all_of(out, [](float x) { return std::isfinite(x); }))
    throw LoadFailure(
        {ErrorCode::kCorrupt,
         fmt::format("{} holds a number that is NaN or infinite: the file is damaged, "
                     "fetch or convert the model again",
                     name_of(leaf))});
  count_bytes(out.size() * sizeof(float));
  return out;
}

void Weights::skip() const { shared_->skipped.push_back(path_ + "."); }

void Weights::skip(std::string_view leaf) const { shared_->used.insert(name_of(leaf)); }

Status Weights::check_all_used() const {
  std::vector<std::string> unused;
  for (const std::string& name : shared_->checkpoint->names()) {
    const auto is_below = [&](const std::string& prefix) { return name.starts_with(prefix); };
    if (shared_->used.contains(name) || is_recomputed(name) ||
        std::ranges::any_of(shared_->skipped, is_below))
      continue;
    unused.push_back(name);
  }
  if (unused.empty()) return {};
  const size_t count = unused.size();
  if (count > 4) unused.resize(4);
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("the checkpoint has {} tensors that its model_type does not use, such as {}",
                  count, fmt::join(unused, ", "))};
}

void Weights::count_bytes(uint64_t bytes) const { shared_->bytes += bytes; }
uint64_t Weights::bytes() const { return shared_->bytes; }

}  // namespace tandem::tensor
