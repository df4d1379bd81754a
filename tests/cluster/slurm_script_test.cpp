// ddlrun --slurm on a real Slurm: its scripts are submitted and run.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/deadline.h"
#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/job_folder.h"
#include "contract/ddlrun.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

int lines_with(const std::string& text, const std::string& part) {
  const auto lines = split(text, '\n');
  return static_cast<int>(std::count_if(lines.begin(), lines.end(), [&](std::string_view line) {
    return line.find(part) != std::string_view::npos;
  }));
}

const Words kPrintPosition = {
    "sh", "-c", "echo \"rank $SLURM_PROCID of $SLURM_NTASKS on $(hostname) ${SLURM_CPU_BIND:-}\""};

/// A rank that waits for USR2, then saves and exits with the code for a requeue; or ends, if it was restarted. It has
/// no children, which the signal would end.
std::string write_trainer(const JobFolder& folder) {
  folder.checked_output({"mkfifo", "never"});
  std::string script = folder.write("train.sh", R"sh(#!/bin/bash
exec 3<>never
save() {
  echo "got USR2"
  if [ "$SLURM_PROCID" = 0 ]; then echo 7 >checkpoint; fi
  until [ -e checkpoint ]; do read -rt 0.01 -u 3; done
  exit 85
}
trap save USR2
echo "begins with restart ${SLURM_RESTART_COUNT:-0} and checkpoint $(cat checkpoint 2>/dev/null)"
[ ! -e checkpoint ] || exit 0
read -rt 100 -u 3
)sh");
  REQUIRE(::chmod(script.c_str(), 0755) == 0);
  return script;
}

}  // namespace

TEST_CASE("the scripts for sites run on a cluster with the requested resources", "[slurm_script]") {
  const std::string kLumi = "mask_cpu:fe000000000000,fe00000000000000,fe0000,fe000000";
  struct Site {
    std::string name;
    Words options;
    std::string cpu_bind;  // of srun
    std::string partition = "gpu";
  };
  const std::vector<Site> sites = {
      {"brown-oscar", {}, "cores"},
      {"frontier", {}, "mask_cpu:fe,fe00,fe0000,fe000000"},
      {"generic-cpu", {}, "cores"},
      {"generic-gpu", {"--gpu-vendor", "amd"}, "cores"},
      {"juwels-booster", {}, "mask_cpu:fc0000,fc0,fc0000000000,fc0000000", "booster"},
      {"lumi-g", {"--exclusive"}, kLumi, "standard-g"},
      {"nris-saga", {"--mem-per-cpu", "100M"}, "cores", "accel"},
      {"perlmutter-gpu", {}, "mask_cpu:ffff000000000000,ffff00000000,ffff0000,ffff"},
      {"zih-alpha", {}, "cores"},
      {"zih-power9", {}, "cores"},
  };
  const JobFolder folder;
  for (const std::string launcher : {"ddlrun", "srun"}) {
    Words jobs;
    for (const Site& site : sites) {
      Words options = {"--site",       site.name, "--account", "p",       "--partition",
                       site.partition, "-np",     "8",         "--nodes", "2"};
      options.insert(options.end(), site.options.begin(), site.options.end());
      // Slurm 22.05 does not have --gpu-bind=map:, and this cluster does not have the site's MPI types.
      Words by_srun = {"--launcher", "srun", "--mpi-type", "none"};
      if (site.name != "generic-cpu") by_srun.insert(by_srun.end(), {"--gpu-choice", "visible-devices"});
      // The machine of this cluster has fewer cores than the site's nodes, for which the script is planned.
      const Words by_ddlrun = {"--oversubscribe"};
      const Words& more = launcher == "srun" ? by_srun : by_ddlrun;
      options.insert(options.end(), more.begin(), more.end());
      jobs.push_back(folder.submit(site.name + "." + launcher, options, kPrintPosition));
    }
    folder.await(jobs);
  }
  for (const Site& site : sites) {
    for (const std::string launcher : {"ddlrun", "srun"}) {
      const std::string out = folder.output(site.name + "." + launcher);
      INFO(site.name << ", " << launcher << ":\n" << out);
      for (int rank = 0; rank < 8; ++rank) {
        const std::string node = rank < 4 ? "node3" : "node4";
        CHECK(lines_with(out, "rank " + std::to_string(rank) + " of 8 on " + node) == 1);
      }
      if (launcher == "srun") CHECK(lines_with(out, site.cpu_bind) == 8);
    }
  }
}

TEST_CASE("members of an ensemble get their task and rank numbers", "[slurm_script]") {
  const JobFolder folder;
  const std::string job = folder.submit("member-%a", {"-np", "2", "--array", "1-2"},
                                        {"sh", "-c", "echo member $SLURM_ARRAY_TASK_ID rank $SLURM_PROCID"});
  folder.await({job});
  for (const std::string member : {"1", "2"}) {
    const std::string out = folder.output("member-" + member);
    INFO(out);
    for (const std::string rank : {"0", "1"})
      CHECK(lines_with(out, "member " + member + " rank " + rank) == 1);
  }
}

TEST_CASE(
    "lines of a script run before, beside and after the ranks, also if these fail, and see its variables",
    "[slurm_script]") {
  const JobFolder folder;
  // \$ is for the shell of the rank, and the array's variable for that of the script.
  const Words say_task = {"sh", "-c", "echo \"task \\$0 of rank \\$SLURM_PROCID\"; exit 7",
                          "$SLURM_ARRAY_TASK_ID"};
  const std::string failing =
      folder.submit("logs/failing-%a",
                    {"-n", "1", "-a", "1-2", "--expand", "--after", "echo \"ended with $status\"", "--after",
                     "false", "--after", "echo still after"},
                    say_task);
  const std::string around =
      folder.submit("around",
                    {"--nodes", "1-2", "--ranks-per-node", "2", "--setup", "sleep 1000 & server=$!",
                     "--setup", "trap 'kill $server && echo served' EXIT", "--after", "false"},
                    {"sh", "-c", "echo \"rank $SLURM_PROCID of $SLURM_NTASKS\""});
  const std::string told = folder.submit(
      "told",
      {"-n", "4", "-N", "2", "--launcher", "srun", "--mpi-type", "none", "--framework", "torch",
       "--srun-option=--label", "--srun-option=--kill-on-bad-exit=1"},
      {"sh", "-c",
       "echo \"$RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE, $MASTER_ADDR is $(hostname)\""});
  folder.await({failing, around, told});
  for (const std::string member : {"1", "2"}) {
    const std::string out = folder.output("logs/failing-" + member);
    INFO(out);
    CHECK(lines_with(out, "task " + member + " of rank 0") == 1);
    CHECK(lines_with(out, "ended with 7") == 1);
    CHECK(lines_with(out, "still after") == 1);
    CHECK_THAT(folder.checked_output({"scontrol", "show", "job", failing + "_" + member}),
               Contains("ExitCode=7:0"));
  }
  INFO(folder.output("around"));
  const int ranks = lines_with(folder.output("around"), " of 4") == 4 ? 4 : 2;
  CHECK(lines_with(folder.output("around"), " of " + std::to_string(ranks)) == ranks);
  CHECK(lines_with(folder.output("around"), "served") == 1);
  CHECK_THAT(folder.checked_output({"scontrol", "show", "job", around}), Contains("ExitCode=1:0"));
  INFO(folder.output("told"));
  for (const std::string rank : {"0", "1", "2", "3"}) {
    const std::string local = rank == "0" || rank == "2" ? "0" : "1";
    CHECK(lines_with(folder.output("told"), rank + ": " + rank + " of 4, " + local + " of 2, node") == 1);
  }
}

TEST_CASE("a cancelled job still runs what is to run after its ranks", "[slurm_script]") {
  const JobFolder folder;
  folder.checked_output({"mkfifo", "never"});
  const std::string job =
      folder.submit("out", {"-np", "2", "-N", "2", "--after", "echo \"ended with $status\""},
                    {"bash", "-c", "exec 3<>never; echo begins; read -rt 100 -u 3"});
  folder.await_lines("out", "begins", 2);
  folder.checked_output({"scancel", job});
  folder.await({job});
  INFO(folder.output("out"));
  CHECK(lines_with(folder.output("out"), "ended with 143") == 1);
}

#ifdef DDL_CLUSTER_OPEN_MPI
TEST_CASE("a script has the site's mpirun start the ranks", "[slurm_script]") {
  const JobFolder folder;
  const std::string job = folder.submit(
      "out", {"-np", "2", "-N", "2", "--launcher", "mpirun", "--mpi-args", "--mca btl tcp,self"},
      {"sh", "-c", "echo \"rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)\""});
  folder.await({job});
  INFO(folder.output("out"));
  CHECK(lines_with(folder.output("out"), "rank 0 of 2 on node") == 1);
  CHECK(lines_with(folder.output("out"), "rank 1 of 2 on node") == 1);
}
#endif

TEST_CASE("the warning signal reaches every rank, and the requeued job continues from its checkpoint",
          "[slurm_script]") {
  const JobFolder folder;
  const std::string trainer = write_trainer(folder);
  const std::string job = folder.submit(
      "out", {"-np", "4", "--nodes", "2", "--signal", "USR2@120", "--requeue-on", "85"}, {trainer});
  folder.await_lines("out", "begins", 4);
  // As Slurm does before the time limit: the signal goes to every process of the steps, but not to the script.
  folder.checked_output({"scancel", "--signal=USR2", job});
  folder.await_second_run(job);
  const std::string out = folder.output("out");
  INFO(out);
  CHECK(lines_with(out, "begins with restart 0 and checkpoint") == 4);
  CHECK(lines_with(out, "got USR2") >= 1);
  CHECK(lines_with(out, "begins with restart 1 and checkpoint 7") == 4);
}

TEST_CASE(
    "an elastic job that Slurm warns saves its state, and goes on from it in its next run; scancel ends it",
    "[slurm_script]") {
  const JobFolder folder;
  const std::string fit = std::filesystem::path(e2e::ddlrun({}).argv.front()).parent_path() / "elastic_fit";
  const auto submit = [&](const std::string& output, const std::string& steps) {
    return folder.submit(output,
                         {"-np", "2", "--nodes", "2", "--elastic", "continue", "--state-dir",
                          folder.path("state"), "--requeue-on", std::to_string(contract::kDrained)},
                         {"sh", "-c", "exec " + fit + " " + steps});
  };
  const std::string job = submit("out", "$((SLURM_RESTART_COUNT ? 10 : 100000000))");
  folder.await_lines("out", "process.*from.step.0$", 2);
  // As Slurm does before the time limit.
  folder.checked_output({"scancel", "--batch", "--signal=USR1", job});
  folder.await_second_run(job);
  INFO(folder.output("out"));
  CHECK(lines_with(folder.output("out"), "goes on from step 0") == 2);
  CHECK(lines_with(folder.output("out"), " steps the loss is ") == 1);
  const std::string cancelled = submit("cancelled", "100000000");
  folder.await_lines("cancelled", "process.*from.step.0$", 2);
  folder.checked_output({"scancel", cancelled});
  folder.await({cancelled});
  INFO(folder.output("cancelled"));
  CHECK_THAT(folder.checked_output({"scontrol", "show", "job", cancelled}), Contains("JobState=CANCELLED"));
  CHECK(folder.checked_output({"ls", "state"}) == "ddl-state.bin\n");
}

TEST_CASE("a warning signal to the script is forwarded to every rank once", "[slurm_script]") {
  const JobFolder folder;
  const std::string trainer = write_trainer(folder);
  const std::string job = folder.submit("out", {"-np", "4", "--nodes", "2", "--kill-grace", "30"},
                                        {"bash", "-c", "trap '' TERM; . " + trainer});
  folder.await_lines("out", "begins", 4);
  folder.checked_output({"scancel", "--batch", "--signal=USR2", job});
  folder.await({job});
  const std::string out = folder.output("out");
  INFO(out);
  CHECK(lines_with(out, "got USR2") == 4);
}

TEST_CASE("a job that is requeued ends completely, and runs again", "[slurm_script]") {
  const JobFolder folder;
  const std::string trainer = write_trainer(folder);
  const std::string job = folder.submit("out", {"-np", "4", "--nodes", "2", "--requeue"}, {trainer});
  folder.await_lines("out", "begins", 4);
  folder.checked_output({"bash", "-c", "echo 8 >checkpoint; scontrol requeue " + job});
  folder.await_second_run(job);
  const std::string out = folder.output("out");
  INFO(out);
  CHECK(lines_with(out, "begins with restart 1 and checkpoint 8") == 4);
}

TEST_CASE("missing resources of the cluster are reported before submission", "[slurm_script]") {
  const JobFolder folder;
  const std::vector<std::pair<Words, std::string>> kRefused = {
      {{"--partition", "gpuu"}, "[no-such-partition] cluster ddl has no partition gpuu; did you mean gpu?"},
      {{"--partition", "gpu", "--nodes", "2", "--gpus-per-node", "9"}, "[no-node-with-so-many-gpus]"},
      {{"--partition", "gpu", "--nodes", "3"}, "[too-many-nodes]"},
      {{"--partition", "gpu", "--time", "2-0"}, "[above-the-time-limit]"},
  };
  for (const auto& [options, message] : kRefused) {
    Words words = {e2e::ddlrun({}).argv.front(), "--slurm", "-np", "3", "--submit"};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("hostname");
    const auto refused = folder.run(words);
    INFO(refused.err);
    CHECK(refused.status == contract::kUsageError);
    CHECK_THAT(refused.err, Contains("error: ") && Contains(message));
    CHECK(refused.out.empty());
  }
  // Jobs of other tests may still be completing.
  CHECK(folder.checked_output({"squeue", "--noheader", "--states=pending,running"}).empty());
  // Without --submit it is a warning: the script may be for another cluster.
  const auto print = [&] {
    return folder.slurm({"-np", "2", "--partition", "gpuu", "--verbose"}, {"hostname"});
  };
  auto printed = print();
  // It waits for a second only, which a loaded controller may need.
  const auto deadline = Deadline::after(e2e::kTestTimeout);
  while (printed.err.find("was not checked against the cluster") != std::string::npos &&
         !deadline.has_passed())
    printed = print();
  CHECK(printed.status == 0);
  CHECK_THAT(printed.err, Contains("warning: [no-such-partition]"));
}

TEST_CASE("sbatch reads values with special characters unchanged", "[slurm_script]") {
  const JobFolder folder;
  for (const std::string name : {"a long name", "it's", "say \"x\"", "a#b", "back\\slash", "a,b", "$HOME"}) {
    const std::string job =
        folder.submit("/dev/null", {"-np", "1", "--job-name", name, "--sbatch=--hold"}, {"true"});
    const std::string shown = folder.checked_output({"scontrol", "show", "job", job});
    CHECK_THAT(shown, Contains("JobName=" + name + "\n"));
    folder.checked_output({"scancel", job});
  }
}

TEST_CASE("--test-only asks Slurm for the start time, and its refusals are reported", "[slurm_script]") {
  const JobFolder folder;
  const auto asked = folder.slurm({"-np", "2", "--test-only"}, {"hostname"});
  CHECK(asked.status == 0);
  CHECK_THAT(asked.out, Contains("to start at"));
  const auto refused = folder.slurm({"-np", "2", "--constraint", "unheard-of", "--submit"}, {"hostname"});
  CHECK(refused.status == contract::kStartFailure);
  CHECK_THAT(refused.err, Contains("Invalid feature specification"));
}

}  // namespace ddl::cluster
