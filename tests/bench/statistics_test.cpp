#include "bench/statistics.h"

#include <algorithm>
#include <random>

#include "support/catch.h"

namespace ddl::bench {
namespace {

TEST_CASE("the median is the middle value, or between the two middle ones") {
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 5}) == 5);
  CHECK(median({4, 1, 3, 2}) == 2.5);
  CHECK(median({1, 1, 1, 1000}) == 1);
}

TEST_CASE("a percentile is a value that was measured") {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  CHECK(percentile(values, 0.01) == 1);
  CHECK(percentile(values, 0.07) == 7);
  CHECK(percentile(values, 0.5) == 50);
  CHECK(percentile(values, 0.99) == 99);
  CHECK(percentile(values, 1.0) == 100);
  CHECK(percentile({5, 4}, 0.99) == 5);
  CHECK(percentile({5}, 0.01) == 5);
}

TEST_CASE("each block runs every contender there and back") {
  CHECK(abba_order(2, 0) == std::vector<std::size_t>{0, 1, 1, 0});
  CHECK(abba_order(2, 1) == std::vector<std::size_t>{1, 0, 0, 1});
  CHECK(abba_order(3, 1) == std::vector<std::size_t>{1, 2, 0, 0, 2, 1});
  CHECK(abba_order(0, 3).empty());
  for (std::size_t count = 1; count <= 6; ++count) {
    for (std::size_t block = 0; block < 2 * count; ++block) {
      const auto order = abba_order(count, block);
      // A palindrome: the mean position of every contender in the block is the same, so linear drift cancels.
      CHECK(std::equal(order.begin(), order.end(), order.rbegin()));
      for (std::size_t contender = 0; contender < count; ++contender) {
        CHECK(std::count(order.begin(), order.end(), contender) == 2);
      }
    }
  }
}

TEST_CASE("over as many blocks as contenders, each contender takes each position once") {
  constexpr std::size_t kCount = 5;
  for (std::size_t position = 0; position < kCount; ++position) {
    std::vector<std::size_t> seen;
    for (std::size_t block = 0; block < kCount; ++block) seen.push_back(abba_order(kCount, block)[position]);
    std::sort(seen.begin(), seen.end());
    CHECK(seen == std::vector<std::size_t>{0, 1, 2, 3, 4});
  }
}

TEST_CASE("a paired ratio compares within blocks, so a slow block does not count") {
  const std::vector<double> subject{1, 10, 2, 500, 3};
  const std::vector<double> peer{2, 20, 4, 1000, 6};
  const PairedRatio found = paired_ratio(subject, peer);
  CHECK(found.ratio == Approx(0.5));
  CHECK(found.low == Approx(0.5));
  CHECK(found.high == Approx(0.5));
}

TEST_CASE("a paired ratio is symmetric, for even and odd numbers of blocks") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> times(0.5, 2.0);
  for (std::size_t blocks = 1; blocks <= 12; ++blocks) {
    std::vector<double> a(blocks);
    std::vector<double> b(blocks);
    std::generate(a.begin(), a.end(), [&] { return times(random); });
    std::generate(b.begin(), b.end(), [&] { return times(random); });
    const PairedRatio forward = paired_ratio(a, b);
    const PairedRatio backward = paired_ratio(b, a);
    CHECK(forward.ratio == Approx(1 / backward.ratio));
    CHECK(forward.low == Approx(1 / backward.high));
    CHECK(forward.high == Approx(1 / backward.low));
    CHECK(forward.low <= forward.ratio);
    CHECK(forward.ratio <= forward.high);
  }
}

TEST_CASE("the A/A spread covers nine of ten blocks, in either direction") {
  const std::vector<double> first(10, 1.0);
  CHECK(aa_spread(first, first) == 1);
  std::vector<double> second(10, 1.0);
  second[3] = 100;  // one block in ten may be disturbed
  CHECK(aa_spread(first, second) == 1);
  second[4] = 0.8;
  CHECK(aa_spread(first, second) == Approx(1.25));
  CHECK(aa_spread(second, first) == Approx(1.25));
  const std::vector<double> few_first{1, 1};
  const std::vector<double> few_second{1, 1.5};
  CHECK(aa_spread(few_first, few_second) == Approx(1.5));
}

TEST_CASE("a difference within the spread is equal, and a loss is reported as one") {
  const auto tight = [](double ratio) { return PairedRatio{ratio, ratio * 0.999, ratio * 1.001}; };
  CHECK(conclude(tight(1.04), 1.05) == Conclusion::kEqual);
  CHECK(conclude(tight(0.96), 1.05) == Conclusion::kEqual);
  CHECK(conclude(tight(1.06), 1.05) == Conclusion::kSlower);
  CHECK(conclude(tight(0.94), 1.05) == Conclusion::kFaster);
  CHECK(conclude({1, 1, 1}, 1.0) == Conclusion::kEqual);
  CHECK(conclusion_text(tight(1.8), 1.05) == "1.80x slower");
  CHECK(conclusion_text(tight(0.4), 1.05) == "2.50x faster");
  CHECK(conclusion_text(tight(1.02), 1.034) == "equal (within 4%)");
}

TEST_CASE("a difference on which the blocks do not agree is equal, and its size is printed") {
  CHECK(conclude({1.2, 0.99, 1.5}, 1.05) == Conclusion::kEqual);
  CHECK(conclude({0.8, 0.7, 1.01}, 1.05) == Conclusion::kEqual);
  CHECK(conclusion_text({1.2, 0.99, 1.5}, 1.05) == "equal (within 20%)");
  CHECK(conclusion_text({0.8, 0.7, 1.01}, 1.05) == "equal (within 25%)");
}

}  // namespace
}  // namespace ddl::bench
