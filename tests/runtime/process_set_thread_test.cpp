// Process sets, Horovod's cases and random operations, with ranks as threads, on one host and on several.
#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "runtime/src/shm/abort.h"
#include "runtime/support/conformance.h"
#include "runtime/support/conformance/file_store.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::Hosts;
using ddl::runtime::test::job_on;
using ddl::runtime::test::MpiThreads;
using ddl::runtime::test::ThreadJob;

namespace {

/// Slots so small that few elements make several chunks.
ThreadJob job_of_small_slots(const Hosts& hosts) {
  ThreadJob job = job_on(hosts);
  job.slot_bytes = hosts.size() == 1 ? 64 : 64 * static_cast<std::size_t>(job.ranks);
  return job;
}

const Hosts kLayouts[] = {{{0}},
                          {{0, 1}},
                          {{0, 1, 2}},
                          {{0, 1, 2, 3, 4}},
                          {{0}, {1}},
                          {{0, 1}, {2}},
                          {{0, 2, 4}, {1, 3}},
                          {{0}, {1}, {2}},
                          {{0, 1}, {2, 3}},
                          {{0}, {1, 2, 3}, {4}}};

std::uint64_t set_of_all(ddl_context* context) {
  std::uint64_t set = DDL_NO_PROCESS_SET;
  expect_ok(ddl_process_set_split(context, DDL_WORLD, 0, 0, &set), "split");
  return set;
}

}  // namespace

TEST_CASE("process sets conform, on one host and on several") {
  const std::size_t layout = GENERATE(range(std::size_t{0}, std::size(kLayouts)));
  CAPTURE(layout);
  job_of_small_slots(kLayouts[layout]).run([](ddl_context*& context) { check_process_sets(context); });
}

TEST_CASE("process sets that are made by their members conform, on one host and on several") {
  const std::size_t layout = GENERATE(range(std::size_t{0}, std::size(kLayouts)));
  const bool is_on_one_host = kLayouts[layout].size() == 1;
  const bool by_mpi = GENERATE(false, true);
  CAPTURE(layout, by_mpi);
  ThreadJob job = job_of_small_slots(kLayouts[layout]);
  if (by_mpi && (job.ranks != 3 || is_on_one_host)) return;
  if (by_mpi) job.mpi = MpiThreads::kMultiple;
  const Extent extent = job.ranks == 3 && !by_mpi ? Extent::kFull : Extent::kSome;
  job.run([&](ddl_context*& context) { check_member_sets(context, "/tmp", extent); });
}

TEST_CASE("values that another job has left in the store make no process set") {
  std::array<char, 32> folder{"/tmp/ddl-store-XXXXXX"};
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  ThreadJob job = job_on({{0, 1}});
  const std::int32_t ranks[] = {0, 1};
  const auto make = [&](ddl_context* context, double seconds) {
    FileStore files(folder.data());
    const ddl_store store = files.functions(seconds);
    std::uint64_t set = DDL_NO_PROCESS_SET;
    return ddl_process_set_create_by_members(context, ranks, 2, "old", &store, &set);
  };
  job.run([&](ddl_context*& context) { expect_ok(make(context, 60), "the set of the first job"); });
  // Contexts of this job have the numbers of those before, so its keys are the same.
  const int first = GENERATE(0, 1);
  CAPTURE(first);
  job.run([&](ddl_context*& context) {
    for (const int turn : {first, 1 - first}) {
      if (ddl_rank(context) == turn) {
        expect_status(make(context, 2), DDL_ERROR_BOOTSTRAP, "a set of values of two jobs");
        expect_contains(ddl_last_error(), "of another job");
      }
      expect_ok(ddl_barrier(context, nullptr), "barrier");
    }
    expect_ok(make(context, 60), "the next set of this name");
  });
  std::filesystem::remove_all(folder.data());
}

TEST_CASE("Horovod's cases pass, on one host and on several") {
  const std::size_t layout = GENERATE(range(std::size_t{0}, std::size(kLayouts)));
  CAPTURE(layout);
  ThreadJob job = job_of_small_slots(kLayouts[layout]);
  job.slot_bytes = 4096;
  job.run([](ddl_context*& context) { check_horovod_cases(context); });
}

TEST_CASE("random operations conform, on one host and on several") {
#ifdef DDL_TEST_SANITIZED
  constexpr int kOperations = 1000;
#else
  constexpr int kOperations = 10'000;
#endif
  const bool small_slots = GENERATE(true, false);
  CAPTURE(small_slots);
  const auto run = [&](const Hosts& hosts, std::uint64_t seed, int operations) {
    ThreadJob job = job_of_small_slots(hosts);
    if (!small_slots) job.slot_bytes = 4096;
    job.run([&](ddl_context*& context) { check_random_operations(context, seed, operations); });
  };
  run({{0, 1, 2, 3}}, 1, kOperations);
  run({{0, 1}, {2, 3}}, 2, kOperations / 10);
  run({{0, 3}, {1}, {2}}, 3, kOperations / 10);
}

TEST_CASE("a second thread in a call of a process set gets busy, and other sets can be used meanwhile") {
  ThreadJob job;
  job.ranks = 2;
  std::promise<void> somebody_was_refused;
  job.run([&](ddl_context*& context) {
    const std::uint64_t set = set_of_all(context), other_set = set_of_all(context);
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.process_set = set;
    ddl_call_options elsewhere = DDL_CALL_OPTIONS_INIT;
    elsewhere.process_set = other_set;
    if (ddl_rank(context) == 1) {
      expect_ok(ddl_barrier(context, &elsewhere), "the other set's barrier on rank 1");
      expect_ok(ddl_barrier(context, nullptr), "the world's barrier on rank 1");
      somebody_was_refused.get_future().wait();
      return expect_ok(ddl_barrier(context, &options), "barrier of rank 1");
    }
    // Two threads race for the set. The loser gets busy at once, while the winner waits in its call for rank 1.
    std::atomic<int> ok{0}, busy{0};
    std::string failure;
    const auto call = [&] {
      const ddl_status status = ddl_barrier(context, &options);
      if (status == DDL_OK) ++ok;
      if (status != DDL_ERROR_BUSY) return;
      ++busy;
      if (ddl_process_set_free(context, set) != DDL_ERROR_BUSY) failure = "freeing did not say busy";
      if (ddl_finalize(context) != DDL_ERROR_BUSY) failure = "finalize did not say busy";
      if (ddl_barrier(context, &elsewhere) != DDL_OK) failure = "another set was not free";
      if (ddl_barrier(context, nullptr) != DDL_OK) failure = "the world was not free";
      somebody_was_refused.set_value();
    };
    std::thread other(call);
    call();
    other.join();
    expect(ok == 1 && busy == 1, "one call must succeed and one be refused");
    expect(failure.empty(), failure);
  });
}

TEST_CASE("a rank that misses a call of a process set is named with its rank in the job") {
  ThreadJob job;
  job.ranks = 3;
  std::promise<void> gave_up;
  job.run([&](ddl_context*& context) {
    const std::int32_t ranks[] = {2, 1};
    std::uint64_t set = DDL_NO_PROCESS_SET;
    expect_ok(ddl_process_set_create(context, ranks, 2, &set), "create");
    if (ddl_rank(context) == 0) return;
    if (ddl_rank(context) == 2) return gave_up.get_future().wait();
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.process_set = set;
    options.timeout_seconds = 0.05;
    const ddl_status status = ddl_barrier(context, &options);
    const std::string sentence = ddl_last_error();
    gave_up.set_value();
    expect_status(status, DDL_ERROR_TIMEOUT, "the barrier that rank 2 misses");
    expect_contains(sentence, "rank 1 on ");
    expect_contains(sentence, "not arrived: rank 2 on ");
  });
}

TEST_CASE("a rank that has left a process set while others wait for it is an error, not a hang") {
  ThreadJob job;
  job.ranks = 3;
  const int leaver = GENERATE(0, 1, 2);
  job.run([&](ddl_context*& context) {
    const std::uint64_t set = set_of_all(context);
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.process_set = set;
    expect_ok(ddl_barrier(context, &options), "barrier");
    if (ddl_rank(context) == leaver) return expect_ok(ddl_process_set_free(context, set), "free");
    expect_status(ddl_barrier(context, &options), DDL_ERROR_PEER_LOST, "the barrier that a rank has left");
    expect_contains(ddl_last_error(), "rank " + std::to_string(leaver) + " on ");
  });
}

TEST_CASE("what ends one process set ends the calls of all others, with the same cause") {
  ThreadJob job =
      job_of_small_slots(GENERATE(Hosts{{0, 1, 2, 3}}, Hosts{{0, 1}, {2, 3}}, Hosts{{0, 2}, {1, 3}}));
  std::promise<void> notified;
  std::shared_future<void> all_notified(notified.get_future());
  std::atomic<int> waiting{2};
  job.run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    std::uint64_t set = DDL_NO_PROCESS_SET;
    expect_ok(ddl_process_set_split(context, DDL_WORLD, rank / 2, 0, &set), "split");
    // In each pair one rank does not arrive. The first pair has a deadline; the other would wait for a minute.
    if (rank % 2 == 1) return all_notified.wait();
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.process_set = set;
    if (rank == 0) options.timeout_seconds = 0.05;
    const ddl_status status = ddl_barrier(context, &options);
    const std::string sentence = ddl_last_error();
    // Each set reports the cause once, then that it has been aborted.
    const ddl_status of_world = ddl_barrier(context, nullptr);
    const bool is_same = sentence.starts_with(ddl_last_error());
    const ddl_status later = ddl_barrier(context, nullptr);
    if (--waiting == 0) notified.set_value();
    expect_status(status, DDL_ERROR_TIMEOUT, "a barrier that somebody misses");
    expect_contains(sentence, "rank 0 on ");
    expect_contains(sentence, "not arrived: rank 1 on ");
    // Rank 2 also reports the rank that it waited for itself.
    if (rank == 2) expect_contains(sentence, "; this rank was in barrier #1 and waited for rank 3 on ");
    expect(of_world == DDL_ERROR_TIMEOUT && is_same, "the world's next call gives another cause");
    expect_status(later, DDL_ERROR_ABORTED, "the world's later calls");
  });
}

// An earlier version returned at once, and its callers then read a cause that was not stored yet.
TEST_CASE("raising a notice while another thread has begun to raise one returns when the group is aborted") {
  constexpr int kMembers = 2;
  ddl::runtime::SegmentConfig config;
  config.slot_bytes = 64;
  const std::size_t bytes = ddl::runtime::Segment::bytes_for(kMembers, config);
  const ddl::runtime::Members members = {{0, "host0", 1}, {1, "host0", 2}};
  using ddl::runtime::AbortNotice;
  using ddl::runtime::AbortReason;
  // The other thread usually continues just after the first one has begun; repeated, because one run could miss this.
  for (int round = 0; round < 50; ++round) {
    std::vector<std::byte> storage(bytes + ddl::runtime::kLineBytes);
    void* base = storage.data();
    std::size_t space = storage.size();
    REQUIRE(std::align(ddl::runtime::kLineBytes, bytes, base, space) != nullptr);
    const auto segment =
        ddl::runtime::Segment::create({static_cast<std::byte*>(base), bytes}, kMembers, config);
    const ddl::UniqueFd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const ddl::runtime::AbortDomain abort(segment, members, 0, doorbell.get());
    auto& record = segment.notice_record(0);
    record.is_taken.store(1);
    std::promise<void> is_about_to_tell;
    std::thread other([&, tells = is_about_to_tell.get_future()] {
      tells.wait();
      record.notice = AbortNotice::of(AbortReason::kDied, {5, "host5", 55});
      abort.raise(ddl::runtime::AbortCause{ddl::runtime::AbortCause::Where::kReported, 0});
    });
    is_about_to_tell.set_value();
    abort.raise(AbortNotice::of(AbortReason::kLeft, members[1]));
    const bool is_raised = abort.is_raised();
    other.join();
    REQUIRE(is_raised);
    CHECK(abort.notice().describe({}, true).message.find("host5") != std::string::npos);
  }
}
