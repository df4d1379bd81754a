// Jobs on several hosts with ranks as forked processes: real deaths, departures and timeouts, seen from every rank.
// The hosts are simulated; their ranks communicate by TCP over loopback.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <stdexcept>
#include <utility>

#include "base/fd.h"
#include "net/job_key.h"
#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/passed_points.h"
#include "runtime/support/process_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using namespace ddl::runtime;
using namespace ddl::runtime::test;

namespace {

double now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// The time limit for a rank of any host to learn of a death on another.
constexpr double kNotifiedWithinSeconds = 1.0;

ProcessJob job_on(const std::vector<int>& sizes) {
  ProcessJob job;
  job.hosts = hosts_of_sizes(sizes);
  job.ranks = 0;
  for (const int size : sizes) job.ranks += size;
  return job;
}

void check_all_succeeded(const std::vector<RankEnd>& ends) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    CAPTURE(rank, ends[rank].report, ends[rank].signal);
    CHECK(ends[rank].exit_code == 0);
  }
}

std::string name_of(int rank) { return "rank " + std::to_string(rank) + " on host" + std::to_string(rank); }
std::string name_of(int rank, pid_t pid) { return name_of(rank) + " (pid " + std::to_string(pid) + ")"; }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("collectives conform on several hosts with ranks as processes") {
  const auto sizes = GENERATE(std::vector{1, 1}, std::vector{2, 2}, std::vector{3, 2}, std::vector{1, 1, 1},
                              std::vector{2, 1, 2});
  ProcessJob job = job_on(sizes);
  job.settings.staging_bytes = 512;
  CAPTURE(sizes);
  check_all_succeeded(job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    check_all(context, interesting_counts(512, job.ranks));
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}

TEST_CASE("ranks that are assigned to the hosts in turn conform as well") {
  ProcessJob job;
  job.ranks = 5;
  job.hosts = {{0, 2, 4}, {1, 3}};
  job.settings.staging_bytes = 512;
  check_all_succeeded(job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    expect(ddl_local_rank(context) == place.rank() / 2, "the local rank");
    expect(ddl_cross_rank(context) == place.rank() % 2, "the cross rank");
    expect(ddl_cross_size(context) == (place.rank() == 4 ? 1 : 2), "the cross size");
    check_all(context, interesting_counts(512, job.ranks));
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}

TEST_CASE("a job on several hosts joins, leaves and joins again, with one inherited key") {
  ProcessJob job = job_on({2, 1});
  const auto key = ddl::net::JobKey::random();
  REQUIRE(key);
  const auto memfd = key->to_memfd();
  REQUIRE(memfd);
  job.settings.job_key_fd = memfd->get();
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

TEST_CASE("a rank without the job's key is not admitted, and reports it") {
  ProcessJob job = job_on({1, 1});
  job.wire_up_seconds = 0.5;
  const auto ends = job.run([](RankPlace& place) {
    // Each makes its own key.
    const auto key = ddl::net::JobKey::random();
    const auto memfd = key->to_memfd();
    place.use_key(memfd->get());
    place.join();
    return std::string("joined");
  });
  CHECK(ends[0].exit_code == 1);
  CHECK(ends[1].exit_code == 1);
  // The caller notices that the listener does not know its key, and sends nothing more.
  CHECK(contains(ends[1].report,
                 "connecting rank 1 on host1 to other hosts by tcp: not connected in time: rank 0 ("));
  CHECK(contains(ends[1].report, "the listener does not know the job's key"));
  CHECK(contains(ends[0].report, "not connected in time: rank 1; "));
  CHECK(contains(ends[0].report, "turned away, the last because: the connection was closed"));
}

TEST_CASE("hosts that cut buffers differently get an error") {
  ProcessJob job = job_on({1, 1});
  const auto ends = job.run([](RankPlace& place) {
    place.settings().staging_bytes = place.rank() == 0 ? 1024 : 2048;
    place.join();
    return std::string("joined");
  });
  for (const RankEnd& end : ends) {
    CHECK(end.exit_code == 1);
    CHECK(contains(end.report, "the hosts cut buffers differently: rank "));
    CHECK(contains(end.report, "DDL_STAGING_BYTES must be the same everywhere"));
  }
}

TEST_CASE("hosts that want different numbers of data connections get an error") {
  ProcessJob job = job_on({1, 1});
  const int of_first = GENERATE(1, 2, 8);
  const auto ends = job.run([of_first](RankPlace& place) {
    place.settings().sockets_per_peer = place.rank() == 0 ? of_first : 3;
    place.join();
    return std::string("joined");
  });
  for (const RankEnd& end : ends) {
    CAPTURE(end.report);
    CHECK(end.exit_code == 1);
    CHECK(contains(end.report, "the hosts want different numbers of data connections: rank "));
    CHECK(contains(end.report, "DDL_SOCKETS_PER_PEER must be the same everywhere"));
  }
}

#ifdef DDL_FAULT_INJECTION

namespace {

/// Runs two allreduces of five chunks, in the second of which the planned victim dies, and checks what all others
/// report.
void check_death(ProcessJob job, int victim, bool all_have_entered, std::size_t bytes = 5 * 4096) {
  if (!job.settings.staging_bytes) job.settings.staging_bytes = 4096;
  const std::uint64_t count = bytes / sizeof(float);
  const auto ends = job.run([all_have_entered, count](RankPlace& place) {
    ddl_context* context = place.join();
    std::vector<float> values(count, 1.0f);
    const auto allreduce = [&] {
      return ddl_allreduce(context, values.data(), values.data(), count, DDL_FLOAT32, DDL_SUM, nullptr);
    };
    double begin = now();
    ddl_status status = allreduce();
    // If not all have entered the second allreduce, some may be notified in the first.
    if (status == DDL_OK || all_have_entered) {
      expect_ok(status, "the first allreduce");
      begin = now();
      status = allreduce();
    }
    const double seconds = now() - begin;
    expect_status(status, DDL_ERROR_PEER_LOST, "the allreduce in which a rank died");
    std::string sentence = ddl_last_error();
    expect(seconds < kNotifiedWithinSeconds, "notified after " + std::to_string(seconds) + " s");
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_ABORTED, "the next call");
    expect_contains(ddl_last_error(), sentence);
    // Some leave in order, others just exit: the reported cause is still the victim.
    if (place.rank() % 2 == 0) expect_ok(ddl_finalize(context), "finalize after an abort");
    return sentence;
  });
  const auto& dead = ends[static_cast<std::size_t>(victim)];
  CHECK(dead.signal == SIGKILL);
  const bool by_tree = job.settings.algorithms.of(CallKind::kAllreduce) == Algorithm::kTree;
  const std::string named = by_tree ? "by tree, " : "";
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (static_cast<int>(rank) == victim) continue;
    CAPTURE(rank, ends[rank].report);
    CHECK(ends[rank].exit_code == 0);
    const std::string died = name_of(victim, dead.pid) + " died ",
                      what = " (sum, " + named + "float32, " + std::to_string(count) + " elements)";
    if (all_have_entered) {
      CHECK(ends[rank].report == died + "during allreduce #2" + what);
    } else {
      const std::vector<std::string> possible{died + "during allreduce #2" + what,
                                              died + "before allreduce #2" + what,
                                              died + "during allreduce #1" + what};
      CHECK(std::find(possible.begin(), possible.end(), ends[rank].report) != possible.end());
    }
  }
}

}  // namespace

TEST_CASE("every rank of every host reports within a second which rank died") {
  const auto sizes = GENERATE(std::vector{1, 1}, std::vector{2, 1}, std::vector{2, 2}, std::vector{3, 2},
                              std::vector{1, 1, 1});
  ProcessJob job = job_on(sizes);
  const int victim = GENERATE_COPY(range(0, job.ranks));
  // With a CPU for every rank a wait spins first, otherwise it sleeps at once.
  job.settings.spin = std::chrono::microseconds(GENERATE(0, 200));
  const std::string point = GENERATE("before_publish", "after_publish", "in_round");
  // An allreduce of five chunks along the tree exchanges once, compares, and exchanges in 4 + 3 rounds. In the second
  // one, all have compared, and chunks are on their way.
  job.settings.algorithms = *AlgorithmOverrides::parse("allreduce=tree");
  const int passage = point == "in_round" ? 7 + 2 : 8 + 3;
  job.settings.fault = FaultPlan{"allreduce." + point, victim, passage};
  CAPTURE(sizes, victim, point);
  check_death(job, victim, true);
}

TEST_CASE("every rank reports which rank died if slices go in fragments over several sockets") {
  const auto sizes = GENERATE(std::vector{1, 1}, std::vector{1, 1, 1});
  ProcessJob job = job_on(sizes);
  job.settings.sockets_per_peer = 3;
  const int victim = GENERATE_COPY(range(0, job.ranks));
  // Five chunks of four times the staging: eight rounds in each allreduce, and there are chunks that the victim has
  // not begun.
  job.settings.staging_bytes = 64 << 10;
  job.settings.fault = FaultPlan{"allreduce.in_round", victim, GENERATE(8 + 1, 8 + 3)};
  CAPTURE(sizes, victim);
  check_death(job, victim, true, 5 * 4 * (64 << 10));
}

TEST_CASE("the others wait for a rank that is stopped in a collective, and it goes on when it is continued") {
  ProcessJob job = job_on({2, 1});
  job.settings.staging_bytes = 4096;
  job.stopped_rank = GENERATE(0, 1, 2);
  job.goes_on = true;
  const std::string point = GENERATE("before_publish", "after_publish", "in_round");
  job.settings.fault = FaultPlan{"allreduce." + point, *job.stopped_rank, 3, true};
  job.settings.sockets_per_peer = GENERATE(1, 2);
  CAPTURE(*job.stopped_rank, point);
  const auto ends = job.run([](RankPlace& place) {
    ddl_context* context = place.join();
    std::vector<float> values(5 * 1024, 1.0f);
    for (int time = 1; time <= 3; ++time) {
      expect_ok(ddl_allreduce(context, values.data(), values.data(), values.size(), DDL_FLOAT32, DDL_AVERAGE,
                              nullptr),
                "allreduce");
      expect(std::count(values.begin(), values.end(), 1.0f) == 5 * 1024, "wrong average");
    }
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  });
  check_all_succeeded(ends);
  CHECK(ends[static_cast<std::size_t>(*job.stopped_rank)].was_stopped);
}

// A partner that does not read delays its own data, and nothing else.
TEST_CASE("a rank that waits for a stopped rank is notified of a death") {
  ProcessJob job = job_on({1, 1, 1});
  job.stopped_rank = 2;
  job.victim = 1;
  job.settings.fault = FaultPlan{"allreduce.after_publish", 2, 1, true};
  const auto ends = job.run([](RankPlace& place) -> std::string {
    ddl_context* context = place.join();
    std::vector<float> values(std::size_t{1} << 20, 1.0f);
    // All have joined when one leaves this barrier; the victim's partner may still be in it.
    ddl_status status = ddl_barrier(context, nullptr);
    if (status == DDL_OK) {
      status =
          ddl_allreduce(context, values.data(), values.data(), values.size(), DDL_FLOAT32, DDL_SUM, nullptr);
    }
    expect_status(status, DDL_ERROR_PEER_LOST, "the call in which a rank died");
    return ddl_last_error();
  });
  CHECK(ends[0].exit_code == 0);
  CHECK(contains(ends[0].report, name_of(1, ends[1].pid) + " died "));
  CHECK(ends[1].signal == SIGKILL);
  CHECK(ends[2].was_stopped);
  CHECK(ends[2].signal == SIGKILL);
}

TEST_CASE("a death before, in and after the comparison between hosts is reported") {
  const auto sizes = GENERATE(std::vector{1, 1}, std::vector{2, 2}, std::vector{1, 2, 1});
  ProcessJob job = job_on(sizes);
  const int victim = GENERATE_COPY(range(0, job.ranks));
  const std::string point = GENERATE("before_hosts", "after_hosts");
  job.settings.fault = FaultPlan{"allreduce." + point, victim, 2};
  CAPTURE(sizes, victim, point);
  check_death(job, victim, false);
}

TEST_CASE("a death while the hosts connect makes connecting fail on all ranks in time") {
  ProcessJob job = job_on({1, 1, 1});
  job.wire_up_seconds = 1.0;
  const int victim = GENERATE(0, 1, 2);
  const std::string point = GENERATE("after_fence", "before_links");
  job.settings.fault = FaultPlan{"init." + point, victim, 1};
  CAPTURE(victim, point);
  const auto ends = job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    // Not every rank has a link to the victim: a rank without one learns of it now.
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_PEER_LOST, "barrier");
    return std::string(ddl_last_error());
  });
  CHECK(ends[static_cast<std::size_t>(victim)].signal == SIGKILL);
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (static_cast<int>(rank) == victim) continue;
    CAPTURE(rank, ends[rank].report);
    if (ends[rank].exit_code == 1) {
      CHECK(contains(ends[rank].report, "to other hosts by tcp: not connected in time: rank "));
    } else {
      CHECK(ends[rank].exit_code == 0);
    }
  }
}

namespace {

/// Named tensors of every kind.
class NamedTensors {
 public:
  explicit NamedTensors(ddl_context* context) : context_(context), counts_(size(), 4) {
    for (auto* const buffer : {&send_, &recv_, &part_, &other_}) buffer->assign(4 * size(), 1.0f);
  }

  /// prefix: of their names. Returns the first failure: tensors may be refused when others of them have failed.
  ddl_status submit(const std::string& prefix) {
    handles_.fill(nullptr);
    std::string name;
    const auto named = [&](const char* kind) { return (name = prefix + kind).c_str(); };
    const std::array statuses{
        ddl_allreduce_async(context_, named(" sum"), send_.data(), recv_.data(), 4, DDL_FLOAT32, DDL_SUM,
                            nullptr, &handles_[0]),
        ddl_reduce_scatter_async(context_, named(" part"), send_.data(), part_.data(), counts_.data(),
                                 DDL_FLOAT32, DDL_SUM, nullptr, &handles_[1]),
        ddl_broadcast_async(context_, named(" copy"), other_.data(), 4, DDL_FLOAT32, 1, nullptr,
                            &handles_[2]),
        ddl_allgatherv_async(context_, named(" all"), send_.data(), 4, &results_[0], nullptr, DDL_FLOAT32,
                             nullptr, &handles_[3]),
        ddl_alltoallv_async(context_, named(" own"), send_.data(), counts_.data(), &results_[1], nullptr,
                            DDL_FLOAT32, nullptr, &handles_[4]),
    };
    const auto* const failed =
        std::find_if(statuses.begin(), statuses.end(), [](int s) { return s != DDL_OK; });
    return failed == statuses.end() ? DDL_OK : *failed;
  }
  /// Of each tensor, with its message.
  std::vector<std::pair<ddl_status, std::string>> wait() {
    std::vector<std::pair<ddl_status, std::string>> ends;
    for (ddl_handle* const handle : handles_) {
      if (handle == nullptr) continue;
      const ddl_status status = ddl_wait(handle);
      ends.emplace_back(status, status == DDL_OK ? "" : ddl_last_error());
    }
    for (void*& result : results_) (void)ddl_free(context_, std::exchange(result, nullptr));
    return ends;
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(ddl_size(context_)); }

  ddl_context* context_;
  std::vector<std::uint64_t> counts_;
  std::vector<float> send_, recv_, part_, other_;
  std::array<ddl_handle*, 5> handles_{};
  std::array<void*, 2> results_{};
};

/// Checks that all tensors have failed in the same way, because a rank died.
std::string sentence_of(const std::vector<std::pair<ddl_status, std::string>>& ends) {
  for (const auto& [status, sentence] : ends) {
    expect(status == DDL_ERROR_PEER_LOST,
           std::string("a tensor: ") + ddl_status_name(status) + ": " + sentence);
    expect(sentence == ends.front().second, sentence + "; " + ends.front().second);
  }
  return ends.front().second;
}

void check_all_name(int victim, const std::vector<RankEnd>& ends) {
  const auto& dead = ends[static_cast<std::size_t>(victim)];
  CHECK(dead.signal == SIGKILL);
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (static_cast<int>(rank) == victim) continue;
    CAPTURE(rank, ends[rank].report);
    CHECK(ends[rank].exit_code == 0);
    CHECK(contains(ends[rank].report, name_of(victim, dead.pid) + " died "));
  }
}

}  // namespace

TEST_CASE("all open tensors of ranks that sleep are told within a second which rank died") {
  const auto sizes = GENERATE(std::vector{3}, std::vector{2, 1}, std::vector{2, 2}, std::vector{1, 1, 1});
  ProcessJob job = job_on(sizes);
  const int victim = GENERATE_COPY(0, job.ranks - 1);
  // A thread of the program waits for the first tensor, all are asleep in libddl's own threads, or a rank has joined.
  enum class Way { kWaits, kIsCalledBack, kJoins };
  const auto way = GENERATE(Way::kWaits, Way::kIsCalledBack, Way::kJoins);
  job.settings.spin = std::chrono::microseconds(GENERATE(0, 200));
  CAPTURE(sizes, victim, static_cast<int>(way));
  PassedPoints passed;  // of each rank, which is a process, its own
  check_all_name(victim, job.run([&](RankPlace& place) {
    place.watch_faults(&passed);
    ddl_context* context = place.join();
    ddl_call_options in_other_set = DDL_CALL_OPTIONS_INIT;
    expect_ok(ddl_process_set_split(context, DDL_WORLD, 0, 0, &in_other_set.process_set), "split");
    // What all ranks expect of a step.
    NamedTensors tensors(context);
    for (int step = 0; step < 3; ++step) {
      expect_ok(tensors.submit("each step's"), "a step");
      for (const auto& [status, sentence] : tensors.wait()) expect(status == DDL_OK, sentence);
    }
    const auto before = passed.mark("agree.before_sleep");
    std::promise<std::pair<ddl_status, std::string>> called;
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.argument = &called;
    options.completed = [](void* argument, ddl_status status, const char* message) {
      static_cast<std::promise<std::pair<ddl_status, std::string>>*>(argument)->set_value({status, message});
    };
    const bool joins = way == Way::kJoins && place.rank() == (victim + 1) % job.ranks;
    float value = 1;
    // The others do not have these: nothing is ever executed.
    const std::string own = "those of rank " + std::to_string(place.rank());
    if (!joins) {
      expect_ok(tensors.submit(own), own);
      expect_ok(ddl_allreduce_async(context, own.c_str(), &value, &value, 1, DDL_FLOAT32, DDL_SUM, &options,
                                    nullptr),
                "allreduce");
    }
    auto join = std::async(std::launch::async, [&]() -> std::pair<ddl_status, std::string> {
      if (!joins) return {};
      const ddl_status status = ddl_join(context, DDL_WORLD, nullptr);
      return {status, ddl_last_error()};
    });
    passed.wait_since(before);
    // Until all ranks sleep with what they have.
    const ddl_status barrier = ddl_barrier(context, &in_other_set);
    if (place.rank() == victim) ::kill(::getpid(), SIGKILL);
    expect(barrier == DDL_OK || barrier == DDL_ERROR_PEER_LOST, "barrier");
    const double begin = now();
    std::string sentence;
    if (joins) {
      const auto [status, message] = join.get();
      expect(status == DDL_ERROR_PEER_LOST, std::string("join: ") + ddl_status_name(status) + message);
      sentence = message;
    } else {
      std::pair<ddl_status, std::string> end;
      if (way == Way::kIsCalledBack) end = called.get_future().get();
      sentence = sentence_of(tensors.wait());
      if (way != Way::kIsCalledBack) end = called.get_future().get();
      expect(end.first == DDL_ERROR_PEER_LOST && end.second == sentence, "called back: " + end.second);
    }
    expect(now() - begin < kNotifiedWithinSeconds, "notified too late");
    if (place.rank() % 2 == 0) expect_ok(ddl_finalize(context), "finalize after an abort");
    return sentence;
  }));
}

TEST_CASE("all open tensors are told within a second which rank died at any point of a step") {
  const auto sizes = GENERATE(std::vector{2, 1}, std::vector{1, 1, 1});
  ProcessJob job = job_on(sizes);
  const int victim = GENERATE_COPY(range(0, job.ranks));
  const std::string point =
      GENERATE("agree.after_submission", "agree.before_publish", "agree.after_round",
               "allreduce.before_publish", "alltoallv.in_round", "broadcast.after_batch");
  // In the third step or after it.
  job.settings.fault = FaultPlan{point, victim, point == "agree.after_submission" ? 12 : 3};
  CAPTURE(sizes, victim, point);
  check_all_name(victim, job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    NamedTensors tensors(context);
    for (int step = 0; step < 1000; ++step) {
      const double begin = now();
      // Of every second step the names are new, so the ranks agree.
      const ddl_status handed = tensors.submit(step % 2 == 0 ? "each" : "step " + std::to_string(step));
      auto ends = tensors.wait();
      // Some may have been executed before.
      std::erase_if(ends, [](const auto& end) { return end.first == DDL_OK; });
      if (handed == DDL_OK && ends.empty()) continue;
      expect(now() - begin < kNotifiedWithinSeconds, "notified too late");
      expect(!ends.empty(), "tensors were refused, and none has failed");
      return sentence_of(ends);
    }
    throw std::runtime_error("not notified");
  }));
}

#endif  // DDL_FAULT_INJECTION

TEST_CASE("a rank that exits without finalize is lost to the ranks of other hosts") {
  ProcessJob job = job_on({2, 1});
  const int leaver = GENERATE(0, 1, 2);
  const auto ends = job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    if (place.rank() == leaver) ::_exit(0);
    const double begin = now();
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_PEER_LOST, "barrier");
    expect(now() - begin < kNotifiedWithinSeconds, "notified too late");
    return std::string(ddl_last_error());
  });
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == leaver) continue;
    const RankEnd& end = ends[static_cast<std::size_t>(rank)];
    CAPTURE(end.report);
    CHECK(end.exit_code == 0);
    CHECK(contains(end.report, name_of(leaver, ends[static_cast<std::size_t>(leaver)].pid) + " died "));
  }
}

TEST_CASE("a rank that finalizes while others of its own or another host wait for it has left, not died") {
  ProcessJob job = job_on({2, 2});
  const int leaver = GENERATE(range(0, 4));
  CAPTURE(leaver);
  const auto ends = job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    // A rank that has not left the first barrier yet may be notified there.
    ddl_status status = ddl_barrier(context, nullptr);
    if (place.rank() == leaver) {
      expect_ok(ddl_finalize(context), "finalize");
      return std::string();
    }
    if (status == DDL_OK) status = ddl_barrier(context, nullptr);
    expect_status(status, DDL_ERROR_PEER_LOST, "barrier without the leaver");
    return std::string(ddl_last_error());
  });
  for (int rank = 0; rank < 4; ++rank) {
    const RankEnd& end = ends[static_cast<std::size_t>(rank)];
    CAPTURE(rank, end.report);
    CHECK(end.exit_code == 0);
    if (rank == leaver) continue;
    CHECK(contains(end.report, name_of(leaver, ends[static_cast<std::size_t>(leaver)].pid) +
                                   " left the job (finalize) "));
    CHECK(contains(end.report, " barrier #"));
  }
}

TEST_CASE("ranks of several hosts may leave when no other rank needs them") {
  ProcessJob job = job_on({2, 1, 1});
  job.settings.sockets_per_peer = GENERATE(1, 2, 4);
  job.settings.staging_bytes = std::size_t{1} << 20;
  check_all_succeeded(job.run([](RankPlace& place) {
    // Ranks that return from the last call first are gone before the others have read what they sent.
    for (int round = 0; round < 5; ++round) {
      ddl_context* context = place.join();
      std::vector<double> values(300'000, 1.0);
      expect_ok(ddl_broadcast(context, values.data(), values.size(), DDL_FLOAT64, round % 4, nullptr),
                "broadcast");
      expect_ok(
          ddl_allreduce(context, values.data(), values.data(), values.size(), DDL_FLOAT64, DDL_SUM, nullptr),
          "allreduce");
      expect(values.front() == 4.0 && values.back() == 4.0, "wrong sum");
      expect_ok(ddl_finalize(context), "finalize");
    }
    return std::string();
  }));
}

TEST_CASE("a rank that does not arrive is named on every host by the ranks that see that it is missing") {
  const int missing = GENERATE(range(0, 4));
  CAPTURE(missing);
  ProcessJob job = job_on({2, 2});
  const auto ends = job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    if (place.rank() == missing) {
      // Computes for longer than the others wait.
      const timespec pause{1, 0};
      ::nanosleep(&pause, nullptr);
      expect_status(ddl_barrier(context, nullptr), DDL_ERROR_TIMEOUT, "the barrier that was too late");
      return std::string(ddl_last_error());
    }
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.timeout_seconds = 0.3;
    expect_status(ddl_barrier(context, &options), DDL_ERROR_TIMEOUT, "barrier");
    return std::string(ddl_last_error());
  });
  const std::string neighbour = name_of(missing ^ 1);
  for (const RankEnd& end : ends) {
    CAPTURE(end.report);
    CHECK(end.exit_code == 0);
    CHECK(end.report == neighbour + " gave up after 0.3 s in barrier #2: not arrived: " +
                            name_of(missing, ends[static_cast<std::size_t>(missing)].pid));
  }
}

TEST_CASE("the only rank of another host is named by the ranks that wait for it if it does not arrive") {
  ProcessJob job = job_on({1, 1});
  const auto ends = job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.timeout_seconds = 0.2;
    if (place.rank() == 1) {
      // It is woken by nothing; it learns of the abort at its next call.
      const timespec pause{1, 0};
      ::nanosleep(&pause, nullptr);
    }
    expect_status(ddl_barrier(context, &options), DDL_ERROR_TIMEOUT, "barrier");
    return std::string(ddl_last_error());
  });
  for (const RankEnd& end : ends) {
    CAPTURE(end.report);
    CHECK(end.exit_code == 0);
    CHECK(end.report == name_of(0) + " gave up after 0.2 s in barrier #1: not arrived: " +
                            name_of(1, ends[1].pid) + ", or a rank that it waits for");
  }
}

TEST_CASE("a forked child that lives on does not hide its parent's death from other hosts") {
  ProcessJob job = job_on({1, 1});
  const auto ends = job.run([](RankPlace& place) -> std::string {
    ddl_context* context = place.join();
    if (place.rank() == 1) place.die_leaving_a_child();
    const double begin = now();
    expect_status(ddl_barrier(context, nullptr), DDL_ERROR_PEER_LOST, "barrier");
    expect(now() - begin < kNotifiedWithinSeconds, "notified too late");
    return ddl_last_error();
  });
  CHECK(ends[0].exit_code == 0);
  CHECK(contains(ends[0].report, name_of(1, ends[1].pid) + " died "));
}

TEST_CASE("a rank that waits for another host sleeps, and an idle one uses no CPU") {
  ProcessJob job = job_on({2, 1});
  check_all_succeeded(job.run([](RankPlace& place) {
    ddl_context* context = place.join();
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    // Rank 2 computes and the others wait for it. Idleness can only be measured by idling for a while.
    if (place.rank() == 2) {
      const timespec second{1, 0};
      ::nanosleep(&second, nullptr);
    }
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    ::getrusage(RUSAGE_SELF, &after);
    const auto microseconds = [](const rusage& usage) {
      return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000L + usage.ru_utime.tv_usec +
             usage.ru_stime.tv_usec;
    };
    const long used = microseconds(after) - microseconds(before);
    // Waking up after a second touches memory that a virtual machine may have to fetch first; a spinning rank would
    // use a full second of CPU.
    expect(used < 50'000, "used " + std::to_string(used) + " microseconds in a second of waiting");
    expect(after.ru_nvcsw - before.ru_nvcsw <= 20, "woke up too often");
    expect_ok(ddl_finalize(context), "finalize");
    return std::string();
  }));
}
