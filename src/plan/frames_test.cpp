#include "plan/frames.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "plan/codec.h"
#include "plan/samples_test.h"

namespace tandem::plan {
namespace {

TEST_CASE("frames: each kind survives the trip and encodes to the same bytes") {
  std::set<std::string> names;
  for (const Frame& frame : samples::frames()) {
    CAPTURE(name(frame));
    names.insert(name(frame));
    const Bytes bytes = encode(frame);
    const auto decoded = decode_frame(bytes);
    REQUIRE(decoded);
    CHECK(*decoded == frame);
    CHECK(encode(*decoded) == bytes);
  }
  CHECK(names.size() == std::variant_size_v<Frame>);
  CHECK(names.count("unknown") == 0);
}

TEST_CASE("frames: every proper prefix is corrupt") {
  for (const Frame& frame : samples::frames()) {
    CAPTURE(name(frame));
    const Bytes bytes = encode(frame);
    for (size_t size = 0; size < bytes.size(); ++size) {
      CAPTURE(size);
      const auto cut = decode_frame(std::span(bytes).first(size));
      REQUIRE_FALSE(cut);
      CHECK(cut.error().code == ErrorCode::kCorrupt);
    }
  }
}

TEST_CASE("frames: an unknown version or kind is refused with its number") {
  Bytes bytes = encode(Frame(Drain{}));
  bytes[1] = std::byte{200};
  CHECK(decode_frame(bytes).error() ==
        Error{ErrorCode::kUnsupported, "[plan.frame] unknown frame kind 200"});
  bytes[0] = std::byte{1};
  CHECK(decode_frame(bytes).error() ==
        Error{ErrorCode::kUnsupported, "[plan.frame] format version 1, this build reads 6"});
}

TEST_CASE("frames: Execute encodes alike with and without a copy of the plan") {
  CHECK(encode_execute(samples::plan()) == encode(Frame(Execute{samples::plan()})));
}

TEST_CASE("frames: every error code there is travels") {
  CHECK(std::string(name(static_cast<ErrorCode>(static_cast<int>(ErrorCode::kInternal) + 1))) ==
        "unknown");  // kInternal is the last; the codec's bound names it
}

// The golden file holds every sample frame, each after its length (u32). It changes only together
// with kFormatVersion.
TEST_CASE("frames: the bytes of version 6 are those of the golden file") {
  Writer all;
  for (const Frame& frame : samples::frames()) all(encode(frame));
  std::ifstream in(TANDEM_SOURCE_DIR "/src/plan/testdata/frames_v6.bin", std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(in), {}};
  const Bytes& bytes = all.bytes();
  CHECK(kFormatVersion == 6);
  const bool same =
      golden == std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CHECK(same);
  if (!same) {
    std::ofstream("frames_v6.bin.actual", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
}

}  // namespace
}  // namespace tandem::plan
