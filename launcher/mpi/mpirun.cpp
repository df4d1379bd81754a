#include "launcher/mpi/mpirun.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/command.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "contract/environment.h"
#include "contract/rank_process.h"
#include "launcher/plan/rank_environment.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::launcher {

namespace env = contract::env;

namespace {

std::string first_line(std::string_view text) { return std::string(trim(split(trim(text), '\n').front())); }

/// The text behind a word, up to the end of its line.
std::string behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == std::string_view::npos ? "" : first_line(text.substr(at + word.size()));
}

}  // namespace

Result<MpiLauncher> mpi_launcher_of(std::string_view text) {
  if (const std::string version = behind(text, "(Open MPI)"); !version.empty()) {
    const auto major = parse_integer(version.substr(0, version.find('.')));
    if (!major) return fail(ErrorCode::kInvalidArgument, "Open MPI's version is not understood: " + version);
    return MpiLauncher{*major >= 5 ? MpiFlavor::kPrrte : MpiFlavor::kOpenMpi4, "Open MPI " + version};
  }
  if (const std::string version = behind(text, "(OpenRTE)"); !version.empty())  // mpiexec, orterun
    return MpiLauncher{MpiFlavor::kOpenMpi4, "Open MPI " + version};
  if (const std::string version = behind(text, "(PRRTE)"); !version.empty())
    return MpiLauncher{MpiFlavor::kPrrte, "PRRTE " + version};
  if (text.find("HYDRA build details") != std::string_view::npos)
    return MpiLauncher{MpiFlavor::kHydra, "MPICH's hydra " + behind(text, "Version:")};
  if (text.find("Intel(R) MPI Library") != std::string_view::npos)
    return MpiLauncher{MpiFlavor::kHydra, first_line(text)};
  return fail(ErrorCode::kInvalidArgument,
              "it is neither Open MPI's, PRRTE's nor hydra's: it prints \"" + first_line(text) + "\"");
}

namespace {

using Words = std::vector<std::string>;

tl::unexpected<Error> cannot(std::string sentence) {
  return fail(ErrorCode::kInvalidArgument, std::move(sentence));
}

/// Further words for ssh: port and identity, then those of --ssh-args.
Words ssh_words(const SshSettings& ssh) {
  Words words;
  if (ssh.port != 0) words.insert(words.end(), {"-p", std::to_string(ssh.port)});
  if (!ssh.identity_file.empty()) words.insert(words.end(), {"-i", ssh.identity_file});
  words.insert(words.end(), ssh.args.begin(), ssh.args.end());
  return words;
}

/// Launchers of MPI split these at blanks and know no quotes.
Result<std::string> as_one_word(const Words& words) {
  for (const std::string& word : words) {
    if (word.find_first_of(" \t'\"") != std::string::npos)
      return cannot("mpirun cannot pass on to ssh a word with blanks or quotes: " + word);
  }
  return join(words, " ");
}

/// mpirun's options split at '=' and ',', and Open MPI itself at ';'. Functions of a shell have other characters.
bool is_exportable(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
         });
}

Words exportable(const Environment& environment) {
  Words names;
  for (const auto& [name, value] : environment)
    if (is_exportable(name)) names.push_back(name);
  return names;
}

bool is_own_machine_alone(const Allocation& allocation, const MpirunSite& site) {
  return allocation.nodes.size() == 1 &&
         (allocation.nodes[0].name == site.hostname || allocation.nodes[0].name == "localhost");
}

class Line {
 public:
  Line(const JobSpec& spec, const Allocation& allocation, const MpirunOptions& options,
       const MpirunSite& site, const Environment& environment)
      : spec_(spec), allocation_(allocation), options_(options), site_(site), environment_(environment) {}

  Result<Words> make(const Words& rank_words) {
    words_ = {site_.path};
    DDL_TRY(check());
    switch (site_.flavor) {
      case MpiFlavor::kOpenMpi4: DDL_TRY(open_mpi_4()); break;
      case MpiFlavor::kPrrte: DDL_TRY(prrte()); break;
      case MpiFlavor::kHydra: DDL_TRY(hydra()); break;
    }
    add(options_.binding_args);
    add(options_.mpi_args);
    add(rank_words);
    return std::move(words_);
  }

 private:
  void add(const Words& words) { words_.insert(words_.end(), words.begin(), words.end()); }

  Status check() const {
    for (const AllocatedNode& node : allocation_.nodes) {
      if (node.user || node.port)
        return cannot("mpirun takes no login or port for a single host, and " + node.name +
                      " has one; write them into ~/.ssh/config, or give one --ssh-port for all");
      if (node.name.find(':') != std::string::npos)
        return cannot("mpirun takes no IPv6 address for a host, as " + node.name + "; give it a name");
    }
    for (const EnvironmentExport& one : spec_.exports) {
      if (!is_exportable(one.name))
        return cannot("the options of mpirun cannot name the variable " + one.name + ", which -x gives");
    }
    if (site_.flavor != MpiFlavor::kHydra || !options_.tcp_only) return {};
    return cannot(
        "--tcp: MPICH's networks are chosen by its build; set UCX_TLS=tcp or FI_PROVIDER=tcp with -x "
        "instead");
  }

  /// "a:2,b:2"; with_slots false: "a,b".
  Result<std::string> host_list(bool with_slots) const {
    Words hosts;
    for (const AllocatedNode& node : allocation_.nodes) {
      const std::optional<int> slots =
          spec_.ranks_per_node > 0 ? std::optional(spec_.ranks_per_node) : node.slots;
      if (with_slots && !slots)
        return cannot("mpirun needs the number of ranks for " + node.name + ": -H " + node.name +
                      ":N, or --ranks-per-node N");
      hosts.push_back(with_slots ? node.name + ":" + std::to_string(*slots) : node.name);
    }
    return join(hosts, ",");
  }

  /// In a scheduler's job, or if this machine is meant, mpirun knows its hosts.
  bool knows_hosts() const {
    const bool are_named = !spec_.hosts.empty() || !spec_.hostfile.empty() || !spec_.hosts_exclude.empty();
    return !are_named || is_own_machine_alone(allocation_, site_);
  }

  Status add_hosts(const char* option) {
    if (knows_hosts()) return {};
    DDL_ASSIGN(hosts, host_list(true));
    add({option, std::move(hosts)});
    return {};
  }

  std::string stdin_word() const {
    switch (spec_.stdin_target) {
      case StdinTarget::kAll: return "all";
      case StdinTarget::kNone: return "none";
      default: return "0";
    }
  }

  void add_exports() {
    for (const std::string& name : exportable(environment_)) add({"-x", name});
  }

  /// After --map-by. PRRTE calls a socket a package; Open MPI 4 does not know that word here.
  std::string mapping() const {
    if (spec_.ranks_per_node > 0) return "ppr:" + std::to_string(spec_.ranks_per_node) + ":node";
    affinity::ObjectMapping objects = spec_.binding.mapping;
    if (objects.object == affinity::BindTo::kAuto) return spec_.map_by == MapBy::kNode ? "node" : "slot";
    std::string text = affinity::text_of(objects);
    if (site_.flavor == MpiFlavor::kPrrte && objects.object == affinity::BindTo::kSocket)
      text.replace(text.rfind("socket"), std::string::npos, "package");
    return text;
  }

  void add_ranking() {
    if (spec_.rank_by != RankBy::kPlaced)
      add({"--rank-by", spec_.rank_by == RankBy::kNode ? "node" : "slot"});
  }

  Status open_mpi_4() {
    if (site_.is_root) add({"--allow-run-as-root"});
    add({"-np", std::to_string(spec_.num_ranks)});
    DDL_TRY(add_hosts("--host"));
    add({"--map-by", mapping()});
    add_ranking();
    if (spec_.oversubscribe) add({"--oversubscribe"});
    if (options_.binding_args.empty()) add({"--bind-to", "none"});
    DDL_ASSIGN(ssh, as_one_word(ssh_words(spec_.ssh)));
    if (!ssh.empty()) add({"--mca", "plm_rsh_args", ssh});
    if (!spec_.network_interfaces.empty()) {
      const std::string names = join(spec_.network_interfaces, ",");
      add({"--mca", "btl_tcp_if_include", names, "--mca", "oob_tcp_if_include", names});
    }
    if (options_.tcp_only) add({"--mca", "pml", "ob1", "--mca", "btl", "tcp,vader,self"});
    add({"--stdin", stdin_word()});
    if (spec_.tag_output) add({"--tag-output"});
    if (spec_.timestamp_output) add({"--timestamp-output"});
    add_exports();
    return {};
  }

  Status prrte() {
    if (site_.is_root) add({"--allow-run-as-root"});
    add({"-n", std::to_string(spec_.num_ranks)});
    DDL_TRY(add_hosts("--host"));
    add({"--map-by", mapping() + (spec_.oversubscribe ? ":OVERSUBSCRIBE" : "")});
    add_ranking();
    if (options_.binding_args.empty()) add({"--bind-to", "none"});
    DDL_ASSIGN(ssh, as_one_word(ssh_words(spec_.ssh)));
    if (!ssh.empty()) add({"--prtemca", "plm_ssh_args", ssh});
    if (!spec_.network_interfaces.empty()) {
      const std::string names = join(spec_.network_interfaces, ",");
      add({"--mca", "btl_tcp_if_include", names, "--prtemca", "oob_tcp_if_include", names});
    }
    if (options_.tcp_only) add({"--mca", "pml", "ob1", "--mca", "btl", "tcp,sm,self"});
    add({"--stdin", stdin_word()});
    Words output;
    if (spec_.tag_output) output.emplace_back("tag");
    if (spec_.timestamp_output) output.emplace_back("timestamp");
    if (!output.empty()) add({"--output", join(output, ",")});
    add_exports();
    return {};
  }

  Status hydra() {
    if (spec_.binding.mapping.ranks_per_object > 0)
      return cannot("hydra cannot count ranks by objects of a node, as --map-by " +
                    affinity::text_of(spec_.binding.mapping) + " does; use --ranks-per-node N");
    if (numbers_by_node(spec_) != (spec_.map_by == MapBy::kNode))
      return cannot("hydra numbers ranks as it places them; omit --rank-by");
    add({"-n", std::to_string(spec_.num_ranks)});
    // Round robin: one rank on each host, and from the first host again.
    const bool takes_turns = spec_.map_by == MapBy::kNode && spec_.ranks_per_node == 0;
    if (!knows_hosts()) {
      DDL_ASSIGN(hosts, host_list(!takes_turns));
      add({"-hosts", std::move(hosts)});
    }
    if (takes_turns) add({"-ppn", "1"});
    if (!takes_turns && spec_.ranks_per_node > 0) add({"-ppn", std::to_string(spec_.ranks_per_node)});
    // In a Slurm job Intel's mpiexec ignores it, and says so in two lines.
    const bool is_ignored = allocation_.job && site_.name.starts_with("Intel");
    if (options_.binding_args.empty() && !is_ignored) add({"-bind-to", "none"});
    if (spec_.network_interfaces.size() > 1)
      return cannot("hydra takes one interface, and --network-interfaces names " +
                    counted(spec_.network_interfaces.size(), "interface"));
    if (!spec_.network_interfaces.empty()) add({"-iface", spec_.network_interfaces.front()});
    DDL_TRY(as_one_word(ssh_words(spec_.ssh)));
    if (spec_.stdin_target == StdinTarget::kAll)
      return cannot("hydra gives standard input to rank 0 alone; omit --stdin all");
    if (spec_.timestamp_output)
      return cannot("hydra puts no time before lines; omit --prefix-output-with-timestamp");
    if (spec_.tag_output) add({"-prepend-rank"});
    add({"-genvlist", join(exportable(environment_), ",")});
    return {};
  }

  const JobSpec& spec_;
  const Allocation& allocation_;
  const MpirunOptions& options_;
  const MpirunSite& site_;
  const Environment& environment_;
  Words words_;
};

}  // namespace

Result<std::vector<std::string>> mpirun_words(const JobSpec& spec, const Allocation& allocation,
                                              const MpirunOptions& options, const MpirunSite& site,
                                              const Environment& environment,
                                              const std::vector<std::string>& rank_words) {
  return Line(spec, allocation, options, site, environment).make(rank_words);
}

Environment mpirun_environment(const JobSpec& spec, MpiFlavor flavor, const Allocation& allocation,
                               const Environment& own) {
  Environment environment;
  const Words ssh = ssh_words(spec.ssh);
  if (flavor == MpiFlavor::kHydra && !ssh.empty()) environment["HYDRA_LAUNCHER_EXTRA_ARGS"] = join(ssh, " ");
  if (allocation.job) environment.merge(scheduler_of(*allocation.job).mpirun_variables(*allocation.job, own));
  return environment;
}

namespace {

/// What an agent sets for its one rank, which becomes mpirun.
constexpr const char* kOfItsRank[] = {"OMPI_MCA_schizo",
                                      "OMPI_MCA_ess",
                                      "OMPI_MCA_hwloc_base_binding_policy",
                                      "OMPI_MCA_orte_externally_bound",
                                      env::kRank,
                                      env::kSize,
                                      env::kLocalRank,
                                      env::kLocalSize,
                                      env::kCrossRank,
                                      env::kCrossSize,
                                      env::kHostname,
                                      env::kTorchRank,
                                      env::kTorchWorldSize,
                                      env::kTorchLocalRank,
                                      env::kTorchLocalWorldSize,
                                      env::kReportStart,
                                      env::kRankRecord};

/// Whether mpirun's TMPDIR is the agent's directory. In a Slurm job its daemons on the nodes would get that, too: they make
/// the folder there, and nobody removes it.
bool has_own_tmpdir(const Allocation& allocation) { return !allocation.job; }

}  // namespace

Environment mpi_rank_variables(const JobSpec& spec, const Allocation& allocation, const Environment& own) {
  Environment variables;
  for (const auto& [name, value] : own) {
    if (!is_denied(name) && !is_of_scheduler_task(name)) variables[name] = value;
  }
  // This process may be a rank, too.
  for (const char* name : kOfItsRank) variables.erase(name);
  for (const EnvironmentExport& one : spec.exports) {
    if (one.value) variables[one.name] = *one.value;
  }
  // Each host has its own login.
  for (const std::string& name : login_variables(spec.exports)) variables.erase(name);
  // Ranks on other hosts need the first host's name.
  if (allocation.nodes.size() > 1) variables[env::kMasterAddr] = allocation.nodes.front().name;
  variables[env::kMasterPort];
  if (has_own_tmpdir(allocation)) variables[env::kMpiTmpdir];
  variables[env::kMpiHead];
  return variables;
}

JobSpec mpirun_job(const JobSpec& spec, const Allocation& allocation, MpiFlavor flavor,
                   const std::string& ddlrun, const std::vector<std::string>& mpirun_words,
                   const Environment& own, const JobHead& head) {
  JobSpec job = spec;
  // The agent sets these for its one rank. mpirun's ranks get them only from the user.
  Words to_forget;
  for (const char* name : {env::kOmpNumThreads, env::kOmpPlaces, env::kOmpProcBind}) {
    if (!own.contains(name)) to_forget.emplace_back(name);
  }
  const std::string master = allocation.nodes.size() > 1 ? allocation.nodes.front().name : std::string();
  job.command = {ddlrun, contract::kMpiEngineOption, master, join(to_forget, ",")};
  job.command.insert(job.command.end(), mpirun_words.begin(), mpirun_words.end());
  job.starts_mpirun = true;
  job.num_ranks = 1;
  job.ranks_per_node = 0;
  job.hosts = job.hostfile = job.hosts_exclude = "";
  job.launcher = LauncherChoice::kLocal;
  job.binding = {};
  job.binding.bind_to = affinity::BindTo::kNone;
  job.tag_output = job.timestamp_output = false;  // mpirun does it
  job.network_interfaces.clear();
  job.as_horovod = false;  // the ddlrun of each rank names the folder of its node
  if (job.stdin_target == StdinTarget::kAll) job.stdin_target = StdinTarget::kRank0;
  // mpirun learns from them its nodes, and how many ranks each takes. The ddlrun of each rank removes them.
  for (const auto& [name, value] : own) {
    if (is_of_scheduler_task(name)) job.exports.push_back({name, value});
  }
  for (const auto& [name, value] : mpirun_environment(spec, flavor, allocation, own))
    job.exports.push_back({name, value});
  if (has_own_tmpdir(allocation)) job.exports.push_back({env::kMpiTmpdir, value_of(own, "TMPDIR")});
  job.exports.push_back({env::kMpiHead, announcement_text({scheduler_job_of_ranks(allocation, own), head})});
  return job;
}

int become_mpirun(const std::vector<std::string>& words) {
  std::vector<std::string> own(std::begin(kOfItsRank), std::end(kOfItsRank));
  // mpirun's files are in the agent's directory and removed with it, also if mpirun is killed.
  // Its ranks get their own TMPDIR back.
  const char* const directory = std::getenv("PMIX_SERVER_TMPDIR");
  if (directory != nullptr && std::getenv(env::kMpiTmpdir) != nullptr) ::setenv("TMPDIR", directory, 1);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    const std::string name(*entry, equals != nullptr ? static_cast<std::size_t>(equals - *entry) : 0);
    if (is_denied(name)) own.push_back(name);
  }
  for (const std::string_view name : split(words[1], ',')) own.emplace_back(name);
  for (const std::string& name : own) ::unsetenv(name.c_str());
  if (!words[0].empty()) ::setenv(env::kMasterAddr, words[0].c_str(), 1);
  ::close(contract::kPmiFd);
  ::close(contract::kRankRecordFd);
  ::close(contract::kDoorbellFd);
  const std::vector<std::string> command(words.begin() + 2, words.end());
  const Error error = become(command);
  std::fprintf(stderr, "ddlrun: %s\n", error.message().c_str());
  return error.code() == ErrorCode::kNotFound ? contract::kNotFound : contract::kNotExecutable;
}

}  // namespace ddl::launcher
