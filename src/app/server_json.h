// JSON that a server sent: it may have any shape, so nothing of it is taken for granted.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace tandem::app {

/// Null when the text is no JSON.
nlohmann::ordered_json parse_server_json(const std::string& text);

/// A member, or null: also of what is no object.
const nlohmann::ordered_json& member_of(const nlohmann::ordered_json& of, const char* name);

/// The first element, or null: also of what is no array.
const nlohmann::ordered_json& first_of(const nlohmann::ordered_json& of);

/// A member that is a whole number from 0, else 0.
uint64_t number_of(const nlohmann::ordered_json& of, const char* name);

/// A member that is a string, else an empty one.
std::string text_of(const nlohmann::ordered_json& of, const char* name);

}  // namespace tandem::app
