#include "comm/transport.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "comm/ranks_test.h"
#include "comm/sum.h"

namespace tandem::comm {
namespace {

using std::chrono::milliseconds;

/// The same on every rank, from (seed, rank) alone.
std::vector<float> values(uint32_t seed, uint32_t rank, size_t count) {
  std::mt19937 random(seed * 1000 + rank);
  std::normal_distribution<float> normal;
  std::vector<float> row(count);
  for (float& value : row) value = normal(random);
  return row;
}

std::vector<float> reference_sum(uint32_t seed, uint32_t size, size_t count) {
  std::vector<float> sum = values(seed, 0, count);
  for (uint32_t rank = 1; rank < size; ++rank) {
    const std::vector<float> row = values(seed, rank, count);
    for (size_t i = 0; i < count; ++i) sum[i] += row[i];
  }
  return sum;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

std::string check_sum(Transport& group, uint32_t seed, size_t count) {
  std::vector<float> data = values(seed, group.rank(), count);
  if (auto status = group.all_sum(data.data(), count, Dtype::kFloat32); !status) {
    return status.error().message;
  }
  return same_bits(data, reference_sum(seed, group.size(), count)) ? kFine : "all_sum: wrong bits";
}

std::string check_half_sum(Transport& group, Dtype dtype, size_t count) {
  std::vector<std::vector<uint16_t>> rows(group.size());
  std::vector<const std::byte*> parts;
  for (uint32_t rank = 0; rank < group.size(); ++rank) {
    std::mt19937 random(rank);
    for (size_t i = 0; i < count; ++i) {
      rows[rank].push_back(static_cast<uint16_t>(0x3000 + random() % 0x1000));
    }
    parts.push_back(reinterpret_cast<const std::byte*>(rows[rank].data()));
  }
  std::vector<uint16_t> expected(count);
  ordered_sum(parts, count, dtype, reinterpret_cast<std::byte*>(expected.data()));
  std::vector<uint16_t> data = rows[group.rank()];
  if (auto status = group.all_sum(data.data(), count, dtype); !status) {
    return status.error().message;
  }
  return same_bits(data, expected) ? kFine : "half all_sum: wrong bits";
}

std::string check_gather(Transport& group, uint32_t seed) {
  std::vector<size_t> sizes;
  std::vector<std::byte> expected;
  std::vector<std::byte> own;
  for (uint32_t rank = 0; rank < group.size(); ++rank) {
    std::mt19937 random(seed * 100 + rank);
    sizes.push_back(random() % 3 == 0 ? 0 : random() % 100'000);
    for (size_t i = 0; i < sizes.back(); ++i) {
      expected.push_back(static_cast<std::byte>(random()));
      if (rank == group.rank()) own.push_back(expected.back());
    }
  }
  std::vector<std::byte> out(expected.size());
  if (auto status = group.all_gather(own, sizes, out.data()); !status) {
    return status.error().message;
  }
  return out == expected ? kFine : "all_gather: wrong bytes";
}

std::string check_scatter(Transport& group, uint32_t seed, size_t rows, size_t width) {
  std::vector<size_t> begins{0};
  std::mt19937 random(seed);
  for (uint32_t rank = 0; rank + 1 < group.size(); ++rank) {
    begins.push_back(begins.back() + random() % (rows - begins.back() + 1));
  }
  begins.push_back(rows);
  const std::vector<float> data = values(seed, group.rank(), rows * width);
  const std::vector<float> sum = reference_sum(seed, group.size(), rows * width);
  const size_t first = begins[group.rank()] * width;
  const size_t last = begins[group.rank() + 1] * width;
  std::vector<float> out(last - first);
  if (auto status = group.reduce_scatter(data.data(), width, begins, out.data()); !status) {
    return status.error().message;
  }
  const std::vector<float> expected(sum.data() + first, sum.data() + last);
  return same_bits(out, expected) ? kFine : "reduce_scatter: wrong bits";
}

/// Rank a sends to rank b; the others do nothing.
std::string check_point(Transport& group, uint32_t seed, size_t bytes) {
  std::mt19937 random(seed);
  const auto from = static_cast<uint32_t>(random() % group.size());
  const auto to = static_cast<uint32_t>((from + 1 + random() % (group.size() - 1)) % group.size());
  std::vector<std::byte> data(bytes);
  for (std::byte& b : data) b = static_cast<std::byte>(random());
  std::vector<std::byte> got(bytes);
  Status status;
  if (group.rank() == from) status = group.send(data, to);
  if (group.rank() == to) status = group.recv(got, from);
  if (!status) return status.error().message;
  return group.rank() != to || got == data ? kFine : "recv: wrong bytes";
}

/// Connects and hands over, or says why not.
std::string with_group(const Options& options, const std::function<std::string(Transport&)>& body) {
  auto group = connect(options);
  if (!group) return group.error().message;
  return body(**group);
}

std::string random_operations(Transport& group, uint32_t seed, int count) {
  std::mt19937 random(seed);  // the same choices on every rank
  for (int i = 0; i < count; ++i) {
    const auto choice = static_cast<uint32_t>(random() % 6);
    const auto inner = static_cast<uint32_t>(random());
    const size_t amount = random() % 4 == 0 ? random() % 60'000 : random() % 600;
    std::string result = kFine;
    if (choice == 0) result = check_sum(group, inner, amount);
    if (choice == 1) result = check_half_sum(group, Dtype::kBfloat16, amount);
    if (choice == 2) result = check_half_sum(group, Dtype::kFloat16, amount);
    if (choice == 3) result = check_gather(group, inner);
    if (choice == 4) result = check_scatter(group, inner, amount / 64, 64);
    if (choice == 5) result = check_point(group, inner, amount * 8);
    if (result != kFine) return result;
  }
  return kFine;
}

}  // namespace

TEST_CASE("transport: random operations give the reference's bits on 2 to 5 ranks") {
  for (const Kind kind : kKinds) {
    for (uint32_t size = 2; size <= 5; ++size) {
      CAPTURE(std::string(name(kind)));
      CAPTURE(size);
      Meetup meetup(kind, size);
      Ranks ranks(size, [&](uint32_t rank) {
        return with_group(meetup.options(rank),
                          [&](Transport& group) { return random_operations(group, size, 60); });
      });
      CHECK(ranks.results() == each(size, kFine));
    }
  }
}

TEST_CASE("transport: large messages pass in both directions at once") {
  for (const Kind kind : kKinds) {
    for (const uint32_t size : {2U, 3U}) {
      CAPTURE(std::string(name(kind)));
      Meetup meetup(kind, size);
      Ranks ranks(size, [&](uint32_t rank) {
        return with_group(meetup.options(rank), [&](Transport& group) {
          std::string result = check_sum(group, 1, 300'001);
          if (result == kFine) result = check_scatter(group, 2, 150, 2048);
          if (result == kFine) result = check_point(group, 3, 5'000'000);
          return result;
        });
      });
      CHECK(ranks.results() == each(size, kFine));
    }
  }
}

TEST_CASE("transport: a row's sum does not depend on its place or on the message's size") {
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Meetup meetup(kind, 3);
    Ranks ranks(3, [&](uint32_t rank) {
      return with_group(meetup.options(rank), [&](Transport& group) -> std::string {
        const size_t width = 2048;
        const std::vector<float> row = values(7, rank, width);
        const std::vector<float> expected = reference_sum(7, 3, width);
        for (const size_t rows : {1U, 2U, 5U, 40U}) {
          for (const size_t place : {size_t{0}, rows / 2, rows - 1}) {
            std::vector<float> data = values(8, rank, rows * width);
            std::ranges::copy(row, data.data() + place * width);
            if (auto status = group.all_sum(data.data(), data.size(), Dtype::kFloat32); !status) {
              return status.error().message;
            }
            const float* sum = data.data() + place * width;
            if (!same_bits(std::vector(sum, sum + width), expected)) return "other bits";
          }
        }
        return kFine;
      });
    });
    CHECK(ranks.results() == each(3, kFine));
  }
}

TEST_CASE("transport: split groups work side by side and with their parent") {
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Meetup meetup(kind, 5);
    Ranks ranks(5, [&](uint32_t rank) {
      return with_group(meetup.options(rank), [&](Transport& group) -> std::string {
        // Ranks 0, 2, 4 in reverse order, and 1, 3.
        auto part = group.split(static_cast<int>(rank % 2), rank % 2 == 0 ? -int(rank) : int(rank));
        if (!part) return part.error().message;
        const uint32_t expected = rank % 2 == 0 ? 2 - rank / 2 : rank / 2;
        if ((*part)->rank() != expected) return "wrong rank in the split group";
        if ((*part)->size() != (rank % 2 == 0 ? 3U : 2U)) return "wrong size of the split group";
        for (uint32_t i = 0; i < 5; ++i) {
          std::string result = random_operations(**part, i + rank % 2, 10);
          if (result == kFine) result = check_sum(group, i, 1000 * i);
          if (result != kFine) return result;
        }
        return kFine;
      });
    });
    CHECK(ranks.results() == each(5, kFine));
  }
}

TEST_CASE("transport: a group of one needs nobody") {
  for (const Kind kind : kKinds) {
    auto group = connect({.kind = kind});
    REQUIRE(group);
    CHECK(check_sum(**group, 1, 100) == kFine);
    CHECK(check_half_sum(**group, Dtype::kBfloat16, 100) == kFine);
    CHECK(check_gather(**group, 2) == kFine);
    CHECK(check_scatter(**group, 3, 4, 8) == kFine);
    CHECK((*group)->split(0, 0).value()->size() == 1);
  }
}

TEST_CASE("transport: ranks that are threads of one process work too") {
  for (const Kind kind : kKinds) {
    Meetup meetup(kind, 3);
    const auto results = on_threads(3, [&](uint32_t rank) {
      return with_group(meetup.options(rank),
                        [&](Transport& group) { return random_operations(group, 5, 40); });
    });
    CHECK(joined(results) == each(3, kFine));
  }
}

TEST_CASE("transport: waiting uses no CPU") {
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Meetup meetup(kind, 2);
    Ranks ranks(2, [&](uint32_t rank) {
      return with_group(meetup.options(rank), [&](Transport& group) -> std::string {
        if (rank == 1) std::this_thread::sleep_for(milliseconds(1000));  // what is waited for
        rusage before{};
        rusage after{};
        getrusage(RUSAGE_SELF, &before);
        std::string result = check_sum(group, 1, 16);
        getrusage(RUSAGE_SELF, &after);
        const auto used = [](const rusage& u) {
          return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1'000'000 + u.ru_utime.tv_usec +
                 u.ru_stime.tv_usec;
        };
        if (used(after) - used(before) > 50'000) return "used more than 5 %";
        return result;
      });
    });
    CHECK(ranks.results() == each(2, kFine));
  }
}

TEST_CASE("transport: shared memory leaves no file behind, even while in use") {
  const auto files = [] {
    size_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      found += entry.path().filename().string().starts_with("tandem") ? 1 : 0;
    }
    return found;
  };
  const size_t before = files();
  Meetup meetup(Kind::kSharedMemory, 2);
  const auto results = on_threads(2, [&](uint32_t rank) {
    return with_group(meetup.options(rank), [&](Transport& group) {
      return files() == before ? check_sum(group, 1, 10) : "a name in /dev/shm";
    });
  });
  CHECK(joined(results) == each(2, kFine));
  CHECK(files() == before);
}

}  // namespace tandem::comm
