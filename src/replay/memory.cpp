#include "replay/memory.h"

#include <algorithm>
#include <utility>

namespace tandem::replay {
namespace {

/// In front of a key's value in the backing: the turn itself, or the key that has it.
constexpr char kTurn = 'T';
constexpr char kSameAs = '=';

std::string name_of(const std::string& owner, const std::string& key) { return owner + '\0' + key; }

}  // namespace

Memory::Memory(MemoryLimits limits,
               const Clock& clock,
               std::unique_ptr<Backing> backing,
               std::function<int64_t()> unix_now)
    : limits_(limits),
      clock_(clock),
      backing_(std::move(backing)),
      unix_now_(std::move(unix_now)) {}

void Memory::remember(const std::string& owner,
                      Turn turn,
                      const std::vector<std::string>& keys,
                      bool outlives) {
  if (keys.empty()) return;
  if (backing_ && outlives) {
    if (turn.began == 0) turn.began = unix_now_();
    backing_->put(owner, keys.front(), kTurn + encode(turn), turn.began);
    for (size_t i = 1; i < keys.size(); ++i) {
      backing_->put(owner, keys[i], kSameAs + keys.front(), turn.began);
    }
  }
  std::vector<std::string> names;
  for (const std::string& key : keys) names.push_back(name_of(owner, key));
  const std::lock_guard lock(mutex_);
  insert(std::make_shared<const Turn>(std::move(turn)), std::move(names));
}

std::shared_ptr<const Turn> Memory::find(const std::string& owner, const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    if (auto turn = find_here(name_of(owner, key))) return turn;
  }
  return backing_ ? find_behind(owner, key) : nullptr;
}

size_t Memory::turns() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

size_t Memory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void Memory::insert(std::shared_ptr<const Turn> turn, std::vector<std::string> names) {
  size_t bytes = sizeof(Entry) + turn->bytes();
  for (const std::string& name : names) bytes += 2 * (sizeof(std::string) + name.size()) + 32;
  if (bytes > limits_.max_bytes || limits_.max_turns == 0) return;
  const TimePoint began = clock_.now() - age_of(*turn);
  entries_.push_front(
      {.turn = std::move(turn), .names = std::move(names), .bytes = bytes, .began = began});
  bytes_ += bytes;
  for (const std::string& name : entries_.front().names) by_name_[name] = entries_.begin();
  while (bytes_ > limits_.max_bytes || entries_.size() > limits_.max_turns) {
    drop(std::prev(entries_.end()));
  }
}

std::shared_ptr<const Turn> Memory::find_here(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return nullptr;
  const auto entry = found->second;
  if (clock_.now() - entry->began > limits_.max_age) {
    drop(entry);
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->turn;
}

/// Reads outside of the lock; what was read is kept here again.
std::shared_ptr<const Turn> Memory::find_behind(const std::string& owner, const std::string& key) {
  std::vector<std::string> names = {name_of(owner, key)};
  auto value = backing_->get(owner, key);
  if (value && value->starts_with(kSameAs)) {
    const std::string first = value->substr(1);
    names.push_back(name_of(owner, first));
    value = backing_->get(owner, first);
  }
  if (!value || !value->starts_with(kTurn)) return nullptr;
  auto read = decode(std::string_view(*value).substr(1));
  if (!read) return nullptr;
  if (age_of(*read) > limits_.max_age) return nullptr;
  auto turn = std::make_shared<const Turn>(std::move(*read));
  const std::lock_guard lock(mutex_);
  insert(turn, std::move(names));
  return turn;
}

/// None where the wall clock went back meanwhile.
Duration Memory::age_of(const Turn& turn) const {
  if (turn.began == 0) return {};
  return std::chrono::microseconds(std::max<int64_t>(unix_now_() - turn.began, 0));
}

void Memory::drop(Entries::iterator entry) {
  for (const std::string& name : entry->names) {
    const auto found = by_name_.find(name);
    if (found != by_name_.end() && found->second == entry) by_name_.erase(found);
  }
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

}  // namespace tandem::replay
