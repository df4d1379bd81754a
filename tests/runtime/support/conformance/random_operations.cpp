#include <stdexcept>

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/sweep.h"
#include "runtime/support/conformance/types.h"
#include "runtime/support/expect.h"

namespace ddl::conformance {
namespace {

/// SplitMix64: the same numbers everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t end) {
    std::uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return ((x ^ (x >> 31)) >> 16) % end;
  }
  bool one_of(std::uint64_t sides) { return below(sides) == 0; }
  template <class List>
  auto pick(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::uint64_t state_;
};

std::vector<std::int32_t> drawn_ranks(Dice& dice, int size) {
  std::vector<std::int32_t> ranks, left(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) left[static_cast<std::size_t>(rank)] = rank;
  const auto count = 1 + dice.below(static_cast<std::uint64_t>(size));
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto at = left.begin() + static_cast<std::ptrdiff_t>(dice.below(left.size()));
    ranks.push_back(*at);
    left.erase(at);
  }
  return ranks;
}

/// A set whose members all ranks know, and whose number the members know.
struct KnownSet {
  std::vector<std::int32_t> ranks;
  std::uint64_t set = DDL_NO_PROCESS_SET;
};

KnownSet drawn_set(const Communicator& world, Dice& dice) {
  KnownSet known{drawn_ranks(dice, world.size)};
  expect_ok(ddl_process_set_create(world.context, known.ranks.data(),
                                   static_cast<std::int32_t>(known.ranks.size()), &known.set),
            "creating a process set");
  return known;
}

Trial drawn_trial(Dice& dice, int size) {
  constexpr double kScales[] = {1.0, 1.0, 1.0, 0.5, -0.3, 7.0};
  constexpr std::uint64_t kEnds[] = {2, 10, 60, 60, 400, 3000};
  Trial trial;
  trial.collective = dice.pick(kCollectives);
  trial.dtype = dice.pick(kTypesOfVersion01);
  std::vector<ddl_op> ops = further_ops_of(trial.dtype);
  if (trial.dtype != DDL_BOOL) ops.insert(ops.end(), std::begin(kArithmetic), std::end(kArithmetic));
  trial.op = dice.pick(ops);
  if (trial.collective == Collective::kScan && trial.op == DDL_AVERAGE) trial.op = DDL_SUM;
  // Sometimes large enough for the algorithms for large counts.
  trial.count = dice.below(dice.one_of(50) ? 20'000 : dice.pick(kEnds));
  trial.root = static_cast<int>(dice.below(static_cast<std::uint64_t>(size)));
  const int way = static_cast<int>(dice.below(kSplits));
  if (trial.collective == Collective::kAlltoallv) {
    trial.counts = split_pairs_of(trial.count, size, way);
  } else if (has_counts(trial.collective)) {
    trial.counts = split_of(trial.count, size, way);
  }
  if (has_op(trial.collective) && trial.dtype != DDL_BOOL) {
    trial.scales = {dice.pick(kScales), dice.pick(kScales)};
  }
  trial.buffers = dice.one_of(2) ? Buffers::kInPlace : Buffers::kApart;
  trial.seed = dice.below(1000);
  return trial;
}

}  // namespace

void check_random_operations(ddl_context* context, std::uint64_t seed, int operations) {
  const Communicator world = world_of(context);
  Dice dice(seed), own_dice(seed * 1009 + static_cast<std::uint64_t>(world.rank) + 1);
  std::vector<KnownSet> sets;
  for (int i = 0; i < 3; ++i) sets.push_back(drawn_set(world, dice));
  for (int operation = 0; operation < operations; ++operation) {
    try {
      if (dice.one_of(200)) {
        KnownSet& old = sets[dice.below(sets.size())];
        expect_ok(ddl_process_set_free(context, old.set), "freeing a process set");
        old = drawn_set(world, dice);
      }
      const std::uint64_t which = dice.below(sets.size() + 1);
      const bool on_world = which == sets.size();
      const int size = on_world ? world.size : static_cast<int>(sets[which].ranks.size());
      Trial trial = drawn_trial(dice, size);
      const bool in_heap = dice.one_of(3);
      if (!on_world && sets[which].set == DDL_NO_PROCESS_SET) continue;
      trial.shift = own_dice.below(4);
      if (in_heap && !own_dice.one_of(10)) trial.in_heap = true;
      check(on_world ? world : communicator_of(world, sets[which].set), trial);
    } catch (const std::exception& error) {
      throw std::runtime_error("operation " + std::to_string(operation) + " of seed " + std::to_string(seed) +
                               ": " + error.what());
    }
  }
  for (const KnownSet& known : sets)
    expect_ok(ddl_process_set_free(context, known.set), "freeing at the end");
  expect_ok(ddl_barrier(context, nullptr), "the barrier at the end");
}

}  // namespace ddl::conformance
