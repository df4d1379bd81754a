#include "affinity/cpu_set.h"

#include "support/catch.h"

using ddl::affinity::CpuSet;

TEST_CASE("lists are read and written as Linux does") {
  for (const char* list : {"", "0", "0-3", "0-3,8,10-11", "63-64,127-129", "1023"}) {
    const auto set = CpuSet::parse_list(list);
    REQUIRE(set);
    CHECK(set->list() == list);
  }
  CHECK(CpuSet::parse_list(" 3 , 1 ")->list() == "1,3");
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
