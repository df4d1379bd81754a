#include "launcher/job/job_report.h"

#include "support/catch.h"

using ddl::launcher::rank_ranges;
using ddl::launcher::ranks_text;

TEST_CASE("neighbouring ranks are written as ranges") {
  CHECK(rank_ranges({}).empty());
  CHECK(rank_ranges({3}) == "3");
  CHECK(rank_ranges({0, 1}) == "0, 1");
  CHECK(rank_ranges({0, 1, 2}) == "0-2");
  CHECK(rank_ranges({0, 2, 3, 4, 5, 7}) == "0, 2-5, 7");
  CHECK(ranks_text({7}) == "rank 7");
  CHECK(ranks_text({0, 2, 3, 4}) == "ranks 0, 2-4");
}

TEST_CASE("ranges beyond the first dozen are summarised as a number of ranks") {
  std::vector<int> even;
  for (int rank = 0; rank < 200; rank += 2) even.push_back(rank);
  CHECK(rank_ranges(even) == "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 88 more");
  std::vector<int> all(100'000);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  CHECK(rank_ranges(all) == "0-99999");
}
