#include "launcher/head/io_forwarding.h"

#include "support/catch.h"

namespace ddl::launcher {
namespace {

using Nodes = std::vector<int>;

TEST_CASE("standard input advances as far as the slowest node") {
  StdinTakers takers({2, 5});
  CHECK(takers.nodes() == Nodes{2, 5});
  CHECK(takers.take(2, 100) == 0);
  CHECK(takers.take(5, 30) == 30);
  CHECK(takers.take(5, 90) == 70);
  CHECK(takers.take(2, 10) == 10);
}

TEST_CASE("a node that does not read standard input neither blocks nor ends it") {
  StdinTakers takers({2});
  CHECK(takers.take(0, 1000) == 0);
  CHECK(takers.close(0) == 0);
  CHECK_FALSE(takers.is_empty());
  CHECK(takers.take(2, 7) == 7);
}

TEST_CASE("once the slowest node has closed, the others count, and none is left at the end") {
  StdinTakers takers({1, 2, 3});
  CHECK(takers.take(1, 100) == 0);
  CHECK(takers.take(2, 60) == 0);
  CHECK(takers.close(3) == 60);
  CHECK(takers.close(2) == 40);
  CHECK_FALSE(takers.is_empty());
  CHECK(takers.close(1) == 0);
  CHECK(takers.is_empty());
}

}  // namespace
}  // namespace ddl::launcher
