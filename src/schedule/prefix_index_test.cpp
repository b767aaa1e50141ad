#include "schedule/prefix_index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace tandem;
using namespace tandem::schedule;
using gen::Priority;
using Ids = std::vector<TokenId>;

namespace {

constexpr uint32_t kPage = 4;

/// The tree as a list of whole prefixes, everything found by looking at each.
class Naive {
 public:
  struct Entry {
    Ids prefix;  // all tokens up to and with its own
    PageId page = 0;
    uint64_t ready = 0;
    uint64_t used = 0;
    bool normal = false;
    int references = 0;
    size_t own() const { return (prefix.size() - 1) % kPage + 1; }
    Ids parent() const {
      return {prefix.begin(), prefix.end() - static_cast<std::ptrdiff_t>(own())};
    }
  };

  Entry* at(const Ids& prefix) {
    for (Entry& entry : entries) {
      if (entry.prefix == prefix) return &entry;
    }
    return nullptr;
  }
  Entry* of(PageId page) {
    for (Entry& entry : entries) {
      if (entry.page == page) return &entry;
    }
    return nullptr;
  }
  bool has_children(const Entry& entry) const {
    return std::any_of(entries.begin(), entries.end(), [&](const Entry& other) {
      return other.prefix.size() > entry.prefix.size() &&
             std::equal(entry.prefix.begin(), entry.prefix.end(), other.prefix.begin()) &&
             entry.own() == kPage;
    });
  }
  /// Most leading tokens of `tokens` that a readable child of `parent` shares.
  size_t longest(const Ids& parent, const Ids& tokens, uint64_t plan) const {
    size_t best = 0;
    for (const Entry& entry : entries) {
      if (entry.parent() != parent || entry.ready >= plan) continue;
      size_t shared = 0;
      while (shared < entry.own() && shared < tokens.size() &&
             entry.prefix[parent.size() + shared] == tokens[shared]) {
        ++shared;
      }
      best = std::max(best, shared);
    }
    return best;
  }
  /// What must be evicted next.
  const Entry* victim(bool evict_normal) const {
    const Entry* best = nullptr;
    for (const Entry& entry : entries) {
      if (entry.references > 0 || has_children(entry) || (entry.normal && !evict_normal)) continue;
      if (best == nullptr ||
          std::pair(entry.normal, entry.used) < std::pair(best->normal, best->used)) {
        best = &entry;
      }
    }
    return best;
  }

  std::vector<Entry> entries;
};

/// A request that walks down the tree, taking what is there and adding what is not.
struct Walker {
  Ids tokens = {};
  std::vector<PageId> pages = {};
  Place place = 0;
  bool attached = true;
  Priority priority = Priority::kNormal;
};

class World {
 public:
  explicit World(uint64_t seed)
      : random_(seed), pages_(pick(4, 24)), index_({.pages = pages_, .page_tokens = kPage}) {}

  void turn() {
    ++plan_;
    const uint32_t what = pick(0, 9);
    if (what < 5) {
      grow();
    } else if (what < 7) {
      finish();
    } else {
      compare_lookups();
    }
    CHECK(index_.is_consistent());
    CHECK(index_.pool().cached() == count_cached(true));
    CHECK(index_.available(false) == index_.pool().free() + count_cached(false));
  }

 private:
  uint32_t pick(uint32_t low, uint32_t high) {
    return std::uniform_int_distribution<uint32_t>(low, high)(random_);
  }

  uint32_t count_cached(bool normal) const {
    return static_cast<uint32_t>(
        std::count_if(naive_.entries.begin(), naive_.entries.end(), [&](const Naive::Entry& entry) {
          return entry.references == 0 && (normal || !entry.normal);
        }));
  }

  std::optional<PageId> allocate(bool evict_normal) {
    const bool has_free = index_.pool().free() > 0;
    const Naive::Entry* victim = naive_.victim(evict_normal);
    const auto page = index_.allocate(evict_normal);
    CHECK(page.has_value() == (has_free || victim != nullptr));
    if (!page || has_free) return page;
    CHECK(*page == victim->page);
    std::erase_if(naive_.entries, [&](const auto& entry) { return entry.page == *page; });
    return page;
  }

  void grow() {
    if (walkers_.size() < 3 || pick(0, 3) == 0) {
      walkers_.push_back({.place = index_.root("salt"),
                          .priority = pick(0, 2) == 0 ? Priority::kLow : Priority::kNormal});
    }
    Walker& walker = walkers_[pick(0, static_cast<uint32_t>(walkers_.size()) - 1)];
    Ids next;
    for (uint32_t i = 0; i < kPage; ++i) next.push_back(static_cast<TokenId>(pick(0, 1)));
    Ids prefix = walker.tokens;
    prefix.insert(prefix.end(), next.begin(), next.end());
    Naive::Entry* there = walker.attached ? naive_.at(prefix) : nullptr;
    const auto hit = walker.attached ? index_.find(walker.place, next, plan_) : PrefixIndex::Hit{};
    CHECK(hit.page.has_value() == (there != nullptr));
    if (hit.page && !hit.pending && pick(0, 5) != 0) return adopt(walker, prefix, *there);
    const auto page = allocate(walker.priority == Priority::kNormal);
    if (!page) return;
    walker.tokens = prefix;
    walker.pages.push_back(*page);
    if (!walker.attached) return;
    walker.attached = insert(prefix, next, walker.place, *page, walker.priority);
    if (walker.attached) walker.place = *page;
  }

  void adopt(Walker& walker, const Ids& prefix, Naive::Entry& there) {
    index_.retain(there.page, walker.priority);
    ++there.references;
    there.normal |= walker.priority == Priority::kNormal;
    walker.tokens = prefix;
    walker.pages.push_back(there.page);
    walker.place = there.page;
  }

  bool insert(const Ids& prefix, const Ids& own, Place place, PageId page, Priority priority) {
    const Ids parent(prefix.begin(), prefix.end() - static_cast<std::ptrdiff_t>(own.size()));
    const bool is_there = naive_.longest(parent, own, ~0ULL) == own.size();
    const uint64_t ready = plan_ - pick(0, 1);
    const bool added = index_.insert(place, own, page, ready, priority);
    CHECK(added == !is_there);
    if (!added) return false;
    bool normal = priority == Priority::kNormal;
    std::erase_if(naive_.entries, [&](const Naive::Entry& at) {
      const bool is_part = at.references == 0 && at.parent() == parent && at.own() < own.size() &&
                           std::equal(at.prefix.begin(), at.prefix.end(), prefix.begin());
      normal |= is_part && at.normal;
      return is_part;
    });
    naive_.entries.push_back(
        {.prefix = prefix, .page = page, .ready = ready, .normal = normal, .references = 1});
    return true;
  }

  void release(PageId page) {
    index_.release(page);
    Naive::Entry* entry = naive_.of(page);
    if (entry != nullptr && --entry->references == 0) entry->used = ++uses_;
  }

  void finish() {
    if (walkers_.empty()) return;
    const auto at = walkers_.begin() + pick(0, static_cast<uint32_t>(walkers_.size()) - 1);
    Walker walker = *at;
    walkers_.erase(at);
    if (walker.attached && pick(0, 1) == 0) {
      if (const auto page = allocate(walker.priority == Priority::kNormal)) {
        Ids part;
        for (uint32_t i = pick(1, kPage - 1); i > 0; --i) {
          part.push_back(static_cast<TokenId>(pick(0, 1)));
        }
        Ids prefix = walker.tokens;
        prefix.insert(prefix.end(), part.begin(), part.end());
        insert(prefix, part, walker.place, *page, walker.priority);
        walker.pages.push_back(*page);
      }
    }
    for (; !walker.pages.empty(); walker.pages.pop_back()) release(walker.pages.back());
  }

  void compare_lookups() {
    Place place = index_.root("salt");
    Ids parent;
    for (uint32_t depth = pick(0, 3); depth > 0; --depth) {
      Ids next;
      for (uint32_t i = 0; i < kPage; ++i) next.push_back(static_cast<TokenId>(pick(0, 1)));
      const auto hit = index_.find(place, next, ~0ULL);
      if (!hit.page) break;
      place = *hit.page;
      parent.insert(parent.end(), next.begin(), next.end());
    }
    Ids wanted;
    for (uint32_t i = pick(1, kPage); i > 0; --i)
      wanted.push_back(static_cast<TokenId>(pick(0, 1)));
    CHECK(index_.longest(place, wanted, plan_).tokens == naive_.longest(parent, wanted, plan_));
    CHECK(index_.longest(index_.root("other"), wanted, plan_).tokens == 0);
  }

  std::mt19937_64 random_;
  uint32_t pages_;
  PrefixIndex index_;
  Naive naive_;
  std::vector<Walker> walkers_;
  uint64_t plan_ = 1;
  uint64_t uses_ = 0;
};

}  // namespace

TEST_CASE("prefix index: finds, keeps and evicts what a list of all prefixes would") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    World world(seed);
    for (int turn = 0; turn < 300; ++turn) world.turn();
  }
}

TEST_CASE("prefix index: salts share nothing") {
  PrefixIndex index({.pages = 4, .page_tokens = 2});
  const auto page = *index.allocate(true);
  const Ids tokens{1, 2};
  REQUIRE(index.insert(index.root("a"), tokens, page, 1, Priority::kNormal));
  CHECK(index.find(index.root("a"), tokens, 2).page == page);
  CHECK(!index.find(index.root("b"), tokens, 2).page);
  CHECK(index.root("a") == index.root("a"));
}

TEST_CASE("prefix index: a node of the plan being built is pending until the next one") {
  PrefixIndex index({.pages = 4, .page_tokens = 2});
  const auto page = *index.allocate(true);
  const Ids tokens{1, 2};
  REQUIRE(index.insert(index.root(""), tokens, page, 7, Priority::kNormal));
  CHECK(index.find(index.root(""), tokens, 7).pending);
  CHECK(index.longest(index.root(""), tokens, 7).tokens == 0);
  CHECK(!index.find(index.root(""), tokens, 8).pending);
  CHECK(index.longest(index.root(""), tokens, 8).tokens == 2);
}

TEST_CASE("page pool: pages move between free, referenced and cached, and never get lost") {
  PagePool pool(3);
  const auto a = *pool.allocate(), b = *pool.allocate();
  CHECK(pool.referenced() == 2);
  pool.keep(a);
  pool.retain(a);
  CHECK(!pool.release(a));
  CHECK(pool.release(a));
  CHECK(pool.is_cached(a));
  CHECK(pool.release(b));
  CHECK(pool.free() == 2);
  CHECK(pool.cached() == 1);
  pool.drop(a);
  CHECK(pool.free() == 3);
  for (int i = 0; i < 3; ++i) CHECK(pool.allocate());
  CHECK(!pool.allocate());
}
