// Properties of all collectives when a rank's process ends, with ranks as forked processes.
#include <signal.h>

#include "runtime/support/conformance/mismatch.h"
#include "runtime/support/expect.h"
#include "runtime/support/process_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using namespace ddl::runtime::test;

namespace {

/// Calls until it fails: a call that needed nothing more from the dead rank may have succeeded.
ddl_status call_until_it_fails(const Variant& variant, const Communicator& comm) {
  std::vector<float> send(kMismatchCount * 3), recv(send.size());
  for (;;) {
    const ddl_status status = variant.call(comm, send.data(), recv.data());
    if (status != DDL_OK) return status;
  }
}

}  // namespace

TEST_CASE(
    "a death is reported by any collective, of the world and of a process set, on one host and on two") {
  ProcessJob job;
  job.ranks = 3;
  job.hosts = GENERATE(Hosts{}, Hosts{{0, 2}, {1}});
  job.settings.staging_bytes = 256;
  const int victim = GENERATE(0, 1, 2);
  const bool in_set = GENERATE(false, true);
  const std::vector<Disagreement> collectives = disagreements();
  for (const Disagreement& collective : collectives) {
    const auto ends = job.run([&](RankPlace& rank_place) -> std::string {
      ddl_context* context = rank_place.join();
      Communicator comm = world_of(context);
      if (in_set) {
        // In reverse order, so that ranks in the set differ from those in the job.
        std::uint64_t set = DDL_NO_PROCESS_SET;
        expect_ok(ddl_process_set_split(context, DDL_WORLD, 0, -comm.rank, &set), "split");
        comm = communicator_of(comm, set);
      }
      const ddl_call_options options = comm.options();
      // A rank that has not left the barrier yet may be notified there.
      ddl_status status = ddl_barrier(context, &options);
      if (rank_place.rank() == victim) ::raise(SIGKILL);
      if (status == DDL_OK) status = call_until_it_fails(collective.usual, comm);
      expect_status(status, DDL_ERROR_PEER_LOST, "a call after a death");
      std::string sentence = ddl_last_error();
      expect_ok(ddl_finalize(context), "finalize");
      return sentence;
    });
    for (int rank = 0; rank < job.ranks; ++rank) {
      const RankEnd& end = ends[static_cast<std::size_t>(rank)];
      CAPTURE(job.hosts.size(), victim, in_set, collective.usual.message_parts[0], end.report);
      if (rank == victim) {
        CHECK(end.signal == SIGKILL);
        continue;
      }
      CHECK(end.exit_code == 0);
      CHECK_THAT(end.report, Catch::Matchers::Contains("rank " + std::to_string(victim) + " on ") &&
                                 Catch::Matchers::Contains("died"));
    }
  }
}
