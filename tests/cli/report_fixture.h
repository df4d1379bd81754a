// Reports as the supervisor makes them, for the tests of their text and JSON.
#pragma once

#include <string_view>

#include "contract/event_ring.h"
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

/// An event of these seconds of the rank's clock; an end of 0: it has not ended.
inline contract::Event event_of(contract::Event::Kind kind, double begin, double end,
                                std::string_view name = "") {
  constexpr double kNanoseconds = 1e9;
  contract::Event event;
  event.kind = kind;
  event.begin = static_cast<std::int64_t>(begin * kNanoseconds);
  event.end = static_cast<std::int64_t>(end * kNanoseconds);
  name.copy(event.name.data(), event.name.size());
  return event;
}

/// A rank that has waited for a tensor for half a second.
inline launcher::RankHistory history_of(int rank) {
  using Kind = contract::Event::Kind;
  launcher::RankHistory history;
  history.rank = rank;
  history.now = 10'000'000'000;
  contract::Event call = event_of(Kind::kCall, 7, 8);
  call.call_kind = 1;
  call.call = 811;
  call.bytes = 4096;
  contract::Event tensor = event_of(Kind::kTensor, 9, 0, "grad");
  tensor.bytes = 64;
  history.events = {call, event_of(Kind::kMark, 8, 8, "\xff"), tensor, event_of(Kind::kWait, 9.5, 0, "grad")};
  return history;
}

inline launcher::JobSpec job_of(std::vector<std::string> command) {
  launcher::JobSpec job;
  job.command = std::move(command);
  job.num_ranks = 8;
  job.workdir = "/home/me";
  return job;
}

}  // namespace ddl::test
