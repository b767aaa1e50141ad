// What GET /v1/status says, for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tandem::app {

/// Lines, each ended. `status` is the body of a server at `url`; members it lacks read as zero.
std::string status_text(const std::string& url, const nlohmann::ordered_json& status);

}  // namespace tandem::app
