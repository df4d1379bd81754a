// Values of --slurm that sbatch would refuse, minutes or hours later.
#include "cli/mistakes.h"
#include "cli/options/request.h"
#include "support/catch.h"
#include "templates/cluster/slurm_values.h"

using ddl::templates::wrong_slurm_value;
using ddl::test::check_refused;
using ddl::test::Mistake;

namespace {

struct WrongValue {
  std::string option;
  std::vector<std::string> values;
  std::string message;
  std::string hint;
};

// clang-format off
const std::vector<WrongValue> kWrong = {
    {"--time", {"10w", "-5", "1:2:3:4", "", "2h30", "soon", "h"}, "is not a time limit: minutes", "2:00:00"},
    {"--mem", {"lots", "-4G", "4.5G", "4X", "4 G", "G", "64 "}, "is not a size of memory", "64G"},
    {"--mem-per-cpu", {"x", "2G/cpu"}, "is not a size of memory", "each CPU"},
    {"--mem-per-gpu", {"40Gb,"}, "is not a size of memory", "each GPU"},
    {"--nodes", {"0", "-1", "two", "1-", "1-x"}, "is not a whole number from 1 to", "number of nodes"},
    {"--nodes", {"4-1", "2-2"}, "is not a range of nodes", "number of nodes"},
    {"--gpus-per-node", {"many", "-1", "a100:", "a100:x"}, "is not a whole number from 0 to", "GPUs of each node"},
    {"--gpus-per-node", {":4", "a 100:4", "gpu:a100:4"}, "is not a number of GPUs, or a type and a number", "GPUs of each node"},
    {"--cpus-per-task", {"0", "x"}, "is not a whole number from 1", "CPUs of each rank"},
    {"--array", {"x", "5-1", "0-9%", "0-9%x", "%2", ",", "1 2", "1-3 ", "-1", "1-", "0-9:", "0:9-1"}, "is not a list of tasks", "0-9%4"},
    {"--dependency", {"afterok", "afterok:", "afterwards:4", "afterok:abc", "afterok:4,", "after ok:4", "afterok:4;5"},
     "is not a condition of Slurm", "afterok:4711"},
    {"--signal", {"USR9@10", "USR2@", "USR2@soon", "@60", ":USR2", "X:USR2@60"}, "is not a signal and a time", "USR2@120"},
    {"--mail-type", {"ENDS", "END FAIL", "end,x", "end;fail"}, "is not a list of events", "END,FAIL"},
    {"--partition", {"gpu long"}, "has a blank", "partition"},
    {"--account", {"my project"}, "-A/--account: 'my project' has a blank", "project"},
    {"--qos", {"high prio"}, "has a blank", "quality of service"},
    {"--requeue-on", {"0", "256", "x"}, "is not a whole number from 1 to 255", "exit code"},
    {"--sbatch", {"licenses=x", "--a\nb"}, "--sbatch: ", "repeatable"},
    {"--container-runtime", {"docker"}, "is not one of apptainer, singularity, pyxis", "NAME"},
    {"--gpu-vendor", {"intell"}, "is not one of nvidia, amd, intel", "site"},
    {"--constraint", {"", "a\nb"}, "--constraint: its value", "features"},
};
// clang-format on

}  // namespace

TEST_CASE("--slurm refuses a value that sbatch would refuse, and names its option") {
  for (const WrongValue& one : kWrong) {
    for (const std::string& value : one.values)
      check_refused({Mistake{{"--slurm", "-np", "2", one.option + "=" + value, "a"}, one.message, one.hint}});
  }
  check_refused({
      {{"--slurm", "-np", "2", "--force", "a"}, "--force belongs to -o", "-o FILE"},
      {{"--slurm", "-np", "2", "--submit", "--test-only", "a"},
       "--submit and --test-only contradict",
       "omit one"},
      {{"--slurm", "--dry-run", "-np", "2", "a"}, "--dry-run cannot be used in a job script", "omit it"},
      {{"--slurm", "-np", "2", "--signal", "B:TERM@60", "--requeue-on", "3", "a"},
       "is what scancel sends",
       "B:USR1@120"},
      {{"--slurm", "-np", "2", "--min-np", "1", "--state-dir", "/s", "--signal", "USR1@60", "a"},
       "goes to the ranks",
       "--signal B:USR1@60"},
      {{"--slurm", "-np", "2", "--mem", "4G", "--mem-per-cpu", "2G", "a"},
       "contradict each other",
       "omit one"},
      {{"--slurm", "-np", "2", "--module", "", "a"}, "--module: its value is empty", "module"},
      {{"--slurm", "-o", "%j.out", "-np", "2", "a"},
       "looks like that of the job's output",
       "--output %j.out"},
      {{"--slurm", "-x", "node[1-2]", "-np", "2", "a"}, "looks like names of nodes", "--exclude node[1-2]"},
      {{"--slurm", "-np", "2", "-c", "2", "--cores-per-rank", "2", "a"}, "contradict each other", "omit one"},
      {{"--slurm", "-np", "2", "--container-option=--nv", "a"}, "belongs to --container", "IMAGE"},
      {{"--slurm", "-np", "2", "--launcher", "srun", "--srun-option=label", "a"},
       "'label' is not an option",
       "srun"},
      {{"--slurm", "-np", "2", "--srun-option=--label", "a"},
       "belongs to --launcher srun",
       "omit it, or start the ranks with --launcher srun"},
      {{"-np", "2", "--srun-option=--label", "a"},
       "--srun-option belongs to --launcher srun",
       "omit it, or start the ranks with --launcher srun"},
      {{"-np", "2", "--launcher", "local", "--srun-option=--label", "a"},
       "--srun-option belongs to --launcher srun",
       "omit it, or start the ranks with --launcher srun"},
      {{"-np", "2", "--mpi-type", "pmi2", "a"},
       "--mpi-type belongs to --launcher srun",
       "omit it: ddlrun serves"},
      {{"--slurm", "-np", "2", "--launcher", "srun", "--framework", "horovod", "a"},
       "needs ddlrun's agents, and srun",
       "omit it"},
      {{"--slurm", "-np", "2", "--setup", "trap 'rm x' TERM", "a"}, "a trap for TERM", "--after LINE"},
      {{"--slurm", "-np", "2", "--setup", "trap -- foo EXIT INT", "a"}, "a trap for INT", "--after LINE"},
      {{"--slurm", "-np", "2", "--setup", "set -e; trap foo USR1", "a"}, "a trap for USR1", "--after LINE"},
      {{"--slurm", "-np", "2", "--setup", "cd x && { A=1 trap foo EXIT INT; }", "a"},
       "a trap for INT",
       "--after LINE"},
      {{"--slurm", "-np", "2", "--setup", "test -d x || command trap foo HUP", "a"},
       "a trap for HUP",
       "--after LINE"},
      {{"--cpus-per-task", "2", "-np", "2", "a"}, "belongs to --slurm", "--cores-per-rank N"},
      {{"--time", "10:00", "-np", "2", "a"}, "--time belongs to --slurm", "add --slurm"},
      {{"-np", "2", "-A", "x", "a"}, "-A/--account belongs to --slurm", "add --slurm"},
  });
}

// As sbatch of Slurm 22.05 takes them.
TEST_CASE("what sbatch takes is right") {
  for (const auto& [option, values] : std::map<std::string, std::vector<std::string>>{
           {"--mem", {"0", "4096", "64G", "64g", "64GB", "4GiB", "1T"}},
           {"--array",
            {"0", "0-9", "1,3,5", "0-9:2", "0-99%4", "1-3,7,9-11%2", "[0-3]", "[0-3%2]", "1, 2", "1,,2"}},
           {"--dependency",
            {"singleton", "4711", "afterok:4711", "afterany:1:2", "after:7+10", "aftercorr:4711_3",
             "afterok:1?afterok:2", "afterok:1,afternotok:2", "afterok:4711_*,singleton",
             "AfterOK:4711,Singleton", "afterok:1,afterany:2?singleton"}},
           {"--signal", {"USR2@120", "10", "SIGTERM", "B:USR1@60", "R:10@5", "rb:term@30"}},
           {"--mail-type",
            {"END", "end,fail", "TIME_LIMIT_90", "ALL", "ARRAY_TASKS,BEGIN", "end, fail", "END,"}},
           {"--mail-user", {"me@example.org, Ada Lovelace <ada@example.org>"}},
           {"--partition", {"gpu", "gpu,long"}},
           {"--time", {"anything: its rule is elsewhere"}}}) {
    for (const std::string& value : values) {
      INFO(option << "=" << value);
      CHECK(wrong_slurm_value(option, value).empty());
    }
  }
}

TEST_CASE("variables that describe no Slurm job are named") {
  const auto in = [](std::map<std::string, std::string> variables, const std::string& message) {
    variables.emplace("SLURM_JOB_ID", "7");
    check_refused({{{"-np", "1", "x"}, message, "to ignore Slurm: --launcher local"}},
                  {{}, std::move(variables)});
  };
  in({}, "SLURM_JOB_ID=7 means that this is inside a Slurm job, but SLURM_JOB_NODELIST");
  in({{"SLURM_JOB_NODELIST", ""}}, "the list of its nodes, is not set");
  in({{"SLURM_JOB_NODELIST", "n[1"}}, "SLURM_JOB_NODELIST: \"n[1\": the brackets do not match");
  in({{"SLURM_JOB_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "x"}},
     "SLURM_TASKS_PER_NODE: \"x\" is not a list");
  in({{"SLURM_JOB_NODELIST", "n1"}, {"SLURM_JOB_CPUS_PER_NODE", "abc"}}, "SLURM_JOB_CPUS_PER_NODE: \"abc\"");
}
