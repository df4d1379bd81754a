#include "bench/peers.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "bench/cluster.h"
#include "bench/launchers.h"

namespace ddl::bench {
namespace {

using Words = std::vector<std::string>;

// Without these settings Open MPI's temporary buffers are fresh pages in every call, and are unmapped after it.
const Environment kMallocTuned = {{"MALLOC_MMAP_THRESHOLD_", "1073741824"},
                                  {"MALLOC_TRIM_THRESHOLD_", "2147483647"},
                                  {"MALLOC_TOP_PAD_", "268435456"}};

// A host of the cluster has two networks. All contenders use the one whose rate is limited.
const Words kMpiNetwork = {"--mca", "oob_tcp_if_include", "10.77.0.0/24",
                           "--mca", "btl_tcp_if_include", "10.77.0.0/24"};
const Words kMpiTcpOnly = {"--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp"};
const Words kDdlNetwork = {"--network-interfaces", "eth0,ens3"};
const Words kDdlsMpiNetwork = {"-x", "OMPI_MCA_btl_tcp_if_include=10.77.0.0/24"};

// Waiting ranks must yield if ranks share CPUs; mpirun detects this on one host only.
const Words kMpiYields = {"--mca", "mpi_yield_when_idle", "1"};

enum class Where { kAnywhere, kOneHost, kHosts };

struct Row {
  Contender contender;
  std::string program;
  Launcher launcher;
  Where where = Where::kAnywhere;
  bool is_tuned = false;
  std::optional<PeerMpi> mpi = std::nullopt;  ///< whose launcher and library; none: the one in PATH
  /// "NAME=value" in its ranks' environment. Such a contender takes part only if it is named.
  std::string variable;
  bool needs_mpi = false;    ///< libddl's collectives are done by MPI
  bool submits = false;      ///< allreduces only; takes part in the steps of a model, and else if it is named
  bool is_recorded = false;  ///< with a timeline; takes part only if it is named
};

// libddl with a given algorithm between hosts. The crossovers of libddl's table are set by these measurements.
Row by_algorithm(const char* name, const char* algorithm) {
  Row row{{.name = name,
           .label = std::string("libddl, ") + algorithm,
           .why = "ours, with this algorithm only; takes part only if it is named",
           .is_ours = true},
          "collective_ddl",
          Launcher::kDdlrun,
          Where::kHosts};
  row.variable = std::string("DDL_ALGORITHM=allreduce=") + algorithm;
  return row;
}

Row by_mpi() {
  Row row{{.name = "ddl-mpi",
           .label = "libddl by Open MPI",
           .why = "ours, with its collectives done by MPI; takes part only if it is named",
           .is_ours = true},
          "collective_ddl",
          Launcher::kDdlrun};
  row.variable = "DDL_CPU_OPERATIONS=mpi";
  row.needs_mpi = true;
  return row;
}

Row by_name() {
  Row row{{.name = "ddl-named",
           .label = "libddl, named tensors",
           .why = "ours, every gradient submitted by name; it makes its own buckets",
           .is_ours = true},
          "collective_ddl_named",
          Launcher::kDdlrun};
  row.submits = true;
  return row;
}

Row by_name_recorded() {
  Row row = by_name();
  row.contender.name = "ddl-named-timeline";
  row.contender.label = "the same, with a timeline";
  row.contender.why = "ours, while ddlrun records a timeline; takes part only if it is named";
  row.is_recorded = true;
  return row;
}

Row by_torch() {
  Row row{
      {.name = "torch",
       .label = "torch, gloo",
       .why = "torch.distributed with its backend for CPUs; calls are made at once and waited for at the end "
              "of the step, as DistributedDataParallel does; it has no launcher, so ddlrun's",
       .is_bound = false},
      "collective_torch",
      Launcher::kDdlrun};
  row.submits = true;
  return row;
}

Row by_peer_mpi(const PeerMpi& mpi) {
  return {{.name = mpi.name, .label = mpi.version.label(), .why = "as most people run it"},
          mpi.program("collective"),
          Launcher::kMpirun,
          Where::kOneHost,
          false,
          mpi};
}

Row by_tuned_peer_mpi(const PeerMpi& mpi) {
  Row row = by_peer_mpi(mpi);
  row.contender.name += "-tuned";
  row.contender.label += ", tuned";
  row.contender.why =
      "temporary buffers keep their pages, no search for fabrics, and small calls as its documents advise "
      "for one host";
  row.is_tuned = true;
  return row;
}

// A contender with another kind of memory needs one more row here, and one more program.
std::vector<Row> rows(const std::vector<PeerMpi>& mpis) {
  using enum Launcher;
  std::vector<Row> all{
      {{.name = "ddl", .label = "libddl", .why = "ours, with private buffers", .is_ours = true},
       "collective_ddl",
       kDdlrun},
      {{.name = "ddl-again", .label = "libddl, again", .why = "A/A", .again_of = "ddl", .is_ours = true},
       "collective_ddl",
       kDdlrun},
      {{.name = "ddl-heap",
        .label = "libddl, shared heap",
        .why = "ours, with buffers of ddl_alloc()",
        .is_ours = true},
       "collective_ddl_heap",
       kDdlrun,
       Where::kOneHost},
      by_name(),
      by_name_recorded(),
      by_algorithm("ddl-tree", "tree"),
      by_algorithm("ddl-units", "units"),
      by_algorithm("ddl-halving", "halving"),
      by_algorithm("ddl-ring", "ring"),
      by_mpi(),
      {{.name = "openmpi",
        .label = "Open MPI",
        .why = "as most people run it; between hosts restricted to one network"},
       "collective_mpi",
       kMpirun},
      {{.name = "openmpi-malloc",
        .label = "Open MPI, tuned",
        .why = "temporary buffers keep their pages, no search for fabrics between hosts, and waiting ranks "
               "yield where CPUs are shared: its best honest settings"},
       "collective_mpi",
       kMpirun,
       Where::kAnywhere,
       true},
      {{.name = "gloo",
        .label = "Gloo",
        .why = "over TCP, its only way here; it has no launcher, so ddlrun's",
        .is_bound = false},
       "collective_gloo",
       kDdlrun},
      by_torch(),
      {{.name = "shared-limit",
        .label = "direct, shared buffers",
        .why = "a prototype of the limit: nothing is staged, as buffers are shared by all ranks"},
       "collective_shared",
       kDdlrun,
       Where::kOneHost},
      {{.name = "tcp-limit",
        .label = "TCP stream",
        .why = "the bytes that no algorithm can avoid, over one plain connection each way"},
       "collective_stream",
       kDdlrun,
       Where::kHosts},
      {{.name = "floor",
        .label = "empty loop",
        .why = "the measuring loop without a call: no contender can be faster"},
       "collective_none",
       kFloor,
       Where::kOneHost},
  };
  for (const PeerMpi& mpi : mpis) all.insert(all.end(), {by_peer_mpi(mpi), by_tuned_peer_mpi(mpi)});
  return all;
}

// "0,1" or, with two CPUs for each rank, "0+1,2+3".
std::string cpu_list(const Settings& settings) {
  Words ranks;
  for (int rank = 0; rank < settings.ranks_with_cpus(); ++rank) {
    Words cpus;
    for (int i = 0; i < settings.job.cpus_per_rank; ++i)
      cpus.push_back(std::to_string(settings.cpus[rank * settings.job.cpus_per_rank + i]));
    ranks.push_back(join(cpus, "+"));
  }
  return join(ranks, ",");
}

Words rank_words(const Row& row, const RankWork& work, const Settings& settings) {
  return {row.program,
          work.name,
          std::to_string(settings.job.ranks),
          std::to_string(settings.job.hosts),
          cpu_list(settings),
          plan_text(work.plan)};
}

void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

bool is_open_mpi(const Row& row) {
  return row.launcher == Launcher::kMpirun &&
         (!row.mpi || row.mpi->version.family == MpiVersion::Family::kOpenMpi);
}

Environment environment_of(const Row& row) {
  Environment all;
  if (row.mpi) all.merge(row.mpi->environment());
  if (!row.is_tuned) return all;
  if (row.mpi) all.merge(row.mpi->tuned_environment());
  all.insert(kMallocTuned.begin(), kMallocTuned.end());
  return all;
}

Words launcher_options(const Row& row, const Settings& settings) {
  const JobShape& job = settings.job;
  const bool is_oversubscribed = job.ranks > settings.ranks_with_cpus();
  Words options;
  if (job.hosts > 1) append(options, row.launcher == Launcher::kMpirun ? kMpiNetwork : kDdlNetwork);
  if (job.hosts > 1 && row.needs_mpi) append(options, kDdlsMpiNetwork);
  if (!row.variable.empty()) append(options, {"-x", row.variable});
  if (row.is_recorded) append(options, {"--timeline-filename", timeline_path()});
  if (!row.is_tuned) return options;
  if (row.mpi) append(options, row.mpi->tuned_words());
  if (is_oversubscribed && is_open_mpi(row)) append(options, kMpiYields);
  if (job.hosts == 1) return options;
  append(options, kMpiTcpOnly);
  for (const auto& [name, value] : kMallocTuned) append(options, {"-x", name + "=" + value});
  return options;
}

bool is_wanted(const Row& row, const Words& wanted, const RankWork& work) {
  const bool is_collective = parse_collective(work.name).has_value();
  if (row.submits && is_collective && work.name != name_of(Collective::kAllreduce)) return false;
  if (work.needs_overlap && !row.submits) return false;
  if (wanted.empty()) return row.variable.empty() && !row.is_recorded && !(row.submits && is_collective);
  return std::find(wanted.begin(), wanted.end(), row.contender.name) != wanted.end();
}

bool is_for(const Row& row, int hosts) {
  return row.where == Where::kAnywhere || (row.where == Where::kHosts) == (hosts > 1);
}

void set_on_one_host(Row& row, const RankWork& work, const Site& site, const Settings& settings) {
  const RankProgram program{.argv = rank_words(row, work, settings),
                            .ranks = settings.job.ranks,
                            .launcher_options = launcher_options(row, settings),
                            .environment = environment_of(row),
                            .mpi = row.mpi ? &*row.mpi : nullptr};
  row.contender.command = launch(row.launcher, program, site, settings);
  row.contender.absent = why_absent(row.launcher, program, site);
}

void set_on_hosts(Row& row, const RankWork& work, const Site& site, const Settings& settings) {
  const JobShape& shape = settings.job;
  HostJob job{.launcher = row.launcher == Launcher::kMpirun ? HostLauncher::kMpirun : HostLauncher::kDdlrun,
              .hosts = ClusterHosts(shape.hosts).names(),
              .ranks_per_host = shape.ranks / shape.hosts,
              .options = launcher_options(row, settings),
              .program = row.program,
              .arguments = {}};
  if (job.launcher == HostLauncher::kDdlrun && job.ranks_per_host > settings.ranks_with_cpus())
    job.options.emplace_back("--oversubscribe");
  const Words words = rank_words(row, work, settings);
  job.arguments.assign(words.begin() + 1, words.end());
  row.contender.command = launch_on_hosts(job, site);
  row.contender.absent = why_absent(job, site);
  if (row.launcher == Launcher::kDdlrun && row.contender.is_limit() && shape.ranks != shape.hosts)
    row.contender.absent = "it is the limit of one rank on each host only";
}

}  // namespace

std::string timeline_path() {
  return (std::filesystem::temp_directory_path() / fmt::format("ddl-bench-{}-timeline.json", ::getpid()))
      .string();
}

std::vector<Contender> contenders_of(const RankWork& work, const Site& site, const Settings& settings) {
  const bool is_over_hosts = settings.job.hosts > 1;
  std::vector<Contender> contenders;
  for (Row& row : rows(site.mpis)) {
    if (!is_for(row, settings.job.hosts) || !is_wanted(row, settings.job.contenders, work)) continue;
    if (is_over_hosts) {
      set_on_hosts(row, work, site, settings);
    } else {
      set_on_one_host(row, work, site, settings);
    }
    if (row.needs_mpi && !site.mpi_absent.empty()) row.contender.absent = site.mpi_absent;
    contenders.push_back(std::move(row.contender));
  }
  return contenders;
}

std::vector<std::string> contender_names(int hosts, const std::vector<PeerMpi>& mpis) {
  std::vector<std::string> names;
  for (const Row& row : rows(mpis)) {
    if (is_for(row, hosts)) names.push_back(row.contender.name);
  }
  return names;
}

std::vector<Pairing> peer_pairings(const std::vector<PeerMpi>& mpis) {
  std::vector<Pairing> pairings = {{"ddl", "openmpi"},
                                   {"ddl", "openmpi-malloc"},
                                   {"ddl", "gloo"},
                                   {"ddl", "shared-limit"},
                                   {"ddl", "tcp-limit"},
                                   {"ddl", "ddl-tree"},
                                   {"ddl", "ddl-units"},
                                   {"ddl", "ddl-halving"},
                                   {"ddl-named", "ddl"},
                                   {"ddl-named", "openmpi"},
                                   {"ddl-named", "openmpi-malloc"},
                                   {"ddl-named", "gloo"},
                                   {"ddl-named", "torch"},
                                   {"ddl-named", "tcp-limit"},
                                   {"ddl-named-timeline", "ddl-named"},
                                   {"ddl", "ddl-ring"},
                                   {"ddl", "ddl-mpi"},
                                   {"ddl-mpi", "openmpi"},
                                   {"ddl-mpi", "openmpi-malloc"}};
  for (const PeerMpi& mpi : mpis) {
    for (const char* variant : {"", "-tuned"}) pairings.push_back({"ddl", mpi.name + variant});
  }
  return pairings;
}

}  // namespace ddl::bench
