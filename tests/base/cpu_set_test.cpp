#include "base/cpu_set.h"

#include <sched.h>

#include <cerrno>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/catch.h"

using ddl::CpuSet;

TEST_CASE("a thread reads the CPUs that it may run on, and binds itself to some of them") {
  const CpuSet all = CpuSet::allowed();
  cpu_set_t kernel;
  REQUIRE(::sched_getaffinity(0, sizeof kernel, &kernel) == 0);
  CHECK(all.count() == CPU_COUNT(&kernel));
  const CpuSet last = CpuSet::of({all.cpus().back()});
  int status = -1, refused = 0;
  CpuSet bound;
  std::thread([&] {
    status = last.bind_this_thread();
    bound = CpuSet::allowed();
    refused = (last | CpuSet::of({ddl::kMaxCpuNumbers - 1})).bind_this_thread();
  }).join();
  CHECK(status == 0);
  CHECK(bound == last);
  CHECK(refused == EINVAL);  // the kernel leaves the other CPU out without an error
  CHECK(CpuSet::allowed() == all);
}

TEST_CASE("lists are read and written as Linux does") {
  for (const char* list : {"", "0", "0-3", "0-3,8,10-11", "63-64,127-129", "1023"}) {
    const auto set = CpuSet::parse_list(list);
    REQUIRE(set);
    CHECK(set->list() == list);
  }
  CHECK(CpuSet::parse_list(" 3 , 1 ")->list() == "1,3");
  CHECK(CpuSet::parse_list("0-3,8\n")->list() == "0-3,8");  // as /sys ends a line
  CHECK(CpuSet::parse_list("2-4,3-8")->list() == "2-8");
  for (const char* list : {",", "1,", "a", "1-", "-1", "3-1", "1-2-3", "65536", "99999999999", "0x3"}) {
    CAPTURE(list);
    CHECK_FALSE(CpuSet::parse_list(list));
  }
}

TEST_CASE("masks have no leading zeros and any width") {
  CHECK(CpuSet().mask() == "0x0");
  CHECK(CpuSet::range(49, 55).mask() == "0xfe000000000000");
  CHECK(CpuSet::of({64}).mask() == "0x10000000000000000");
  CHECK(CpuSet::of({0, 287}).mask() == "0x80000000" + std::string(63, '0') + "1");
}

TEST_CASE("a set is its bit mask in words, without zeros at the end") {
  const CpuSet set = CpuSet::of({1, 64, 130});
  const std::vector<std::uint64_t> words(set.words().begin(), set.words().end());
  CHECK(words == std::vector<std::uint64_t>{2, 1, 4});
  CHECK(CpuSet::of_words(std::vector<std::uint64_t>{2, 1, 4, 0, 0}) == set);
  CHECK(CpuSet::of_words(std::vector<std::uint64_t>(128)).is_empty());
  CHECK(CpuSet().words().empty());
}

TEST_CASE("sets of different widths are combined") {
  const CpuSet low = CpuSet::range(0, 7), high = CpuSet::range(4, 130);
  CHECK((low & high).list() == "4-7");
  CHECK((low | high).list() == "0-130");
  CHECK((high - low).list() == "8-130");
  CHECK((low - high).list() == "0-3");
  CHECK((high - high) == CpuSet());
  CHECK(low.intersects(high));
  CHECK(CpuSet::of({5}).is_subset_of(low));
  CHECK_FALSE(high.is_subset_of(low));
  CHECK(high.first() == 4);
  CHECK(high.count() == 127);
  CHECK(CpuSet().first() == -1);
  CpuSet one = CpuSet::of({200});
  one.remove(200);
  CHECK(one == CpuSet());
}
