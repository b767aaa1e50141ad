#include "format/safetensors.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "format/checkpoint.h"
#include "format/safetensors_checkpoint.h"

namespace tandem::format {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string file_of(const Json& header, const std::string& data) {
  const std::string text = header.dump();
  const uint64_t length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  return file + text + data;
}

Json entry(const char* dtype, const std::vector<int>& shape, uint64_t begin, uint64_t end) {
  return {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, end}}};
}

/// A model folder that removes itself.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fmt::format("tandem-st-{}", ::getpid())) {
    fs::remove_all(path_);
    fs::create_directory(path_);
    write(
        "config.json",
        R"({"model_type": "llama", "quantization": {"bits": 4, "group_size": 32, "b": {"bits": 8}}})");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST_CASE("safetensors: Python's Infinity in a config is the largest number, but not in a text") {
  const Folder folder;
  folder.write("config.json", R"({"limit": [0.0, Infinity], "a": "Infinity \"Infinity"})");
  folder.write("model.safetensors", file_of({{"w", entry("F32", {1}, 0, 4)}}, "1234"));
  const auto checkpoint = open_safetensors_checkpoint(folder.path());
  REQUIRE(checkpoint.has_value());
  CHECK((*checkpoint)->config()["limit"][1].get<double>() == std::numeric_limits<double>::max());
  CHECK((*checkpoint)->config()["a"] == "Infinity \"Infinity");
}

TEST_CASE("safetensors: entries that do not fit type, shape or file are refused with their name") {
  const auto refuses = [](const Json& header, uint64_t data_bytes) {
    const auto parsed = parse_safetensors_header(header.dump(), 100, 100 + data_bytes);
    return !parsed && parsed.error().message.find("w") != std::string::npos;
  };
  CHECK(refuses({{"w", entry("F32", {2}, 0, 8)}}, 7));             // truncated
  CHECK(refuses({{"w", entry("F32", {2}, 0, 4)}}, 8));             // too few bytes for the shape
  CHECK(refuses({{"w", entry("F32", {2}, 8, 0)}}, 8));             // backwards
  CHECK(refuses({{"w", entry("Q7", {2}, 0, 8)}}, 8));              // unknown type
  CHECK(refuses({{"w", {{"dtype", "F32"}, {"shape", {2}}}}}, 8));  // no offsets
  CHECK(refuses({{"w", entry("F32", {1 << 30, 1 << 30, 1 << 30}, 0, 8)}}, 8));  // overflow
  CHECK_FALSE(parse_safetensors_header("[]", 8, 8));
  CHECK_FALSE(parse_safetensors_header("{", 8, 8));
}

TEST_CASE("safetensors: tensors that share bytes are refused with both names, gaps are not") {
  const auto parse = [](const Json& header) {
    return parse_safetensors_header(header.dump(), 100, 164);
  };
  const auto overlapping =
      parse({{"b", entry("F32", {4}, 0, 16)}, {"a", entry("F32", {4}, 12, 28)}});
  REQUIRE_FALSE(overlapping);
  CHECK(overlapping.error().code == ErrorCode::kCorrupt);
  CHECK(overlapping.error().message.find("b and a overlap: data at 0 to 16, and at 12 to 28") !=
        std::string::npos);
  CHECK_FALSE(parse({{"a", entry("F32", {4}, 0, 16)}, {"b", entry("F32", {4}, 0, 16)}}));
  CHECK_FALSE(parse({{"a", entry("F32", {8}, 0, 32)}, {"b", entry("F32", {1}, 8, 12)}}));
  CHECK(parse({{"a", entry("F32", {4}, 48, 64)}, {"b", entry("F32", {4}, 8, 24)}}));
  CHECK(parse({{"a", entry("F32", {4}, 0, 16)},
               {"none", entry("F32", {0}, 8, 8)},
               {"b", entry("F32", {4}, 16, 32)}}));
}

TEST_CASE("safetensors folder: data of any offset is read, as writers do not pad it") {
  const Folder folder;
  folder.write("model.safetensors",
               file_of({{"a", entry("I8", {1}, 0, 1)}, {"b", entry("I32", {2}, 1, 9)}},
                       std::string("x\1\0\0\0\2\0\0\0", 9)));
  const auto opened = open_checkpoint(folder.path());
  REQUIRE(opened);
  const auto tensor = (*opened)->tensor("b");
  REQUIRE(tensor);
  int32_t last = 0;
  std::memcpy(&last, tensor->bytes.data() + 4, 4);
  CHECK(last == 2);
}

TEST_CASE("safetensors folder: rows of a tensor are mapped alone") {
  const Folder folder;
  folder.write("model.safetensors",
               file_of({{"a", entry("I32", {3, 1}, 0, 12)}, {"__metadata__", {{"format", "mlx"}}}},
                       std::string("\1\0\0\0\2\0\0\0\3\0\0\0", 12)));
  const auto opened = open_checkpoint(folder.path());
  REQUIRE(opened);
  const auto rows = (*opened)->tensor("a", RowRange{1, 3});
  REQUIRE(rows);
  CHECK(rows->shape == std::vector<int64_t>{2, 1});
  int32_t first = 0;
  std::memcpy(&first, rows->bytes.data(), 4);
  CHECK(first == 2);
  CHECK_FALSE((*opened)->tensor("a", RowRange{1, 4}));
  CHECK((*opened)->weight_bytes() == 12);
}

TEST_CASE(
    "safetensors folder: shards are found with and without an index, and a missing one is named") {
  const Folder folder;
  folder.write("model-00001-of-00002.safetensors",
               file_of({{"a", entry("I32", {1}, 0, 4)}}, "aaaa"));
  folder.write("model-00002-of-00002.safetensors",
               file_of({{"b", entry("I32", {1}, 0, 4)}}, "bbbb"));
  REQUIRE(open_checkpoint(folder.path()));
  CHECK((*open_checkpoint(folder.path()))->names() == std::vector<std::string>{"a", "b"});

  folder.write(
      "model.safetensors.index.json",
      R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00003-of-00002.safetensors"}})");
  const auto missing = open_checkpoint(folder.path());
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message.find("model-00003-of-00002.safetensors") != std::string::npos);

  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "../../etc/passwd"}})");
  CHECK(open_checkpoint(folder.path()).error().code == ErrorCode::kCorrupt);

  // An index whose files are all gone is stale: what lies there is taken.
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "old.safetensors"}})");
  CHECK((*open_checkpoint(folder.path()))->has("b"));
}

TEST_CASE("safetensors folder: damaged files are errors that name the file") {
  const Folder folder;
  CHECK(open_checkpoint(folder.path()).error().code == ErrorCode::kNotFound);
  for (const std::string& bytes : {std::string(), std::string(7, '\0'), std::string(8, '\xff'),
                                   file_of({{"a", entry("I32", {1}, 0, 4)}}, "aa")}) {
    folder.write("model.safetensors", bytes);
    const auto opened = open_checkpoint(folder.path());
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ErrorCode::kCorrupt);
    CHECK(opened.error().message.find("model.safetensors") != std::string::npos);
  }
}

TEST_CASE("safetensors folder: quantization is read per module, then for the whole model") {
  const Folder folder;
  const auto scales = [](const char* module) { return std::string(module) + ".scales"; };
  folder.write("model.safetensors", file_of({{scales("a"), entry("I32", {1}, 0, 4)},
                                             {scales("b"), entry("I32", {1}, 4, 8)},
                                             {"c.weight", entry("I32", {1}, 8, 12)}},
                                            "aaaabbbbcccc"));
  const auto opened = open_checkpoint(folder.path());
  REQUIRE(opened);
  CHECK(**(*opened)->quantization("a") == Quantization{4, 32});
  CHECK(**(*opened)->quantization("b") == Quantization{8, 64});
  CHECK_FALSE((*opened)->quantization("c")->has_value());
}

TEST_CASE("quantization: a module's true means that of the whole, its false that it is dense") {
  const auto read = [](const char* own, bool has_scales) {
    return quantization_from_config(
        {{"quantization", {{"bits", 8}, {"group_size", 32}, {"model.a", Json::parse(own)}}}},
        "model.a", has_scales);
  };
  REQUIRE(read("true", true));
  CHECK(**read("true", true) == Quantization{8, 32});
  REQUIRE(read("false", false));
  CHECK_FALSE(read("false", false)->has_value());
}

TEST_CASE("quantization: a mode has bits and groups of its own, and only a module's own entry") {
  const auto read = [](const char* quantization) {
    return quantization_from_config({{"quantization", Json::parse(quantization)}}, "a", true);
  };
  CHECK(**read(R"({"mode": "mxfp4"})") == Quantization{4, 32, QuantMode::kMxfp4});
  CHECK(**read(R"({"mode": "mxfp8", "bits": 8})") == Quantization{8, 32, QuantMode::kMxfp8});
  CHECK(**read(R"({"mode": "nvfp4", "group_size": 16})") == Quantization{4, 16, QuantMode::kNvfp4});
  CHECK(**read(R"({"mode": "mxfp4", "a": {"bits": 8}})") == Quantization{8, 64});
  for (const char* wrong : {R"({"mode": "mxfp4", "group_size": 64})",
                            R"({"mode": "nvfp4", "bits": 8})", R"({"mode": "mxfp8", "bits": 4})"})
    CHECK(read(wrong).error().code == ErrorCode::kUnsupported);
}

TEST_CASE("quantization of a wrong type or out of range is refused by name, with what may be") {
  const auto refused = [](const char* quantization, const char* word) {
    const auto read =
        quantization_from_config({{"quantization", Json::parse(quantization)}}, "model.a", true);
    REQUIRE_FALSE(read);
    CAPTURE(read.error().message);
    CHECK(read.error().message.find(word) != std::string::npos);
    CHECK(read.error().message.find("model.a") != std::string::npos);
  };
  for (const char* value : {"0", "-64", "48", "4294967296", "4294967360", "18446744073709551615",
                            "1e+30", "\"64\"", "64.5", "64.0", "null", "true", "[64]"}) {
    CAPTURE(value);
    const std::string size = fmt::format(R"({{"bits": 4, "group_size": {}}})", value);
    refused(size.c_str(), "quantization.group_size of model.a should be one of 32, 64, 128, is ");
    refused(fmt::format(R"({{"bits": 4, "group_size": 64, "model.a": {}}})", size).c_str(), value);
  }
  for (const char* value : {"false", "null", "4", "\"4\"", "[4, 64]"}) {
    CAPTURE(value);
    refused(fmt::format(R"({{"bits": 4, "group_size": 64, "model.a": {}}})", value).c_str(),
            "quantization of model.a should be an object");
  }
  for (const char* value : {"0", "-4", "7", "16", "4294967300", "\"4\"", "4.5", "null"}) {
    CAPTURE(value);
    refused(fmt::format(R"({{"bits": {}, "group_size": 64}})", value).c_str(),
            "quantization.bits of model.a should be one of 2, 3, 4, 5, 6, 8, is ");
  }
  for (const char* value : {"4", "null", "[\"affine\"]", "\"mxfp6\""}) {
    refused(fmt::format(R"({{"mode": {}}})", value).c_str(), "quantization.mode");
    refused(fmt::format(R"({{"model.a": {{"mode": {}}}}})", value).c_str(), "quantization.mode");
  }
}

}  // namespace
}  // namespace tandem::format
