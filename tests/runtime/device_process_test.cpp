// Ranks with GPUs as processes that die, over the stand-ins. Hidden, because the ranks are forked before anything has loaded
// a GPU's library: the test of CTest runs these alone.
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "runtime/support/expect.h"
#include "runtime/support/on_gpu.h"
#include "runtime/support/process_job.h"
#include "support/catch.h"

namespace {

using ddl::conformance::expect_contains;
using ddl::conformance::expect_ok;
using ddl::conformance::expect_status;
using ddl::runtime::FaultPlan;
using ddl::runtime::test::all_ranks_share_a_gpu;
using ddl::runtime::test::Floats;
using ddl::runtime::test::Gate;
using ddl::runtime::test::OnGpu;
using ddl::runtime::test::ProcessJob;
using ddl::runtime::test::RankPlace;
using ddl::runtime::test::sum;
using ddl::runtime::test::TestGpu;

constexpr int kVictim = 1;

/// By NCCL, or on one GPU.
ProcessJob job_of_three(bool shares) {
  ProcessJob job;
  job.ranks = 3;
  job.settings.gpu_operations =
      shares ? ddl::contract::GpuOperations::kAuto : ddl::contract::GpuOperations::kNccl;
  return job;
}

void check_ends(const std::vector<ddl::runtime::test::RankEnd>& ends) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    CAPTURE(rank, ends[rank].report, ends[rank].signal);
    if (rank == kVictim)
      CHECK(ends[rank].signal == SIGKILL);
    else
      CHECK(ends[rank].exit_code == 0);
  }
}

/// Calls until one fails: what has become of a call may be told by a later one.
ddl_status sum_until_failed(ddl_context* context, Floats& floats, const OnGpu& on) {
  ddl_status status = DDL_OK;
  while (status == DDL_OK) status = sum(context, floats, on);
  return status;
}

}  // namespace

TEST_CASE("all ranks are told which rank died while their GPUs were at work, and end", "[.processes]") {
  const bool shares = GENERATE(true, false);
  if (!shares && all_ranks_share_a_gpu()) return;
  // In the comparison of a call, or in what follows it on the host.
  const int passage = GENERATE(12, 13, 14, 15);
  ProcessJob job = job_of_three(shares);
  job.settings.fault = FaultPlan{"allreduce.before_publish", kVictim, passage};
  CAPTURE(shares, passage);
  check_ends(job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    const OnGpu on(shares ? 0 : place.rank());
    {
      Floats floats(on, std::vector<float>(1000, 1.0f));
      expect_status(sum_until_failed(context, floats, on), DDL_ERROR_PEER_LOST,
                    "the call in which a rank died");
      expect_contains(ddl_last_error(), "rank 1 on host1");
      TestGpu::get().synchronize(on.stream());
    }
    expect_ok(ddl_finalize(context), "finalize after a death");
    return std::string();
  }));
}

TEST_CASE("a rank that dies with calls on a stream that is held holds up no other rank's stream",
          "[.processes]") {
  const bool shares = GENERATE(true, false);
  if (!shares && all_ranks_share_a_gpu()) return;
  ProcessJob job = job_of_three(shares);
  CAPTURE(shares);
  check_ends(job.run([&](RankPlace& place) {
    ddl_context* context = place.join();
    const OnGpu on(shares ? 0 : place.rank());
    static Gate gate;
    {
      Floats floats(on, std::vector<float>(1000, 1.0f));
      if (place.rank() == kVictim) {
        expect_ok(sum(context, floats, on), "the first call");
        gate.hold(on.stream());
        expect_ok(sum(context, floats, on), "a call while a stream is held");
        (void)::kill(::getpid(), SIGKILL);
      }
      expect_status(sum_until_failed(context, floats, on), DDL_ERROR_PEER_LOST,
                    "a call that is told of the death");
      expect_contains(ddl_last_error(), "rank 1 on host1");
      TestGpu::get().synchronize(on.stream());
    }
    expect_ok(ddl_finalize(context), "finalize after a death");
    return std::string();
  }));
}
