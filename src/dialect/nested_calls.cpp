#include "dialect/nested_calls.h"

#include <utility>

#include "dialect/call_builder.h"
#include "dialect/tagged_calls.h"
#include "dialect/typing.h"

namespace tandem::dialect {
namespace {

constexpr size_t kLongestElementTag = 512;
constexpr int kDeepestElement = 32;

}  // namespace

NestedCalls::NestedCalls(NestedCallMarkers markers)
    : markers_(std::move(markers)),
      open_(markers_.mark + "<"),
      close_(markers_.mark + "</"),
      call_open_(open_ + markers_.call),
      call_close_(close_ + markers_.call + ">"),
      end_(close_ + markers_.block + ">"),
      opens_({open_}),
      closes_({close_}),
      item_opens_({open_ + markers_.item + ">"}) {}

std::vector<std::string> NestedCalls::literals() const {
  return {markers_.mark, starts().front(), end_, call_open_, call_close_};
}

Task<Found> NestedCalls::read(Scope scope) const {
  Found found = Found::kProse;
  while (true) {
    const Input::Mark before(scope.in);
    co_await skip_space(scope.in);
    const bool is_call = co_await match(scope.in, call_open_);
    if (!is_call) {
      if (found != Found::kCalls) co_return found;
      const bool closed = co_await match(scope.in, end_);
      if (closed || scope.in.saw_end()) co_return found;
      before.go_back();
      co_return Found::kOpenCalls;
    }
    const Found next = co_await read_call(scope);
    if (next != Found::kCalls) {
      if (found != Found::kCalls) co_return next;
      if (next != Found::kOpenCalls) before.go_back();
      co_return Found::kOpenCalls;
    }
    found = next;
  }
}

Task<Found> NestedCalls::read_call(Scope scope) const {
  std::string tag;
  const bool has_tag = co_await read_until(scope.in, ">", kLongestElementTag, tag);
  std::string name = has_tag ? attribute(tag, "name") : std::string();
  if (name.empty()) co_return Found::kBroken;
  co_await skip_space(scope.in);
  bool goes_on = co_await looks_at(scope.in, opens_);
  if (!goes_on) co_return Found::kBroken;
  const Schema schema = scope.tools.parameters(name);
  CallBuilder call(scope.out, std::move(name), {});
  const bool ok = co_await read_members(scope, schema, call);
  call.end(ok);
  if (ok || scope.in.saw_end()) co_return Found::kCalls;
  scope.out.misfit();
  co_return Found::kOpenCalls;
}

Task<bool> NestedCalls::read_members(Scope scope, Schema schema, CallBuilder& call) const {
  while (true) {
    co_await skip_space(scope.in);
    const bool closed = co_await match(scope.in, call_close_);
    if (closed) co_return true;
    std::string tag;
    bool ok = co_await match(scope.in, open_);
    if (ok) ok = co_await read_until(scope.in, ">", kLongestElementTag, tag);
    if (!ok || tag.empty() || tag[0] == '/') co_return false;
    ok = co_await read_value(scope, schema.property(tag), tag, 0, call.add(tag));
    if (!ok) co_return false;
  }
}

/// From behind an element's tag to behind its close.
Task<bool> NestedCalls::read_value(
    Scope scope, Schema schema, std::string tag, int depth, std::string& out) const {
  const Input::Mark start(scope.in);
  const Kinds kinds = schema.kinds();
  if (kinds != kString && depth < kDeepestElement) {
    co_await skip_space(scope.in);
    const bool closes = co_await looks_at(scope.in, closes_);
    bool has_elements = co_await looks_at(scope.in, opens_);
    has_elements = has_elements && !closes;
    if (has_elements) co_return co_await read_elements(scope, schema, std::move(tag), depth, out);
    start.go_back();
  }
  co_return co_await read_leaf(scope, schema, std::move(tag), out);
}

Task<bool> NestedCalls::read_elements(
    Scope scope, Schema schema, std::string tag, int depth, std::string& out) const {
  bool is_list = co_await looks_at(scope.in, item_opens_);
  is_list = is_list && (schema.kinds() & kObject) == 0;
  const std::string close = close_ + tag + ">";
  out += is_list ? '[' : '{';
  bool is_first = true;
  bool ok = false;
  while (true) {
    co_await skip_space(scope.in);
    ok = co_await match(scope.in, close);
    if (ok) break;
    std::string inner;
    bool is_element = co_await match(scope.in, open_);
    if (is_element) is_element = co_await read_until(scope.in, ">", kLongestElementTag, inner);
    if (!is_element || inner.empty() || inner[0] == '/') break;
    if (!is_first) out += ", ";
    is_first = false;
    if (!is_list) out += json_string(inner) + ": ";
    const Schema of = is_list ? schema.items() : schema.property(inner);
    const bool whole = co_await read_value(scope, of, inner, depth + 1, out);
    if (!whole) break;
  }
  out += is_list ? ']' : '}';
  co_return ok;
}

Task<bool> NestedCalls::read_leaf(Scope scope,
                                  Schema schema,
                                  std::string tag,
                                  std::string& out) const {
  const std::string close = close_ + tag + ">";
  const Kinds kinds = schema.kinds();
  const bool is_string = kinds == kString;
  std::string text;
  if (is_string) out += '"';
  bool ok = false;
  while (true) {
    const int c = co_await scope.in.peek();
    if (c == Input::kEnd) break;
    if (c == static_cast<unsigned char>(close[0])) {
      ok = co_await match(scope.in, close);
      if (ok) break;
      const bool is_cut = co_await is_cut_inside(scope.in, close);
      if (is_cut) break;
    }
    scope.in.skip();
    if (is_string) {
      append_escaped(out, static_cast<char>(c));
    } else {
      text += static_cast<char>(c);
    }
  }
  if (is_string) {
    out += '"';
  } else if (trimmed(text).empty() && (kinds & (kArray | kObject)) != 0) {
    out += (kinds & kArray) != 0 ? "[]" : "{}";
  } else {
    out += typed_by(schema, text, kinds, Untyped::kJson);
  }
  co_return ok;
}

}  // namespace tandem::dialect
