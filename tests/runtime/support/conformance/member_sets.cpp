// Process sets that are made by their members alone.
#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/communicator.h"
#include "runtime/support/conformance/file_store.h"
#include "runtime/support/conformance/process_sets.h"
#include "runtime/support/expect.h"

namespace ddl::conformance {
namespace {

/// How long a rank waits for one that does not come.
constexpr double kShortly = 1.0;

/// The ranks of a job, and a store for the sets that they make.
struct Desk {
  const Communicator& world;
  std::string folder;

  bool is_in(const Ranks& ranks) const {
    return std::find(ranks.begin(), ranks.end(), world.rank) != ranks.end();
  }
  ddl_status try_to_make(const Ranks& ranks, const std::string& name, const ddl_store& store,
                         std::uint64_t& set) const {
    return ddl_process_set_create_by_members(
        world.context, ranks.data(), static_cast<std::int32_t>(ranks.size()), name.c_str(), &store, &set);
  }
  /// On members only.
  std::uint64_t make(const Ranks& ranks, const std::string& name) const {
    std::uint64_t set = kUntouched;
    FileStore store(folder);
    expect_ok(try_to_make(ranks, name, store.functions(), set), "making the process set " + name);
    return set;
  }
  /// Makes it, with another outcome. The message.
  std::string fail(const Ranks& ranks, const std::string& name, ddl_status wanted,
                   double seconds = 60.0) const {
    FileStore store(folder);
    return fail(ranks, name, wanted, store.functions(seconds));
  }
  std::string fail(const Ranks& ranks, const std::string& name, ddl_status wanted,
                   const ddl_store& store) const {
    std::uint64_t set = kUntouched;
    expect_status(try_to_make(ranks, name, store, set), wanted, "making the process set " + name);
    expect(set == DDL_NO_PROCESS_SET, "a set that was not made has a number");
    return ddl_last_error();
  }
  void free(std::uint64_t set) const {
    expect_ok(ddl_process_set_free(world.context, set), "freeing a process set");
  }
  /// On members only. They free it, so its name may be used again.
  void make_and_use(const Ranks& ranks, const std::string& name) const {
    const std::uint64_t set = make(ranks, name);
    check_set(world, set, ranks);
    free(set);
  }
  void barrier() const { expect_ok(ddl_barrier(world.context, nullptr), "barrier of the world"); }
};

Ranks all_of(const Communicator& world) {
  Ranks all(static_cast<std::size_t>(world.size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// While the members make the set, the others are inside a barrier of the world.
void check_lists(const Desk& desk) {
  const Ranks all = all_of(desk.world);
  Ranks reversed(all.rbegin(), all.rend()), evens, odds, ends = {desk.world.size - 1};
  for (const int rank : all) (rank % 2 == 0 ? evens : odds).push_back(rank);
  if (desk.world.size > 1) ends.push_back(0);
  std::vector<std::pair<Ranks, std::uint64_t>> sets;
  int number = 0;
  for (const Ranks& list : {all, reversed, evens, odds, ends, Ranks{desk.world.size / 2}}) {
    ++number;
    if (desk.is_in(list)) sets.emplace_back(list, desk.make(list, "list " + std::to_string(number)));
    desk.barrier();
  }
  for (const auto& [list, set] : sets) check_set(desk.world, set, list);
  for (const auto& [list, set] : sets) desk.free(set);
  // Two at once, which have no rank in common, and may have one name.
  const Ranks& half = desk.is_in(evens) ? evens : odds;
  desk.make_and_use(half, "half");
}

void check_names(const Desk& desk) {
  const Ranks all = all_of(desk.world);
  std::set<std::uint64_t> numbers;
  for (int round = 0; round < 8; ++round) {
    const std::uint64_t set = desk.make(all, "again");
    expect(numbers.insert(set).second, "the number of a freed set was used again");
    check_set(desk.world, set, all);
    desk.free(set);
  }
  // Two sets of the same ranks have an order of calls each.
  const std::uint64_t first = desk.make(all, "first"), second = desk.make(all, "second");
  const auto call = [&](std::uint64_t set) { check_set(desk.world, set, all); };
  std::string failure;
  std::thread other([&] {
    try {
      call(second);
    } catch (const std::exception& error) {
      failure = error.what();
    }
  });
  call(first);
  other.join();
  expect(failure.empty(), failure);

  // The name is in use on all, then on the last alone, and then on none.
  const int last = desk.world.size - 1;
  const std::string in_use = "a set of this name is in use";
  expect_contains(desk.fail(all, "first", DDL_ERROR_INVALID_ARGUMENT), in_use);
  desk.barrier();
  if (desk.world.rank != last) desk.free(first);
  const bool has_it = desk.world.rank == last;
  expect_contains(desk.fail(all, "first", has_it ? DDL_ERROR_INVALID_ARGUMENT : DDL_ERROR_BOOTSTRAP),
                  has_it ? in_use : "rank " + std::to_string(last) + ": " + in_use);
  desk.barrier();
  if (has_it) desk.free(first);
  const std::uint64_t third = desk.make(all, "first");
  call(third);
  call(second);
  desk.free(second);
  desk.free(third);
}

/// Each rank makes a set with each of its neighbours, on two threads, in an order of its own.
void check_overlapping(const Desk& desk) {
  const int size = desk.world.size, rank = desk.world.rank;
  if (size < 3) return;
  std::vector<std::string> failures(2);
  std::vector<std::thread> threads;
  for (int side = 0; side < 2; ++side) {
    const int first = side == rank % 2 ? rank : (rank + size - 1) % size;
    threads.emplace_back([&, first, side] {
      try {
        const Ranks pair = {first, (first + 1) % size};
        for (int round = 0; round < 3; ++round) {
          desk.make_and_use(pair, "neighbours of " + std::to_string(first));
        }
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(side)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) expect(failure.empty(), failure);
}

void check_other_lists(const Desk& desk) {
  const int size = desk.world.size;
  if (size < 2) return;
  const Ranks all = all_of(desk.world);
  const Ranks reversed(all.rbegin(), all.rend());
  const Ranks fewer(all.begin(), all.end() - 1);
  for (int mistaken = 0; mistaken < size; ++mistaken) {
    const bool is_mistaken = desk.world.rank == mistaken;
    expect_contains(desk.fail(is_mistaken ? reversed : all, "turned", DDL_ERROR_MISMATCH),
                    " has given the ranks {");
    // A rank that makes a set of itself alone waits for nobody.
    if (mistaken == size - 1 || size == 2) continue;
    expect_contains(desk.fail(is_mistaken ? fewer : all, "fewer", DDL_ERROR_MISMATCH),
                    " has given the ranks {");
  }
  desk.make_and_use(all, "turned");
}

void check_missing(const Desk& desk) {
  const int size = desk.world.size;
  if (size < 2) return;
  const Ranks all = all_of(desk.world);
  for (const int missing : {0, size - 1}) {
    const std::string name = "without " + std::to_string(missing);
    if (desk.world.rank != missing) {
      const std::string why = desk.fail(all, name, DDL_ERROR_TIMEOUT, kShortly);
      expect_contains(why, "process set \"" + name + "\" was not made: ");
      expect_contains(why, "not arrived within 1 s: rank " + std::to_string(missing));
    }
    desk.barrier();
    // It comes too late, and is told.
    if (desk.world.rank == missing)
      expect_contains(desk.fail(all, name, DDL_ERROR_TIMEOUT, kShortly),
                      "not arrived within 1 s: rank " + std::to_string(missing));
    desk.barrier();
    desk.make_and_use(all, name);
  }
}

/// A store that fails on one rank, which cannot tell the others if it can put nothing.
void check_broken_store(const Desk& desk) {
  const int size = desk.world.size;
  if (size < 2) return;
  const Ranks all = all_of(desk.world);
  for (const int broken : {0, size - 1}) {
    for (const bool puts : {true, false}) {
      FileStore store(desk.folder);
      const bool is_broken = desk.world.rank == broken;
      if (is_broken) store.fail_after(puts ? 0 : -1, puts ? -1 : 0);
      const bool is_told = is_broken || !puts;
      const std::string why = desk.fail(all, "broken", is_told ? DDL_ERROR_BOOTSTRAP : DDL_ERROR_TIMEOUT,
                                        store.functions(kShortly));
      expect_contains(why, !is_told ? "not arrived within 1 s: rank " + std::to_string(broken)
                           : puts   ? "the store has failed to put the key ddl/"
                                    : "the store has failed to get the key ddl/");
      desk.barrier();
    }
  }
  desk.make_and_use(all, "broken");
}

void check_member_arguments(const Desk& desk) {
  ddl_context* context = desk.world.context;
  FileStore files(desk.folder);
  const ddl_store store = files.functions();
  const std::int32_t own[] = {desk.world.rank}, beyond[] = {desk.world.size};
  std::uint64_t set = kUntouched;
  const auto make = [&](const std::int32_t* ranks, std::int32_t count, const char* name,
                        const ddl_store* given) {
    return ddl_process_set_create_by_members(context, ranks, count, name, given, &set);
  };
  expect_refused(ddl_process_set_create_by_members(nullptr, own, 1, "x", &store, &set), "context is null");
  expect_refused(ddl_process_set_create_by_members(context, own, 1, "x", &store, nullptr),
                 "process_set is null");
  expect_refused(make(nullptr, 1, "x", &store), "ranks is null");
  expect_refused(make(own, 0, "x", &store), "has one rank at least");
  expect_refused(make(beyond, 1, "x", &store), " is not a rank");
  expect_refused(make(own, 1, nullptr, &store), "name is empty");
  expect_refused(make(own, 1, "", &store), "name is empty");
  expect_refused(make(own, 1, "x", nullptr), "store is null");
  if (desk.world.size > 1) {
    const std::int32_t other[] = {(desk.world.rank + 1) % desk.world.size};
    expect_refused(make(other, 1, "x", &store),
                   "this rank, " + std::to_string(desk.world.rank) + ", is not one");
  }
  for (const int field : {0, 1, 2, 3}) {
    ddl_store wrong = store;
    if (field == 0) wrong.put = nullptr;
    if (field == 1) wrong.get = nullptr;
    if (field == 2) wrong.timeout_seconds = -1;
    if (field == 3) wrong.struct_size = 0;
    expect_refused(make(own, 1, "x", &wrong), field < 2    ? "store: a function"
                                              : field == 2 ? "timeout"
                                                           : "struct_size");
  }
  expect(set == DDL_NO_PROCESS_SET, "a refused call made a set");
}

}  // namespace

void check_member_sets(ddl_context* context, const std::string& folder, Extent extent) {
  const Communicator world = world_of(context);
  const Desk desk{world, make_shared_folder(context, folder)};
  check_lists(desk);
  check_names(desk);
  check_overlapping(desk);
  check_other_lists(desk);
  if (extent == Extent::kFull) {
    check_missing(desk);
    check_broken_store(desk);
  }
  check_member_arguments(desk);
  check_collectives(world);
  remove_shared_folder(context, desk.folder);
}

}  // namespace ddl::conformance
