#include "base/fd.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>

namespace tandem {
namespace {

bool is_open(int fd) { return ::lseek(fd, 0, SEEK_CUR) >= 0 || errno != EBADF; }

int opened() {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[1]);
  return ends[0];
}

TEST_CASE("fd: a descriptor is closed once, by its last owner") {
  const int first = opened();
  const int second = opened();
  {
    Fd owner(first);
    Fd next(std::move(owner));
    CHECK(!owner);  // NOLINT(bugprone-use-after-move)
    CHECK(next.get() == first);
    next = Fd(second);
    CHECK(!is_open(first));
    CHECK(is_open(second));
  }
  CHECK(!is_open(second));
}

}  // namespace
}  // namespace tandem
