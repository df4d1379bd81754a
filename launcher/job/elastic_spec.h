// What may change while a job runs: how often its ranks are started again, with how many ranks and on which hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ddl::launcher {

/// --elastic. kOff: the job ends with its first failure. kRestart: all ranks end, and all are started again. kContinue:
/// the others go on.
enum class ElasticMode : std::uint8_t { kOff, kRestart, kContinue };

/// --elastic-unit: what is not used for a while, with kContinue, after a process on it has failed.
enum class ElasticUnit : std::uint8_t { kSlot, kHost };

/// A job's *generation*: with kRestart one start of all its ranks, until all of them have ended; with kContinue the time
/// in which the same processes are its ranks. Constant while the job runs.
struct ElasticSpec {
  ElasticMode mode = ElasticMode::kOff;
  int start_ranks = 1;   ///< the first generation never has fewer
  int min_ranks = 1;     ///< nor the others fewer than these
  int max_ranks = 0;     ///< nor more
  int spares = 0;        ///< kContinue: processes beyond these, which wait until they are needed
  int min_hosts = 1;     ///< nor fewer hosts
  int max_hosts = 0;     ///< nor more; 0: no limit
  int max_restarts = 0;  ///< after failures of ranks; the loss of a host is none
  int reset_limit = 0;   ///< of new generations, whatever their reason; 0: no limit
  /// An absolute path of a program that prints the hosts that there are; or "slurm:NAME" (kContinue): the nodes of the
  /// user's Slurm jobs of this name; "": the hosts are those of the allocation.
  std::string discovery;
  ElasticUnit unit = ElasticUnit::kSlot;
  std::string state_directory;  ///< kContinue: for the job's state, when it ends; "": none
  int state_interval = 0;       ///< commits after which its state is written there, too; 0: only then
  std::string
      preemption_watch;  ///< kContinue: a command of sh on each host, which ends with 0 before it goes
  std::optional<int> slots_per_host;  ///< of hosts that the script prints without slots
  double timeout_seconds = 600;       ///< the longest wait for the minimum
  double settle_seconds = 2;          ///< after a new host appears, until the next generation begins
  double ready_timeout_seconds = 30;  ///< kContinue: for the ranks to join again after a failure
  double cooldown_min_seconds = 30;   ///< for which a host that was lost is not used
  double cooldown_max_seconds = 300;  ///< the same, after it was lost several times
  bool operator==(const ElasticSpec&) const = default;
};

/// The job of a scheduler that an agent has started again if it hears nothing from the head any more: its host is lost.
struct Requeue {
  std::string scheduler;  ///< Scheduler::name()
  std::string job;        ///< that the head runs in; "": none, or it is not to be started again
  std::string head_host;
  int turn = 0;  ///< among the agents, from 0: one after the other asks, and one is enough
  bool operator==(const Requeue&) const = default;
};

/// Which start of the ranks this is.
struct GenerationNumber {
  int generation = 0;  ///< from 0
  int restarts = 0;    ///< of these, how many were started because a rank had failed
  bool operator==(const GenerationNumber&) const = default;
};

}  // namespace ddl::launcher
