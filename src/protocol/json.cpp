#include "protocol/json.h"

#include <fmt/format.h>

#include <vector>

namespace tandem::protocol {
namespace {

Error invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message), {}}; }

/// Counts brackets and commas outside of strings. What is not JSON is left to the parser.
class Counter {
 public:
  explicit Counter(const JsonLimits& limits) : limits_(limits) {}

  Status count(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '"') {
        i = end_of_string(text, i + 1);
      } else if (c == '{' || c == '[') {
        open_.push_back({c == '{', 0});
        ++values_;
      } else if (c == '}' || c == ']') {
        if (!open_.empty()) open_.pop_back();
      } else if (c == ',') {
        ++values_;
        if (!open_.empty()) ++open_.back().commas;
      }
      if (open_.size() > limits_.depth) {
        return invalid(fmt::format("the JSON is nested more than {} deep", limits_.depth));
      }
      if (values_ > limits_.values) {
        return invalid(fmt::format("the JSON has more than {} values", limits_.values));
      }
      if (!open_.empty() && open_.back().is_object &&
          open_.back().commas >= limits_.members_of_object) {
        return invalid(fmt::format("the JSON has an object with more than {} members",
                                   limits_.members_of_object));
      }
    }
    return {};
  }

 private:
  struct Open {
    bool is_object;
    size_t commas;
  };

  static size_t end_of_string(std::string_view text, size_t i) {
    while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
    return i;
  }

  const JsonLimits& limits_;
  std::vector<Open> open_;
  size_t values_ = 0;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (const Status counted = Counter(limits).count(text); !counted) return counted.error();
  // The parser takes this byte for the end of its input, and would pass over what follows.
  if (text.find('\0') != std::string_view::npos) {
    return invalid("the body is not JSON: it holds a NUL byte");
  }
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    // The library's text is "[json.exception.…] what"; only the latter helps a client.
    std::string what = error.what();
    if (const size_t end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
    return invalid("the body is not JSON: " + shortened(lossy_utf8(what), 300));
  }
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string literal(std::string_view text) { return dump(Json(text)); }

std::string string_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string excerpt(const Json& json) {
  if (json.is_array() && json.size() > 8) return fmt::format("an array of {}", json.size());
  if (json.is_object() && json.size() > 4) return fmt::format("an object of {}", json.size());
  return shortened(dump(json), 60);
}

std::string shortened(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "…";
}

std::string lossy_utf8(std::string_view bytes) {
  const std::string text = literal(bytes);
  return Json::parse(text).get<std::string>();
}

}  // namespace tandem::protocol
