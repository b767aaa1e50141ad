#include "format/safetensors_writer.h"

#include <nlohmann/json.hpp>

namespace tandem::format {

SafetensorsWriter::~SafetensorsWriter() {
  std::error_code ignored;
  if (!part_.empty()) std::filesystem::remove(part_, ignored);
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path& path,
                                                    const std::string& name,
                                                    uint64_t rows,
                                                    uint64_t columns) {
  SafetensorsWriter writer;
  writer.path_ = path;
  writer.expected_ = rows * columns;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored) || std::filesystem::is_regular_file(path, ignored))
    writer.part_ = path.string() + ".part";
  writer.out_.open(writer.part_.empty() ? path : writer.part_, std::ios::binary);
  std::string header = nlohmann::json{{name,
                                       {{"dtype", "F32"},
                                        {"shape", {rows, columns}},
                                        {"data_offsets", {0, rows * columns * sizeof(float)}}}}}
                           .dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');  // keeps the data aligned
  const uint64_t length = header.size();
  writer.out_.write(reinterpret_cast<const char*>(&length), sizeof(length));
  writer.out_ << header;
  if (!writer.out_) return Error{ErrorCode::kIo, fmt::format("cannot write {}", path.string())};
  return writer;
}

void SafetensorsWriter::append(std::span<const float> values) {
  out_.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
  written_ += values.size();
}

Status SafetensorsWriter::finish() {
  out_.close();
  if (!out_) return Error{ErrorCode::kIo, fmt::format("could not write all of {}", path_.string())};
  if (written_ != expected_) {
    return Error{ErrorCode::kInvalid, fmt::format("{} got {} values, {} were announced",
                                                  path_.string(), written_, expected_)};
  }
  if (part_.empty()) return {};
  std::error_code error;
  std::filesystem::rename(part_, path_, error);
  if (error)
    return Error{ErrorCode::kIo,
                 fmt::format("cannot write {}: {}", path_.string(), error.message())};
  part_.clear();
  return {};
}

}  // namespace tandem::format
