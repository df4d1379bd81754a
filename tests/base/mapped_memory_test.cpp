#include "base/fd.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "support/catch.h"

using ddl::MappedMemory;
using ddl::UniqueFd;

namespace {

constexpr std::size_t kSize = 8192;

UniqueFd make_memory() {
  UniqueFd fd(::memfd_create("ddl-test", MFD_CLOEXEC));
  REQUIRE(fd);
  REQUIRE(::ftruncate(fd.get(), kSize) == 0);
  return fd;
}

/// msync(2) knows whether an address is mapped: ENOMEM if not.
bool is_mapped(std::byte* address) { return ::msync(address, kSize, MS_ASYNC) == 0; }

}  // namespace

TEST_CASE("two mappings of one descriptor are the same memory, also after it is closed") {
  UniqueFd fd = make_memory();
  auto first = MappedMemory::map_shared(fd.get(), kSize);
  auto second = MappedMemory::map_shared(fd.get(), kSize);
  REQUIRE((first && second));
  fd.reset();
  CHECK(first->size() == kSize);
  CHECK(first->data() != second->data());
  std::memcpy(first->data() + kSize - 5, "five", 5);
  CHECK(std::memcmp(second->data() + kSize - 5, "five", 5) == 0);
}

TEST_CASE("a mapping ends with its owner, and moves with it") {
  const UniqueFd fd = make_memory();
  std::byte* address = nullptr;
  {
    auto mapped = MappedMemory::map_shared(fd.get(), kSize);
    REQUIRE(mapped);
    address = mapped->data();
    MappedMemory owner;
    owner = std::move(*mapped);
    CHECK(owner.data() == address);
    CHECK(is_mapped(address));
    const MappedMemory last(std::move(owner));
    // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): what it holds then is the point.
    CHECK(owner.data() == nullptr);
    CHECK(owner.size() == 0);
    CHECK(is_mapped(address));
  }
  CHECK_FALSE(is_mapped(address));
}

TEST_CASE("a failed mapping is an error that gives the size") {
  const auto bad = MappedMemory::map_shared(-1, kSize);
  REQUIRE_FALSE(bad);
  CHECK(bad.error().system_errno() == EBADF);
  CHECK_THAT(bad.error().message(), Catch::Contains("8192 bytes"));
  const UniqueFd fd = make_memory();
  CHECK_FALSE(MappedMemory::map_shared(fd.get(), 0));
}
