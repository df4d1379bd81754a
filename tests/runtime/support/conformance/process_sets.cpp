#include "runtime/support/conformance/process_sets.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/mismatch.h"
#include "runtime/support/conformance/sweep.h"
#include "runtime/support/expect.h"

namespace ddl::conformance {

void expect_refused(ddl_status status, const std::string& part) {
  expect_status(status, DDL_ERROR_INVALID_ARGUMENT, "a bad argument (" + part + ")");
  expect_contains(ddl_last_error(), part);
}

void check_collectives(const Communicator& comm) {
  int turn = 0;
  for (const Collective collective : kCollectives) {
    Trial trial;
    trial.collective = collective;
    trial.count = 37;
    trial.root = turn++ % comm.size;
    trial.counts = collective == Collective::kAlltoallv ? split_pairs_of(37, comm.size, turn)
                                                        : split_of(37, comm.size, turn);
    check(comm, trial);
  }
  const ddl_call_options options = comm.options();
  expect_ok(ddl_barrier(comm.context, &options), "barrier of a process set");
}

void check_set(const Communicator& world, std::uint64_t set, const Ranks& wanted) {
  if (std::find(wanted.begin(), wanted.end(), world.rank) == wanted.end()) {
    expect(set == DDL_NO_PROCESS_SET, "a rank that is not in the list got a process set");
    return;
  }
  expect(set != DDL_NO_PROCESS_SET && set != DDL_WORLD && set != kUntouched, "a member got no process set");
  const Communicator comm = communicator_of(world, set);
  expect(comm.ranks == wanted, "the ranks of a process set are wrong");
  check_collectives(comm);
}

namespace {

std::uint64_t create(const Communicator& world, const Ranks& ranks) {
  std::uint64_t set = kUntouched;
  expect_ok(
      ddl_process_set_create(world.context, ranks.data(), static_cast<std::int32_t>(ranks.size()), &set),
      "creating a process set");
  return set;
}

std::uint64_t split(const Communicator& world, std::uint64_t parent, int color, int key) {
  std::uint64_t set = kUntouched;
  expect_ok(ddl_process_set_split(world.context, parent, color, key, &set), "splitting a process set");
  return set;
}

void free_set(const Communicator& world, std::uint64_t set) {
  expect_ok(ddl_process_set_free(world.context, set), "freeing a process set");
}

void check_lists(const Communicator& world) {
  Ranks all(static_cast<std::size_t>(world.size));
  std::iota(all.begin(), all.end(), 0);
  Ranks reversed(all.rbegin(), all.rend()), evens, ends = {world.size - 1};
  for (int rank = 0; rank < world.size; rank += 2) evens.push_back(rank);
  if (world.size > 1) ends.push_back(0);
  // All sets exist at the same time: they do not affect each other.
  const std::vector<Ranks> lists = {all, reversed, evens, ends, {world.size / 2}};
  std::vector<std::uint64_t> sets;
  for (const Ranks& list : lists) sets.push_back(create(world, list));
  std::set<std::uint64_t> numbers;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    check_set(world, sets[i], lists[i]);
    if (sets[i] != DDL_NO_PROCESS_SET)
      expect(numbers.insert(sets[i]).second, "two sets have the same number");
  }
  for (std::size_t i = lists.size(); i-- > 0;) {
    if (i % 2 == 0) free_set(world, sets[i]);
  }
  check_set(world, sets[1], lists[1]);
  check_set(world, sets[3], lists[3]);
  free_set(world, sets[1]);
  free_set(world, sets[3]);
  check_collectives(world);
}

/// The expected result of a split: the ranks with this rank's color, by key and then by rank in parent.
Ranks split_by(const Ranks& parent, int own, int (*color)(int), int (*key)(int)) {
  Ranks ranks;
  for (const int rank : parent) {
    if (color(rank) == color(own)) ranks.push_back(rank);
  }
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return key(a) < key(b); });
  return ranks;
}

void check_splits(const Communicator& world) {
  Ranks all(static_cast<std::size_t>(world.size));
  std::iota(all.begin(), all.end(), 0);
  const auto by_two = [](int rank) { return rank % 2; };
  const auto backwards = [](int rank) { return -rank; };
  const auto by_three = [](int rank) { return rank / 3; };
  const auto unsorted = [](int rank) { return (rank * 5 + 2) % 4; };
  const auto equal = [](int) { return 7; };

  // In two, backwards; each half again, by keys of which some are equal; those again, keeping their order.
  const Ranks half = split_by(all, world.rank, by_two, backwards);
  const std::uint64_t half_set = split(world, DDL_WORLD, by_two(world.rank), backwards(world.rank));
  check_set(world, half_set, half);
  const Ranks third = split_by(half, world.rank, by_three, unsorted);
  const std::uint64_t third_set = split(world, half_set, by_three(world.rank), unsorted(world.rank));
  check_set(world, third_set, third);
  const Ranks same = split_by(third, world.rank, equal, equal);
  expect(same == third, "the test's own reference");
  const std::uint64_t same_set = split(world, third_set, 1'000'000, 7);
  check_set(world, same_set, same);
  // A parent may be freed before its children.
  free_set(world, half_set);
  check_set(world, third_set, third);
  check_set(world, same_set, same);
  free_set(world, third_set);
  free_set(world, same_set);

  // Each rank in turn gives a negative color.
  for (int left_out = 0; left_out < world.size; ++left_out) {
    const std::uint64_t set = split(world, DDL_WORLD, world.rank == left_out ? -1 : 0, 0);
    Ranks others = all;
    others.erase(others.begin() + left_out);
    check_set(world, set, others);
    free_set(world, set);
  }
  expect(split(world, DDL_WORLD, -5, 3) == DDL_NO_PROCESS_SET, "a color below 0 made a process set");
}

void check_many_times(const Communicator& world) {
  std::set<std::uint64_t> numbers;
  for (int round = 0; round < 60; ++round) {
    const Ranks ranks = {round % world.size};
    const std::uint64_t single = create(world, ranks);
    const std::uint64_t set = split(world, DDL_WORLD, round % 2, round % 3 == 0 ? -world.rank : 0);
    expect(numbers.insert(set).second, "the number of a freed set was used again");
    Trial trial;
    trial.count = 3;
    check(communicator_of(world, set), trial);
    free_set(world, set);
    free_set(world, single);
  }
}

/// One thread for each of several sets and one for the world, each with calls of its own at its own pace.
void check_threads(const Communicator& world) {
  Ranks all(static_cast<std::size_t>(world.size));
  std::iota(all.begin(), all.end(), 0);
  const Ranks reversed(all.rbegin(), all.rend());
  const std::uint64_t sets[] = {create(world, all), create(world, reversed),
                                split(world, DDL_WORLD, world.rank % 2, 0)};
  std::vector<Communicator> comms = {world};
  for (const std::uint64_t set : sets) comms.push_back(communicator_of(world, set));
  std::vector<std::string> failures(comms.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < comms.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        for (std::size_t round = 0; round < 5 + 5 * i; ++round) check_collectives(comms[i]);
      } catch (const std::exception& error) {
        failures[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) expect(failure.empty(), "of several threads: " + failure);
  for (const std::uint64_t set : sets) free_set(world, set);
}

/// In a set of the job's last and first rank, in this order, where ranks of the job and of the set differ.
void check_mismatches_inside(const Communicator& world) {
  if (world.size < 2) return;
  const std::uint64_t set = create(world, {world.size - 1, 0});
  if (set != DDL_NO_PROCESS_SET) {
    const Communicator comm = communicator_of(world, set);
    for (const Disagreement& disagreement : disagreements()) {
      for (int mismatched_rank = 0; mismatched_rank < 2; ++mismatched_rank)
        check_mismatch(comm, disagreement.usual, disagreement.mismatched[0], mismatched_rank);
    }
    for (int mismatched_rank = 0; mismatched_rank < 2; ++mismatched_rank)
      check_too_little_room(comm, mismatched_rank);
    check_collectives(comm);
  }
  free_set(world, set);
  check_collectives(world);
}

/// Making sets is a call like others: a rank that calls something else, or has another list, is named.
void check_mismatches_of_making(const Communicator& world) {
  if (world.size < 2) return;
  const std::int32_t all[] = {0, 1};
  for (int mismatched_rank = 0; mismatched_rank < world.size; ++mismatched_rank) {
    const bool is_mismatched = world.rank == mismatched_rank;
    std::uint64_t set = kUntouched;
    expect_status(ddl_process_set_create(world.context, all, is_mismatched ? 1 : 2, &set), DDL_ERROR_MISMATCH,
                  "lists of different lengths");
    expect_contains(ddl_last_error(), "rank " + std::to_string(mismatched_rank) + " on ");
    const std::int32_t turned[] = {1, 0};
    expect_status(ddl_process_set_create(world.context, is_mismatched ? turned : all, 2, &set),
                  DDL_ERROR_MISMATCH, "lists in different orders");
    expect_status(is_mismatched ? ddl_barrier(world.context, nullptr)
                                : ddl_process_set_create(world.context, all, 2, &set),
                  DDL_ERROR_MISMATCH, "a barrier while others make a set");
    expect_status(is_mismatched ? ddl_process_set_create(world.context, all, 2, &set)
                                : ddl_process_set_split(world.context, DDL_WORLD, 0, 0, &set),
                  DDL_ERROR_MISMATCH, "a list while others split");
  }
  check_collectives(world);
}

void check_set_arguments(const Communicator& world) {
  ddl_context* context = world.context;
  std::uint64_t set = kUntouched;
  const std::int32_t twice[] = {0, 0};
  const std::int32_t beyond[] = {world.size};
  const std::int32_t negative[] = {-1};
  const std::int32_t first[] = {0};
  expect_refused(ddl_process_set_create(nullptr, first, 1, &set), "context is null");
  expect_refused(ddl_process_set_create(context, nullptr, 1, &set), "ranks is null");
  expect_refused(ddl_process_set_create(context, first, 1, nullptr), "process_set is null");
  expect_refused(ddl_process_set_create(context, first, -1, &set), "rank");
  expect_refused(ddl_process_set_create(context, beyond, 1, &set),
                 std::to_string(world.size) + " is not a rank");
  expect_refused(ddl_process_set_create(context, negative, 1, &set), "-1 is not a rank");
  expect_refused(ddl_process_set_create(context, twice, 2, &set), "0 is there twice");
  expect_refused(ddl_process_set_split(nullptr, DDL_WORLD, 0, 0, &set), "context is null");
  expect_refused(ddl_process_set_split(context, DDL_WORLD, 0, 0, nullptr), "process_set is null");
  expect_refused(ddl_process_set_split(context, 4711, 0, 0, &set), "process set 4711");
  expect_refused(ddl_process_set_free(nullptr, DDL_WORLD), "context is null");
  expect_refused(ddl_process_set_free(context, 4711), "process set 4711");
  expect_refused(ddl_process_set_free(context, DDL_WORLD), "DDL_WORLD");
  expect_ok(ddl_process_set_free(context, DDL_NO_PROCESS_SET), "freeing no process set");
  for (const std::uint64_t unknown : {std::uint64_t{4711}, DDL_NO_PROCESS_SET}) {
    expect(ddl_process_set_rank(context, unknown) == -1, "an unknown set has a rank");
    expect(ddl_process_set_size(context, unknown) == -1, "an unknown set has a size");
    std::int32_t rank = 0;
    expect_refused(ddl_process_set_ranks(context, unknown, &rank), "process set");
  }
  expect_refused(ddl_process_set_ranks(context, DDL_WORLD, nullptr), "ranks is null");
  expect(communicator_of(world, DDL_WORLD).ranks == world.ranks, "the ranks of the world are wrong");

  // What has been freed is unknown; roots are ranks of the set.
  set = create(world, world.ranks);
  const std::uint64_t single = split(world, DDL_WORLD, world.rank, 0);
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.process_set = single;
  double value = 1;
  expect_refused(ddl_broadcast(context, &value, 1, DDL_FLOAT64, 1, &options), "root 1");
  expect_ok(ddl_broadcast(context, &value, 1, DDL_FLOAT64, 0, &options), "broadcast in a set of one");
  free_set(world, set);
  free_set(world, single);
  expect_refused(ddl_process_set_free(context, set), "process set");
  expect_refused(ddl_barrier(context, &options), "process set");
  expect(ddl_process_set_size(context, single) == -1, "a freed set has a size");
}

}  // namespace

void check_process_sets(ddl_context* context) {
  const Communicator world = world_of(context);
  check_lists(world);
  check_splits(world);
  check_many_times(world);
  check_threads(world);
  check_mismatches_of_making(world);
  check_set_arguments(world);
  check_mismatches_inside(world);
}

}  // namespace ddl::conformance
