// Ranks as forked processes: the real wire-up, real deaths.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/fd.h"
#include "runtime/src/shm/fd_passing.h"
#include "runtime/src/shm/shared_memory_transport.h"
#include "runtime/src/shm/wire_up.h"
#include "runtime/support/board_bootstrap.h"
#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/process_job.h"
#include "support/skip.h"

using namespace ddl::conformance;
using namespace ddl::runtime;
using namespace ddl::runtime::test;
using ddl::Deadline;

namespace {

double now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Adds a fence's rounding to what a rank may take to learn of a death: the whole call began before it.
// Told at once, which a machine that does much else sees later.
constexpr double kNotifiedWithinSeconds = 5.0;

void check_all_succeeded(const std::vector<RankEnd>& ends) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    CAPTURE(rank, ends[rank].report, ends[rank].signal);
    CHECK(ends[rank].exit_code == 0);
  }
}

/// One host has no hosts in the table.
ProcessJob job_of_sizes(const std::vector<int>& sizes) {
  ProcessJob job;
  job.ranks = std::accumulate(sizes.begin(), sizes.end(), 0);
  if (sizes.size() > 1) job.hosts = hosts_of_sizes(sizes);
  return job;
}

constexpr ExchangeConfig kFlat{ExchangeConfig::Mode::kFlat, 0};
constexpr ExchangeConfig kInGroups{ExchangeConfig::Mode::kGroups, 0};

void become_user_with_few_descriptors() {
  constexpr id_t kNobody = 65534;
  const rlimit limit{1024, 1024};
  expect(::setrlimit(RLIMIT_NOFILE, &limit) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
             ::setresuid(kNobody, kNobody, kNobody) == 0,
         "cannot become an ordinary user");
}

std::string name_of(int rank) { return "rank " + std::to_string(rank) + " on host" + std::to_string(rank); }

}  // namespace

TEST_CASE("collectives conform with ranks as processes") {
  ProcessJob job;
  job.ranks = GENERATE(1, 2, 3, 4, 5, 8);
  job.settings.staging_bytes = 256;
  const bool in_groups = GENERATE(false, true);
  if (in_groups && job.ranks < 4) return;
  job.settings.exchange = in_groups ? kInGroups : kFlat;
  CAPTURE(job.ranks, in_groups);
  check_all_succeeded(job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    expect(ddl_rank(context) == place.rank() && ddl_size(context) == job.ranks, "rank or size is wrong");
    expect(ddl_local_rank(context) == place.rank() && ddl_local_size(context) == job.ranks, "local is wrong");
    expect(ddl_cross_rank(context) == 0 && ddl_cross_size(context) == 1, "cross is wrong");
    check_all(context, interesting_counts(256, job.ranks));
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}

TEST_CASE("a job joins, leaves and joins again") {
  ProcessJob job;
  job.ranks = 3;
  check_all_succeeded(job.run([](RankPlace& place) {
    for (int round = 0; round < 10; ++round) {
      ddl_context* context = place.join();
      std::int32_t value = 1;
      expect_ok(ddl_allreduce(context, &value, &value, 1, DDL_INT32, DDL_SUM, nullptr), "allreduce");
      expect(value == 3, "wrong sum");
      expect_ok(ddl_finalize(context), "finalize");
    }
    return std::string();
  }));
}

TEST_CASE("a number of ranks wires up that needs several messages for the descriptors") {
  ProcessJob job;
  job.ranks = 260;
  job.deadline_seconds = 240;
  job.wire_up_seconds = 200;
  // Groups by the topology in /sys.
  job.settings.exchange = kInGroups;
  // The descriptors in flight of an ordinary user are limited, and all of these together exceed the limit many times.
  const bool as_user = GENERATE(false, true);
  if (as_user && ::geteuid() != 0) return;
  CAPTURE(as_user);
  check_all_succeeded(job.run([as_user](RankPlace& place) {
    if (as_user) become_user_with_few_descriptors();
    ddl_context* context = place.join();
    std::int64_t value = place.rank();
    expect_ok(ddl_allreduce(context, &value, &value, 1, DDL_INT64, DDL_SUM, nullptr), "allreduce");
    expect(value == 260 * 259 / 2, "wrong sum");
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}

#ifdef DDL_FAULT_INJECTION

TEST_CASE("all ranks report within a second which rank died inside a collective") {
  ProcessJob job;
  job.ranks = GENERATE(2, 3, 5);
  const int victim = GENERATE_COPY(range(0, job.ranks));
  const std::string point = GENERATE("before_publish", "after_publish");
  // With a CPU for every rank a wait spins first, otherwise it sleeps at once.
  job.settings.spin = std::chrono::microseconds(GENERATE(0, 200));
  // The second exchange of the second allreduce. Two ranks exchange once for each of four chunks; more have half as
  // much room for their inputs, and once more show what they have combined.
  constexpr std::uint64_t kChunk = 8192, kCount = 4 * kChunk;
  job.settings.staging_bytes = kChunk * sizeof(float);
  job.settings.fault = FaultPlan{"allreduce." + point, victim, job.ranks == 2 ? 6 : 11};
  const bool in_groups = GENERATE(false, true);
  if (in_groups && job.ranks < 5) return;
  job.settings.exchange = in_groups ? kInGroups : kFlat;
  CAPTURE(job.ranks, victim, point, in_groups);

  const auto ends = job.run([](RankPlace& place) {
    ddl_context* context = place.join();
    std::vector<float> values(kCount, 1.0f);
    const auto allreduce = [&] {
      return ddl_allreduce(context, values.data(), values.data(), kCount, DDL_FLOAT32, DDL_SUM, nullptr);
    };
    expect_ok(allreduce(), "the first allreduce");
    const double begin = now();
    const ddl_status status = allreduce();
    const double seconds = now() - begin;
    expect_status(status, DDL_ERROR_PEER_LOST, "the allreduce in which a rank died");
    std::string sentence = ddl_last_error();
    expect(seconds < kNotifiedWithinSeconds, "notified after " + std::to_string(seconds) + " s");
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_ABORTED, "the next call");
    expect_contains(ddl_last_error(), sentence);
    expect_ok(ddl_finalize(context), "finalize after an abort");
    return sentence;
  });
  const auto& dead = ends[static_cast<std::size_t>(victim)];
  CHECK(dead.signal == SIGKILL);
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (static_cast<int>(rank) == victim) continue;
    CAPTURE(rank);
    CHECK(ends[rank].exit_code == 0);
    CHECK(ends[rank].report == name_of(victim) + " (pid " + std::to_string(dead.pid) +
                                   ") died during allreduce #2 (sum, float32, 32768 elements)");
  }
}

TEST_CASE("a death in a broadcast or a barrier is reported as well") {
  const std::string collective = GENERATE("broadcast", "allgather", "barrier");
  ProcessJob job;
  job.ranks = 3;
  job.settings.fault = FaultPlan{collective + ".before_publish", 1, 1};
  const auto ends = job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    std::vector<double> values(9);
    ddl_status status = DDL_OK;
    if (collective == "broadcast") {
      status = ddl_broadcast(context, values.data(), 3, DDL_FLOAT64, 0, nullptr);
      // The root does not wait for the others, so its next call reports it.
      if (status == DDL_OK && place.rank() == 0) status = ddl_barrier(context, nullptr);
    }
    if (collective == "allgather")
      status =
          ddl_allgather(context, values.data() + 3 * place.rank(), values.data(), 3, DDL_FLOAT64, nullptr);
    if (collective == "barrier") status = ddl_barrier(context, nullptr);
    expect_status(status, DDL_ERROR_PEER_LOST, collective);
    return std::string(ddl_last_error());
  });
  for (const std::size_t rank : {0u, 2u}) {
    CAPTURE(ends[rank].report);
    CHECK(ends[rank].exit_code == 0);
    // "before" if this rank entered the call after the victim died.
    const std::string& report = ends[rank].report;
    CHECK(report.find(name_of(1) + " (pid " + std::to_string(ends[1].pid) + ") died ") == 0);
    CHECK((report.find(" during " + collective + " #1") != std::string::npos ||
           report.find(" before " + collective + " #1") != std::string::npos));
  }
}

TEST_CASE("a death during the wire-up makes it fail on all ranks") {
  ProcessJob job;
  job.ranks = 3;
  job.wire_up_seconds = 1.0;
  const int victim = GENERATE(0, 1);
  const std::string point = GENERATE("after_fence", "after_hello");
  if (victim == 0 && point == "after_hello") return;  // the leader sends no hello
  job.settings.fault = FaultPlan{"init." + point, victim, 1};
  CAPTURE(victim, point);
  const auto ends = job.run([&](RankPlace& place) {
    place.join();
    return std::string("joined");
  });
  CHECK(ends[static_cast<std::size_t>(victim)].signal == SIGKILL);
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (static_cast<int>(rank) == victim) continue;
    CAPTURE(rank, ends[rank].report);
    CHECK(ends[rank].exit_code == 1);
    CHECK(ends[rank].report.find("connecting the ranks of host") == 0);
  }
  if (victim == 1) CHECK(ends[0].report.find("rank 1") != std::string::npos);
}

#endif  // DDL_FAULT_INJECTION

TEST_CASE("a rank that exits without finalize is lost to those that wait for it") {
  ProcessJob job;
  job.ranks = 3;
  const auto ends = job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    if (place.rank() == 1) ::_exit(0);
    // It dies before, at or after the beginning of the call: so the message says before or during.
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_PEER_LOST, "barrier");
    return std::string(ddl_last_error());
  });
  for (const std::size_t rank : {0u, 2u}) {
    CAPTURE(ends[rank].report);
    CHECK(ends[rank].exit_code == 0);
    CHECK(ends[rank].report.find(name_of(1) + " (pid " + std::to_string(ends[1].pid) + ") died ") == 0);
    CHECK(ends[rank].report.find("barrier #1") != std::string::npos);
  }
}

TEST_CASE("a rank that finalizes and exits is not reported as dead") {
  ProcessJob job;
  job.ranks = 3;
  check_all_succeeded(job.run([](RankPlace& place) {
    // Each rank is gone some time before the last one has read the others' slots.
    ddl_context* context = place.join();
    std::vector<double> values(50000, 1.0);
    expect_ok(
        ddl_allreduce(context, values.data(), values.data(), values.size(), DDL_FLOAT64, DDL_SUM, nullptr),
        "");
    expect(values.front() == 3.0 && values.back() == 3.0, "wrong sum");
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}

TEST_CASE("a forked child that inherits everything delays no report of its parent's death") {
  ProcessJob job;
  job.ranks = 2;
  const auto ends = job.run([](RankPlace& place) -> std::string {
    ddl_context* context = place.join();
    if (place.rank() == 1) place.die_leaving_a_child();
    const double begin = now();
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_PEER_LOST, "barrier");
    expect(now() - begin < kNotifiedWithinSeconds, "notified too late");
    return "";
  });
  CHECK(ends[0].exit_code == 0);
  CHECK(ends[0].report == "");
}

TEST_CASE("a child forked without exec cannot use the context, and cannot harm it") {
  ProcessJob job;
  job.ranks = 2;
  check_all_succeeded(job.run([](RankPlace& place) {
    ddl_context* context = place.join();
    const pid_t child = ::fork();
    if (child == 0) {
      const bool refused = ddl_barrier(context, nullptr) == DDL_ERROR_ABORTED &&
                           std::string(ddl_last_error()).find("forked without exec") != std::string::npos &&
                           ddl_finalize(context) == DDL_OK;
      ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child was not refused");
    expect_ok(ddl_barrier(context, nullptr), "barrier of the parents");
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}

namespace {

/// The exit code of a child that runs body; body returns the number of the first step that went wrong, or 0.
int exit_code_of_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool is_refused(ddl_status status) {
  return status == DDL_ERROR_ABORTED &&
         std::string(ddl_last_error()).find("forked without exec cannot use it") != std::string::npos;
}

ddl_status sum_of(ddl_context* context, const char* name, std::vector<float>& values, std::uint64_t set,
                  ddl_handle** handle) {
  ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
  options.process_set = set;
  return ddl_allreduce_async(context, name, values.data(), values.data(), values.size(), DDL_FLOAT32, DDL_SUM,
                             &options, handle);
}

}  // namespace

TEST_CASE("a child forked without exec can neither submit tensors nor use handles, and cannot harm them") {
  ProcessJob job = job_of_sizes(GENERATE(std::vector{2}, std::vector{1, 1}));
  const bool has_tensors = GENERATE(false, true), in_set = GENERATE(false, true);
  CAPTURE(job.hosts.size(), has_tensors, in_set);
  check_all_succeeded(job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    std::uint64_t set = DDL_WORLD;
    if (in_set) expect_ok(ddl_process_set_split(context, DDL_WORLD, 0, 0, &set), "split");
    std::vector<float> first(4, 1.0f), open(4, 1.0f), of_child(4, 1.0f);
    ddl_handle *complete = nullptr, *waits = nullptr;
    if (has_tensors) {
      ddl_handle* handle = nullptr;
      expect_ok(sum_of(context, "first", first, set, &handle), "first");
      expect_ok(ddl_wait(handle), "first");
      expect_ok(sum_of(context, "complete", first, set, &complete), "complete");
      // Open until the other rank has submitted it, too.
      const char* const names[] = {"of rank 0", "of rank 1"};
      expect_ok(sum_of(context, names[place.rank()], open, set, &waits), "open");
    }
    const int wrong = exit_code_of_child([&]() -> int {
      ddl_handle* handle = nullptr;
      if (!is_refused(sum_of(context, "of the child", of_child, set, &handle)) || handle != nullptr) return 1;
      if (!is_refused(ddl_join(context, set, nullptr))) return 2;
      if (!is_refused(ddl_step(context, set))) return 3;
      std::int32_t done = 1;
      if (has_tensors && (!is_refused(ddl_test(waits, &done)) || done != 0)) return 4;
      if (has_tensors && !is_refused(ddl_wait(waits))) return 5;
      ddl_handle* const all[] = {complete, nullptr};
      if (has_tensors && !is_refused(ddl_wait_all(all, 2))) return 6;
      if (in_set && !is_refused(ddl_process_set_free(context, set))) return 7;
      return ddl_finalize(context) == DDL_OK ? 0 : 8;
    });
    expect(wrong == 0, "step " + std::to_string(wrong) + " of the child");
    if (has_tensors) {
      ddl_handle* other = nullptr;
      std::vector<float> others(4, 1.0f);
      const char* const names[] = {"of rank 1", "of rank 0"};
      expect_ok(sum_of(context, names[place.rank()], others, set, &other), "the other rank's tensor");
      for (ddl_handle* const handle : {complete, waits, other}) expect_ok(ddl_wait(handle), "wait");
      expect(open[3] == 2.0f && first[0] == 4.0f, "the sums");
    }
    ddl_handle* last = nullptr;
    expect_ok(sum_of(context, "last", of_child, set, &last), "last");
    expect_ok(ddl_wait(last), "last");
    expect(of_child[0] == 2.0f, "the last sum");
    if (in_set) expect_ok(ddl_process_set_free(context, set), "free");
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}

TEST_CASE("a child forked without exec cannot free its parent's shared memory") {
  ProcessJob job;
  job.ranks = 2;
  check_all_succeeded(job.run([](RankPlace& place) {
    ddl_context* context = place.join();
    void* memory = nullptr;
    expect_ok(ddl_alloc(context, sizeof(float), &memory), "alloc");
    *static_cast<float*>(memory) = 1.0f;
    const int wrong = exit_code_of_child([&]() -> int {
      void* more = nullptr;
      if (!is_refused(ddl_alloc(context, sizeof(float), &more)) || more != nullptr) return 1;
      return is_refused(ddl_free(context, memory)) ? 0 : 2;
    });
    expect(wrong == 0, "step " + std::to_string(wrong) + " of the child");
    expect(*static_cast<float*>(memory) == 1.0f, "the parent's memory has changed");
    expect_ok(ddl_free(context, memory), "free");
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}

TEST_CASE("another user is rejected, even with the nonce") {
  if (::geteuid() != 0) DDL_SKIP("only root can become another user");
  Board board(2);
  SegmentConfig config;
  config.slot_bytes = 64;
  auto leader = WireUpLeader::open(BoardBootstrap(board, 0).membership(), config);
  REQUIRE(leader);
  const auto rendezvous = Rendezvous::parse(leader->address());
  REQUIRE(rendezvous);
  const Deadline deadline = Deadline::after_seconds(60);
  FaultInjector fault(std::nullopt, 1);

  // The member joins when the others have ended: with the last member the leader stops listening, but forked children
  // would keep its socket.
  int others_run[2];
  REQUIRE(::pipe2(others_run, O_CLOEXEC) == 0);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    const bool became_another = ::setuid(65534) == 0;
    const auto refused =
        join_wire_up(BoardBootstrap(board, 1).membership(), *rendezvous, {deadline, -1}, fault);
    // It also notices that the leader belongs to another user.
    ::_exit(became_another && !refused ? 0 : 1);
  }
  const pid_t impostor = ::fork();
  if (impostor == 0) {
    const bool became_another = ::setuid(65534) == 0;
    const auto socket = connect_local(rendezvous->socket_name, deadline);
    Hello hello;
    hello.nonce = rendezvous->nonce;
    hello.rank = 1;
    const bool sent = socket && ddl::send_with_fds(socket->get(), bytes_of(hello), {});
    char byte;
    const bool answered = sent && ::recv(socket->get(), &byte, 1, 0) > 0;
    ::_exit(became_another && !answered ? 0 : 1);
  }
  const pid_t member = ::fork();
  if (member == 0) {
    ::close(others_run[1]);
    char byte;
    if (::read(others_run[0], &byte, 1) != 0) ::_exit(1);
    ::_exit(join_wire_up(BoardBootstrap(board, 1).membership(), *rendezvous, {deadline, -1}, fault) ? 0 : 1);
  }
  ::close(others_run[0]);
  ::close(others_run[1]);
  const auto group = leader->gather({deadline, -1}, fault);
  REQUIRE(group);
  CHECK(group->members[1].pid == member);
  for (const pid_t child : {stranger, impostor, member}) {
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
}

TEST_CASE("an idle rank uses no CPU") {
  ProcessJob job;
  job.ranks = 4;
  check_all_succeeded(job.run([](RankPlace& place) {
    ddl_context* context = place.join();
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    // Idleness can only be measured by idling for a while.
    const timespec second{1, 0};
    ::nanosleep(&second, nullptr);
    ::getrusage(RUSAGE_SELF, &after);
    const auto microseconds = [](const rusage& usage) {
      return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000L + usage.ru_utime.tv_usec +
             usage.ru_stime.tv_usec;
    };
    const long used = microseconds(after) - microseconds(before);
    // The kernel of a loaded machine charges some CPU time to idle processes; spinning or polling uses many times as
    // much.
    expect(used < 20000, "used " + std::to_string(used) + " microseconds in an idle second");
    // One context switch for the nanosleep of this thread; the watching thread does not wake up.
    const long switches = after.ru_nvcsw - before.ru_nvcsw;
    expect(switches <= 2, "woke up " + std::to_string(switches) + " times in an idle second");
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}
