// Records of jobs, for the tests of what is drawn from them.
#pragma once

#include "cli/report_fixture.h"
#include "report/job_record.h"

namespace ddl::test {

/// A rank on one of two hosts that ran for 10 s, waited for the late one, and used a CPU while it computed.
inline RankOutcome punctual(int rank, int late, double wait) {
  RankOutcome outcome = exited(rank, 0, 10);
  outcome.host = rank < 2 ? "node1" : "node2";
  outcome.usage = {9 - wait, 0.5, (rank + 1) << 20};
  outcome.calls.sums = {{"allreduce", false, 100, 400, wait + 0.5, wait}};
  outcome.calls.awaited = {{late, wait}};
  return outcome;
}

/// Four ranks on two hosts; rank 3 made the others wait 3 of 10 seconds.
inline report::JobRecord record_with_late_rank() {
  report::JobRecord record;
  record.version = "1.2.3";
  record.name = "train";
  record.command = {"./train", "a b"};
  record.workdir = "/home/me";
  record.num_ranks = 4;
  record.hosts = {"node1", "node2"};
  record.began = 1'700'000'000;
  RankOutcome late = punctual(3, 0, 0);
  late.calls.awaited.clear();
  record.report =
      report_of(EndReason::kSuccess, 0, {punctual(0, 3, 3), punctual(1, 3, 3), punctual(2, 3, 3), late});
  record.report.run_seconds = 10;
  record.report.start = {{"agents ready", 0.5}, {"launched", 0.6}};
  return record;
}

/// A host with all that one can report: a limit of memory, a NIC, energy, and two GPUs, of which one says nothing.
inline launcher::HostUsage host_with_gpus() {
  return {"node1",
          {10,
           8,
           {std::int64_t{8} << 30, std::int64_t{5} << 30, 1, "/job_7", ""},
           {{"hsn0", 1 << 30, 5, 1 << 30}},
           {{"node", 5000}},
           "",
           {{"GPU-a", 0, "H200", 0.755, 0.1, 1, std::int64_t{130} << 30, std::int64_t{140} << 30, 4321},
            {"GPU-b", 1, "H200", -1, -1, -1, -1, -1, -1}},
           ""}};
}

}  // namespace ddl::test
