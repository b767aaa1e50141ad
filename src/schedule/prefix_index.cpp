#include "schedule/prefix_index.h"

#include <xxhash.h>

#include <algorithm>

#include "base/check.h"
#include "gen/common_tokens.h"

namespace tandem::schedule {
namespace {

/// XXH3 adds a seed to its secret, so seeds that differ in few bits meet short inputs that do too;
/// spread over all bits they do not.
uint64_t hash_of(Place parent, std::span<const TokenId> tokens) {
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(),
                              (parent + 1) * 0x9E3779B97F4A7C15ULL);
}

}  // namespace

PrefixIndex::PrefixIndex(Sizes sizes)
    : page_tokens_(sizes.page_tokens),
      pool_(sizes.pages),
      windows_(sizes.window_pages, sizes.pages),
      states_(sizes.state_slots, sizes.pages),
      nodes_(sizes.pages),
      tokens_(size_t{sizes.pages} * sizes.page_tokens),
      is_evictable_(sizes.pages) {
  TANDEM_CHECK(sizes.page_tokens > 0 && sizes.pages < kRoot);
}

Place PrefixIndex::root(std::string_view salt) {
  const auto found = salts_.find(salt);
  if (found != salts_.end()) return found->second;
  const Place place = kRoot + static_cast<Place>(roots_.size());
  roots_.push_back(kNone);
  salts_.emplace(salt, place);
  return place;
}

std::span<const TokenId> PrefixIndex::tokens_of(PageId page) const {
  return {&tokens_[size_t{page} * page_tokens_], nodes_[page].length};
}

PageId& PrefixIndex::first_child(Place place) {
  return place >= kRoot ? roots_[place - kRoot] : nodes_[place].first_child;
}

PageId PrefixIndex::first_child(Place place) const {
  return place >= kRoot ? roots_[place - kRoot] : nodes_[place].first_child;
}

PrefixIndex::Hit PrefixIndex::find(Place parent,
                                   std::span<const TokenId> tokens,
                                   uint64_t plan) const {
  const auto found = full_.find(hash_of(parent, tokens));
  if (found == full_.end()) return {};
  const PageId page = found->second;
  const auto there = tokens_of(page);
  if (nodes_[page].parent != parent || !std::equal(there.begin(), there.end(), tokens.begin())) {
    return {};
  }
  return {.page = page, .pending = nodes_[page].ready >= plan};
}

std::optional<PageId> PrefixIndex::exactly(Place parent, std::span<const TokenId> tokens) const {
  if (tokens.size() == page_tokens_) return find(parent, tokens, ~0ULL).page;
  const auto ends_there = [&](PageId page, uint32_t) {
    return nodes_[page].length == tokens.size();
  };
  const Partial found = closest(parent, tokens, ~0ULL, ends_there);
  if (found.tokens < tokens.size()) return std::nullopt;
  return found.page;
}

PrefixIndex::Partial PrefixIndex::longest(Place parent,
                                          std::span<const TokenId> tokens,
                                          uint64_t plan) const {
  return closest(parent, tokens, plan, [this](PageId page, uint32_t shared) {
    if (windows_.exist() && !windows_.of(page)) return false;
    return !states_.exist() || (shared == nodes_[page].length && states_.of(page));
  });
}

PrefixIndex::Partial PrefixIndex::closest(Place parent,
                                          std::span<const TokenId> tokens,
                                          uint64_t plan,
                                          auto can_use) const {
  Partial best;
  uint32_t scanned = 0;
  for (PageId page = first_child(parent); page != kNone && scanned < kScan; ++scanned) {
    const Node& node = nodes_[page];
    const auto shared =
        static_cast<uint32_t>(node.ready >= plan ? 0 : gen::common_tokens(tokens_of(page), tokens));
    if (shared > best.tokens && can_use(page, shared)) best = {.page = page, .tokens = shared};
    if (best.tokens == tokens.size()) break;
    page = node.next;
  }
  return best;
}

bool PrefixIndex::insert(Place parent,
                         std::span<const TokenId> tokens,
                         PageId page,
                         uint64_t ready,
                         gen::Priority priority) {
  TANDEM_CHECK(!tokens.empty() && tokens.size() <= page_tokens_ && nodes_[page].length == 0);
  const bool full = tokens.size() == page_tokens_;
  const uint64_t hash = hash_of(parent, tokens);
  const auto any = [](PageId, uint32_t) { return true; };
  if (full ? full_.contains(hash) : closest(parent, tokens, ~0ULL, any).tokens == tokens.size()) {
    return false;
  }
  const bool stands_for_normal = drop_parts(parent, tokens);
  Node& node = nodes_[page];
  node = {.parent = parent,
          .next = first_child(parent),
          .length = static_cast<uint32_t>(tokens.size()),
          .normal = priority == gen::Priority::kNormal || stands_for_normal,
          .hash = hash,
          .ready = ready};
  std::copy(tokens.begin(), tokens.end(), &tokens_[size_t{page} * page_tokens_]);
  if (node.next != kNone) nodes_[node.next].previous = page;
  first_child(parent) = page;
  if (full) full_.emplace(hash, page);
  pool_.keep(page);
  update_evictable(parent);
  return true;
}

/// True when a normal request used one of them.
bool PrefixIndex::drop_parts(Place parent, std::span<const TokenId> tokens) {
  bool normal = false;
  uint32_t scanned = 0;
  for (PageId page = first_child(parent); page != kNone && scanned < kScan; ++scanned) {
    const PageId next = nodes_[page].next;
    const bool is_part = nodes_[page].length < tokens.size() && pool_.is_cached(page) &&
                         gen::common_tokens(tokens_of(page), tokens) == nodes_[page].length &&
                         !states_.of(page);  // there is no other inside a page
    // The parent may be cached: erasing its only child must not make it a leaf meanwhile.
    if (is_part) {
      normal |= nodes_[page].normal;
      erase(page);
    }
    page = next;
  }
  return normal;
}

bool PrefixIndex::is_leaf_cached(PageId page) const {
  return pool_.is_cached(page) && nodes_[page].first_child == kNone;
}

PrefixIndex::Order PrefixIndex::order_of(PageId page) const {
  return {nodes_[page].normal, nodes_[page].last_used, page};
}

/// Puts a page into the evictable set, or takes it out, as its state says.
void PrefixIndex::update_evictable(Place place) {
  if (place >= kRoot) return;
  const bool should = is_leaf_cached(place);
  if (should == is_evictable_[place]) return;
  if (should) {
    evictable_.insert(order_of(place));
  } else {
    evictable_.erase(order_of(place));
  }
  is_evictable_[place] = should;
}

void PrefixIndex::set_normal(PageId page) {
  if (nodes_[page].normal) return;
  TANDEM_CHECK(!is_evictable_[page]);
  nodes_[page].normal = true;
}

void PrefixIndex::retain(PageId page, gen::Priority priority) {
  const bool was_cached = pool_.is_cached(page);
  pool_.retain(page);
  if (was_cached && nodes_[page].normal) --cached_normal_;
  update_evictable(page);
  if (priority == gen::Priority::kNormal && nodes_[page].length > 0) set_normal(page);
}

void PrefixIndex::release(PageId page) {
  if (!pool_.release(page) || !pool_.is_kept(page)) return;
  nodes_[page].last_used = ++uses_;
  if (nodes_[page].normal) ++cached_normal_;
  update_evictable(page);
}

void PrefixIndex::touch(PageId page, gen::Priority priority) {
  retain(page, priority);
  release(page);
}

void PrefixIndex::erase(PageId page) {
  Node& node = nodes_[page];
  TANDEM_CHECK(is_leaf_cached(page));
  if (node.normal) --cached_normal_;
  pool_.drop(page);
  windows_.detach(page);
  states_.detach(page);
  update_evictable(page);
  if (node.length == page_tokens_) full_.erase(node.hash);
  if (node.next != kNone) nodes_[node.next].previous = node.previous;
  if (node.previous != kNone) {
    nodes_[node.previous].next = node.next;
  } else {
    first_child(node.parent) = node.next;
  }
  const Place parent = node.parent;
  node = {};
  update_evictable(parent);
}

std::optional<PageId> PrefixIndex::allocate(bool evict_normal) {
  if (const auto page = pool_.allocate()) return page;
  if (evictable_.empty()) return std::nullopt;
  const auto [normal, last_used, page] = *evictable_.begin();
  if (normal && !evict_normal) return std::nullopt;
  erase(page);
  return pool_.allocate();
}

uint32_t PrefixIndex::available(bool evict_normal) const {
  return pool_.free() + pool_.cached() - (evict_normal ? 0 : cached_normal_);
}

bool PrefixIndex::is_consistent() const {
  if (pool_.free() + pool_.cached() + pool_.referenced() != pool_.total()) return false;
  if (!windows_.is_consistent() || !states_.is_consistent()) return false;
  uint32_t kept = 0, cached = 0, normal = 0, leaves = 0, linked = 0;
  const auto count_children = [&](Place place) {
    PageId previous = kNone;
    for (PageId child = first_child(place); child != kNone; child = nodes_[child].next) {
      if (nodes_[child].parent != place || nodes_[child].previous != previous) return false;
      if (place < kRoot && nodes_[place].length != page_tokens_) return false;
      previous = child;
      ++linked;
    }
    return true;
  };
  for (Place root = 0; root < roots_.size(); ++root) {
    if (!count_children(kRoot + root)) return false;
  }
  for (PageId page = 0; page < pool_.total(); ++page) {
    if (pool_.is_kept(page) != (nodes_[page].length > 0)) return false;
    if (!count_children(page) || is_leaf_cached(page) != is_evictable_[page]) return false;
    kept += pool_.is_kept(page);
    cached += pool_.is_cached(page);
    normal += pool_.is_cached(page) && nodes_[page].normal;
    leaves += is_leaf_cached(page);
  }
  return kept == linked && cached == pool_.cached() && normal == cached_normal_ &&
         leaves == evictable_.size();
}

}  // namespace tandem::schedule
