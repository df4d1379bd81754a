#include "launcher/job/host_name.h"

#include "base/text.h"
#include "launcher/job/host_list.h"
#include "support/catch.h"

using ddl::launcher::expand_brackets;
using ddl::launcher::kMaxHosts;

namespace {

std::string expanded(std::string_view pattern, std::size_t max_names = kMaxHosts) {
  const auto names = expand_brackets(pattern, max_names);
  return names ? ddl::join(*names, " ") : "error: " + names.error().message();
}

}  // namespace

TEST_CASE("brackets stand for every number and range in them") {
  CHECK(expanded("node1") == "node1");
  CHECK(expanded("") == "");
  CHECK(expanded("node[1-3,7]") == "node1 node2 node3 node7");
  CHECK(expanded("node[5]") == "node5");
  CHECK(expanded("node[3-3]-ib0") == "node3-ib0");
  CHECK(expanded("[1-2]a") == "1a 2a");
  CHECK(expanded("n[9-11]") == "n9 n10 n11");
  CHECK(expanded("n[0-2]") == "n0 n1 n2");
  CHECK(expanded("n[7,1-2,1]") == "n7 n1 n2 n1");
}

TEST_CASE("leading zeros are kept") {
  CHECK(expanded("n[01-03]") == "n01 n02 n03");
  CHECK(expanded("n[08-11]-ib0") == "n08-ib0 n09-ib0 n10-ib0 n11-ib0");
  CHECK(expanded("n[099-101]") == "n099 n100 n101");
  CHECK(expanded("n[08-100]").starts_with("n08 n09 n10"));
  CHECK(expanded("n[00-01]") == "n00 n01");
  CHECK(expanded("n[007]") == "n007");
  CHECK(expanded("n[01,2]") == "n01 n2");
}

TEST_CASE("of several brackets the last one counts fastest") {
  CHECK(expanded("r[1-2]n[01-03]x") == "r1n01x r1n02x r1n03x r2n01x r2n02x r2n03x");
  CHECK(expanded("a[1][2][3]") == "a123");
}

TEST_CASE("invalid brackets are refused") {
  for (const char* pattern :
       {"n[",      "n]",       "n[]",   "n[1",    "n1]",      "n[[1]]",  "n[1[2]]",
        "n]1[",    "n[a-c]",   "n[1-]", "n[-1]",  "n[1-2-3]", "n[1,]",   "n[,1]",
        "n[1,,2]", "n[1 - 2]", "n[+1]", "n[0x1]", "n[1-9:2]", "n[1..3]", "n[1234567890]"}) {
    INFO(pattern);
    CHECK_FALSE(expand_brackets(pattern, kMaxHosts));
  }
  CHECK_THAT(expanded("n[a-c]"), Catch::Contains("brackets hold numbers and ranges such as [1-3,7]"));
  CHECK_THAT(expanded("n[1"), Catch::Contains("brackets do not match"));
  CHECK_THAT(expanded("n[8-3]"), Catch::Contains("\"8-3\" runs backwards"));
}

TEST_CASE("a range with ambiguous padding is refused") {
  for (const char* pattern : {"n[1-016]", "n[001-16]", "n[01-016]", "n[0-07]"}) {
    INFO(pattern);
    CHECK_THAT(expanded(pattern), Catch::Contains("different numbers of digits"));
  }
}

TEST_CASE("more names than allowed are refused before any is made") {
  CHECK(expand_brackets("n[1-65536]", kMaxHosts)->size() == 65536);
  CHECK(expand_brackets("n[1-256]m[1-256]", kMaxHosts)->size() == 65536);
  for (const char* pattern :
       {"n[0-65536]", "n[1-257]m[1-256]", "n[0-999999999]", "[0-999999999][0-999999999][0-999999999]a",
        "n[0-999999999,0-999999999,0-999999999]"}) {
    INFO(pattern);
    CHECK_THAT(expanded(pattern), Catch::Contains("stands for more than 65536 hosts"));
  }
  CHECK(expanded("n[1-2]", 2) == "n1 n2");
  CHECK_THAT(expanded("n[1-3]", 2), Catch::Contains("more than 2 hosts"));
  CHECK_THAT(expanded("n", 0), Catch::Contains("more than 0 hosts"));
}
