// Runs a fuzz target over its corpus, and over cut and mutated copies of it, as an ordinary test.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

void run(const Bytes& bytes) { LLVMFuzzerTestOneInput(bytes.data(), bytes.size()); }

void run_mutations(const Bytes& seed, std::mt19937& random, int count) {
  for (int i = 0; i < count; ++i) {
    Bytes bytes = seed;
    if (i % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    const size_t flips = 1 + random() % 4;
    for (size_t flip = 0; flip < flips && !bytes.empty(); ++flip) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    run(bytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937 random(1);
  int files = 0;
  run({});
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::exists(argv[i])) continue;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(entry.path(), std::ios::binary);
      const Bytes bytes{std::istreambuf_iterator<char>(in), {}};
      run(bytes);
      run_mutations(bytes, random, 500);
      ++files;
    }
  }
  run_mutations(Bytes(256, 0x20), random, 2000);
  std::printf("replayed %d corpus files with mutations\n", files);
  return 0;
}
