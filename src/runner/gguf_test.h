// GGUF files made of other checkpoints, for tests.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "format/gguf/architecture.h"
#include "format/testdata/gguf_writer.h"

namespace tandem::runner {

/// Names in GGUF: those of the whole model, then each leaf of two layers.
inline std::vector<std::string> gguf_names(std::vector<std::string> whole,
                                           std::initializer_list<const char*> leaves) {
  for (int layer = 0; layer < 2; ++layer)
    for (const char* leaf : leaves) whole.push_back(fmt::format("blk.{}.{}.weight", layer, leaf));
  return whole;
}

/// Writes the tensors, which `from` holds in float32 under their names in Hugging Face's format.
inline void write_tensors(format::GgufWriter& writer,
                          const char* architecture,
                          const format::Checkpoint& from,
                          const std::vector<std::string>& names) {
  const auto table = format::find_gguf_architecture(architecture);
  REQUIRE(table);
  for (const std::string& name : names) {
    const auto tensor = from.tensor(format::hugging_face_name(name, *table));
    REQUIRE(tensor);
    writer.tensor(name, format::GgmlType::kF32, {tensor->shape.begin(), tensor->shape.end()},
                  {reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size()});
  }
}

/// What was written, opened as a file is.
inline std::shared_ptr<const format::Checkpoint> reopened(const format::GgufWriter& writer) {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("tandem-{}.gguf", ::getpid());
  std::ofstream(path, std::ios::binary) << writer.finish();
  auto opened = format::open_checkpoint(path);
  std::filesystem::remove(path);  // it stays mapped
  REQUIRE(opened);
  return *opened;
}

}  // namespace tandem::runner
