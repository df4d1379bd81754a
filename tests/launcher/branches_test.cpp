#include "launcher/fleet/fleet.h"

#include "support/catch.h"

using namespace ddl::launcher;

namespace {

std::vector<int> nodes(int count) {
  std::vector<int> list;
  for (int i = 0; i < count; ++i) list.push_back(100 + i);
  return list;
}

}  // namespace

TEST_CASE("without a fan-out, or with a large one, every node is a branch of its own") {
  for (const int fan_out : {0, 3, 1000}) {
    CHECK(divide(nodes(3), fan_out) == std::vector<Branch>{{100, {}}, {101, {}}, {102, {}}});
  }
  CHECK(divide({}, 0).empty());
  CHECK(divide({}, 8).empty());
}

TEST_CASE("a fan-out divides the nodes into branches of nearly the same size, in order") {
  CHECK(divide(nodes(5), 2) == std::vector<Branch>{{100, {101}}, {102, {103, 104}}});
  CHECK(divide(nodes(3), 1) == std::vector<Branch>{{100, {101, 102}}});
  for (std::size_t count = 1; count < 100; ++count) {
    for (int fan_out = 1; fan_out < 20; ++fan_out) {
      const auto branches = divide(nodes(count), fan_out);
      CHECK(branches.size() == std::min(count, static_cast<std::size_t>(fan_out)));
      std::vector<int> all;
      std::size_t smallest = count, largest = 0;
      for (const Branch& branch : branches) {
        all.push_back(branch.first);
        all.insert(all.end(), branch.rest.begin(), branch.rest.end());
        smallest = std::min(smallest, branch.rest.size());
        largest = std::max(largest, branch.rest.size());
      }
      REQUIRE(all == nodes(count));
      REQUIRE(largest - smallest <= 1);
    }
  }
}
