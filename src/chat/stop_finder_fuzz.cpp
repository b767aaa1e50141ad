// Any text under any stops, cut anywhere, ends at the same place and loses nothing.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/stop_finder.h"

namespace {

using namespace tandem::chat;

void require(bool condition) {
  if (!condition) std::abort();
}

std::pair<std::string, std::string> run(const std::shared_ptr<const StopRules>& rules,
                                        std::string_view text,
                                        size_t step) {
  StopFinder finder(rules);
  std::pair<std::string, std::string> seen;
  const auto take = [&seen](const StopFinder::Found& found) {
    require(seen.second.empty() || (found.text.empty() && !found.stop));
    seen.first += found.text;
    if (found.stop) seen.second = *found.stop;
  };
  for (size_t at = 0; at < text.size(); at += step) take(finder.feed(text.substr(at, step)));
  take(finder.flush());
  require(text.starts_with(seen.first + seen.second));
  require(!seen.second.empty() || seen.first == text);
  return seen;
}

}  // namespace

/// Input: a step, then lines: the stops, of which the last line is the text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  std::vector<std::string> stops;
  while (stops.size() < 8) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    stops.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  const auto rules =
      std::make_shared<const StopRules>(stops, std::vector<std::string>{"<think>", "</think>"});
  require(run(rules, rest, 1 + data[0] % 5) == run(rules, rest, rest.size() + 1));
  return 0;
}
