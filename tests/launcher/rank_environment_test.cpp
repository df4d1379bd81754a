#include "launcher/plan/rank_environment.h"

#include <algorithm>

#include "launcher/facts.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;
using ddl::launcher::test::facts_of;

namespace {

// The variables by which Open MPI 4.1 accepts the PMIx server of ddlrun and does not bind ranks.
const Environment kForOpenMpi = {{"OMPI_MCA_ess", "^singleton"},
                                 {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                 {"OMPI_MCA_orte_externally_bound", "1"},
                                 {"OMPI_MCA_schizo", "^orte,slurm"}};

Environment with_defaults(Environment expected) {
  expected.insert(kForOpenMpi.begin(), kForOpenMpi.end());
  expected.emplace("PYTHONUNBUFFERED", "1");
  return expected;
}

/// What programs of MPIs need to join agents.
const DefaultVariable kMpichPmi{"MPIR_CVAR_PMI_VERSION", "1", "MPICH"};
const DefaultVariable kIntelSpawn{"I_MPI_SPAWN", "1", "Intel MPI"};

/// The defaults but these two.
std::vector<DefaultVariable> defaults_of(const JobSpec& spec, const Environment& own,
                                         const std::vector<DefaultVariable>& others) {
  std::vector<DefaultVariable> defaults = default_variables(spec, own, others);
  std::erase_if(defaults, [](const auto& one) { return one == kMpichPmi || one == kIntelSpawn; });
  return defaults;
}

Environment values(const std::vector<DefaultVariable>& defaults) {
  Environment environment;
  for (const DefaultVariable& one : defaults) environment.emplace(one.name, one.value);
  return environment;
}

}  // namespace

TEST_CASE("variables that an outer launcher has set for this process are denied") {
  for (const char* name :
       {"PMIX_RANK", "PMIX_SERVER_URI41", "PMI_RANK", "PMI_FD", "PMI2_x", "OMPI_COMM_WORLD_RANK",
        "OMPI_UNIVERSE_SIZE", "PRTE_MCA_x", "HYDI_CONTROL_FD", "OMPI_NUM_APP_CTX", "OMPI_FIRST_RANKS",
        "OMPI_MCA_orte_jobid", "OMPI_MCA_ess_base_vpid", "DDL_JOB_KEY_FD", "DDL_RANK_RECORD"}) {
    CAPTURE(name);
    CHECK(is_denied(name));
  }
}

TEST_CASE("variables that the user may have set for the ranks are not denied") {
  for (const char* name : {"PATH", "PMI", "PMIX", "MY_PMIX_RANK", "OMPI_MCA_btl", "OMPI_MCA_pml",
                           "SLURM_JOB_ID", "OMP_NUM_THREADS", "HOROVOD_FUSION_THRESHOLD", ""}) {
    CAPTURE(name);
    CHECK_FALSE(is_denied(name));
  }
}

TEST_CASE("ranks share the head's environment without the denied names") {
  CHECK(common_environment(
            {{"PATH", "/bin"}, {"PMIX_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "9"}, {"HOME", "/root"}}, {}) ==
        with_defaults({{"PATH", "/bin"}, {"HOME", "/root"}}));
}

TEST_CASE("-x sets a value or passes the head's own, and a later one wins") {
  const Environment head = {{"PATH", "/bin"}, {"KEEP", "old"}};
  CHECK(common_environment(head, {{"A", "1"}, {"KEEP", "new"}, {"A", "2"}, {"EMPTY", ""}}) ==
        with_defaults({{"PATH", "/bin"}, {"A", "2"}, {"KEEP", "new"}, {"EMPTY", ""}}));
  CHECK(common_environment(head, {{"KEEP", std::nullopt}, {"MISSING", std::nullopt}}) ==
        with_defaults({{"PATH", "/bin"}, {"KEEP", "old"}}));
  // "-x A=1 -x A": the head's own value was asked for last; if it has none, the value 1 stays.
  CHECK(common_environment(head, {{"KEEP", "new"}, {"KEEP", std::nullopt}}).at("KEEP") == "old");
  CHECK(common_environment(head, {{"A", "1"}, {"A", std::nullopt}}).at("A") == "1");
}

TEST_CASE(
    "DDL_DETERMINISTIC=1 makes NCCL combine in the same way in every run, where the user has not said "
    "otherwise") {
  JobSpec spec;
  spec.framework = Framework::kMpi;
  spec.exports = {{"DDL_DETERMINISTIC", "1"}};
  const Environment set = values(default_variables(spec, {{"NCCL_PROTO", "LL"}}, {}));
  CHECK(set.at("NCCL_ALGO") == "Ring");
  CHECK_FALSE(set.contains("NCCL_PROTO"));
  CHECK(set.at("NCCL_MIN_CTAS") == set.at("NCCL_MAX_CTAS"));
  CHECK(values(default_variables({}, {{"DDL_DETERMINISTIC", "1"}}, {})).at("NCCL_PROTO") == "Simple");
  spec.exports = {{"DDL_DETERMINISTIC", "0"}};
  CHECK(defaults_of(spec, {{"DDL_DETERMINISTIC", "1"}}, {}).empty());
}

TEST_CASE("defaults come from options before the site, and never replace what the user has set") {
  const std::vector<DefaultVariable> of_site = {{"NCCL_SOCKET_IFNAME", "hsn0", "site own"},
                                                {"NCCL_PROTO", "^LL128", "site own"},
                                                {"NCCL_NET", "OFI", "site own"}};
  const auto defaults = [&](const JobSpec& spec, const Environment& own) {
    return defaults_of(spec, own, of_site);
  };
  JobSpec spec;
  spec.framework = Framework::kMpi;
  CHECK(defaults(spec, {}) == of_site);
  spec.network_interfaces = {"eth0", "ib0"};
  CHECK(defaults(spec, {{"NCCL_PROTO", ""}}) ==
        std::vector<DefaultVariable>{{"NCCL_SOCKET_IFNAME", "=eth0,ib0", "--network-interfaces"},
                                     {"NCCL_NET", "OFI", "site own"}});
  spec.exports = {{"NCCL_NET", "Socket"}, {"DDL_DETERMINISTIC", "1"}};
  const Environment set = values(defaults(spec, {{"NCCL_SOCKET_IFNAME", "lo"}}));
  CHECK_FALSE(set.contains("NCCL_NET"));
  CHECK_FALSE(set.contains("NCCL_SOCKET_IFNAME"));
  CHECK(set.at("NCCL_PROTO") == "Simple");
  // -x NAME passes on ddlrun's own value, which it has not: the default counts.
  spec.exports = {{"NCCL_NET", std::nullopt}};
  CHECK(values(defaults(spec, {})).at("NCCL_NET") == "OFI");
}

TEST_CASE("errors of NCCL end a program of torch, as under torchrun, unless the user has chosen otherwise") {
  const DefaultVariable old{"NCCL_ASYNC_ERROR_HANDLING", "1", "torch"};
  const DefaultVariable now{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", "torch"};
  JobSpec spec;
  CHECK(defaults_of(spec, {}, {}) == std::vector{old, now});
  spec.framework = Framework::kDeepspeed;
  CHECK(defaults_of(spec, {{old.name, "0"}}, {}) == std::vector{now});
  spec.framework = Framework::kJax;
  CHECK(defaults_of(spec, {}, {}).empty());
}

TEST_CASE(
    "MPICH 5 takes PMI-1 of the two that agents serve, unless the user has chosen by any name of MPICH's") {
  JobSpec spec;
  spec.framework = Framework::kNone;
  CHECK(default_variables(spec, {}, {}) == std::vector{kMpichPmi, kIntelSpawn});
  for (const char* name : {"MPIR_CVAR_PMI_VERSION", "MPICH_PMI_VERSION", "MPIR_PARAM_PMI_VERSION"}) {
    CAPTURE(name);
    CHECK(default_variables(spec, {{name, "x"}}, {}) == std::vector{kIntelSpawn});
    spec.exports = {{name, "2"}};
    CHECK(default_variables(spec, {}, {}) == std::vector{kIntelSpawn});
    spec.exports = {{name, std::nullopt}};
    CHECK(default_variables(spec, {}, {}) == std::vector{kMpichPmi, kIntelSpawn});
    spec.exports = {};
  }
  CHECK(default_variables(spec, {{"I_MPI_SPAWN", "0"}}, {}) == std::vector{kMpichPmi});
  // srun offers one PMI of its own choice, and an mpirun may be PRRTE's, which serves PMIx alone.
  for (const LauncherChoice other : {LauncherChoice::kSrun, LauncherChoice::kMpirun}) {
    spec.launcher = other;
    CHECK(default_variables(spec, {}, {}).empty());
  }
}

TEST_CASE(
    "what another launcher has told a framework is not inherited, but -x and --framework none keep it") {
  const Environment head{{"TF_CONFIG", "{}"}, {"RANK", "3"}, {"TORCHELASTIC_RUN_ID", "x"}, {"A", "1"}};
  const auto names = [&](const std::vector<EnvironmentExport>& exports, Framework framework) {
    Environment kept = common_environment(head, exports, framework);
    std::erase_if(kept, [&](const auto& one) { return !head.contains(one.first); });
    return kept;
  };
  CHECK(names({}, Framework::kAuto) == Environment{{"A", "1"}});
  CHECK(names({{"TF_CONFIG", std::nullopt}}, Framework::kMpi) ==
        Environment{{"A", "1"}, {"TF_CONFIG", "{}"}});
  CHECK(names({}, Framework::kNone) == head);
}

TEST_CASE("-x wins over the deny-list: it was asked for") {
  CHECK(common_environment({{"PMIX_MCA_gds", "hash"}}, {{"PMIX_MCA_gds", std::nullopt}}).at("PMIX_MCA_gds") ==
        "hash");
  CHECK(common_environment({}, {{"PMI_DEBUG", "1"}}).at("PMI_DEBUG") == "1");
}

TEST_CASE("the variables for Open MPI replace those of an outer mpirun, and -x replaces them") {
  const Environment head = {{"OMPI_MCA_ess", "env"}, {"OMPI_MCA_schizo", "slurm"}, {"OMPI_MCA_btl", "tcp"}};
  CHECK(common_environment(head, {{"OMPI_MCA_hwloc_base_binding_policy", "core"}}) ==
        Environment{{"OMPI_MCA_btl", "tcp"},
                    {"OMPI_MCA_ess", "^singleton"},
                    {"OMPI_MCA_hwloc_base_binding_policy", "core"},
                    {"OMPI_MCA_orte_externally_bound", "1"},
                    {"OMPI_MCA_schizo", "^orte,slurm"},
                    {"PYTHONUNBUFFERED", "1"}});
}

TEST_CASE("PYTHONUNBUFFERED is a default: the head's value and -x stay") {
  CHECK(common_environment({{"PYTHONUNBUFFERED", ""}}, {}).at("PYTHONUNBUFFERED").empty());
  CHECK(common_environment({}, {{"PYTHONUNBUFFERED", "0"}}).at("PYTHONUNBUFFERED") == "0");
}

TEST_CASE(
    "OMP_NUM_THREADS divides the node's cores by its ranks, at least one each, unless it is set already") {
  const auto threads = [](int cores, int local_size, const Environment& common) {
    const RankPlacement rank{0, 0, 0, local_size, 0, 1};
    const auto environment = thread_environment(rank, facts_of("n", cores), common);
    const auto value = environment.find("OMP_NUM_THREADS");
    return value == environment.end() ? "none" : value->second;
  };
  CHECK(threads(8, 2, {}) == "4");
  CHECK(threads(8, 3, {}) == "2");
  CHECK(threads(2, 8, {}) == "1");
  CHECK(threads(8, 2, {{"OMP_NUM_THREADS", "3"}}) == "none");  // the common value is kept
}

TEST_CASE("variables of a login have the node's own values, unless -x names them") {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto names = login_variables({{"HOME", "/data"}, {"DISPLAY", std::nullopt}});
  CHECK(has(names, "USER"));
  CHECK(has(names, "SSH_AUTH_SOCK"));
  CHECK_FALSE(has(names, "HOME"));
  CHECK_FALSE(has(names, "DISPLAY"));
  CHECK_FALSE(has(names, "PATH"));
}
