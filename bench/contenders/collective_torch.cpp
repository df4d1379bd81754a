// The measuring loop as a module that collective_torch.py loads: torch's allreduce is called from Python, as its users
// call it.
#include <cstddef>
#include <cstdint>
#include <optional>

#include "bench/contenders/measured_rank.h"

namespace {

using namespace ddl::bench;

std::optional<RankJob> the_job;

}  // namespace

#define DDL_BENCH_EXPORT extern "C" __attribute__((visibility("default")))

/// Reads the command line and pins the process, and stores the rank, the number of ranks and the job's folder, which is
/// valid until the program ends. Returns 0, or an exit code after it has printed the reason. To be called once, before
/// torch is loaded.
DDL_BENCH_EXPORT int ddl_bench_join(int argc, char** argv, int* rank, int* ranks, const char** folder) {
  auto job = join_benchmark(argc, argv, /*has_threads=*/true);
  if (!job) return fail_rank(job.error());
  the_job.emplace(std::move(*job));
  *rank = the_job->rank;
  *ranks = the_job->ranks;
  *folder = the_job->folder.c_str();
  return 0;
}

/// Does the job's work. submit begins the sum of this many floats at data over all ranks, in place, and complete
/// waits for all that have begun; both return whether they succeeded. Returns 0 when all ranks have ended, or an exit
/// code.
DDL_BENCH_EXPORT int ddl_bench_measure(int rank, int ranks, bool (*submit)(float* data, std::uint64_t count),
                                       bool (*complete)()) {
  ddl::Status status = check_world(*the_job, rank, ranks);
  if (status) {
    status = measure(
        *the_job, Expect::kResults, Buckets::kOfHarness,
        [submit](Collective what, const Buffers& of) {
          return what == Collective::kAllreduce && submit(of.recv, of.count) ? of.recv : nullptr;
        },
        complete);
  }
  if (!status) return fail_rank(status.error());
  // A rank that exits early fails the others, as with Gloo alone.
  the_job->scoreboard.barrier(the_job->rank, the_job->wait());
  return 0;
}
