// Reads the options of elastic jobs: when ranks are started again, how many, and on which hosts.
#include <algorithm>

#include "base/text.h"
#include "cli/options/option_table.h"
#include "cli/options/option_values.h"
#include "cli/options/readers.h"
#include "contract/environment.h"
#include "launcher/elastic/host_discovery.h"

namespace ddl::cli {

namespace {

using launcher::ElasticMode;
using launcher::ElasticSpec;
using launcher::JobSpec;

constexpr int kMaxTimes = 1'000'000;
constexpr int kUsualRestarts = 3;
// Of HOROVOD_GLOO_TIMEOUT_SECONDS.
constexpr int kUsualGlooTimeout = 30;

/// Of these, one alone asks for ranks that go on without those that have failed. They are for jobs whose ranks start
/// again, too.
constexpr OptionId kOfGoingOn[] = {OptionId::kMinNp, OptionId::kMaxNp, OptionId::kDiscovery};
constexpr OptionId kDetails[] = {OptionId::kSlotsPerHost, OptionId::kElasticTimeout, OptionId::kElasticSettle,
                                 OptionId::kResetLimit, OptionId::kCooldown};
/// Of ranks that go on alone.
constexpr OptionId kDetailsOfGoingOn[] = {OptionId::kReadyTimeout,    OptionId::kSpares,
                                          OptionId::kStateDir,        OptionId::kStateInterval,
                                          OptionId::kPreemptionWatch, OptionId::kElasticUnit};

bool has_any_of_going_on(const ValueReader& values) {
  return std::any_of(std::begin(kOfGoingOn), std::end(kOfGoingOn),
                     [&](OptionId id) { return values.has(id); });
}

/// What the options ask for.
ElasticMode mode_of(ValueReader& values, bool has_host_range, int max_restarts) {
  const bool restarts = has_host_range || max_restarts > 0;
  ElasticMode mode = restarts                      ? ElasticMode::kRestart
                     : has_any_of_going_on(values) ? ElasticMode::kContinue
                                                   : ElasticMode::kOff;
  const bool is_chosen = values.has(OptionId::kElastic);
  values.take(OptionId::kElastic, parse_elastic_mode, mode);
  if (mode == ElasticMode::kContinue) {
    values.refuse_given({OptionId::kMaxRestarts}, " is of ranks that are started again, and these go on",
                        "omit it, or use --elastic restart");
    values.refuse_given({OptionId::kFramework}, " tells ranks who they are, and that changes",
                        "omit it, or use --elastic restart");
    values.refuse_given({OptionId::kStdin}, " is not offered for ranks that go on when others fail",
                        "omit it, or use --elastic restart");
  }
  for (const OptionId id : kOfGoingOn) {
    if (is_chosen && mode == ElasticMode::kOff)
      values.refuse_given({id}, " belongs to an elastic job, and --elastic off asks for none",
                          "omit one of them");
  }
  if (is_chosen && mode == ElasticMode::kOff && restarts)
    values.refuse_once(OptionId::kElastic, "--elastic off, and another option asks for an elastic job",
                       "omit --elastic, or omit --max-restarts and the range of --nnodes");
  if (mode != ElasticMode::kOff) return mode;
  for (const OptionId id : kDetails)
    values.refuse_given({id}, " belongs to elastic jobs",
                        id == OptionId::kSlotsPerHost ? "use --ranks-per-node N for N ranks on each host"
                                                      : "add --elastic continue or restart, or omit it");
  for (const OptionId id : kDetailsOfGoingOn)
    values.refuse_given({id}, " belongs to elastic jobs", "add --elastic continue, or omit it");
  return mode;
}

/// As of ElasticSpec::discovery.
Result<std::string> parse_discovery(std::string_view text, std::string_view current_directory) {
  const auto jobs = launcher::slurm_jobs_of(std::string(text));
  if (!jobs) return parse_file(text, current_directory);
  // squeue takes several names, and the one that is meant may have none of these.
  if (jobs->empty() || jobs->find_first_of(", ") != std::string::npos)
    return refuse("behind \"slurm:\" comes the name of your jobs, without commas and spaces",
                  "for example slurm:extra, after sbatch --job-name extra ...");
  return std::string(text);
}

/// Programs of Horovod, which join again by the rendezvous for Gloo. A variable alone does not ask for that: programs of
/// libddl may inherit it.
void read_horovod(ValueReader& values, JobSpec& job, std::vector<std::string>& notes) {
  const bool by_variable = job.serves_gloo && !values.has(OptionId::kGloo);
  job.serves_gloo = job.serves_gloo && !by_variable && !job.as_horovod;
  if (by_variable && !job.as_horovod)
    notes.push_back("a variable asks for Gloo: ranks of an elastic job of Horovod need --gloo, too");
  if (!job.serves_gloo) return;
  values.refuse_given({OptionId::kSpares, OptionId::kStateDir, OptionId::kStateInterval,
                       OptionId::kPreemptionWatch, OptionId::kElasticSettle},
                      " needs ranks that ask for changes, and programs of Horovod with --gloo do not",
                      "omit it, or use --as-horovod in place of --gloo");
}

/// A rank of Horovod that waits for one that lives may notice a loss by this timeout alone. Until then it does not join.
void read_ready_timeout_of_gloo(ValueReader& values, const Environment& own, JobSpec& job) {
  const std::string variable = variable_of_ranks(job, own, contract::env::kHorovodGlooTimeout);
  const int gloo = parse_count(variable, 1, kMaxTimes).value_or(kUsualGlooTimeout);
  double& ready = job.elastic.ready_timeout_seconds;
  if (!values.has(OptionId::kReadyTimeout)) ready += gloo;
  if (ready <= gloo)
    values.refuse_once(
        OptionId::kReadyTimeout,
        "ranks of Horovod may notice only after " + std::to_string(gloo) +
            " s (HOROVOD_GLOO_TIMEOUT_SECONDS) that another is lost, and would be killed before",
        "give more, or a smaller --gloo-timeout-seconds");
}

/// Ranks that go on start at once, and no host of these comes later. Of hosts that a script lists nothing is known yet.
void check_slots(ValueReader& values, const launcher::Allocation& allocation, const JobSpec& job) {
  const ElasticSpec& elastic = job.elastic;
  if (elastic.mode != ElasticMode::kContinue || job.oversubscribe || !elastic.discovery.empty()) return;
  int slots = 0;
  for (const launcher::AllocatedNode& node : allocation.nodes)
    slots += job.ranks_per_node > 0 ? job.ranks_per_node : node.slots.value_or(job.num_ranks);
  if (slots < elastic.start_ranks)
    values.refuse_once(counted(elastic.start_ranks, "rank") + " are to start, and " + allocation.origin +
                           " has " + counted(slots, "slot"),
                       "name more hosts or slots, give a smaller number, or add --oversubscribe");
  const int wanted = elastic.max_ranks + elastic.spares;
  if (elastic.spares > 0 && slots < wanted)
    values.refuse_once(OptionId::kSpares,
                       counted(elastic.max_ranks, "rank") + " (--max-np) and " +
                           counted(elastic.spares, "spare") + " need " + counted(wanted, "slot") +
                           ", and the hosts have " + std::to_string(slots),
                       "name more hosts or slots, or give smaller numbers");
}

/// Where no host is named, this machine has as many slots as in a job that does not change.
void count_own_slots(const ValueReader& values, int allowed_cpus, launcher::Allocation& allocation) {
  if (values.has(OptionId::kHosts) || values.has(OptionId::kHostfile) || allocation.job) return;
  for (launcher::AllocatedNode& node : allocation.nodes) {
    if (!node.slots) node.slots = allowed_cpus;
  }
}

}  // namespace

void read_elastic(ValueReader& values, const CommandLineContext& context, JobSpec& job, int min_hosts,
                  int max_hosts, std::vector<std::string>& notes) {
  ElasticSpec& elastic = job.elastic;
  values.take(OptionId::kMaxRestarts, parse_count, elastic.max_restarts, 0, kMaxTimes);
  const bool has_host_range = max_hosts > min_hosts;
  elastic.mode = mode_of(values, has_host_range, elastic.max_restarts);
  if (elastic.mode == ElasticMode::kOff) return;
  if (elastic.mode == ElasticMode::kContinue) read_horovod(values, job, notes);
  if (!values.has(OptionId::kMaxRestarts) && values.has(OptionId::kElastic) &&
      elastic.mode == ElasticMode::kRestart)
    elastic.max_restarts = kUsualRestarts;
  if (has_host_range) {
    elastic.min_hosts = min_hosts;
    elastic.max_hosts = max_hosts;
  }
  values.take(OptionId::kDiscovery, parse_discovery, elastic.discovery, context.current_directory);
  if (elastic.mode == ElasticMode::kRestart && launcher::slurm_jobs_of(elastic.discovery))
    values.refuse_once(OptionId::kDiscovery,
                       "the nodes of other Slurm jobs join ranks that go on, and these are started again",
                       "use --elastic continue, or a script that prints hosts for ssh");
  int slots = 0;
  values.take(OptionId::kSlotsPerHost, parse_count, slots, 1, launcher::kMaxRanks);
  if (slots > 0) elastic.slots_per_host = slots;
  values.take(OptionId::kElasticTimeout, parse_seconds, elastic.timeout_seconds, false);
  values.take(OptionId::kElasticSettle, parse_seconds, elastic.settle_seconds, true);
  values.take(OptionId::kSpares, parse_count, elastic.spares, 1, launcher::kMaxRanks);
  if (values.has(OptionId::kSpares) && !values.has(OptionId::kMaxNp))
    values.refuse_once(OptionId::kSpares,
                       "without --max-np every slot has a rank, and none is left for --spares",
                       "give --max-np N, too");
  values.take(OptionId::kStateDir, parse_directory, elastic.state_directory, context.current_directory);
  values.take(OptionId::kStateInterval, parse_count, elastic.state_interval, 1, kMaxTimes);
  if (values.has(OptionId::kStateInterval) && !values.has(OptionId::kStateDir))
    values.refuse_once(OptionId::kStateInterval, "--state-interval, and there is no folder for the state",
                       "give --state-dir DIR, too");
  values.take(OptionId::kPreemptionWatch, not_empty, elastic.preemption_watch);
  values.take(OptionId::kElasticUnit, parse_elastic_unit, elastic.unit);
  values.take(OptionId::kReadyTimeout, parse_seconds, elastic.ready_timeout_seconds, false);
  if (elastic.mode == ElasticMode::kContinue && job.serves_gloo)
    read_ready_timeout_of_gloo(values, context.environment, job);
  if (elastic.mode != ElasticMode::kContinue) {
    for (const OptionId id : kDetailsOfGoingOn)
      values.refuse_given({id}, " is of ranks that go on, and these are started again",
                          "omit it, or use --elastic continue");
  }
  values.take(OptionId::kResetLimit, parse_count, elastic.reset_limit, 1, kMaxTimes);
  std::pair<double, double> cooldown{elastic.cooldown_min_seconds, elastic.cooldown_max_seconds};
  values.take(OptionId::kCooldown, parse_cooldown, cooldown);
  std::tie(elastic.cooldown_min_seconds, elastic.cooldown_max_seconds) = cooldown;
  for (const OptionId id : {OptionId::kHosts, OptionId::kHostfile, OptionId::kHostsExclude}) {
    if (!elastic.discovery.empty()) values.exclude(OptionId::kDiscovery, id);
  }
  if (!job.placed_ranks.empty())
    values.refuse_once("a rankfile names the host of each rank, and an elastic job may lose it",
                       "omit one of them");
}

void complete_elastic(ValueReader& values, const CommandLineContext& context,
                      launcher::Allocation& allocation, JobSpec& job) {
  ElasticSpec& elastic = job.elastic;
  if (elastic.mode == ElasticMode::kOff || !values.status()) return;
  const bool may_grow = values.has(OptionId::kMinNp) || values.has(OptionId::kMaxNp) ||
                        elastic.max_hosts > 0 || !elastic.discovery.empty();
  elastic.start_ranks = elastic.min_ranks = elastic.max_ranks = job.num_ranks;
  if (elastic.discovery.empty()) count_own_slots(values, context.allowed_cpus, allocation);
  if (!may_grow) return check_slots(values, allocation, job);
  if (!job.roles.empty())
    return values.refuse_once("the number of ranks that have roles cannot change",
                              "omit --min-np and --max-np");
  const bool are_slots_known =
      job.ranks_per_node > 0 || job.oversubscribe || !elastic.discovery.empty() ||
      std::all_of(allocation.nodes.begin(), allocation.nodes.end(),
                  [](const launcher::AllocatedNode& node) { return node.slots.has_value(); });
  if (!are_slots_known)
    return values.refuse_once("the number of ranks may change, and the slots of a host are not known",
                              "give slots for every host, as in -H node1:4,node2:4, or --slots-per-host N");
  // Slots are the limit, unless there may be more ranks than slots.
  const int most = job.oversubscribe ? job.num_ranks : launcher::kMaxRanks;
  if (!values.has(OptionId::kNumProc) && elastic.max_hosts > 0) {
    // As many on each host, or as its slots.
    elastic.start_ranks = elastic.min_ranks = std::max(1, job.ranks_per_node) * elastic.min_hosts;
    elastic.max_ranks = job.ranks_per_node > 0 ? job.ranks_per_node * elastic.max_hosts : most;
  } else if (elastic.max_hosts > 0) {
    elastic.start_ranks = elastic.min_ranks = 1;
  } else {
    elastic.max_ranks = most;
  }
  values.take(OptionId::kMaxNp, parse_rank_count, elastic.max_ranks);
  // As many as there are slots, if nobody says how many.
  if (!values.has(OptionId::kNumProc)) elastic.min_ranks = std::min(elastic.min_ranks, elastic.max_ranks);
  values.take(OptionId::kMinNp, parse_rank_count, elastic.min_ranks);
  // A host that does not come up at the start is left out, unless a number of ranks is asked for.
  if (elastic.mode == ElasticMode::kContinue && !values.has(OptionId::kNumProc) &&
      values.has(OptionId::kMinNp))
    elastic.start_ranks = elastic.min_ranks;
  elastic.start_ranks =
      std::clamp(elastic.start_ranks, elastic.min_ranks, std::max(elastic.min_ranks, elastic.max_ranks));
  if (elastic.min_ranks > elastic.max_ranks)
    values.refuse_once(OptionId::kMinNp,
                       "the least number of ranks, " + std::to_string(elastic.min_ranks) +
                           ", is above the largest, " + std::to_string(elastic.max_ranks),
                       "give --min-np <= -np <= --max-np");
  check_slots(values, allocation, job);
}

}  // namespace ddl::cli
