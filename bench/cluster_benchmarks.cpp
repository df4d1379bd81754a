// The benchmarks "hosts", "large-job" and "slurm": jobs are started and ended on the hosts of a cluster, over ssh and
// in a Slurm allocation. They run on the head of the cluster.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/command.h"
#include "base/cpu_set.h"
#include "bench/benchmarks.h"
#include "bench/blocks.h"
#include "bench/cluster.h"
#include "bench/contender.h"
#include "bench/launchers.h"
#include "bench/machine.h"
#include "bench/measured_run.h"
#include "bench/peers.h"
#include "bench/report.h"
#include "bench/settings.h"

namespace ddl::bench {

/// The contenders of a benchmark on a cluster's hosts, and how they are compared.
struct HostPlan {
  struct Row {
    std::string case_name;
    Contender contender;  ///< with its command, or why it is absent
  };
  std::vector<Row> rows;  ///< within a case in the order of the table and the chart
  std::vector<std::pair<std::string, std::string>> cases;  ///< names and labels
  std::vector<Pairing> pairings;
};

std::vector<Contender> contenders_of(const HostPlan& plan);

/// Runs the plan in blocks and fills everything of the report except its titles and aims. The CPU time is that of all
/// hosts. A process left behind on any of them is a failure.
void run_host_plan(Report& report, const HostPlan& plan, const ClusterHosts& hosts, const Site& site,
                   Settings settings);

namespace {

constexpr double kHostTimeout = 300;

Result<RunTimes> run_hosts_once(const Contender& contender, const ClusterHosts& hosts) {
  const double cpu_before = hosts.cpu_seconds();
  DDL_ASSIGN(child, MeasuredRun::start(contender.command));
  const auto cost = child.finish(Deadline::after_seconds(kHostTimeout));
  const auto idle = hosts.wait_until_idle();  // also after a failure: the next contender starts on idle hosts
  if (!cost) return fail(cost.error());
  if (!idle) return fail(idle.error());
  return RunTimes{{{cost->wall_seconds}}, cost->cpu_seconds + hosts.cpu_seconds() - cpu_before};
}

}  // namespace

std::vector<Contender> contenders_of(const HostPlan& plan) {
  std::vector<Contender> contenders;
  for (const HostPlan::Row& row : plan.rows) contenders.push_back(row.contender);
  return contenders;
}

void run_host_plan(Report& report, const HostPlan& plan, const ClusterHosts& hosts, const Site& site,
                   Settings settings) {
  settings.cpus = CpuSet::allowed().cpus();  // the hosts share the machine: no process is pinned
  report.settings = settings;
  report.method =
      "Wall time of the whole command on the head; CPU time on all hosts, which are namespaces of one "
      "machine.";
  report.machine = describe_machine(site.mpirun);
  report.contenders = contenders_of(plan);
  const LoadWatch watch([&] { return hosts.cpu_seconds(); });
  for (const auto& [name, label] : plan.cases) {
    Case one{.name = name, .label = label};
    std::vector<Contender*> contenders;
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
      if (plan.rows[i].case_name != one.name) continue;
      one.contenders.push_back(report.contenders[i].name);
      contenders.push_back(&report.contenders[i]);
    }
    const auto run = [&](const Contender& contender) { return run_hosts_once(contender, hosts); };
    run_blocks(report.benchmark + ": " + one.label, contenders, settings.blocks, run, {&one});
    compare(one, report.contenders, plan.pairings);
    report.cases.push_back(std::move(one));
  }
  report.other_load = watch.other_load();
}

// The benchmarks "hosts" and "large-job": launching over ssh.
namespace {

constexpr int kFewHosts = 4;
constexpr int kRanksPerHost = 2;

// The hosts have two networks. Open MPI is restricted to one of them, and with kTcpOnly it does not search for
// fabrics, which the hosts do not have.
const std::vector<std::string> kOneNetwork = {"--mca", "oob_tcp_if_include", "10.77.0.0/24"};
const std::vector<std::string> kTcpOnly = {"--mca",
                                           "oob_tcp_if_include",
                                           "10.77.0.0/24",
                                           "--mca",
                                           "btl_tcp_if_include",
                                           "10.77.0.0/24",
                                           "--mca",
                                           "pml",
                                           "ob1",
                                           "--mca",
                                           "btl",
                                           "self,vader,tcp"};
// By default mpirun starts its daemons through a tree of hosts; here the head starts all of them.
const std::vector<std::string> kFromHeadOnly = {"--mca", "oob_tcp_if_include",    "10.77.0.0/24",
                                                "--mca", "plm_rsh_no_tree_spawn", "1"};

/// A plan whose commands are made of jobs over ssh.
struct Plan : HostPlan {
  explicit Plan(const Site& where) : site(where) {}
  void add(const char* of, Contender contender, const HostJob& job) {
    contender.command = launch_on_hosts(job, site);
    contender.absent = why_absent(job, site);
    rows.push_back({of, std::move(contender)});
  }
  const Site& site;
};

std::vector<std::string> first(const std::vector<std::string>& names, int count) {
  return {names.begin(), names.begin() + std::min<std::ptrdiff_t>(count, std::ssize(names))};
}

std::string size_of(std::size_t hosts, int ranks) { return fmt::format("{} hosts x {} ranks", hosts, ranks); }

// Adds the case of `hostname` on these hosts. The names of its contenders start with the case's name.
void add_hostname(Plan& plan, const char* name, const std::vector<std::string>& hosts,
                  const std::string& fan_out) {
  using enum HostLauncher;
  const std::string prefix = name;
  const auto add = [&](Contender contender, HostLauncher launcher, std::vector<std::string> options,
                       const char* program = "/bin/hostname") {
    contender.name = prefix + contender.name;
    if (!contender.again_of.empty()) contender.again_of = prefix + contender.again_of;
    plan.add(name, std::move(contender), {launcher, hosts, kRanksPerHost, std::move(options), program});
  };
  add({.name = "-ssh-floor",
       .label = "parallel ssh of true",
       .why = "one ssh for each host, all at once, and nothing to start there: the floor"},
      kSsh, {}, "/bin/true");
  add({.name = "-ddlrun", .label = "ddlrun", .why = "ours", .is_ours = true}, kDdlrun, {});
  add({.name = "-ddlrun-again",
       .label = "ddlrun, again",
       .why = "A/A",
       .again_of = "-ddlrun",
       .is_ours = true},
      kDdlrun, {});
  if (!fan_out.empty()) {
    add({.name = "-ddlrun-fan-out",
         .label = "ddlrun --fan-out " + fan_out,
         .why = "hosts start hosts, as mpirun does by default",
         .is_ours = true},
        kDdlrun, {"--fan-out", fan_out});
    plan.pairings.push_back({prefix + "-ddlrun-fan-out", prefix + "-ssh-floor"});
    plan.pairings.push_back({prefix + "-ddlrun-fan-out", prefix + "-mpirun"});
  }
  add({.name = "-mpirun",
       .label = "mpirun",
       .why = "restricted to one network, so that it tries no other; its hosts start hosts"},
      kMpirun, kOneNetwork);
  add({.name = "-mpirun-flat",
       .label = "mpirun, no tree",
       .why = "all hosts started from the head: which of the two is its best depends on the number of hosts"},
      kMpirun, kFromHeadOnly);
  for (const char* peer : {"-ssh-floor", "-mpirun", "-mpirun-flat"})
    plan.pairings.push_back({prefix + "-ddlrun", prefix + peer});
  plan.cases.emplace_back(name, "hostname, " + size_of(hosts.size(), kRanksPerHost));
}

void add_init(Plan& plan, const std::vector<std::string>& hosts) {
  using enum HostLauncher;
  const auto add = [&](Contender contender, HostLauncher launcher, const char* program,
                       std::vector<std::string> options = {}) {
    plan.add("init", std::move(contender), {launcher, hosts, kRanksPerHost, std::move(options), program});
  };
  add({.name = "init-ddl-ddlrun", .label = "libddl, ddlrun", .why = "ours", .is_ours = true}, kDdlrun,
      "init_ddl");
  add({.name = "init-ddl-again",
       .label = "libddl, ddlrun, again",
       .why = "A/A",
       .again_of = "init-ddl-ddlrun",
       .is_ours = true},
      kDdlrun, "init_ddl");
  add({.name = "init-mpi-mpirun", .label = "Open MPI, mpirun", .why = "as most people run it"}, kMpirun,
      "init_mpi");
  add({.name = "init-mpi-mpirun-tuned",
       .label = "Open MPI tuned, mpirun",
       .why = "restricted to one network, without a search for fabrics: its best honest setting here"},
      kMpirun, "init_mpi", kTcpOnly);
  add({.name = "init-mpi-ddlrun",
       .label = "Open MPI, ddlrun",
       .why = "an unmodified MPI program under ddlrun",
       .is_ours = true},
      kDdlrun, "init_mpi");
  plan.pairings.insert(plan.pairings.end(), {{"init-ddl-ddlrun", "init-mpi-mpirun"},
                                             {"init-ddl-ddlrun", "init-mpi-mpirun-tuned"},
                                             {"init-mpi-ddlrun", "init-mpi-mpirun"}});
  plan.cases.emplace_back("init", "init + finalize, " + size_of(hosts.size(), kRanksPerHost));
}

Plan hosts_plan(const std::vector<std::string>& names, const Site& site) {
  Plan plan(site);
  add_hostname(plan, "few", first(names, kFewHosts), "");
  add_hostname(plan, "many", names, names.size() > 16 ? "6" : "2");
  add_init(plan, first(names, kFewHosts));
  return plan;
}

Plan large_plan(const std::vector<std::string>& names, const Site& site, const Settings& settings) {
  const int ranks = settings.quick ? 4 : 16;
  const std::vector<std::string> oversubscribe{"--oversubscribe"};
  Plan plan(site);
  plan.add("large",
           {.name = "large-ssh-floor",
            .label = "parallel ssh of true",
            .why = "one ssh for each host: the part that is not ours"},
           {HostLauncher::kSsh, names, 1, {}, "/bin/true"});
  plan.add("large", {.name = "large-ddlrun", .label = "ddlrun", .why = "ours", .is_ours = true},
           {HostLauncher::kDdlrun, names, ranks, oversubscribe, "init_ddl", {"allreduce"}});
  plan.cases.emplace_back("large", "start, one allreduce, end: " + size_of(names.size(), ranks));
  return plan;
}

}  // namespace

int hosts_needed(const Settings& settings) { return settings.quick ? 6 : 32; }

std::vector<Contender> hosts_contenders(const Site& site, const Settings& settings) {
  return contenders_of(hosts_plan(ClusterHosts(hosts_needed(settings)).names(), site));
}

Report run_hosts(const Site& site, const Settings& settings) {
  const ClusterHosts hosts(hosts_needed(settings));
  const Plan plan = hosts_plan(hosts.names(), site);
  Report report;
  report.benchmark = "hosts";
  report.title = "hosts: starting and ending jobs over ssh";
  run_host_plan(report, plan, hosts, site, settings);
  const auto many = hosts.names().size();
  report.aims = {
      ratio_aim(report,
                "init + finalize of libddl under ddlrun takes at most 0.6x of Open MPI's under mpirun",
                {"init-ddl-ddlrun", "init-mpi-mpirun"}, 0.6),
      ratio_aim(report, fmt::format("hostname on {} hosts takes at most 1.1x of parallel ssh", kFewHosts),
                {"few-ddlrun", "few-ssh-floor"}, 1.1),
      ratio_aim(report, fmt::format("hostname on {} hosts takes at most 1.1x of parallel ssh", many),
                {"many-ddlrun", "many-ssh-floor"}, 1.1)};
  return report;
}

int large_job_hosts_needed(const Settings& settings) { return settings.quick ? 6 : 64; }

std::vector<Contender> large_job_contenders(const Site& site, const Settings& settings) {
  return contenders_of(large_plan(ClusterHosts(large_job_hosts_needed(settings)).names(), site, settings));
}

Report run_large_job(const Site& site, const Settings& settings) {
  const ClusterHosts hosts(large_job_hosts_needed(settings));
  Report report;
  report.benchmark = "large-job";
  report.title = "large-job: a job of many hosts and ranks";
  run_host_plan(report, large_plan(hosts.names(), site, settings), hosts, site, settings);
  return report;
}

// The benchmark "slurm": jobs in a Slurm allocation. It runs on the head of a cluster with Slurm.
namespace {

constexpr int kSlurmHosts = 4;
constexpr int kSlurmRanksPerHost = 2;

enum class Starter { kDdlrun, kSrun, kMpirun };

/// Each command starts with salloc, as each interactive job in Slurm does.
Contender contender_of(Contender contender, Starter starter, const std::string& program, const Site& site) {
  const char* path = std::getenv("PATH");
  const auto salloc = find_in_path("salloc", path != nullptr ? path : "");
  if (!salloc) contender.absent = "salloc is not in PATH";
  std::vector<std::string> words = {salloc.value_or("salloc"),
                                    "-Q",
                                    "-N",
                                    std::to_string(kSlurmHosts),
                                    "-n",
                                    std::to_string(kSlurmHosts * kSlurmRanksPerHost),
                                    "--ntasks-per-node=" + std::to_string(kSlurmRanksPerHost)};
  switch (starter) {
    case Starter::kDdlrun: words.push_back(site.ddlrun); break;
    case Starter::kSrun: words.insert(words.end(), {"srun", "--mpi=pmix"}); break;
    case Starter::kMpirun:
      words.push_back(site.mpirun);
      if (site.is_root) words.emplace_back("--allow-run-as-root");
      if (site.mpirun.empty()) contender.absent = "mpirun is not in PATH";
      break;
  }
  words.push_back(site.programs + "/" + program);
  contender.command = {words, {}, {}};
  return contender;
}

void add_case(HostPlan& plan, const Site& site, const std::string& name, const std::string& program,
              const std::string& label) {
  const auto add = [&](Contender contender, Starter starter) {
    plan.rows.push_back({name, contender_of(std::move(contender), starter, program, site)});
  };
  add({.name = name + "-ddlrun", .label = "ddlrun", .why = "ours", .is_ours = true}, Starter::kDdlrun);
  add({.name = name + "-ddlrun-again",
       .label = "ddlrun, again",
       .why = "A/A",
       .again_of = name + "-ddlrun",
       .is_ours = true},
      Starter::kDdlrun);
  add({.name = name + "-srun", .label = "srun --mpi=pmix", .why = "Slurm's own, as sites advise it"},
      Starter::kSrun);
  add({.name = name + "-mpirun", .label = "mpirun", .why = "which starts its daemons by srun"},
      Starter::kMpirun);
  plan.pairings.push_back({name + "-ddlrun", name + "-srun"});
  plan.pairings.push_back({name + "-ddlrun", name + "-mpirun"});
  plan.cases.emplace_back(name,
                          fmt::format("{}, {} hosts x {} ranks", label, kSlurmHosts, kSlurmRanksPerHost));
}

HostPlan slurm_plan(const Site& site) {
  HostPlan plan;
  add_case(plan, site, "pmix", "init_pmix", "PMIx_Init and PMIx_Finalize");
  add_case(plan, site, "mpi", "init_mpi", "MPI_Init and MPI_Finalize");
  return plan;
}

}  // namespace

int slurm_hosts_needed(const Settings&) { return kSlurmHosts; }

std::vector<Contender> slurm_contenders(const Site& site, const Settings&) {
  return contenders_of(slurm_plan(site));
}

Report run_slurm(const Site& site, const Settings& settings) {
  const ClusterHosts hosts(kSlurmHosts);
  Report report;
  report.benchmark = "slurm";
  report.title = "slurm: salloc, and a job in it";
  run_host_plan(report, slurm_plan(site), hosts, site, settings);
  report.aims = {ratio_aim(report, "a PMIx program takes at most 1.2x of srun --mpi=pmix",
                           {"pmix-ddlrun", "pmix-srun"}, 1.2),
                 ratio_aim(report, "and less than under mpirun", {"pmix-ddlrun", "pmix-mpirun"}, 1.0)};
  return report;
}

}  // namespace ddl::bench
