// Which pages hold the keys and values of which token prefixes: a radix tree, one page a node.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "gen/request.h"
#include "plan/step_plan.h"
#include "schedule/page_pool.h"
#include "schedule/side_slots.h"

namespace tandem::schedule {

using plan::TokenId;

/// A place in the tree: a page, or the root of a salt.
using Place = uint32_t;

/// Owns the pool. A node is a page with its tokens below a parent place; its content is right only
/// after all its ancestors' tokens. Nodes of fewer tokens than a page are leaves.
///
/// A node planned by plan number n (`ready`) may be read by later plans only. Nodes that no request
/// references stay until evicted: leaves first, least recently used first, and those that only low
/// priority requests used before any others. A request that references a node references its
/// ancestors, so every cached page can be evicted sooner or later. One thread.
///
/// Where a model has layers that see a window, or recurrent ones, a node may hold a window page and
/// the state after its last token as well; they come and go by themselves.
class PrefixIndex {
 public:
  struct Sizes {
    uint32_t pages = 0;
    uint32_t page_tokens = 0;
    uint32_t window_pages = 0;
    uint32_t state_slots = 0;
  };

  explicit PrefixIndex(Sizes sizes);

  /// Where prefixes of this salt begin.
  Place root(std::string_view salt);

  struct Hit {
    std::optional<PageId> page;
    bool pending = false;  // the node is there, but only plans after `plan` may read it
  };

  /// The child of `parent` with exactly these tokens, a full page.
  Hit find(Place parent, std::span<const TokenId> tokens, uint64_t plan) const;

  /// The child of `parent` with exactly these tokens, a full page or fewer.
  std::optional<PageId> exactly(Place parent, std::span<const TokenId> tokens) const;

  struct Partial {
    PageId page = 0;
    uint32_t tokens = 0;  // 0: none
  };

  /// The readable child of `parent` that shares most leading tokens, of those at which a sequence
  /// can go on: which hold a window page and the state where the model has such, and of recurrent
  /// state there is none inside a page.
  Partial longest(Place parent, std::span<const TokenId> tokens, uint64_t plan) const;

  /// Adds a page that the caller references, with 1 to page_tokens tokens. False, and nothing is
  /// added, when a child already begins with these tokens. Cached children that hold only a part of
  /// these tokens go: the page stands for them, and is a normal request's if one of them was.
  bool insert(Place parent,
              std::span<const TokenId> tokens,
              PageId page,
              uint64_t ready,
              gen::Priority priority);

  void retain(PageId page, gen::Priority priority);
  void release(PageId page);
  /// Counts as used by this priority, as retain() and release() would.
  void touch(PageId page, gen::Priority priority);

  /// A page with one reference: a free one, else an evicted one. Pages used by normal requests are
  /// evicted only when allowed.
  std::optional<PageId> allocate(bool evict_normal);

  /// Pages that allocate() can give.
  uint32_t available(bool evict_normal) const;

  /// Whether a normal request used this page's node.
  bool is_normal(PageId page) const { return nodes_[page].normal; }

  const PagePool& pool() const { return pool_; }
  SideSlots& windows() { return windows_; }
  SideSlots& states() { return states_; }
  const SideSlots& windows() const { return windows_; }
  const SideSlots& states() const { return states_; }

  /// Whether tree, pool and counts agree; for tests and the idle check. Linear in pages.
  bool is_consistent() const;

 private:
  static constexpr Place kRoot = 0x80000000U;  // places from here on are roots
  static constexpr uint32_t kNone = 0xFFFFFFFFU;
  static constexpr uint32_t kScan = 128;  // children compared in search of a part

  struct Node {
    Place parent = kNone;
    PageId first_child = kNone;
    PageId next = kNone;  // siblings
    PageId previous = kNone;
    uint32_t length = 0;  // tokens; 0: not in the tree
    bool normal = false;  // a normal request used it
    uint64_t hash = 0;
    uint64_t ready = 0;
    uint64_t last_used = 0;
  };

  using Order = std::tuple<bool, uint64_t, PageId>;  // what is evicted first comes first

  Partial closest(Place parent, std::span<const TokenId> tokens, uint64_t plan, auto can_use) const;
  std::span<const TokenId> tokens_of(PageId page) const;
  PageId& first_child(Place place);
  PageId first_child(Place place) const;
  bool is_leaf_cached(PageId page) const;
  Order order_of(PageId page) const;
  void set_normal(PageId page);
  void update_evictable(Place place);
  bool drop_parts(Place parent, std::span<const TokenId> tokens);
  void erase(PageId page);

  const uint32_t page_tokens_;
  PagePool pool_;
  SideSlots windows_;
  SideSlots states_;
  std::vector<Node> nodes_;      // by page
  std::vector<TokenId> tokens_;  // [pages, page_tokens]
  std::vector<PageId> roots_;    // first child of each root
  std::map<std::string, Place, std::less<>> salts_;
  std::unordered_map<uint64_t, PageId> full_;  // full pages by hash of parent and tokens
  std::set<Order> evictable_;                  // cached leaves
  std::vector<bool> is_evictable_;             // by page
  uint32_t cached_normal_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace tandem::schedule
