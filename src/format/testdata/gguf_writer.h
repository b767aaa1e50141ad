// Writes small GGUF files for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "format/gguf.h"

namespace tandem::format {

class GgufWriter {
 public:
  void number(const std::string& key, uint32_t value) { entry(key, 4), put(value); }
  void text(const std::string& key, const std::string& value) {
    entry(key, 8), string(metadata_, value);
  }
  void texts(const std::string& key, const std::vector<std::string>& values) {
    entry(key, 9), put(uint32_t{8}), put(uint64_t{values.size()});
    for (const std::string& value : values) string(metadata_, value);
  }

  /// `shape` is row-major; `data` is stored as it is.
  void tensor(const std::string& name,
              GgmlType type,
              const std::vector<uint64_t>& shape,
              const std::string& data) {
    string(infos_, name);
    append(infos_, static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i-- > 0;) append(infos_, shape[i]);
    append(infos_, static_cast<uint32_t>(type));
    append(infos_, uint64_t{data_.size()});
    data_ += data;
    data_.resize((data_.size() + 31) / 32 * 32);
    ++tensors_;
  }

  std::string finish() const {
    std::string file = "GGUF";
    append(file, uint32_t{3});
    append(file, tensors_);
    append(file, entries_);
    file += metadata_ + infos_;
    if (!data_.empty()) file.resize((file.size() + 31) / 32 * 32);
    return file + data_;
  }

 private:
  template <class T>
  static void append(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  static void string(std::string& to, const std::string& value) {
    append(to, uint64_t{value.size()});
    to += value;
  }
  template <class T>
  void put(T value) {
    append(metadata_, value);
  }
  void entry(const std::string& key, uint32_t type) {
    string(metadata_, key);
    put(type);
    ++entries_;
  }

  std::string metadata_;
  std::string infos_;
  std::string data_;
  uint64_t entries_ = 0;
  uint64_t tensors_ = 0;
};

}  // namespace tandem::format
