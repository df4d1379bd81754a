// Process sets that are made by their members alone, with ranks as forked processes.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "base/fd.h"
#include "runtime/support/conformance.h"
#include "runtime/support/conformance/file_store.h"
#include "runtime/support/expect.h"
#include "runtime/support/process_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using namespace ddl::runtime;
using namespace ddl::runtime::test;

namespace {

ProcessJob job_on_hosts(const std::vector<int>& sizes) {
  ProcessJob job;
  job.ranks = std::accumulate(sizes.begin(), sizes.end(), 0);
  if (sizes.size() > 1) job.hosts = hosts_of_sizes(sizes);
  return job;
}

void check_all_ended_well(const std::vector<RankEnd>& ends) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    CAPTURE(rank, ends[rank].report, ends[rank].signal);
    CHECK(ends[rank].exit_code == 0);
  }
}

/// A folder for stores.
class StoreFolder {
 public:
  StoreFolder() { REQUIRE(::mkdtemp(path_.data()) != nullptr); }
  ~StoreFolder() { std::filesystem::remove_all(path_.data()); }
  StoreFolder(const StoreFolder&) = delete;
  StoreFolder& operator=(const StoreFolder&) = delete;

  const char* path() const { return path_.data(); }

 private:
  std::array<char, 32> path_{"/tmp/ddl-store-XXXXXX"};
};

/// A set of all ranks of the job.
ddl_status make_set(ddl_context* context, const std::string& name, const ddl_store& store,
                    std::uint64_t& set) {
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(ddl_size(context)));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ddl_process_set_create_by_members(context, ranks.data(), static_cast<std::int32_t>(ranks.size()),
                                           name.c_str(), &store, &set);
}

}  // namespace

TEST_CASE("process sets that are made by their members conform with ranks as processes") {
  const auto sizes = GENERATE(std::vector{3}, std::vector{2, 2});
  CAPTURE(sizes);
  check_all_ended_well(job_on_hosts(sizes).run([](RankPlace& place) {
    ddl_context* context = place.join();
    check_member_sets(context, "/tmp", Extent::kFull);
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}

#ifdef DDL_FAULT_INJECTION

TEST_CASE("the members that remain are told which one died while they made a process set") {
  const auto sizes = GENERATE(std::vector{3}, std::vector{2, 1});
  // Points that the world has passed before are passed for the second time.
  const auto& [point, passage] = GENERATE(table<std::string, int>({{"make_sets.before_joining", 1},
                                                                   {"init.before_fence", 2},
                                                                   {"init.after_fence", 2},
                                                                   {"init.after_welcome", 2},
                                                                   {"init.before_links", 2},
                                                                   {"init.before_watching", 2},
                                                                   {"make_sets.after_joining", 1},
                                                                   {"make_sets.after_making", 1}}));
  if (sizes.size() == 1 && point == "init.before_links") return;
  ProcessJob job = job_on_hosts(sizes);
  const int victim = GENERATE_COPY(0, job.ranks - 1);
  // The only rank of its host is welcomed by nobody.
  if (sizes.size() > 1 && victim != 0 && point == "init.after_welcome") return;
  CAPTURE(sizes, point, victim);
  job.settings.fault = FaultPlan{point, victim, passage};
  const StoreFolder folder;
  const auto ends = job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    FileStore store(folder.path());
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    ddl_status status = make_set(context, "doomed", store.functions(20), options.process_set);
    // The victim may have completed it for the others.
    if (status == DDL_OK) status = ddl_barrier(context, &options);
    expect_status(status, DDL_ERROR_PEER_LOST, "making a set with a rank that dies");
    return std::string(ddl_last_error());
  });
  const RankEnd& dead = ends[static_cast<std::size_t>(victim)];
  CHECK(dead.signal == SIGKILL);
  for (int rank = 0; rank < job.ranks; ++rank) {
    if (rank == victim) continue;
    const RankEnd& end = ends[static_cast<std::size_t>(rank)];
    CAPTURE(rank, end.report);
    CHECK(end.exit_code == 0);
    CHECK(end.report.find("rank " + std::to_string(victim) + " on host" + std::to_string(victim) + " (pid " +
                          std::to_string(dead.pid) + ") died ") == 0);
  }
}

#endif  // DDL_FAULT_INJECTION

namespace {

volatile sig_atomic_t interruptions = 0;

}  // namespace

TEST_CASE("a program may end its wait for the other members of a process set, and the context goes on") {
  auto waits = ddl::make_pipe(), over = ddl::make_pipe(), pids = ddl::make_pipe();
  REQUIRE((waits && over && pids));
  const StoreFolder folder;
  check_all_ended_well(job_on_hosts({1, 1}).run([&](RankPlace& place) {
    ddl_context* context = place.join();
    FileStore files(folder.path());
    std::uint64_t set = DDL_NO_PROCESS_SET;
    if (place.rank() == 0) {
      struct sigaction action {};
      action.sa_handler = [](int) { interruptions = interruptions + 1; };
      sigaction(SIGUSR1, &action, nullptr);
      int says = waits->second.get();
      ddl_set_interrupt_check(
          [](void* fd) -> std::int32_t {
            if (interruptions == 0) (void)!::write(*static_cast<int*>(fd), "w", 1);
            return interruptions;
          },
          &says);
      const pid_t own = ::getpid();
      expect(::write(pids->second.get(), &own, sizeof own) == sizeof own, "write");
      expect_status(make_set(context, "interrupted", files.functions(), set), DDL_ERROR_INTERRUPTED,
                    "the wait");
      ddl_set_interrupt_check(nullptr, nullptr);
      expect(::write(over->second.get(), "o", 1) == 1, "write");
    } else {
      pid_t other = 0;
      char byte = 0;
      expect(::read(pids->first.get(), &other, sizeof other) == sizeof other, "read");
      expect(::read(waits->first.get(), &byte, 1) == 1, "read");
      ::kill(other, SIGUSR1);
      // Until then its wait is not complete.
      expect(::read(over->first.get(), &byte, 1) == 1, "read");
      expect_status(make_set(context, "interrupted", files.functions(), set), DDL_ERROR_INTERRUPTED,
                    "the other rank");
      expect_contains(ddl_last_error(), "rank 0: the program has ended the wait");
    }
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    expect_ok(make_set(context, "interrupted", files.functions(), set), "the next set");
    expect_ok(ddl_process_set_free(context, set), "free");
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}

namespace {

/// What this process holds.
struct Holdings {
  std::ptrdiff_t descriptors = 0, threads = 0, segments = 0;
  std::size_t heap_bytes = 0;

  static Holdings now() {
    const auto entries = [](const char* folder) {
      return std::distance(std::filesystem::directory_iterator(folder),
                           std::filesystem::directory_iterator());
    };
    std::ifstream maps("/proc/self/maps");
    std::ptrdiff_t segments = 0;
    for (std::string line; std::getline(maps, line);)
      segments += line.find("/memfd:") != std::string::npos ? 1 : 0;
    return {entries("/proc/self/fd"), entries("/proc/self/task"), segments, ::mallinfo2().uordblks};
  }
};

}  // namespace

TEST_CASE("process sets that were made by their members and freed leave nothing") {
  const StoreFolder folder;
  check_all_ended_well(job_on_hosts({2, 1}).run([&](RankPlace& place) {
    ddl_context* context = place.join();
    FileStore store(folder.path());
    const auto make_and_free = [&](int number) {
      std::uint64_t set = DDL_NO_PROCESS_SET;
      expect_ok(make_set(context, "set " + std::to_string(number), store.functions(), set), "making a set");
      ddl_call_options options = DDL_CALL_OPTIONS_INIT;
      options.process_set = set;
      std::vector<float> values(1000, 1.0f);
      expect_ok(
          ddl_allreduce(context, values.data(), values.data(), values.size(), DDL_FLOAT32, DDL_SUM, &options),
          "allreduce");
      ddl_handle* handle = nullptr;
      expect_ok(ddl_allreduce_async(context, "t", values.data(), values.data(), values.size(), DDL_FLOAT32,
                                    DDL_SUM, nullptr, &handle),
                "submitting");
      expect_ok(ddl_wait(handle), "wait");
      expect_ok(ddl_process_set_free(context, set), "free");
    };
    for (int number = 0; number < 10; ++number) make_and_free(number);
    const Holdings before = Holdings::now();
    for (int number = 10; number < 60; ++number) make_and_free(number);
    const Holdings after = Holdings::now();
    expect(after.descriptors == before.descriptors,
           std::to_string(after.descriptors - before.descriptors) + " descriptors are left");
    expect(after.threads == before.threads, "threads are left");
    expect(after.segments == before.segments, "shared memory is left");
    // The names of the sets stay known.
    expect(after.heap_bytes <= before.heap_bytes + 50 * 1024,
           std::to_string(after.heap_bytes - before.heap_bytes) + " bytes are left");
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}
