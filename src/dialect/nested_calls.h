// Calls written as nested elements named after the parameters (MiniMax-M3).
#pragma once

#include <string>
#include <vector>

#include "dialect/syntax.h"

namespace tandem::dialect {

struct NestedCallMarkers {
  std::string mark = {};   // in front of every tag
  std::string block = {};  // name of the tag around the calls
  std::string call = {};   // … around one, with a name attribute
  std::string item = {};   // … around an element of a list
};

/// Text between tags is a value as it is; elements between tags make an object, or a list if they
/// are items. The schema says what text stands for.
class NestedCalls final : public Syntax {
 public:
  explicit NestedCalls(NestedCallMarkers markers);

  std::vector<std::string> starts() const override { return {open_ + markers_.block + ">"}; }
  std::vector<std::string> literals() const override;
  Task<Found> read(Scope scope) const override;

 private:
  Task<Found> read_call(Scope scope) const;
  Task<bool> read_members(Scope scope, Schema schema, class CallBuilder& call) const;
  Task<bool> read_value(
      Scope scope, Schema schema, std::string tag, int depth, std::string& out) const;
  Task<bool> read_elements(
      Scope scope, Schema schema, std::string tag, int depth, std::string& out) const;
  Task<bool> read_leaf(Scope scope, Schema schema, std::string tag, std::string& out) const;

  NestedCallMarkers markers_;
  std::string open_;        // "MARK<"
  std::string close_;       // "MARK</"
  std::string call_open_;   // begins a call's tag
  std::string call_close_;  // a call's closing tag
  std::string end_;         // a block's closing tag
  std::vector<std::string> opens_;
  std::vector<std::string> closes_;
  std::vector<std::string> item_opens_;
};

}  // namespace tandem::dialect
