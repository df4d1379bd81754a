#include "ddl/training/sampler.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "support/catch.h"

namespace sampler_cases {

using ddl::training::DistributedSampler;
using ddl::training::permutation;
using ddl::training::SamplerState;
using ddl::training::Shares;
using Numbers = std::vector<std::uint64_t>;

std::vector<DistributedSampler> all_ranks(std::uint64_t samples, int size, Shares shares = Shares::kExact,
                                          bool shuffle = true, std::uint64_t seed = 0) {
  std::vector<DistributedSampler> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(samples, rank, size, shuffle, seed, shares);
  return ranks;
}

Numbers whole(std::uint64_t samples) {
  Numbers numbers(samples);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  return numbers;
}

Numbers sorted(Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// An epoch that is cut several times and goes on with another number of ranks each time: what was trained on, and at the
/// cuts only the state of rank 0 is left. Samples are prefetched before each cut and then lost.
Numbers train_with_cuts(std::mt19937& random, std::uint64_t samples, std::uint64_t epoch) {
  Numbers trained;
  SamplerState state{17, epoch, 0};
  for (bool is_over = false; !is_over;) {
    const int size = static_cast<int>(random() % 5) + 1;
    std::vector<DistributedSampler> ranks = all_ranks(samples, size);
    for (DistributedSampler& rank : ranks) rank.load_state(state);
    const std::uint64_t longest = ranks[0].size();
    // At the last cut behind the end: the epoch is over.
    const std::uint64_t steps = longest > 0 ? random() % (longest + 1) : 0;
    for (DistributedSampler& rank : ranks) {
      const Numbers own = rank.indices();
      CHECK(own.size() == rank.size());
      CHECK(own.size() <= longest);
      trained.insert(trained.end(), own.begin(),
                     own.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(steps, own.size())));
      rank.record(steps);
    }
    state = ranks[0].state();
    is_over = ranks[0].size() == 0;
    for (const DistributedSampler& rank : ranks) CHECK(rank.state().done == state.done);
  }
  CHECK(state.done == samples);
  return trained;
}

TEST_CASE("the order of an epoch is the same everywhere") {
  // Computed by another implementation of seed_seq and of the generator, from the text of the C++ standard.
  CHECK(permutation(10, 0, 0) == Numbers{8, 2, 3, 5, 1, 6, 9, 7, 0, 4});
  CHECK(permutation(10, 0, 1) == Numbers{1, 7, 2, 0, 6, 9, 3, 4, 5, 8});
  CHECK(permutation(10, 7, 3) == Numbers{2, 8, 0, 1, 3, 6, 4, 5, 9, 7});
  // The upper half of the seed counts, too.
  CHECK(permutation(10, (std::uint64_t{1} << 40) + 7, 3) == Numbers{9, 7, 5, 6, 0, 2, 4, 3, 1, 8});
  CHECK(permutation(0, 1, 1).empty());
  CHECK(permutation(1, 1, 1) == Numbers{0});
  CHECK(sorted(permutation(1000, 5, 6)) == whole(1000));
}

TEST_CASE("a draw that would make some numbers likelier is drawn again") {
  struct Given {
    Numbers numbers;
    std::size_t next = 0;
    std::uint64_t operator()() { return numbers.at(next++); }
  };
  constexpr std::uint64_t kQuarter = std::uint64_t{1} << 62;
  Given given{{~std::uint64_t{0}, 3 * kQuarter, 3 * kQuarter - 1, 5}};
  CHECK(ddl::training::detail::draw_below(given, 3 * kQuarter) == 3 * kQuarter - 1);
  CHECK(given.next == 3);
  Given power_of_two{{~std::uint64_t{0}}};
  CHECK(ddl::training::detail::draw_below(power_of_two, 8) == 7);
}

TEST_CASE("all orders of few samples are about as frequent") {
  std::map<Numbers, int> counts;
  for (std::uint64_t epoch = 0; epoch < 6000; ++epoch) ++counts[permutation(3, 1, epoch)];
  CHECK(counts.size() == 6);
  // 1000 each; the standard deviation is 29, and the numbers are always the same ones.
  for (const auto& one : counts) CHECK((one.second > 870 && one.second < 1130));
}

TEST_CASE("sampler_each_once_and_resumes_at_other_n") {
  std::mt19937 random(4711);
  for (const std::uint64_t samples : {0, 1, 2, 3, 4, 5, 7, 12, 31, 60, 101, 257}) {
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
      INFO(samples << " samples, epoch " << epoch);
      CHECK(sorted(train_with_cuts(random, samples, epoch)) == whole(samples));
    }
  }
}

TEST_CASE("each rank trains on its place of the order, as in Python") {
  for (int size = 1; size <= 5; ++size) {
    std::vector<DistributedSampler> ranks = all_ranks(23, size, Shares::kExact, true, 9);
    for (DistributedSampler& rank : ranks) rank.set_epoch(2);
    const Numbers order = permutation(23, 9, 2);
    for (int rank = 0; rank < size; ++rank) {
      Numbers expected;
      for (std::size_t i = rank; i < order.size(); i += size) expected.push_back(order[i]);
      CHECK(ranks[rank].indices() == expected);
    }
  }
  CHECK(DistributedSampler(9, 1, 4, false).indices() == Numbers{1, 5});
  CHECK(DistributedSampler(9, 0, 4, false).indices() == Numbers{0, 4, 8});
}

TEST_CASE("samples that were only prefetched are not done") {
  DistributedSampler sampler(20, 0, 2);
  const Numbers own = sampler.indices();
  CHECK(sampler.state().done == 0);
  sampler.record(3);
  CHECK(sampler.state().done == 6);
  const Numbers rest = sampler.indices();
  CHECK(rest == Numbers(own.begin() + 3, own.end()));
  sampler.record(7);
  CHECK(sampler.indices().empty());
  CHECK(sampler.state().done == 20);
  sampler.record(1);
  CHECK(sampler.state().done == 20);
  sampler.set_epoch(1);
  CHECK(sampler.epoch() == 1);
  CHECK(sampler.size() == 10);
}

TEST_CASE("shares are padded or cut as PyTorch does it") {
  // What torch.utils.data.DistributedSampler(range(10), 4, rank, shuffle=False, drop_last=...) gives.
  const std::vector<Numbers> padded = {{0, 4, 8}, {1, 5, 9}, {2, 6, 0}, {3, 7, 1}};
  const std::vector<Numbers> cut = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(DistributedSampler(10, rank, 4, false, 0, Shares::kPadded).indices() == padded[rank]);
    CHECK(DistributedSampler(10, rank, 4, false, 0, Shares::kCut).indices() == cut[rank]);
  }
  // Fewer samples than ranks: 3 of 5 on 7 ranks, and 1 on 4.
  CHECK(DistributedSampler(5, 6, 7, false, 0, Shares::kPadded).indices() == Numbers{1});
  CHECK(DistributedSampler(1, 3, 4, false, 0, Shares::kPadded).indices() == Numbers{0});
  CHECK(DistributedSampler(3, 0, 4, false, 0, Shares::kCut).indices().empty());
  CHECK(DistributedSampler(0, 0, 4, false, 0, Shares::kPadded).indices().empty());
  // Nothing to do: 12 samples on 4 ranks.
  for (const Shares shares : {Shares::kExact, Shares::kPadded, Shares::kCut})
    CHECK(DistributedSampler(12, 3, 4, false, 0, shares).indices() == Numbers{3, 7, 11});
}

TEST_CASE("the rest of an epoch is padded or cut for another number of ranks") {
  SamplerState state;
  {
    DistributedSampler sampler(11, 0, 4, false, 0, Shares::kPadded);
    sampler.record(1);
    state = sampler.state();
  }
  CHECK(state.done == 4);
  // 4 to 10 are left, seven samples for three ranks.
  const std::vector<Numbers> padded = {{4, 7, 10}, {5, 8, 0}, {6, 9, 1}};
  const std::vector<Numbers> cut = {{4, 7}, {5, 8}, {6, 9}};
  for (int rank = 0; rank < 3; ++rank) {
    DistributedSampler by_padding(11, rank, 3, false, 0, Shares::kPadded);
    by_padding.load_state(state);
    CHECK(by_padding.indices() == padded[rank]);
    DistributedSampler by_cutting(11, rank, 3, false, 0, Shares::kCut);
    by_cutting.load_state(state);
    CHECK(by_cutting.indices() == cut[rank]);
  }
  // The same process in another generation of an elastic job.
  DistributedSampler sampler(11, 3, 4, false, 0, Shares::kCut);
  sampler.record(1);
  sampler.set_rank(2, 3);
  CHECK(sampler.indices() == cut[2]);
}

TEST_CASE("common_batches is the same on all ranks") {
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(DistributedSampler(27, rank, 4).common_batches(3) == 2);
    CHECK(DistributedSampler(27, rank, 4).common_batches(7) == 0);
    CHECK(DistributedSampler(27, rank, 4, true, 0, Shares::kPadded).common_batches(7) == 1);
  }
  DistributedSampler sampler(27, 1, 4);
  sampler.record(3);
  CHECK(sampler.common_batches(3) == 1);
}

TEST_CASE("a sampler refuses what cannot be") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(DistributedSampler(5, 2, 2), Contains("0 to size - 1"));
  CHECK_THROWS_WITH(DistributedSampler(5, -1, 2), Contains("0 to size - 1"));
  CHECK_THROWS_WITH(DistributedSampler(5, 0, 0), Contains("0 to size - 1"));
  DistributedSampler sampler(5, 0, 2);
  CHECK_THROWS_WITH(sampler.set_rank(3, 3), Contains("0 to size - 1"));
  CHECK_THROWS_WITH(DistributedSampler(5, 0, 2).load_state({0, 0, 6}), Contains("another data set"));
  CHECK_THROWS_WITH(DistributedSampler(5, 0, 2).common_batches(0), Contains("at least one sample"));
}

}  // namespace sampler_cases
