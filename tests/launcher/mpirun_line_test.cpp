// The command lines of each kind of mpirun, and the numbers of its ranks.
#include "launcher/mpi/mpirun.h"

#include <algorithm>

#include "base/text.h"
#include "launcher/mpi/mpi_rank.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;
using Words = std::vector<std::string>;

namespace {

JobSpec mpi_job_of(int ranks) {
  JobSpec spec;
  spec.command = {"./train"};
  spec.num_ranks = ranks;
  return spec;
}

Allocation hosts(const Words& names, int slots) {
  Allocation allocation;
  for (const std::string& name : names) {
    AllocatedNode node;
    node.name = name;
    if (slots > 0) node.slots = slots;
    allocation.nodes.push_back(node);
  }
  return allocation;
}

MpirunSite site_of(MpiFlavor flavor) { return {"mpirun", "", flavor, false, "head"}; }

const Environment kVariables = {{"LR", "0.1"}, {"BASH_FUNC_x%%", "() {"}};

std::string line(const JobSpec& spec, const Allocation& allocation, const MpirunSite& site,
                 const MpirunOptions& options = {}) {
  const auto words =
      mpirun_words(spec, allocation, options, site, kVariables, {"ddlrun", "--mpi-rank", "--", "./train"});
  return words ? ddl::join(*words, " ") : "refused: " + words.error().message();
}

}  // namespace

TEST_CASE("kinds of mpirun are recognised by what they print as their version") {
  CHECK(mpi_launcher_of("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...")->flavor == MpiFlavor::kOpenMpi4);
  CHECK(mpi_launcher_of("mpirun (Open MPI) 4.1.4\n")->name == "Open MPI 4.1.4");
  CHECK(mpi_launcher_of("mpiexec (OpenRTE) 4.1.4\n")->flavor == MpiFlavor::kOpenMpi4);
  CHECK(mpi_launcher_of("mpirun (Open MPI) 5.0.3\n")->flavor == MpiFlavor::kPrrte);
  CHECK(mpi_launcher_of("prterun (PRRTE) 3.0.5\n")->name == "PRRTE 3.0.5");
  const auto hydra = mpi_launcher_of(
      "HYDRA build details:\n    Version:                                 4.0.2\n    Release Date: x\n");
  REQUIRE(hydra);
  CHECK(hydra->flavor == MpiFlavor::kHydra);
  CHECK(hydra->name == "MPICH's hydra 4.0.2");
  CHECK(mpi_launcher_of("Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307\n")->flavor ==
        MpiFlavor::kHydra);
  CHECK_FALSE(mpi_launcher_of("jsrun 10.3"));
  CHECK_FALSE(mpi_launcher_of(""));
}

TEST_CASE("on this machine mpirun needs no hosts") {
  const JobSpec spec = mpi_job_of(2);
  const Allocation here = hosts({"head"}, 0);
  const std::string tail = " ddlrun --mpi-rank -- ./train";
  CHECK(line(spec, here, site_of(MpiFlavor::kOpenMpi4)) ==
        "mpirun -np 2 --map-by slot --bind-to none --stdin 0 --tag-output -x LR" + tail);
  CHECK(line(spec, here, site_of(MpiFlavor::kPrrte)) ==
        "mpirun -n 2 --map-by slot --bind-to none --stdin 0 --output tag -x LR" + tail);
  CHECK(line(spec, here, site_of(MpiFlavor::kHydra)) ==
        "mpirun -n 2 -bind-to none -prepend-rank -genvlist LR" + tail);
  MpirunSite as_root = site_of(MpiFlavor::kOpenMpi4);
  as_root.is_root = true;
  CHECK_THAT(line(spec, here, as_root), Catch::StartsWith("mpirun --allow-run-as-root -np 2 "));
}

TEST_CASE("hosts, mapping, ssh, interfaces and options are in each kind's own words") {
  JobSpec spec = mpi_job_of(4);
  spec.hosts = "a:2,b:2";
  spec.ssh.port = 2222;
  spec.ssh.identity_file = "/home/me/key";
  spec.network_interfaces = {"hsn0"};
  spec.oversubscribe = true;
  spec.timestamp_output = true;
  spec.stdin_target = StdinTarget::kAll;
  MpirunOptions options;
  options.tcp_only = true;
  options.mpi_args = {"--mca", "btl_base_verbose", "1"};
  options.binding_args = {"--bind-to", "core"};
  const Allocation two = hosts({"a", "b"}, 2);
  CHECK(
      line(spec, two, site_of(MpiFlavor::kOpenMpi4), options) ==
      "mpirun -np 4 --host a:2,b:2 --map-by slot --oversubscribe --mca plm_rsh_args -p 2222 -i /home/me/key "
      "--mca btl_tcp_if_include hsn0 --mca oob_tcp_if_include hsn0 --mca pml ob1 --mca btl tcp,vader,self "
      "--stdin all "
      "--tag-output --timestamp-output -x LR --bind-to core --mca btl_base_verbose 1 ddlrun --mpi-rank -- "
      "./train");
  CHECK(
      line(spec, two, site_of(MpiFlavor::kPrrte), options) ==
      "mpirun -n 4 --host a:2,b:2 --map-by slot:OVERSUBSCRIBE --prtemca plm_ssh_args -p 2222 -i /home/me/key "
      "--mca btl_tcp_if_include hsn0 --prtemca oob_tcp_if_include hsn0 --mca pml ob1 --mca btl tcp,sm,self "
      "--stdin all "
      "--output tag,timestamp -x LR --bind-to core --mca btl_base_verbose 1 ddlrun --mpi-rank -- ./train");
  spec.timestamp_output = spec.oversubscribe = false;
  spec.stdin_target = StdinTarget::kRank0;
  options.tcp_only = false;
  CHECK(line(spec, two, site_of(MpiFlavor::kHydra), options) ==
        "mpirun -n 4 -hosts a:2,b:2 -iface hsn0 -prepend-rank -genvlist LR --bind-to core --mca "
        "btl_base_verbose 1 "
        "ddlrun --mpi-rank -- ./train");
  CHECK(mpirun_environment(spec, MpiFlavor::kHydra, two, {}) ==
        Environment{{"HYDRA_LAUNCHER_EXTRA_ARGS", "-p 2222 -i /home/me/key"}});
  CHECK(mpirun_environment(spec, MpiFlavor::kOpenMpi4, two, {}).empty());
}

TEST_CASE("mpirun passes on to ranks the variables of -x and of this process, but none of this login") {
  JobSpec spec = mpi_job_of(2);
  spec.exports = {{"LR", "0.2"}, {"HOME", std::nullopt}};
  const Environment own = {{"LR", "0.1"},
                           {"DATA", "/d"},
                           {"HOME", "/home/me"},
                           {"USER", "me"},
                           {"PMIX_RANK", "0"},
                           {"SLURM_PROCID", "3"},
                           {"OMPI_MCA_ess", "^singleton"},
                           {"RANK", "0"},
                           {"DDL_RANK_RECORD", "5:0:1"}};
  const Environment variables = mpi_rank_variables(spec, hosts({"a", "b"}, 1), own);
  CHECK(variables.at("LR") == "0.2");
  CHECK(variables.at("DATA") == "/d");
  CHECK(variables.at("HOME") == "/home/me");
  CHECK(variables.at("MASTER_ADDR") == "a");
  CHECK(variables.contains("DDL_MPI_HEAD"));
  for (const char* name : {"USER", "PMIX_RANK", "SLURM_PROCID", "OMPI_MCA_ess", "RANK", "DDL_RANK_RECORD"}) {
    INFO(name);
    CHECK_FALSE(variables.contains(name));
  }
  CHECK_FALSE(mpi_rank_variables(spec, hosts({"a"}, 1), own).contains("MASTER_ADDR"));
}

TEST_CASE(
    "mpirun passes on variables that no shell can set, and refuses those that its options cannot name") {
  JobSpec spec = mpi_job_of(2);
  const auto words = [&](const std::string& name) {
    spec.exports = {{name, "1"}};
    return mpirun_words(spec, hosts({"head"}, 0), {}, site_of(MpiFlavor::kOpenMpi4), {{name, "1"}}, {"./a"});
  };
  const auto taken = words("some.setting");
  REQUIRE(taken);
  CHECK(std::find(taken->begin(), taken->end(), "some.setting") != taken->end());
  const auto refused = words("a;b");
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains("cannot name the variable a;b"));
}

TEST_CASE("mpirun is the one rank of a local job, unbound, and finds the variables of Slurm's task") {
  JobSpec spec = mpi_job_of(8);
  spec.hosts = "a,b";
  spec.stdin_target = StdinTarget::kAll;
  spec.binding.cores_per_rank = 4;
  spec.as_horovod = true;
  const Environment own = {
      {"SLURM_PROCID", "3"}, {"SLURM_JOB_ID", "7"}, {"OMP_PLACES", "cores"}, {"TMPDIR", "/scratch"}};
  const JobSpec job = mpirun_job(spec, hosts({"a", "b"}, 4), MpiFlavor::kOpenMpi4, "/bin/ddlrun",
                                 {"mpirun", "-np", "8"}, own, {"login1", 4711});
  CHECK(ddl::join(job.command, " ") ==
        "/bin/ddlrun --mpi-engine a OMP_NUM_THREADS,OMP_PROC_BIND mpirun -np 8");
  CHECK(job.num_ranks == 1);
  CHECK(job.hosts.empty());
  CHECK(job.launcher == LauncherChoice::kLocal);
  CHECK(job.binding.bind_to == ddl::affinity::BindTo::kNone);
  CHECK(job.binding.cores_per_rank == 0);
  CHECK_FALSE(job.tag_output);
  CHECK_FALSE(job.as_horovod);  // each rank's ddlrun has the folder of its node
  CHECK(job.stdin_target == StdinTarget::kRank0);
  Environment exports;
  for (const auto& one : job.exports) exports[one.name] = one.value.value_or("(passed on)");
  CHECK(exports == Environment{{"SLURM_PROCID", "3"},
                               {"DDL_MPI_TMPDIR", "/scratch"},
                               {"DDL_MPI_HEAD", "7/login1/4711"}});
  CHECK(job.starts_mpirun);
  Allocation of_slurm = hosts({"a", "b"}, 4);
  of_slurm.job = SchedulerJob{"Slurm", "7", {}, std::nullopt, ""};
  for (const auto& one :
       mpirun_job(spec, of_slurm, MpiFlavor::kHydra, "/bin/ddlrun", {"mpirun"}, own, {"login1", 4711})
           .exports)
    CHECK(one.name != "DDL_MPI_TMPDIR");  // the daemons on the nodes would make that folder
}

TEST_CASE("in the shell of a Slurm step, mpirun gets the resources of the whole job") {
  Allocation job;
  job.job = SchedulerJob{"Slurm", "7", {{"node1", 2, 2, 0}, {"node2", 1, 1, 0}}, std::nullopt, ""};
  CHECK(mpirun_environment(JobSpec(), MpiFlavor::kOpenMpi4, job, {{"SLURM_STEP_ID", "0"}}) ==
        Environment{{"SLURM_TASKS_PER_NODE", "2,1"}, {"SLURM_NNODES", "2"}, {"SLURM_OVERLAP", "1"}});
  CHECK(mpirun_environment(JobSpec(), MpiFlavor::kOpenMpi4, job, {}).empty());
}

TEST_CASE("ranks on each host, and ranks round robin") {
  JobSpec spec = mpi_job_of(4);
  spec.hosts = "a,b";
  spec.ranks_per_node = 2;
  spec.tag_output = false;
  const Allocation two = hosts({"a", "b"}, 0);
  CHECK_THAT(line(spec, two, site_of(MpiFlavor::kOpenMpi4)),
             Catch::Contains("--host a:2,b:2 --map-by ppr:2:node "));
  CHECK_THAT(line(spec, two, site_of(MpiFlavor::kPrrte)),
             Catch::Contains("--host a:2,b:2 --map-by ppr:2:node "));
  CHECK_THAT(line(spec, two, site_of(MpiFlavor::kHydra)), Catch::Contains("-hosts a:2,b:2 -ppn 2 "));
  spec.ranks_per_node = 0;
  spec.map_by = MapBy::kNode;
  CHECK_THAT(line(spec, hosts({"a", "b"}, 2), site_of(MpiFlavor::kOpenMpi4)),
             Catch::Contains("--host a:2,b:2 --map-by node "));
  CHECK_THAT(line(spec, two, site_of(MpiFlavor::kHydra)), Catch::Contains("-hosts a,b -ppn 1 "));
}

TEST_CASE("objects of nodes are mapped by mpirun in its own words") {
  JobSpec spec = mpi_job_of(4);
  spec.tag_output = false;
  const Allocation one = hosts({"head"}, 4);
  spec.binding.mapping = {ddl::affinity::BindTo::kSocket, 2};
  CHECK_THAT(line(spec, one, site_of(MpiFlavor::kOpenMpi4)), Catch::Contains(" --map-by ppr:2:socket "));
  CHECK_THAT(line(spec, one, site_of(MpiFlavor::kPrrte)), Catch::Contains(" --map-by ppr:2:package "));
  CHECK_THAT(line(spec, one, site_of(MpiFlavor::kHydra)),
             Catch::Contains("refused: hydra cannot count ranks"));
  spec.binding.mapping = {ddl::affinity::BindTo::kL3, 0};
  CHECK_THAT(line(spec, one, site_of(MpiFlavor::kOpenMpi4)), Catch::Contains(" --map-by l3cache "));
  CHECK_THAT(line(spec, one, site_of(MpiFlavor::kHydra)), !Catch::Contains("refused"));
}

TEST_CASE("the numbering of ranks is mpirun's, where it has a choice") {
  JobSpec spec = mpi_job_of(4);
  spec.tag_output = false;
  spec.rank_by = RankBy::kNode;
  const Allocation one = hosts({"head"}, 4);
  CHECK_THAT(line(spec, one, site_of(MpiFlavor::kOpenMpi4)),
             Catch::Contains(" --map-by slot --rank-by node "));
  CHECK_THAT(line(spec, one, site_of(MpiFlavor::kPrrte)), Catch::Contains(" --map-by slot --rank-by node "));
  CHECK_THAT(line(spec, one, site_of(MpiFlavor::kHydra)),
             Catch::Contains("refused: hydra numbers ranks as it"));
  spec.rank_by = RankBy::kSlot;
  CHECK_THAT(line(spec, one, site_of(MpiFlavor::kHydra)), !Catch::Contains("refused"));
}

TEST_CASE("what a kind of mpirun cannot do is refused, never dropped") {
  JobSpec spec = mpi_job_of(2);
  spec.hosts = "a,b";
  CHECK_THAT(line(spec, hosts({"a", "b"}, 0), site_of(MpiFlavor::kOpenMpi4)),
             Catch::Contains("refused: mpirun needs the number of ranks for a: -H a:N"));
  Allocation logins = hosts({"a", "b"}, 1);
  logins.nodes[1].user = "ada";
  CHECK_THAT(line(spec, logins, site_of(MpiFlavor::kHydra)),
             Catch::Contains("refused: mpirun takes no login or port"));
  const Allocation two = hosts({"a", "b"}, 1);
  CHECK_THAT(line(spec, hosts({"fd00::1", "b"}, 1), site_of(MpiFlavor::kOpenMpi4)),
             Catch::Contains("no IPv6 address"));
  MpirunOptions tcp;
  tcp.tcp_only = true;
  CHECK_THAT(line(spec, two, site_of(MpiFlavor::kHydra), tcp), Catch::Contains("refused: --tcp"));
  JobSpec all = spec;
  all.stdin_target = StdinTarget::kAll;
  CHECK_THAT(line(all, two, site_of(MpiFlavor::kHydra)),
             Catch::Contains("refused: hydra gives standard input"));
  JobSpec times = spec;
  times.timestamp_output = true;
  CHECK_THAT(line(times, two, site_of(MpiFlavor::kHydra)), Catch::Contains("refused: hydra puts no time"));
  JobSpec interfaces = spec;
  interfaces.network_interfaces = {"eth0", "eth1"};
  CHECK_THAT(line(interfaces, two, site_of(MpiFlavor::kHydra)),
             Catch::Contains("refused: hydra takes one interface"));
  JobSpec ssh = spec;
  ssh.ssh.args = {"-o", "ProxyCommand=nc %h 22"};
  for (const MpiFlavor flavor : {MpiFlavor::kOpenMpi4, MpiFlavor::kPrrte, MpiFlavor::kHydra})
    CHECK_THAT(line(ssh, two, site_of(flavor)), Catch::Contains("refused: mpirun cannot pass on to ssh"));
}

TEST_CASE("a rank's numbers are read from its launcher's variables") {
  const auto open_mpi = mpi_rank_numbers({{"OMPI_COMM_WORLD_RANK", "5"},
                                          {"OMPI_COMM_WORLD_SIZE", "8"},
                                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  REQUIRE(open_mpi);
  CHECK(open_mpi->rank == 5);
  CHECK(open_mpi->num_ranks == 8);
  CHECK(open_mpi->local_rank == 1);
  CHECK(open_mpi->local_size == 4);
  const auto hydra = mpi_rank_numbers(
      {{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}});
  REQUIRE(hydra);
  CHECK(hydra->rank == 2);
  CHECK_FALSE(mpi_rank_numbers({}));
  CHECK_FALSE(mpi_rank_numbers(
      {{"PMI_RANK", "3"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}}));
  CHECK_FALSE(mpi_rank_numbers(
      {{"PMI_RANK", "x"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}}));
}
