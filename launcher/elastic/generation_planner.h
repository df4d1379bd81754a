// Decides when an elastic job starts its ranks, how many and on which hosts, and when it ends for good.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/elastic/host_pool.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

/// One start of all ranks.
struct Generation {
  GenerationNumber number;
  std::vector<AllocatedNode> hosts;  ///< the oldest first: rank 0 stays where it is while that host is there
  int num_ranks = 0;
};

/// The largest generation that these hosts, the oldest first, allow, without its number; nullopt: it would be too small.
/// Spare slots count only as far as the required number of ranks needs them. Pure.
std::optional<Generation> plan_generation(const JobSpec& spec, const std::vector<AllocatedNode>& hosts,
                                          int required);

/// Makes of an elastic job, and of its hosts, what starts first if all of them come up. It changes nothing else, and
/// nothing if they have too few slots. Pure.
void limit_to_first_generation(JobSpec& spec, std::vector<AllocatedNode>& hosts);

/// A state machine without clock and I/O. One thread.
class GenerationPlanner {
 public:
  using Time = HostPool::Time;

  /// All ranks are to be started so.
  struct Start {
    Generation generation;
  };
  /// Nothing can be started before this time, unless hosts appear.
  struct Wait {
    Time until;
    std::string why;  ///< a sentence
  };
  /// The job is over: as its last generation ended, if there was one.
  struct End {
    std::string why;  ///< a sentence about what stopped it from going on; "": nothing had to
  };
  using Decision = std::variant<Start, Wait, End>;

  /// spec outlives it. hosts: those that there are at first. random: as of Cooldown.
  GenerationPlanner(const JobSpec& spec, const std::vector<AllocatedNode>& hosts,
                    std::function<double()> random);

  /// The hosts that there are now, as the discovery script says.
  void on_hosts(const std::vector<AllocatedNode>& hosts, Time now) { pool_.update(hosts, now); }
  /// A host that was to join does not answer.
  void on_host_failed(const std::string& name, Time now) { pool_.on_failed(name, now); }
  /// The generation that was started last has ended so.
  void on_ended(const JobReport& report, Time now);
  /// While no generation runs: what to do.
  Decision next(Time now);
  /// Whether next() would not wait.
  bool can_start(Time now) const {
    return end_ || plan_generation(spec_, pool_.usable(now), required_ranks());
  }

  // While one runs.

  /// Why it has to end although all is well: a host of it is not there any more, or has fewer slots than ranks run
  /// there. "": it has not.
  std::string reason_to_leave() const;
  /// How the next generation would be larger than this one.
  struct Growth {
    std::vector<AllocatedNode> hosts;  ///< that are not of this one
    std::string why;                   ///< a sentence
  };
  /// nullopt: it would not be.
  std::optional<Growth> growth(Time now) const;
  /// When growth() may change, although nothing is heard.
  std::optional<Time> next_return(Time now) const { return pool_.next_return(now); }

 private:
  int required_ranks() const { return running_ ? spec_.elastic.min_ranks : spec_.elastic.start_ranks; }

  const JobSpec& spec_;
  HostPool pool_;
  std::optional<Generation> running_;  ///< the last that was started
  GenerationNumber next_number_;
  std::optional<End> end_;
  bool have_ranks_run_ = false;  ///< in any generation
  std::optional<Time> waiting_since_;
};

}  // namespace ddl::launcher
