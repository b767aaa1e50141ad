#include "app/rank/checkpoint_model.h"

#include <doctest/doctest.h>

#include "app/header_test.h"

namespace tandem::app {
namespace {

using format::Dtype;

Header two_tensors(int hidden = 4) {
  nlohmann::json config = {{"hidden_size", hidden}};
  Header header(std::move(config));
  header.put("a", Dtype::kF32, {4, 6}).put("b", Dtype::kF16, {24});
  return header;
}

TEST_CASE("checkpoint model: the fingerprint tells types, shapes, names and sizes apart") {
  const std::string whole = fingerprint_of(two_tensors());
  CHECK(whole == fingerprint_of(two_tensors()));
  CHECK(whole != fingerprint_of(two_tensors().put("a", Dtype::kF32, {6, 4})));  // as many bytes
  CHECK(whole != fingerprint_of(two_tensors().put("b", Dtype::kBF16, {24})));
  CHECK(whole != fingerprint_of(two_tensors().put("b", Dtype::kF16, {2, 4})));
  CHECK(whole != fingerprint_of(two_tensors().put("c", Dtype::kF16, {1})));
  CHECK(whole != fingerprint_of(two_tensors(5)));
}

}  // namespace
}  // namespace tandem::app
