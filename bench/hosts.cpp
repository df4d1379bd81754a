// The benchmarks "hosts" and "large-job": launching over ssh. They run on the head of a cluster.
#include <algorithm>

#include <fmt/format.h>

#include "bench/aims.h"
#include "bench/benchmarks.h"
#include "bench/cluster.h"
#include "bench/host_launchers.h"
#include "bench/host_plan.h"

namespace ddl::bench {
namespace {

constexpr int kFewHosts = 4;
constexpr int kRanksPerHost = 2;

// The cluster's network, of the two that its hosts have; no search for fabrics, which its hosts do not have.
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
// mpirun lets hosts start others in turn unless it is told not to.
const std::vector<std::string> kFromHeadOnly = {"--mca", "oob_tcp_if_include",    "10.77.0.0/24",
                                                "--mca", "plm_rsh_no_tree_spawn", "1"};

/// A plan whose commands are made of jobs over ssh.
struct Plan : HostPlan {
  explicit Plan(const Site& where) : site(where) {}
  void add(const char* of, Entrant entrant, const HostJob& job) {
    entrant.command = launch_on_hosts(job, site);
    entrant.absent = why_absent(job, site);
    rows.push_back({of, std::move(entrant)});
  }
  const Site& site;
};

std::vector<std::string> first(const std::vector<std::string>& names, int count) {
  return {names.begin(), names.begin() + std::min<std::ptrdiff_t>(count, std::ssize(names))};
}

std::string size_of(std::size_t hosts, int ranks) { return fmt::format("{} hosts x {} ranks", hosts, ranks); }

// `hostname` on some hosts: one case. Its entrants' names start with its own.
void add_hostname(Plan& plan, const char* name, const std::vector<std::string>& hosts,
                  const std::string& fan_out) {
  using enum HostLauncher;
  const std::string prefix = name;
  const auto add = [&](Entrant entrant, HostLauncher launcher, std::vector<std::string> options,
                       const char* program = "/bin/hostname") {
    entrant.name = prefix + entrant.name;
    if (!entrant.again_of.empty()) entrant.again_of = prefix + entrant.again_of;
    plan.add(name, std::move(entrant), {launcher, hosts, kRanksPerHost, std::move(options), program});
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
         .why = "hosts start hosts, as mpirun does it unless told otherwise",
         .is_ours = true},
        kDdlrun, {"--fan-out", fan_out});
    plan.pairings.push_back({prefix + "-ddlrun-fan-out", prefix + "-ssh-floor"});
    plan.pairings.push_back({prefix + "-ddlrun-fan-out", prefix + "-mpirun"});
  }
  add({.name = "-mpirun",
       .label = "mpirun",
       .why = "told which network to use, so that it tries no other; its hosts start hosts"},
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
  const auto add = [&](Entrant entrant, HostLauncher launcher, const char* program,
                       std::vector<std::string> options = {}) {
    plan.add("init", std::move(entrant), {launcher, hosts, kRanksPerHost, std::move(options), program});
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
       .why = "told the network, and not to look for fabrics: its best honest setting here"},
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
           {HostLauncher::kDdlrun, names, ranks, oversubscribe, "one_allreduce"});
  plan.cases.emplace_back("large", "start, one allreduce, end: " + size_of(names.size(), ranks));
  return plan;
}

}  // namespace

int hosts_needed(const Settings& settings) { return settings.quick ? 6 : 32; }

std::vector<Entrant> hosts_entrants(const Site& site, const Settings& settings) {
  return entrants_of(hosts_plan(ClusterHosts(hosts_needed(settings)).names(), site));
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

std::vector<Entrant> large_job_entrants(const Site& site, const Settings& settings) {
  return entrants_of(large_plan(ClusterHosts(large_job_hosts_needed(settings)).names(), site, settings));
}

Report run_large_job(const Site& site, const Settings& settings) {
  const ClusterHosts hosts(large_job_hosts_needed(settings));
  Report report;
  report.benchmark = "large-job";
  report.title = "large-job: a job of many hosts and ranks";
  run_host_plan(report, large_plan(hosts.names(), site, settings), hosts, site, settings);
  return report;
}

}  // namespace ddl::bench
