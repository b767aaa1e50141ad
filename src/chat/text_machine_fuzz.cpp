// Any text under any stops, cut anywhere, gives the same pieces and loses nothing.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/text_machine.h"

namespace {

using namespace tandem::chat;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Everything in order: text by state, markers, the stop.
std::string record(const std::vector<Piece>& pieces, size_t& position, std::string last = {}) {
  std::string out = std::move(last);
  for (const Piece& piece : pieces) {
    require(piece.begin == position);
    position = piece.end;
    for (const char c : piece.text) {
      out += static_cast<char>('0' + static_cast<int>(piece.kind));
      out += static_cast<char>('0' + piece.state);
      out += c;
    }
  }
  return out;
}

std::string run(const std::shared_ptr<const TextRules>& rules, std::string_view text, size_t step) {
  TextMachine machine(rules, 0);
  size_t position = 0;
  std::string out;
  for (size_t at = 0; at < text.size(); at += step) {
    out = record(machine.feed(text.substr(at, step)), position, std::move(out));
  }
  out = record(machine.flush(), position, std::move(out));
  require(machine.stopped() || position == text.size());
  return out;
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
  const auto rules = std::make_shared<const TextRules>(
      std::vector<std::vector<TextRules::Marker>>{{{"<think>", 1}}, {{"</think>", 0}}}, stops);
  require(run(rules, rest, 1 + data[0] % 5) == run(rules, rest, rest.size() + 1));
  return 0;
}
