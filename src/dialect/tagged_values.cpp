#include "dialect/tagged_values.h"

#include "dialect/json_text.h"

namespace tandem::dialect {
namespace {

constexpr std::string_view kCdata = "<![CDATA[";
constexpr std::string_view kCdataEnd = "]]>";

/// After white space come one of the strings, or the answer's end. Reads nothing.
Task<bool> goes_on_with(Input& in, const std::vector<std::string>& strings) {
  const Input::Mark here(in);
  co_await skip_space(in);
  bool found = co_await looks_at(in, strings);
  found = found || in.saw_end();
  here.go_back();
  co_return found;
}

/// Past `close`, or in front of `close_all`, if the value ends here.
Task<bool> ends_here(Input& in, const TaggedValueStyle& style) {
  const Input::Mark here(in);
  bool found = co_await match(in, style.close);
  if (found) {
    found = co_await goes_on_with(in, style.followers);
    if (!found) here.go_back();
    co_return found;
  }
  if (style.close_all.empty() || style.block_end.empty()) co_return false;
  const std::vector<std::string> block_end(1, style.block_end);
  found = co_await match(in, style.close_all);
  if (found) found = co_await goes_on_with(in, block_end);
  here.go_back();
  co_return found;
}

/// The answer was cut off in what would end the value here.
Task<bool> is_cut_in_end(Input& in, const TaggedValueStyle& style) {
  bool is_cut = co_await is_cut_inside(in, style.close);
  if (!is_cut && !style.block_end.empty()) is_cut = co_await is_cut_inside(in, style.close_all);
  co_return is_cut;
}

/// A JSON string that is appended byte by byte, but for one line break at its end.
class GrowingString {
 public:
  GrowingString(std::string& out, bool has_line_breaks) : out_(out), holds_(has_line_breaks) {
    out_ += '"';
  }
  void add(char byte) {
    flush();
    if (holds_ && byte == '\n') {
      has_held_ = true;
    } else {
      append_escaped(out_, byte);
    }
  }
  void flush() {
    if (has_held_) append_escaped(out_, '\n');
    has_held_ = false;
  }
  void close() { out_ += '"'; }

 private:
  std::string& out_;
  bool holds_;
  bool has_held_ = false;
};

Task<bool> read_string(Input& in, const TaggedValueStyle& style, std::string& out) {
  GrowingString string(out, style.has_line_breaks);
  while (true) {
    const int c = co_await in.peek();
    if (c == Input::kEnd) break;
    if (c == static_cast<unsigned char>(style.close[0])) {
      const bool ended = co_await ends_here(in, style);
      if (ended) {
        string.close();
        co_return true;
      }
      const bool is_cut = co_await is_cut_in_end(in, style);
      if (is_cut) break;
    }
    in.skip();
    string.add(static_cast<char>(c));
  }
  // A line break there may be the one in front of the tag.
  if (!in.was_cut_off()) string.flush();
  string.close();
  co_return false;
}

Task<bool> read_text(Input& in, const TaggedValueStyle& style, std::string& text) {
  while (true) {
    const int c = co_await in.peek();
    if (c == Input::kEnd) co_return false;
    if (c == static_cast<unsigned char>(style.close[0])) {
      const bool ended = co_await ends_here(in, style);
      if (ended) co_return true;
      const bool is_cut = co_await is_cut_in_end(in, style);
      if (is_cut) co_return false;
    }
    in.skip();
    text += static_cast<char>(c);
  }
}

Task<bool> read_cdata(
    Input& in, const TaggedValueStyle& style, Kinds kinds, Schema schema, std::string& out) {
  std::string text;
  bool ok = false;
  while (!ok) {
    const int c = co_await in.peek();
    if (c == Input::kEnd) break;
    ok = co_await match(in, kCdataEnd);
    if (ok) break;
    const bool is_cut = co_await is_cut_inside(in, kCdataEnd);
    if (is_cut) break;
    in.skip();
    text += static_cast<char>(c);
  }
  out += typed_by(schema, text, kinds, style.untyped);
  if (!ok) co_return false;
  std::string rest;
  co_return co_await read_text(in, style, rest);
}

}  // namespace

Task<bool> read_tagged_value(
    Input& in, const TaggedValueStyle& style, Kinds kinds, Schema schema, std::string& out) {
  if (style.has_cdata) {
    const Input::Mark start(in);
    co_await skip_space(in);
    const bool is_cdata = co_await match(in, kCdata);
    if (is_cdata) co_return co_await read_cdata(in, style, kinds, schema, out);
    const bool is_cut = co_await is_cut_inside(in, kCdata);
    if (is_cut) {
      out += typed({}, kinds, style.untyped);
      co_return false;
    }
    start.go_back();
  }
  if (style.has_line_breaks) {
    const int c = co_await in.peek();
    if (c == '\n') in.skip();
  }
  if (kinds == kString) co_return co_await read_string(in, style, out);
  std::string text;
  const bool ok = co_await read_text(in, style, text);
  if (style.has_line_breaks && text.ends_with('\n')) text.pop_back();
  const bool is_trimmed = kinds == 0 && !style.has_line_breaks;
  out +=
      typed_by(schema, is_trimmed ? trimmed(text) : std::string_view(text), kinds, style.untyped);
  co_return ok;
}

}  // namespace tandem::dialect
