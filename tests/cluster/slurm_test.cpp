// ddlrun inside a real Slurm: salloc and sbatch, on nodes that are namespaces.
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "cluster/harness/job_folder.h"
#include "cluster/harness/salloc.h"
#include "contract/ddlrun.h"
#include "e2e/harness/fifo.h"
#include "launcher/job/host_list.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;
using e2e::occurrences;
using Words = std::vector<std::string>;

/// The lines of ranks, without their tags, sorted.
std::vector<std::string> lines_of(const std::string& out) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(trim(out), '\n')) {
    const std::size_t tag = line.find("<stdout>:");
    lines.emplace_back(tag == std::string_view::npos ? line : line.substr(tag + 9));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

Words installed_mpiruns() {
  Words mpiruns;
#ifdef DDL_CLUSTER_OPEN_MPI
  mpiruns.emplace_back("mpirun");
#endif
#ifdef DDL_CLUSTER_MPIRUN_MPICH
  mpiruns.emplace_back(DDL_CLUSTER_MPIRUN_MPICH);
#endif
  return mpiruns;
}

const Words kGpuNode = {"-p", "gpu", "-N", "1", "--exclusive", "--gpus", "8"};

}  // namespace

TEST_CASE("a node with 8 GPUs gets 8 ranks, with the variables that srun would set", "[slurm]") {
  HostJob job(
      {"-np", "8", "sh", "-c",
       "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS $SLURM_STEP_NUM_TASKS $(hostname) "
       "$CUDA_VISIBLE_DEVICES ${SLURM_CPU_BIND:-unbound}"},
      in_salloc(kGpuNode));
  CHECK(job.wait() == 0);
  INFO(job.err());
  std::vector<std::string> wanted;
  for (int rank = 0; rank < 8; ++rank) {
    const std::string number = std::to_string(rank);
    wanted.push_back(number + " " + number + " 0 8 8 node3 0,1,2,3,4,5,6,7 unbound");
  }
  CHECK(lines_of(job.out()) == wanted);
}

TEST_CASE("a program of PyTorch finds its ranks in a Slurm job, beside Slurm's own variables", "[slurm]") {
#ifndef DDL_E2E_TORCH
  DDL_SKIP("there was no torch in /usr/bin/python3 at configuration; scripts/setup installs it");
#else
  HostJob job({"/usr/bin/python3", DDL_FRAMEWORK_PROGRAMS "/torch_ddp.py"},
              in_salloc({"-N", "2", "-n", "2"}));
  CHECK(job.wait() == 0);
  INFO(job.err());
  CHECK_THAT(job.out(), Contains("local rank 0, node 0: rank 0 of 2: right") &&
                            Contains("local rank 0, node 1: rank 1 of 2: right"));
#endif
}

TEST_CASE("the Python package, with arrays and with PyTorch, works in a Slurm job", "[slurm]") {
#ifndef DDL_CLUSTER_PYTHON
  DDL_SKIP("the Python package is not installed; scripts/setup installs what it needs");
#else
  for (const std::string name : {"torch", "optimizer", "arrays"}) {
    CAPTURE(name);
    HostJob job({DDL_CLUSTER_PYTHON, std::string(DDL_CLUSTER_PYTHON_TESTS) + "/" + name + "_program.py"},
                in_salloc({"-N", "2", "-n", "2"}));
    CHECK(job.wait() == 0);
    INFO(job.err());
    CHECK_THAT(job.out(), Contains("rank 0: all ") && Contains("rank 1: all "));
  }
#endif
}

TEST_CASE("ranks go on in a Slurm job when one is killed", "[slurm]") {
  HostJob job({"--min-np", "1", e2e::program("elastic_program"), "die"},
              in_salloc({"-N", "2", "--ntasks-per-node", "2", "--no-kill"}));
  CHECK(job.wait() == 0);
  CHECK_THAT(job.out(),
             Contains("generation 1: rank 2 of 3, local 1 of 2, ") && Contains("[0]<stdout>:done"));
  CHECK_THAT(job.err(),
             Contains("generation 1: going on with 3 ranks on node1, node2") && !Contains("another ddlrun"));
}

TEST_CASE("a job that scancel ends saves its state, although Slurm sends SIGTERM to every process",
          "[slurm]") {
  const JobFolder folder;
  HostJob job({"--min-np", "1", "--state-dir", folder.path("state"), "sh", "-c",
               "echo \"in job $SLURM_JOB_ID.\"; exec " + e2e::program("elastic_program") + " slow"},
              in_salloc({"-N", "2", "--ntasks-per-node", "2"}));
  job.job().wait_for("generation 0: rank ", 4);
  const std::string word = "in job ";
  const std::size_t at = job.out().find(word) + word.size();
  output_as_login({"scancel", job.out().substr(at, job.out().find('.', at) - at)});
  CHECK(job.wait() == contract::kDrained);
  CHECK(e2e::occurrences(job.out(), "drained at step 1\n") == 4);
}

TEST_CASE("a job grows by the nodes of other Slurm jobs of a name, and leaves them when they are cancelled",
          "[slurm]") {
  const JobFolder folder;
  const std::string script = folder.write("nodes.sh", "#!/bin/sh\nexec sleep 1000\n");
  const auto nodes_of_a_job = [&] {
    return folder.sbatch("nodes", {"-N", "1", "--exclusive", "--job-name", "extra"}, script);
  };
  const std::string first = nodes_of_a_job();
  HostJob job({"--min-np", "2", "--host-discovery-script", "slurm:extra", "--slots-per-host", "2",
               "--elastic-settle", "0", e2e::program("elastic_program"), "shrinks"});
  job.job().wait_for("generation 0: rank ", 2);
  const std::string second = nodes_of_a_job();
  job.job().wait_for(" of 4, local ", 4);  // in one generation or in two: their processes come one by one
  output_as_login({"scancel", first});
  CHECK(job.job().wait() == 0);
  output_as_login({"scancel", second});
  folder.await({first, second});
  CHECK(job.wait() == 0);
  CHECK(e2e::occurrences(job.out(), " rank 0 of 2, local 0 of 2, ") == 2);  // at the beginning and at the end
}

TEST_CASE("--as-horovod gives ddl to the ranks of a Slurm job, whatever starts them", "[slurm]") {
#ifndef DDL_CLUSTER_PYTHON
  DDL_SKIP("the Python package is not installed; scripts/setup installs what it needs");
#else
  std::vector<Words> ways = {
      {}, {"--launcher", "ssh", "-np", "2", "-H", "node1:1,node2:1"}, {"--launcher", "srun"}};
  for (const std::string& mpirun : installed_mpiruns()) ways.push_back({"--mpi", "--mpirun", mpirun});
  for (Words words : ways) {
    CAPTURE(join(words, " "));
    words.insert(words.end(),
                 {"--as-horovod", "-x", "PYTHONPATH=/of/the/user", DDL_CLUSTER_PYTHON, "-c",
                  "import os, torch, horovod, horovod.torch as hvd\n"
                  "hvd.init()\n"
                  "total = int(hvd.allreduce(torch.tensor([hvd.rank() + 1]), op=hvd.Sum))\n"
                  "path = os.environ['PYTHONPATH'].split(':')\n"
                  "assert horovod.__path__[0] == path[0] + '/horovod', (path, horovod.__path__)\n"
                  "os.write(1, f'rank {hvd.rank()} sum {total} {path[1:]}\\n'.encode())"});
    HostJob job(words, in_salloc({"-N", "2", "-n", "2", "-w", "node[1-2]"}));
    CHECK(job.wait() == 0);
    INFO(job.out() << job.err());
    for (const std::string rank : {"rank 0 ", "rank 1 "})
      CHECK_THAT(job.out(), Contains(rank + "sum 3 ['/of/the/user']\n"));
  }
#endif
}

TEST_CASE("programs of mpi4py, and of Gloo by its rendezvous, run in a Slurm job", "[slurm]") {
  const auto output = [](Words words, const std::string& program) {
    words.insert(words.end(), {"/usr/bin/python3", DDL_E2E_SOURCES "/programs/" + program});
    HostJob job(words, in_salloc({"-N", "2", "-n", "2"}));
    const int status = job.wait();
    INFO(job.err());
    CHECK(status == 0);
    return job.out();
  };
  CHECK(occurrences(output({"--gloo"}, "rendezvous_client.py"), " read from 0 1\n") == 2);
#ifdef DDL_E2E_MPI4PY
  CHECK_THAT(output({}, "mpi4py_program.py"), Contains("rank 1 of 2: sum 1, 2 hosts"));
#else
  DDL_SKIP("there was no mpi4py in /usr/bin/python3 at configuration; scripts/setup installs it");
#endif
}

TEST_CASE("srun's input variables in the shell change nothing, and reach the ranks", "[slurm]") {
  Words in_shell = {"-N",
                    "2",
                    "-n",
                    "2",
                    "env",
                    "SLURM_LABELIO=1",
                    "SLURM_SRUN_MULTI=1",
                    "SLURM_RESV_PORTS=2",
                    "SLURM_STDOUTMODE=/nowhere/FILE",
                    "SLURM_NO_KILL=1",
                    "SLURM_CONSTRAINT=none",
                    "SLURM_GRES=gpu:9",
                    "SLURM_EXPORT_ENV=NONE",
                    "SLURM_PROLOG=/bin/false"};
  HostJob job({"sh", "-c", "echo $SLURM_PROCID $SLURM_LABELIO $SLURM_RESV_PORTS"}, in_salloc(in_shell));
  CHECK(job.wait() == 0);
  INFO(job.err());
  CHECK(lines_of(job.out()) == Words{"0 1 2", "1 1 2"});
  for (const std::string& mpirun : installed_mpiruns()) {
    CAPTURE(mpirun);
    HostJob by_mpirun({"--mpi", "--mpirun", mpirun, "-np", "2", "echo", "here"}, in_salloc(in_shell));
    CHECK(by_mpirun.wait() == 0);
    INFO(by_mpirun.err());
    CHECK_THAT(by_mpirun.out(), Contains("here"));
    // Slurm's daemons on the nodes would make a folder of ddlrun's, and not remove it.
    CHECK_THAT(by_mpirun.err(), !Contains("/ddlrun-"));
  }
}

TEST_CASE("srun and mpirun, started by a rank of a Slurm job, start ranks of their own", "[slurm]") {
  HostJob by_srun({"-np", "2", "env", "srun", "-N", "1", "-n", "1", "hostname"},
                  in_salloc({"-N", "2", "-n", "2"}));
  CHECK(by_srun.wait() == 0);
  INFO(by_srun.err());
  // Slurm chooses the node of each step; if one ends before the other begins, that may be the same.
  const Words nodes = lines_of(by_srun.out());
  CHECK(nodes.size() == 2);
  for (const std::string& node : nodes) CHECK((node == "node1" || node == "node2"));
  for (const std::string& mpirun : installed_mpiruns()) {
    CAPTURE(mpirun);
    HostJob job({"-np", "1", mpirun, "-np", "1", "echo", "here"}, in_salloc({"-N", "1", "-n", "1"}));
    CHECK(job.wait() == 0);
    INFO(job.err());
    CHECK(job.out() == "here\n");
  }
}

TEST_CASE("without -np the number of ranks is that of tasks, GPUs or nodes", "[slurm]") {
  const auto ranks = [](const Words& options) {
    HostJob job({"hostname"}, in_salloc(options));
    CHECK(job.wait() == 0);
    INFO(job.err());
    return lines_of(job.out()).size();
  };
  CHECK(ranks({"-N", "1", "-n", "3"}) == 3);
  CHECK(ranks(kGpuNode) == 8);
  CHECK(ranks({"-N", "1"}) == 1);
}

TEST_CASE("each of several nodes gets its tasks or GPUs, and ranks have their numbers", "[slurm]") {
  const Words print_numbers = {
      "sh", "-c", "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_TASKS_PER_NODE $(hostname)"};
  const auto lines = [&](const Words& options) {
    HostJob job(print_numbers, in_salloc(options));
    CHECK(job.wait() == 0);
    INFO(job.err());
    return lines_of(job.out());
  };
  CHECK(lines({"-N", "2", "--ntasks-per-node", "2", "-w", "node[1-2]"}) ==
        Words{"0 0 0 2,2 node1", "1 1 0 2,2 node1", "2 0 1 2,2 node2", "3 1 1 2,2 node2"});
  CHECK(lines({"-N", "2", "-n", "3", "-w", "node[1-2]"}) ==
        Words{"0 0 0 2,1 node1", "1 1 0 2,1 node1", "2 0 1 2,1 node2"});
  const auto gpus = lines({"-p", "gpu", "-N", "2", "--exclusive", "--gpus", "16"});
  REQUIRE(gpus.size() == 16);
  CHECK(std::count_if(gpus.begin(), gpus.end(),
                      [](const std::string& line) { return line.ends_with("8,8 node4"); }) == 8);
  CHECK(lines({"-N", "4"}).size() == 4);
}

TEST_CASE("a scaling study runs in a Slurm job, on as many of its nodes as each run needs", "[slurm]") {
  HostJob job({"--scaling", "1,2,4", "--repeat", "1", "--json", "sh", "-c", "echo on $(hostname)"},
              in_salloc({"-N", "2", "--ntasks-per-node", "2"}));
  CHECK(job.wait() == 0);
  INFO(job.err());
  CHECK(occurrences(job.out(), "on node1\n") == 1 + 2 + 2);
  CHECK(occurrences(job.out(), "on node2\n") == 2);
  CHECK_THAT(job.err(), Contains("scaling: run 3 of 3: 4 ranks") && Contains(R"("points":[)"));
  CHECK_THAT(job.err(), Contains(R"("hosts":1,)") && Contains(R"("hosts":2,)"));
}

TEST_CASE("resources that the job lacks are refused, with those that it has", "[slurm]") {
  // While node1 still ends a job, Slurm would otherwise choose a node on which 2 tasks have 4 CPUs.
  HostJob many({"-np", "4", "hostname"}, in_salloc({"-N", "1", "-n", "2", "-w", "node1"}));
  CHECK(many.wait() == contract::kUsageError);
  CHECK_THAT(many.err(),
             Contains("4 ranks asked for, and Slurm job ") && Contains("(1 node, 2 tasks, 2 CPUs)"));
  HostJob other({"-np", "1", "-H", "node2", "hostname"}, in_salloc({"-w", "node1"}));
  CHECK(other.wait() == contract::kUsageError);
  CHECK_THAT(other.err(), Contains("node2 is not a node of Slurm job "));
  HostJob chosen({"-np", "2", "-H", "node2", "hostname"},
                 in_salloc({"-w", "node[1-2]", "-N", "2", "--exclusive"}));
  CHECK(chosen.wait() == 0);
  CHECK(lines_of(chosen.out()) == Words{"node2", "node2"});
}

TEST_CASE("the first failure is reported, and salloc returns its exit code", "[slurm]") {
  HostJob job({"-np", "2", "sh", "-c", "if [ $RANK = 1 ]; then echo no data >&2; exit 5; fi; sleep 100"},
              in_salloc({"-N", "1", "-n", "2", "-w", "node1"}));
  CHECK(job.wait() == 5);
  CHECK_THAT(job.err(), Contains("rank 1 on node1") && Contains("exited with 5") && Contains("no data"));
}

TEST_CASE("libddl and Open MPI programs run unchanged", "[slurm]") {
  HostJob ddl({"-np", "2", DDL_CLUSTER_EXAMPLE, "--epochs", "50"}, in_salloc({"-N", "1", "-n", "2"}));
  CHECK(ddl.wait() == 0);
  CHECK_THAT(ddl.out(), Contains("2 ranks, "));
  HostJob four({"-np", "4", DDL_CLUSTER_EXAMPLE, "--epochs", "50"},
               in_salloc({"-N", "4", "--ntasks-per-node", "1"}));
  CHECK(four.wait() == 0);
  CHECK_THAT(four.out(), Contains("4 ranks, "));
#ifdef DDL_CLUSTER_OPEN_MPI
  HostJob two({"-np", "4", e2e::program("mpi_program"), "sum"},
              in_salloc({"-N", "2", "--ntasks-per-node", "2"}));
  CHECK(two.wait() == 0);
  HostJob mpi({"-np", "2", e2e::program("mpi_program"), "sum"}, in_salloc({"-N", "1", "-n", "2"}));
  CHECK(mpi.wait() == 0);
#endif
}

TEST_CASE("scancel ends the job, and no process is left", "[slurm]") {
  const SharedScratch folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);  // the login's head writes the file
  HostJob job({"-np", "2", "--report", folder.path("r.html"), "--report-json", folder.path("r.json"), "sh",
               "-c", "echo running in $SLURM_JOB_ID; exec sleep 1000"},
              in_salloc({"-N", "1", "-n", "2"}));
  job.job().wait_for("running in ", 2);
  const std::string word = "running in ";
  const std::size_t at = job.out().find(word) + word.size();
  output_as_login({"scancel", job.out().substr(at, job.out().find('\n', at) - at)});
  CHECK(job.wait() == 128 + SIGTERM);
  CHECK_THAT(job.err(), Contains("as sent by scancel or at a time limit") && !Contains("host was lost"));
  CHECK_THAT(e2e::bytes_of(folder.path("r.json")), Contains("\"exit_code\":143") && Contains("scancel"));
  CHECK_THAT(e2e::bytes_of(folder.path("r.html")), Contains("sent by scancel") && Contains("</html>"));
}

// The SIGTERM that ddlrun itself gets was taken for a second request whenever an agent's report of its own came before.
TEST_CASE("after scancel of a batch script ranks have their time to end", "[slurm]") {
  const JobFolder folder;
  for (const bool execs : {true, false}) {
    CAPTURE(execs);
    CHECK(cancel_batch_script(folder, execs) == 2);
  }
}

TEST_CASE("ddlrun listens on no port: nodes of a job need not reach the head", "[slurm]") {
  HostJob job({"sh", "-c", "echo running; exec sleep 1000"},
              in_salloc({"-N", "2", "--ntasks-per-node", "1"}));
  job.job().wait_for("running", 2);
  // As root, to see the owners of the sockets.
  const e2e::Scratch scratch;
  e2e::Command command;
  command.argv = {"ss", "--tcp", "--listening", "--numeric", "--processes", "--no-header"};
  e2e::Job listing(scratch, command);
  REQUIRE(listing.wait() == 0);
  INFO(listing.out());
  CHECK_THAT(listing.out(), Contains("\"srun\""));
  for (const std::string_view line : split(listing.out(), '\n')) {
    const bool is_ours =
        line.find("\"ddlrun\"") != std::string_view::npos || line.find("\"ddl-") != std::string_view::npos;
    // Commands that salloc starts inherit its socket.
    CHECK((!is_ours || line.find("\"salloc\"") != std::string_view::npos));
  }
  job.job().send(SIGTERM);
  CHECK(job.wait() != 0);
}

TEST_CASE("^C in the terminal of an interactive job ends the ranks", "[slurm]") {
  e2e::Command settings = in_salloc({"-N", "2", "--ntasks-per-node", "1"});
  settings.terminal = true;
  HostJob job({"sh", "-c", "echo running; exec sleep 1000"}, settings);
  job.job().wait_for("running", 2);
  job.job().write("\x03");
  CHECK(job.wait() != 0);
  CHECK_THAT(job.out(), Contains("ended by SIGINT"));
}

TEST_CASE("ranks of a batch script are a separate step, even on the node of the script", "[slurm]") {
  const SharedScratch scratch;
  const std::string output = scratch.write("output", "");
  REQUIRE(::chmod(output.c_str(), 0666) == 0);
  const std::string script = scratch.write(
      "job.sh",
      "#!/bin/sh\n" + e2e::ddlrun({}).argv.front() +
          " sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS in step $SLURM_STEP_ID of $(cat /proc/$PPID/comm)'\n");
  const Before before;
  // sbatch would pass on the test's TMPDIR, which does not exist on the nodes.
  output_as_login({"env", "-u", "TMPDIR", "sbatch", "--wait", "-N", "1", "-n", "2", "-o", output, script});
  before.require_nothing_left();
  CHECK(lines_of(e2e::bytes_of(output)) ==
        Words{"0 of 2 in step 0 of ddl-spawner", "1 of 2 in step 0 of ddl-spawner"});
}

TEST_CASE("a second ddlrun in a job warns that the first one uses the same CPUs", "[slurm]") {
  const JobFolder folder;
  const std::string ddlrun = e2e::ddlrun({}).argv.front();
  // The second ddlrun starts when the rank of the first runs, and the first ends after the second; the third is
  // alone.
  const std::string script = folder.write(
      "two.sh", "set -e\nmkfifo begun done\n" + ddlrun + " -np 1 sh -c 'echo > begun; read _ < done' &\n" +
                    "read _ < begun\n" + ddlrun + " -np 1 echo second 2>&1\necho > done\nwait\n" + ddlrun +
                    " -np 1 echo third 2>&1\n");
  const std::string out =
      folder.checked_output({"salloc", "-Q", "-N", "1", "-n", "1", "-w", "node1", "sh", script});
  CHECK_THAT(out, Contains("ddlrun: warning: another ddlrun (process ") &&
                      Contains(", seen on node1) runs in Slurm job ") && Contains("second\n") &&
                      Catch::EndsWith("third\n"));
  CHECK(out.find("warning") == out.rfind("warning"));
}

TEST_CASE("in an unsupported Slurm job no rank starts on the login host", "[slurm]") {
  // Variables of a heterogeneous job name only the nodes of each group.
  HostJob groups({"-np", "2", "hostname"},
                 in_salloc({"-N", "1", "-w", "node1", ":", "-N", "1", "-w", "node2"}));
  CHECK(groups.wait() == contract::kUsageError);
  CHECK_THAT(groups.err(), Contains(" is a heterogeneous job of 2 groups"));
  CHECK(groups.out().empty());
  // Each of two tasks starts a ddlrun.
  e2e::Command srun;
  srun.argv = {"srun", "-Q", "-N", "1", "-n", "2"};
  HostJob tasks({"-np", "2", "hostname"}, srun);
  CHECK(tasks.wait() == contract::kUsageError);
  CHECK_THAT(tasks.err(), Contains("one of 2 tasks of a step"));
  CHECK(tasks.out().empty());
}

TEST_CASE("in a step on one node of a job, ranks are placed on the whole job", "[slurm]") {
  e2e::Command settings = in_salloc({"-N", "2", "-n", "3", "-w", "node[1-2]"});
  settings.argv.insert(settings.argv.end(), {"srun", "-N", "1", "-n", "1"});
  HostJob job({"-np", "3", "hostname"}, settings);
  CHECK(job.wait() == 0);
  INFO(job.err());
  CHECK(lines_of(job.out()) == Words{"node1", "node1", "node2"});
  // Without special handling srun would wait for the end of the step that it is started in.
  HostJob by_srun({"--launcher", "srun", "--no-tag-output", "-np", "2", "hostname"}, settings);
  CHECK(by_srun.wait() == 0);
  INFO(by_srun.err());
  CHECK(lines_of(by_srun.out()) == Words{"node1", "node1"});
}

TEST_CASE("ranks that ssh starts in a job have no variables of the job's tasks", "[slurm]") {
  HostJob job({"--launcher", "ssh", "-np", "1", "-H", "node1", "sh", "-c",
               "env | sed -n 's/^\\(SLURM_[^=]*\\)=.*/\\1/p'"},
              in_salloc({"-N", "2", "-n", "3", "-w", "node[1-2]"}));
  CHECK(job.wait() == 0);
  INFO(job.err());
  CHECK_THAT(job.out(), Contains("SLURM_JOB_ID\n"));
  for (const char* name :
       {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_PROCID", "SLURM_TASKS_PER_NODE", "SLURM_STEP"})
    CHECK_THAT(job.out(), !Contains(name));
}

TEST_CASE("with --launcher srun ranks are bound by ddlrun's plan, and srun's exit code is returned",
          "[slurm]") {
  const Words two_nodes = {"-N", "2", "--ntasks-per-node", "2", "-w", "node[1-2]"};
  const SharedScratch scratch;
  const e2e::Fifo printed(scratch, "printed");
  REQUIRE(::chmod(printed.path().c_str(), 0666) == 0);
  // The failure of one ends the others, which must have printed by then, and end by themselves. --oversubscribe for
  // machines with one core.
  HostJob job({"--launcher", "srun", "--no-tag-output", "--bind-to", "core", "--oversubscribe", "-x", "A=b c",
               "sh", "-c",
               "trap '' TERM; echo $SLURM_PROCID $(hostname) $A $SLURM_CPU_BIND; "
               "[ $SLURM_PROCID = 3 ] || { echo >> " +
                   printed.path() +
                   "; exit 0; }; "
                   "for rank in 0 1 2; do read -r line < " +
                   printed.path() + "; done; exit 7"},
              in_salloc(two_nodes));
  CHECK(job.wait() == 7);
  INFO(job.err());
  const auto lines = lines_of(job.out());
  REQUIRE(lines.size() == 4);
  CHECK_THAT(lines[0], Catch::StartsWith("0 node1 b c quiet,mask_cpu:"));
  CHECK_THAT(lines[3], Catch::StartsWith("3 node2 b c quiet,mask_cpu:"));

  HostJob dry({"--launcher", "srun", "--dry-run", "--probe", "./train", "a b"}, in_salloc(two_nodes));
  CHECK(dry.wait() == 0);
  CHECK_THAT(dry.out(), Catch::StartsWith("srun --mpi=pmix --nodes=2 --nodelist=node1,node2 --ntasks=4 ") &&
                            Contains(" --cpus-per-task=1 ") && Contains(" ./train 'a b'\n"));

  HostJob uneven({"--launcher", "srun", "hostname"}, in_salloc({"-N", "2", "-n", "3", "-w", "node[1-2]"}));
  CHECK(uneven.wait() == contract::kUsageError);
  CHECK_THAT(uneven.err(), Contains("srun places the same number of ranks on each node"));
}

TEST_CASE("ranks have the variables of their site by agents and with --launcher srun", "[slurm]") {
  const Words print = {"--site",
                       "frontier",
                       "--no-tag-output",
                       "--bind-to",
                       "none",
                       "sh",
                       "-c",
                       "echo $NCCL_NET $MIOPEN_USER_DB_PATH is of job $SLURM_JOB_ID"};
  const auto lines = [&](const std::string& launcher, const Words& options) {
    Words words = {"--launcher", launcher};
    words.insert(words.end(), print.begin(), print.end());
    HostJob job(words, in_salloc(options));
    CHECK(job.wait() == 0);
    INFO(job.err());
    return lines_of(job.out());
  };
  for (const char* launcher : {"auto", "srun"}) {
    CAPTURE(launcher);
    const auto ranks = lines(launcher, {"-N", "2", "--ntasks-per-node", "1", "-w", "node[1-2]"});
    REQUIRE(ranks.size() == 2);
    for (const std::string& rank : ranks) {
      const std::string number = rank.substr(rank.rfind(' ') + 1);
      CHECK_THAT(rank, Catch::StartsWith("OFI /tmp/") && Contains("-miopen-cache-" + number + " is of job"));
    }
    CHECK_THAT(lines(launcher, {"-N", "1", "-n", "1", "-w", "node1"}).at(0), Catch::StartsWith("Socket "));
  }
}

TEST_CASE("a libddl program computes the same bits with every launcher", "[slurm]") {
  const Words program = {DDL_CLUSTER_EXAMPLE, "--epochs", "40"};
  const auto fitted = [&](const Words& launcher, const Words& options = {}) {
    Words words = {"salloc", "-Q", "-N", "2", "--ntasks-per-node", "2", "-w", "node[1-2]"};
    words.insert(words.end(), launcher.begin(), launcher.end());
    words.insert(words.end(), program.begin(), program.end());
    words.insert(words.end(), options.begin(), options.end());
    std::string out = output_as_login(words);
    CHECK_THAT(out, Contains("rmse"));
    return out;
  };
  const std::string ours = fitted({e2e::ddlrun({}).argv.front(), "--no-tag-output"});
  CHECK(fitted({"srun", "--mpi=pmix"}) == ours);
  // Named tensors have the bits of ordered collectives.
  CHECK(fitted({"srun", "--mpi=pmi2"}, {"--async"}) == ours);
  CHECK(fitted({e2e::ddlrun({}).argv.front(), "--launcher", "srun", "--no-tag-output"}) == ours);
#ifdef DDL_CLUSTER_OPEN_MPI
  CHECK(fitted({"env", "TMPDIR=/tmp", "mpirun", "--mca", "btl", "tcp,self"}) == ours);
#endif
}

TEST_CASE("ddl_abort ends a step that srun has started, with PMIx and with PMI", "[slurm]") {
  for (const std::string mpi : {"pmix", "pmi2"}) {
    CAPTURE(mpi);
    const std::string output =
        output_as_login({"sh", "-c",
                         "exec 2>&1; salloc -Q -N 2 -n 4 -w 'node[1-2]' srun --mpi=" + mpi + " " +
                             e2e::program("ddl_program") + " abort; echo ended with $?"});
    CHECK_THAT(output, Contains("libddl: rank 3 on node2 (pid ") &&
                           Contains(") aborted the job with code 42: the loss is not a number\n") &&
                           !Contains("ended with 0"));
  }
}

#ifdef DDL_CLUSTER_OPENMPI_MODULE
TEST_CASE("collectives by Open MPI conform under srun and under ddlrun", "[slurm]") {
  const std::string conforms = "conforms: rank 3 of 4 by pmix, over Open MPI";
  const Words salloc = {"salloc", "-Q", "-N", "2", "-n", "4", "-w", "node[1-2]", "env",
                        "DDL_CPU_OPERATIONS=mpi", "DDL_MPI=openmpi",
                        // Where ranks share a CPU, one that waits must give it away.
                        "OMPI_MCA_mpi_yield_when_idle=1"};
  for (const Words& launcher : {Words{"srun", "--mpi=pmix"}, Words{e2e::ddlrun({}).argv.front()}}) {
    Words words = salloc;
    words.insert(words.end(), launcher.begin(), launcher.end());
    words.emplace_back(DDL_CLUSTER_CONFORMANCE);
    // The ranks spin while they wait for each other: beside other work it takes ten times as long as alone.
    CHECK_THAT(output_as_login(words, std::chrono::minutes(4)), Contains(conforms));
  }
}
#endif

#ifdef DDL_CLUSTER_MPICH_MODULE
TEST_CASE("collectives by MPICH conform under srun", "[slurm]") {
  // On one node: between nodes UCX hangs, also in programs without libddl.
  CHECK_THAT(output_as_login({"salloc", "-Q", "-N", "1", "-n", "2", "env", "DDL_CPU_OPERATIONS=mpi",
                              "DDL_MPI=mpich", "srun", "--mpi=pmi2", DDL_CLUSTER_CONFORMANCE}),
             Contains("conforms: rank 1 of 2 by mpi, over MPICH"));
}
#endif

TEST_CASE("--check-build finds Slurm and its features, here and on the nodes of a job", "[slurm]") {
  const std::string ddlrun = e2e::ddlrun({}).argv.front();
  for (const std::string capability : {"slurm", "srun", "sbatch", "slurm-probe"}) {
    CAPTURE(capability);
    CHECK_THAT(output_as_login({ddlrun, "--check-build=" + capability}),
               Contains("built yes, works here yes"));
  }
  HostJob job({"--check-build=srun"}, in_salloc({"-N", "2", "-w", "node[1-2]"}));
  CHECK(job.wait() == 0);
  CHECK_THAT(job.out(),
             Contains("node1: Slurm, ranks by srun: built yes") && Contains("pmix") && Contains("node2: "));
}

TEST_CASE("mpirun started by ddlrun gets its nodes from Slurm", "[slurm]") {
  for (const std::string& mpirun : installed_mpiruns()) {
    CAPTURE(mpirun);
    // Open MPI's daemons leave files in /tmp when their step ends; the test ignores them.
    const std::string out =
        output_as_login({"env", "TMPDIR=/tmp", "salloc", "-Q", "-N", "2", "--ntasks-per-node", "2", "-w",
                         "node[1-2]", e2e::ddlrun({}).argv.front(), "--mpi", "--mpirun", mpirun, "sh", "-c",
                         "echo $RANK of $WORLD_SIZE on $(hostname) by $MASTER_ADDR; "
                         "echo \"task <$SLURM_PROCID$SLURM_LOCALID$SLURM_NTASKS$SLURM_STEP_NUM_TASKS>\""});
    for (const std::string rank : {"0", "1", "2", "3"})
      CHECK_THAT(out, Contains(rank + " of 4 on node" + (rank < "2" ? "1" : "2") + " by node1\n"));
    // Each daemon of mpirun is a task of a step; its ranks must not inherit the numbers of this task.
    const std::vector<std::string> lines = lines_of(out);
    CHECK(std::count_if(lines.begin(), lines.end(),
                        [](const std::string& line) { return line.ends_with("task <>"); }) == 4);
  }
}

#ifdef DDL_CLUSTER_OPEN_MPI
TEST_CASE("a second ddlrun in a job warns also if the first one's or its own ranks are mpirun's", "[slurm]") {
  const std::string ddlrun = e2e::ddlrun({}).argv.front();
  for (const auto& [first, second] : {std::pair<std::string, std::string>{"", " --mpi"}, {" --mpi", ""}}) {
    CAPTURE(first, second);
    const JobFolder folder;
    const std::string script =
        folder.write("two.sh", "set -e\nmkfifo begun done\n" + ddlrun + first +
                                   " -np 1 sh -c 'echo > begun; read _ < done' &\nread _ < begun\n" + ddlrun +
                                   second + " -np 1 echo second 2>&1\necho > done\nwait\n" + ddlrun + second +
                                   " -np 1 echo third 2>&1\n");
    const std::string out = folder.checked_output(
        {"env", "TMPDIR=/tmp", "salloc", "-Q", "-N", "1", "-n", "1", "-w", "node1", "sh", script});
    CHECK_THAT(out, Contains("ddlrun: warning: another ddlrun (process ") &&
                        Contains(", seen on node1) runs in Slurm job ") && Contains("second\n") &&
                        Catch::EndsWith("third\n"));
    CHECK(out.find("warning") == out.rfind("warning"));
  }
}

TEST_CASE("two ddlruns whose mpiruns have different nodes of a job do not warn", "[slurm]") {
  const std::string ddlrun = e2e::ddlrun({}).argv.front() + " --mpi -H ";
  const JobFolder folder;
  const std::string script = folder.write(
      "two.sh", "set -e\nmkfifo begun done\n" + ddlrun +
                    "node1:1 -np 1 sh -c 'echo > begun; read _ < done' &\n" + "read _ < begun\n" + ddlrun +
                    "node2:1 -np 1 hostname 2>&1\necho > done\nwait\n");
  CHECK(folder.checked_output({"env", "TMPDIR=/tmp", "salloc", "-Q", "-N", "2", "--ntasks-per-node", "1",
                               "-w", "node[1-2]", "sh", script}) == "node2\n");
}
#endif

TEST_CASE("a job that scancel ends while mpirun runs its ranks exits with 143", "[slurm]") {
  bool is_refused = false;
  for (const std::string& mpirun : installed_mpiruns()) {
    CAPTURE(mpirun);
    const JobFolder folder;
    const std::string script = folder.write(
        "cancelled.sh", "mkfifo begun\n{ read job < begun; scancel $job; } &\n" +
                            e2e::ddlrun({}).argv.front() + " --mpi --mpirun " + mpirun +
                            " sh -c '[ $RANK != 3 ] || echo $SLURM_JOB_ID > begun; exec sleep 1000' 2>&1\n" +
                            "echo ended with $?\n");
    const auto result = folder.run({"env", "TMPDIR=/tmp", "salloc", "-Q", "-N", "2", "--ntasks-per-node", "2",
                                    "-w", "node[1-2]", "sh", script});
    // Debian 13's PRRTE does not understand what Debian's srun says of its version, and starts nothing in a job.
    if (Contains("The Slurm process starter requires a minimum Slurm version").match(result.out)) {
      is_refused = true;
      continue;
    }
    CHECK_THAT(result.out, Contains("ddlrun: ended by SIGTERM after ") && Contains("Slurm has ended job ") &&
                               Contains("ended with 143\n"));
  }
  if (is_refused) DDL_SKIP("an mpirun here does not understand this Slurm's version");
}

TEST_CASE("lists of nodes are expanded as Slurm expands them", "[slurm]") {
  for (const std::string list : {"node[1-4]", "n[08-11,3]", "a[1-2]b[3-4]", "login,gpu[001-003],x7"}) {
    std::vector<std::string> wanted;
    const std::string expanded = output_as_login({"scontrol", "show", "hostnames", list});
    for (const std::string_view name : split(trim(expanded), '\n')) wanted.emplace_back(name);
    const auto names = launcher::parse_host_names(list);
    REQUIRE(names);
    CHECK(*names == wanted);
  }
}

// Every srun once got freed memory as its environment, which worked if srun did not need a variable.
TEST_CASE("a job runs if only SLURM_CONF names the configuration of Slurm", "[slurm]") {
  // On this host an empty file is mounted over the usual one; the nodes still have theirs.
  struct Elsewhere {
    Elsewhere() {
      std::filesystem::copy_file(usual, here, std::filesystem::copy_options::overwrite_existing);
      REQUIRE(::mount("/dev/null", usual, nullptr, MS_BIND, nullptr) == 0);
    }
    ~Elsewhere() { ::umount(usual); }
    const char* const usual = "/etc/slurm/slurm.conf";
    const std::string here = "/etc/slurm/elsewhere.conf";
  } const elsewhere;
  e2e::Command settings = in_salloc({"-N", "2", "--ntasks-per-node", "1", "-w", "node[1-2]"});
  settings.argv.insert(settings.argv.begin(), {"env", "SLURM_CONF=" + elsewhere.here});
  for (const std::string launcher : {"auto", "srun"}) {
    HostJob job({"--launcher", launcher, "--no-tag-output", "hostname"}, settings);
    CHECK(job.wait() == 0);
    INFO(job.err());
    CHECK(lines_of(job.out()) == Words{"node1", "node2"});
  }
}

}  // namespace ddl::cluster
