// Reports as the supervisor makes them, for the tests of their text and JSON.
#pragma once

#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"

namespace ddl::test {

using launcher::EndReason;
using launcher::JobReport;
using launcher::RankOutcome;

inline RankOutcome exited(int rank, int code, double seconds) {
  RankOutcome outcome;
  outcome.kind = RankOutcome::Kind::kExited;
  outcome.rank = rank;
  outcome.host = "node3";
  outcome.pid = 4240 + rank;
  outcome.exit_code = code;
  outcome.run_seconds = seconds;
  return outcome;
}

inline RankOutcome killed(int rank, int signal, double seconds, bool by_us) {
  RankOutcome outcome = exited(rank, 0, seconds);
  outcome.kind = RankOutcome::Kind::kSignalled;
  outcome.signal = signal;
  outcome.ended_by_us = by_us;
  return outcome;
}

inline RankOutcome of_kind(RankOutcome::Kind kind, int rank) {
  RankOutcome outcome;
  outcome.kind = kind;
  outcome.rank = rank;
  outcome.host = "node3";
  return outcome;
}

inline JobReport report_of(EndReason reason, int exit_code, std::vector<RankOutcome> ranks) {
  JobReport report;
  report.reason = reason;
  report.exit_code = exit_code;
  report.run_seconds = 12.5;
  report.ranks = std::move(ranks);
  return report;
}

inline launcher::JobSpec job_of(std::vector<std::string> command) {
  launcher::JobSpec job;
  job.command = std::move(command);
  job.num_ranks = 8;
  job.workdir = "/home/me";
  return job;
}

}  // namespace ddl::test
