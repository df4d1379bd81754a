// The conformance suite with ranks as threads of one process, which share one mapping.
#include "runtime/support/conformance.h"

#include "runtime/support/thread_job.h"
#include "support/catch.h"

namespace {

using ddl::conformance::check_all;
using ddl::conformance::Extent;
using ddl::conformance::interesting_counts;
using ddl::runtime::test::ThreadJob;

}  // namespace

TEST_CASE("collectives conform with ranks as threads") {
  ThreadJob job;
  job.ranks = GENERATE(1, 2, 3, 4, 5, 8);
  // The smallest slot, so that few elements make many chunks; sequences wrap on the way.
  job.slot_bytes = 64;
  job.first_sequence = 0xFFFFFFF0u;
  CAPTURE(job.ranks);
  job.run([&](ddl_context*& context) {
    check_all(context, interesting_counts(job.slot_bytes, job.ranks),
              job.ranks <= 3 ? Extent::kFull : Extent::kSome);
  });
}

TEST_CASE("collectives conform with slots of the usual size") {
  ThreadJob job;
  job.ranks = GENERATE(2, 3);
  job.spin = std::chrono::microseconds(GENERATE(0, 50));
  // The word that shows a sequence wraps four times as early as the sequence.
  job.first_sequence = 0x3FFFFFF0u;
  CAPTURE(job.ranks, job.spin.count());
  job.run([&](ddl_context*& context) {
    ddl::conformance::check_allreduce(context, {1, 8192, 8193, 20000});
    ddl::conformance::check_broadcast(context, {1, 8192, 8193, 20000});
    ddl::conformance::check_allgather(context, {1, 8192, 8193});
    ddl::conformance::check_other_reductions(context, {1, 8192, 8193, 20000});
    ddl::conformance::check_other_movement(context, {1, 8192, 8193});
  });
}

TEST_CASE("collectives conform with streaming stores, on one host and on several") {
  ThreadJob job = GENERATE(ThreadJob{.ranks = 2}, ThreadJob{.ranks = 5},
                           ddl::runtime::test::job_on(ddl::runtime::test::hosts_of_sizes({3, 2})));
  // Slots of which a call uses one after the other, and parts that no cache line divides.
  job.slot_bytes = 16 << 10;
  job.stores = ddl::runtime::Stores::kStreaming;
  CAPTURE(job.ranks);
  job.run([&](ddl_context*& context) {
    ddl::conformance::check_allreduce(context, {1, 300, 4099, 20000});
    ddl::conformance::check_broadcast(context, {300, 20000});
    ddl::conformance::check_allgather(context, {300, 8193});
    ddl::conformance::check_other_reductions(context, {300, 8193});
    ddl::conformance::check_other_movement(context, {300, 8193});
  });
}

TEST_CASE("Adasum conforms on several hosts, by MPI, and for named tensors larger than a batch") {
  ThreadJob job = ddl::runtime::test::job_on(
      ddl::runtime::test::hosts_of_sizes(GENERATE(std::vector{3}, std::vector{1, 1}, std::vector{2, 2, 1})));
  if (GENERATE(false, true)) job.mpi = ddl::runtime::test::MpiThreads::kMultiple;
  job.slot_bytes = 4096;
  job.fusion_bytes = 1024;
  CAPTURE(job.ranks, job.mpi.has_value());
  job.run([](ddl_context*& context) { ddl::conformance::check_adasum(context); });
}
