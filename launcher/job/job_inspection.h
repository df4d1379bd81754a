// What a running job says of itself to those who ask: which job it is, and what each of its ranks does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "launcher/job/clock_offset.h"
#include "launcher/job/job_report.h"
#include "launcher/job/rank_activity.h"
#include "launcher/job/rank_work.h"
#include "launcher/process/node_usage.h"

namespace ddl::launcher {

/// Bytes that the head has got and sent. Below 0: other processes do that, one for each launch.
struct HeadTraffic {
  std::int64_t stdout_bytes = -1;  ///< of all ranks
  std::int64_t stderr_bytes = -1;
  std::int64_t sent_bytes = -1;  ///< to agents
  std::int64_t received_bytes = -1;
  bool operator==(const HeadTraffic&) const = default;
};

struct JobDescription {
  std::string id;         ///< "ddlrun-4711-0f3c9a1b"
  std::string name;       ///< of --job-name, or from the command
  std::string command;    ///< as a shell needs it; of a long one the beginning, and "..."
  std::string head_host;  ///< the host of the ddlrun that was started for it
  std::int64_t head_pid = 0;
  int num_ranks = 0;
  std::vector<std::string> hosts;  ///< of its nodes
  std::int64_t began = 0;          ///< when its ranks were started: seconds since 1970
  Seconds age;                     ///< since then
  int generation = -1;  ///< of an elastic job: how often its ranks were started before; -1: it is none
  std::vector<StartPhase> start;  ///< so far
  Seconds head_cpu_seconds{-1};   ///< of head_pid alone; below 0: unknown
  std::int64_t head_resident_bytes = -1;
  HeadTraffic traffic{};
  std::map<std::string, std::int64_t> failures{};  ///< of it or its generations, by name_of(EndReason)
  std::string scheduler_job{};  ///< the id of the job of the scheduler that it runs in; "": none
  bool operator==(const JobDescription&) const = default;
};

/// A node of the job.
struct InspectedNode {
  std::string name;
  std::string silence;  ///< why nothing is known of what its ranks do, without its name; "": it has answered
  NodeUsage usage;      ///< only if it was asked for
  ClockOffset clock{};
  bool operator==(const InspectedNode&) const = default;
};

/// Ranks that wait for others: Stall with its lists cut.
struct InspectedWait {
  static constexpr std::size_t kMaxMissing = 256;

  std::string what;  ///< "allreduce #812"
  std::string
      sentence;  ///< the same with the ranks that wait, those that they wait for, and what the latter do
  Seconds seconds;
  std::int64_t num_waiting = 0;
  std::vector<int> missing;  ///< the ranks for which they wait, ascending; the first kMaxMissing of them
  std::int64_t num_missing = 0;
  std::vector<int>
      unknown;  ///< the ranks for which they may wait beside these; the first kMaxMissing of them
  std::int64_t num_unknown = 0;
  bool operator==(const InspectedWait&) const = default;
};

struct InspectedRank {
  enum class State {
    kNotStarted,
    kRunning,  ///< or stopped: process.state says it
    kEnded,
    kNoAnswer,  ///< its node has not answered; only what was planned is known
    kFormer,  ///< the job, which goes on, has none of this number on this node any more; only counts are known
  };
  int rank = 0;
  int node = 0;          ///< of JobInspection::nodes
  std::int64_t pid = 0;  ///< of the process that uses libddl, or that was started; 0: there is none
  State state = State::kNotStarted;
  ProcessActivity process;
  CurrentWork work;
  std::int64_t open_tensors = 0;  ///< named tensors that it has submitted and that are not complete
  std::string oldest_tensor;      ///< the name of the one that is open for the longest time
  Seconds oldest_tensor_seconds;
  int wait = -1;  ///< of JobInspection::waits: the longest one in which it waits; -1: in none
  Seconds last_event{-1};
  double steps_per_second = -1;
  std::string cpus;       ///< that it is bound to, as a list; "": it is not bound
  std::vector<int> gpus;  ///< by the numbers of its node
  RankCalls calls;        ///< only if they were asked for
  bool operator==(const InspectedRank&) const = default;
};

struct JobInspection {
  JobDescription job;
  std::vector<InspectedNode> nodes;
  std::vector<InspectedWait> waits;  ///< the longest first
  std::vector<InspectedRank> ranks;  ///< all, by rank; then former ones, if counts were asked for
  bool operator==(const JobInspection&) const = default;
};

}  // namespace ddl::launcher
