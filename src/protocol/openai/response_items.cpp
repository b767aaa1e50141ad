#include "protocol/openai/response_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "protocol/query.h"

namespace tandem::protocol::openai {
namespace {

constexpr size_t kIdDigits = 24;  // of a response's id

const char* id_prefix(const std::string& type) {
  static constexpr std::pair<const char*, const char*> kPrefixes[] = {
      {"message", "msg"},          {"reasoning", "rs"},
      {"function_call", "fc"},     {"function_call_output", "fco"},
      {"custom_tool_call", "ctc"}, {"custom_tool_call_output", "ctco"}};
  for (const auto& [name, prefix] : kPrefixes) {
    if (type == name) return prefix;
  }
  return "item";
}

std::string digits_of(const std::string& response) {
  return response.substr(std::min(response.find('_') + 1, response.size()));
}

/// The type of parts that say none.
const char* part_type(const std::string& type, const std::string& role) {
  if (type == "reasoning") return "reasoning_text";
  return role == "assistant" ? "output_text" : "input_text";
}

/// A text as a part; parts with their type.
Json normal_part(const Json& part, const std::string& type) {
  if (part.is_object()) {
    Json out = part;
    if (string_in(out, "type").empty()) out["type"] = type;
    return out;
  }
  Json out{{"type", type}, {"text", part}};
  if (type == "output_text") out["annotations"] = Json::array();
  return out;
}

/// A text, or a list of texts and parts, as a list of parts; null for what is neither.
Json normal_parts(const Json& content, const std::string& type) {
  if (content.is_string()) return Json::array({normal_part(content, type)});
  if (!content.is_array()) return nullptr;
  Json out = Json::array();
  for (const Json& part : content) {
    if (part.is_string() || part.is_object()) out.push_back(normal_part(part, type));
  }
  return out;
}

Json normal_item(const Json& item, const std::string& id) {
  if (!item.is_object()) return item;
  std::string type = string_in(item, "type");
  if (type.empty()) type = "message";
  Json out;
  const std::string given = string_in(item, "id");
  out["id"] = given.empty() ? fmt::format("{}_{}", id_prefix(type), id) : given;
  out["type"] = type;
  for (const auto& [name, value] : item.items()) {
    if (name == "content") {
      out[name] = normal_parts(value, part_type(type, string_in(item, "role")));
    } else if (name == "arguments" && !value.is_string() && !value.is_null()) {
      out[name] = dump(value);
    } else if (name != "id" && name != "type" && !value.is_null()) {
      out[name] = value;
    }
  }
  if (!out.contains("status") && type != "reasoning") out["status"] = "completed";
  return out;
}

/// What an item says, whatever the order of its members: clients write what is absent as null.
nlohmann::json said(const Json& value) {
  if (value.is_array()) {
    nlohmann::json out = nlohmann::json::array();
    for (const Json& element : value) out.push_back(said(element));
    return out;
  }
  if (!value.is_object()) return value;
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [name, member] : value.items()) {
    if (!member.is_null()) out[name] = said(member);
  }
  return out;
}

Result<size_t> place_of(const std::vector<const Json*>& items,
                        const std::string& id,
                        const char* name) {
  const auto found =
      std::ranges::find_if(items, [&](const Json* item) { return string_in(*item, "id") == id; });
  if (found != items.end()) return static_cast<size_t>(found - items.begin());
  return Error{ErrorCode::kInvalid,
               fmt::format("'{}' must be the id of an item of this list, not {}", name,
                           literal(shortened(id, 80))),
               name};
}

/// Items by their ids, those of further responses once they are asked for.
class NamedItems {
 public:
  struct Named {
    const Json* item = nullptr;
    size_t bytes = 0;  // as JSON
  };

  NamedItems(const Json& history, const ItemsOf& items_of) : items_of_(items_of) { add(history); }

  /// Null: no such item.
  Result<const Named*> find(const std::string& id) {
    if (const Named* known = here(id)) return known;
    const std::string response = response_of_item(id);
    if (response.empty() || !asked_.insert(response).second) return nullptr;
    auto items = items_of_(response);
    if (!items) return items.error();
    add(read_.emplace_back(std::move(*items)));
    return here(id);
  }

 private:
  /// Of several with one id the first counts.
  void add(const Json& items) {
    for (const Json& item : items) {
      if (item.is_object()) by_id_.try_emplace(string_in(item, "id"), Named{.item = &item});
    }
  }

  const Named* here(const std::string& id) {
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) return nullptr;
    Named& named = found->second;
    if (named.bytes == 0) named.bytes = dump(*named.item).size();
    return &named;
  }

  const ItemsOf& items_of_;
  std::list<Json> read_;
  std::set<std::string> asked_;
  std::unordered_map<std::string, Named> by_id_;
};

}  // namespace

Json normal_items(const Json& input, const std::string& response) {
  if (input.is_string()) {
    return normal_items(Json::array({Json{{"role", "user"}, {"content", input}}}), response);
  }
  Json out = Json::array();
  if (!input.is_array()) return out;
  const std::string digits = digits_of(response);
  for (size_t i = 0; i < input.size(); ++i) {
    out.push_back(normal_item(input[i], fmt::format("{}i{:02x}", digits, i)));
  }
  return out;
}

bool is_item(const Json& item) {
  return item.is_object() && item.contains("id") && item["id"].is_string();
}

bool are_items(const Json& list) { return list.is_array() && std::ranges::all_of(list, is_item); }

std::vector<size_t> clashing_items(const Json& items, const Json& there) {
  std::unordered_map<std::string, const Json*> known;
  for (const Json& item : there) known.try_emplace(string_in(item, "id"), &item);
  std::vector<size_t> places;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto [before, added] = known.try_emplace(string_in(items[i], "id"), &items[i]);
    if (!added && said(items[i]) != said(*before->second)) places.push_back(i);
  }
  return places;
}

std::string response_of_item(std::string_view item) {
  const size_t line = item.find('_');
  if (line == std::string_view::npos) return {};
  const std::string_view digits = item.substr(line + 1);
  const bool ours =
      digits.size() > kIdDigits &&
      digits.substr(0, kIdDigits).find_first_not_of("0123456789abcdef") == digits.npos;
  return ours ? "resp_" + std::string(digits.substr(0, kIdDigits)) : std::string();
}

bool is_reference(const Json& item) {
  if (!item.is_object() || !item.contains("id")) return false;
  const std::string type = string_in(item, "type");
  return type == "item_reference" || (type.empty() && item.size() == 1);
}

Status resolve_references(Json& input,
                          const Json& history,
                          size_t max_bytes,
                          const ItemsOf& items_of) {
  if (!input.is_array()) return {};
  NamedItems known(history, items_of);
  size_t bytes = 0;
  for (Json& item : input) {
    if (!is_reference(item)) continue;
    const auto found = known.find(string_in(item, "id"));
    if (!found) return found.error();
    if (*found == nullptr) return {};
    bytes += (*found)->bytes;
    if (bytes > max_bytes) {
      return Error{ErrorCode::kTooLarge,
                   fmt::format("the items that 'input' refers to have more than {} bytes: refer to "
                               "fewer",
                               max_bytes),
                   "input"};
    }
    item = *(*found)->item;
  }
  return {};
}

Result<Page> read_page(const std::string& query) {
  Page page;
  const auto limit = query_number(query, "limit", 1, 100, 20);
  if (!limit) return limit.error();
  page.limit = static_cast<size_t>(*limit);
  const std::string order = query_value(query, "order").value_or("desc");
  if (order != "asc" && order != "desc") {
    return Error{
        ErrorCode::kInvalid,
        fmt::format(R"('order' must be "asc" or "desc", not {})", literal(shortened(order, 60))),
        "order"};
  }
  page.ascending = order == "asc";
  page.after = query_value(query, "after").value_or("");
  page.before = query_value(query, "before").value_or("");
  return page;
}

Result<Json> page_of(const Json& items, const Page& page) {
  std::vector<const Json*> list;
  for (const Json& item : items) list.push_back(&item);
  if (!page.ascending) std::ranges::reverse(list);
  size_t begin = 0;
  size_t end = list.size();
  if (!page.after.empty()) {
    const auto place = place_of(list, page.after, "after");
    if (!place) return place.error();
    begin = *place + 1;
  }
  if (!page.before.empty()) {
    const auto place = place_of(list, page.before, "before");
    if (!place) return place.error();
    end = *place;
  }
  Json data = Json::array();
  for (size_t i = begin; i < end && data.size() < page.limit; ++i) data.push_back(*list[i]);
  Json out{{"object", "list"}};
  out["first_id"] = data.empty() ? Json(nullptr) : data.front()["id"];
  out["last_id"] = data.empty() ? Json(nullptr) : data.back()["id"];
  out["has_more"] = begin + data.size() < end;
  out["data"] = std::move(data);
  return out;
}

}  // namespace tandem::protocol::openai
