// ddlrun --slurm: the scripts that it writes.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <nlohmann/json.hpp>

#include "base/command.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/program_run.h"
#include "contract/ddlrun.h"
#include "contract/version.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "templates/scontrol_recording.h"

using Catch::Matchers::Contains;
using ddl::test::ProgramRun;
using ddl::test::ProgramSetup;
using ddl::test::run_program;
using ddl::test::TemporaryDirectory;
using Words = std::vector<std::string>;

namespace {

ProgramRun slurm(Words words, const std::string& directory = "") {
  ProgramSetup setup;
  setup.argv = {DDLRUN_PATH, "--slurm"};
  setup.argv.insert(setup.argv.end(), words.begin(), words.end());
  setup.environment = {"HOME=/nonexistent", "XDG_CONFIG_HOME="};
  setup.directory = directory;
  return run_program(setup);
}

ProgramRun run_here(Words argv, const std::string& directory = "") {
  ProgramSetup setup;
  setup.argv = std::move(argv);
  setup.directory = directory;
  return run_program(setup);
}

std::string script(Words words) {
  const ProgramRun written = slurm(std::move(words));
  INFO(written.err);
  REQUIRE(written.exit_code == 0);
  return written.out;
}

struct Golden {
  std::string name;
  Words words;
};

/// What people write job scripts for. Each is one line of ddlrun.
std::vector<Golden> requests() {
  return {
      {"request-ddp-nodes",
       {"-N",
        "4",
        "--gpus-per-node",
        "a100:4",
        "-p",
        "gpu",
        "-A",
        "project",
        "-t",
        "12h",
        "--mem",
        "0",
        "--exclusive",
        "--before-modules",
        "module purge",
        "--module",
        "CUDA/12.4",
        "--venv",
        "/project/venv",
        "-x",
        "NCCL_DEBUG=WARN",
        "--remote-path",
        "ddlrun",
        "--ranks-per-node",
        "4",
        "--",
        "python",
        "train.py",
        "--epochs",
        "90"}},
      {"request-ddp-srun",
       {"-N",
        "2",
        "--ranks-per-node",
        "4",
        "--gpus-per-node",
        "4",
        "--gpu-vendor",
        "nvidia",
        "-c",
        "12",
        "-t",
        "2h",
        "--launcher",
        "srun",
        "--framework",
        "torch",
        "--srun-option=--kill-on-bad-exit=1",
        "--srun-option=--wait=60",
        "--srun-option=--label",
        "--",
        "python",
        "train.py"}},
      {"request-torchrun-on-each-node",
       {"-N",
        "2",
        "--ranks-per-node",
        "1",
        "--site",
        "perlmutter-gpu",
        "-A",
        "m1234_g",
        "-t",
        "30",
        "--remote-path",
        "ddlrun",
        "--expand",
        "--",
        "torchrun",
        "--nnodes",
        "2",
        "--nproc-per-node",
        "4",
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        "$MASTER_ADDR:$MASTER_PORT",
        "train.py"}},
      {"request-torchrun-on-one-node",
       {"-N", "1", "--ranks-per-node", "1", "--site", "lumi-g", "-A", "project_465", "-t", "30",
        "--remote-path", "ddlrun", "--", "torchrun", "--standalone", "--nproc-per-node", "8", "train.py"}},
      {"request-deepspeed",
       {"-N",
        "2",
        "--gpus-per-node",
        "8",
        "--ranks-per-node",
        "8",
        "-q",
        "long",
        "-t",
        "1d",
        "--framework",
        "deepspeed",
        "--conda",
        "deepspeed",
        "--remote-path",
        "ddlrun",
        "--",
        "python",
        "train.py",
        "--deepspeed",
        "--deepspeed_config",
        "zero3.json"}},
      {"request-accelerate-container",
       {"-N",
        "1",
        "-np",
        "4",
        "--gpus-per-node",
        "4",
        "--gpu-vendor",
        "amd",
        "--container",
        "pytorch.sif",
        "--container-bind",
        "/scratch",
        "--container-option=--cleanenv",
        "--container-option=--env=HF_HOME=/scratch/hf",
        "--conda",
        "/opt/conda/envs/hf",
        "--remote-path",
        "ddlrun",
        "--",
        "python",
        "finetune.py"}},
      {"request-horovod",
       {"-np", "16", "-N", "4", "--gpus-per-node", "4", "-t", "08:00:00", "-C", "v100", "--framework",
        "horovod", "--module", "Horovod/0.28.1", "--remote-path", "ddlrun", "--", "python",
        "keras_train.py"}},
      {"request-jax",
       {"-N", "8", "--ranks-per-node", "1", "--gpus-per-node", "h100:8", "-c", "96", "--exclusive", "-t",
        "4:00:00", "--launcher", "srun", "--framework", "jax", "--", "python", "train_jax.py"}},
      {"request-pyxis",
       {"-N",
        "2",
        "--ranks-per-node",
        "8",
        "--gpus-per-node",
        "8",
        "--launcher",
        "srun",
        "--framework",
        "torch",
        "--container-runtime",
        "pyxis",
        "--container",
        "nvcr.io#nvidia/pytorch:24.10-py3",
        "--container-bind",
        "/data:/data,/home/me/src:/src",
        "--container-option=--no-container-mount-home",
        "--",
        "python",
        "/src/train.py"}},
      {"request-container-engine",
       {"--site", "alps-gh200", "-A", "a123", "-N", "2", "-t", "1h", "--launcher", "srun", "--framework",
        "torch", "--container-runtime", "container-engine", "--container", "pytorch", "--", "python",
        "train.py"}},
      {"request-shifter",
       {"--site", "perlmutter-gpu", "-A", "m1234_g", "-N", "2", "-t", "1h", "--container-runtime", "shifter",
        "--container", "docker:me/train:1", "--container-bind", "/pscratch/me:/data", "--remote-path",
        "ddlrun", "--", "python", "train.py"}},
      {"request-podman-hpc",
       {"--site", "perlmutter-gpu", "-A", "m1234_g", "-N", "2", "-t", "1h", "--container-runtime",
        "podman-hpc", "--container", "me/train:1", "--container-bind", "/pscratch/me:/data", "--remote-path",
        "ddlrun", "--", "python", "train.py"}},
      {"request-array",
       {"-np",
        "4",
        "--gpus-per-node",
        "4",
        "-a",
        "0-99%8",
        "-t",
        "45m",
        "--expand",
        "--remote-path",
        "ddlrun",
        "--output-filename",
        "logs/$SLURM_ARRAY_TASK_ID",
        "--",
        "python",
        "fit.py",
        "--seed",
        "$SLURM_ARRAY_TASK_ID",
        "--cost",
        "5\\$",
        "$@"}},
      {"request-staging",
       {"-np", "64", "-N", "1", "-t", "6h", "-d", "afterok:4711", "--setup",
        "cp -r /project/input \"$TMPDIR\"", "--after", "cp -r \"$TMPDIR/output\" /project/", "--after",
        "[ \"$status\" -eq 0 ] || cp core.* /project/", "--remote-path", "ddlrun", "--", "./simulate"}},
      {"request-server-and-steps",
       {"-np",
        "8",
        "-N",
        "2",
        "-G",
        "8",
        "-w",
        "node[01-02]",
        "--setup",
        "./prepare --out input",
        "--setup",
        "redis-server --port 6380 &",
        "--setup",
        "export REDIS_URL=\"$HOSTNAME:6380\"",
        "--after",
        "[ \"$status\" -ne 0 ] || ddlrun -np 8 -- ./evaluate",
        "--remote-path",
        "ddlrun",
        "--",
        "./train"}},
      {"request-nodes-as-there-are",
       {"--nodes", "2-4", "--ranks-per-node", "48", "-c", "2", "-J", "climate", "-e", "climate.err",
        "--launcher", "srun", "--", "./climate"}},
      {"request-mpirun",
       {"-np", "32", "-N", "2", "-t", "90m", "--module", "OpenMPI/5.0.3", "--launcher", "mpirun",
        "--mpi-args", "--mca btl_tcp_if_include ib0", "--remote-path", "ddlrun", "--", "./solver",
        "input.nml"}},
  };
}

/// A script for every site, with ddlrun and with srun, one that uses all other options, and those of requests().
std::vector<Golden> goldens() {
  const Words usual = {"-np", "8", "--nodes", "2", "--time", "30:00"};
  const std::vector<std::pair<std::string, Words>> sites = {
      {"alps-gh200", {"--account", "a123"}},
      {"brown-oscar", {"--partition", "gpu"}},
      {"frontier", {"--account", "ABC123", "--module", "rccl-net-plugin"}},
      {"generic-cpu", {}},
      {"generic-gpu", {}},
      {"juwels-booster", {"--account", "budget"}},
      {"lumi-g", {"--account", "project_465000485"}},
      {"nris-olivia",
       {"--account", "NN1234K", "--mem-per-gpu", "100G", "--module",
        "NCCL/2.26.6-GCCcore-14.2.0-CUDA-12.8.0"}},
      {"nris-saga",
       {"--account", "NN1234K", "--mem-per-cpu", "8G", "--easybuild-prefix",
        "/cluster/projects/NN1234K/EasyBuild", "--module",
        "Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0"}},
      {"perlmutter-cpu", {"--account", "m1234"}},
      {"perlmutter-gpu", {"--account", "m1234_g"}},
      {"zih-alpha",
       {"--module", "release/23.04", "--module", "Horovod/0.28.1-CUDA-11.7.0-TensorFlow-2.11.0"}},
      {"zih-power9", {"--mem", "250G"}},
  };
  std::vector<Golden> all;
  for (const auto& [site, own] : sites) {
    for (const std::string launcher : {"ddlrun", "srun"}) {
      Golden one{site + "-" + launcher, {"--site", site}};
      one.words.insert(one.words.end(), usual.begin(), usual.end());
      one.words.insert(one.words.end(), own.begin(), own.end());
      if (launcher == "srun") {
        one.words.insert(one.words.end(), {"--launcher", "srun"});
      } else {
        one.words.insert(one.words.end(), {"--remote-path", "ddlrun"});
      }
      one.words.insert(one.words.end(), {"--", "python", "train.py", "--epochs", "3"});
      all.push_back(std::move(one));
    }
  }
  all.push_back({"lumi-g-whole-node",
                 {"--site", "lumi-g", "-np", "16", "--account", "project_465", "--time", "30:00",
                  "--remote-path", "ddlrun", "--", "python", "train.py"}});
  all.push_back({"lumi-g-whole-node-srun",
                 {"--site", "lumi-g", "-np", "16", "--account", "project_465", "--time", "30:00",
                  "--launcher", "srun", "--", "python", "train.py"}});
  all.push_back(
      {"lumi-g-whole-node-srun-variable",
       {"--site", "lumi-g", "-np", "16", "--account", "project_465", "--time", "30:00", "--launcher", "srun",
        "--gpu-choice", "visible-devices", "--container", "/appl/pytorch.sif", "--", "python", "train.py"}});
  // Shared nodes, and ranks whose mask does not contain all of their CPUs.
  all.push_back({"lumi-g-small-srun",
                 {"--site", "lumi-g", "-np", "4", "--account", "project_465", "--time", "30:00",
                  "--partition", "small-g", "--launcher", "srun", "--", "python", "train.py"}});
  all.push_back({"everything",
                 {"-np",
                  "4",
                  "--job-name",
                  "a long name",
                  "--account",
                  "p",
                  "--partition",
                  "q",
                  "--qos",
                  "high",
                  "--nodes",
                  "2",
                  "--gpus-per-node",
                  "2",
                  "--mem-per-gpu",
                  "32G",
                  "--time",
                  "1-12:00:00",
                  "--exclusive",
                  "--constraint",
                  "a100&nvlink",
                  "--dependency",
                  "afterok:4711",
                  "--array",
                  "0-9%4",
                  "--requeue",
                  "--signal",
                  "USR2@120",
                  "--error",
                  "%x-%j.err",
                  "--mail-user",
                  "me@example.org",
                  "--mail-type",
                  "END,FAIL",
                  "--sbatch=--licenses=matlab:1",
                  "--module",
                  "GCC/12.3.0",
                  "--easybuild-prefix",
                  "/projects/my modules",
                  "--eessi",
                  "2023.06",
                  "--conda",
                  "torch",
                  "--setup",
                  "ulimit -c 0",
                  "--container",
                  "image.sif",
                  "--gpu-vendor",
                  "nvidia",
                  "--container-bind",
                  "/scratch",
                  "--container-bind",
                  "/my data:/data",
                  "-x",
                  "LR=0.1",
                  "-x",
                  "TOKEN",
                  "--bind-to",
                  "numa",
                  "--cores-per-rank",
                  "4",
                  "--timeout",
                  "3600",
                  "--output-filename",
                  "logs",
                  "--tag-output",
                  "--remote-path",
                  "/opt/ddl/bin/ddlrun",
                  "--",
                  "python",
                  "train.py",
                  "--name",
                  "it's \"me\" & more",
                  "two\nlines"}});
  for (Golden& request : requests()) all.push_back(std::move(request));
  all.push_back({"elastic",
                 {"-np", "8", "--elastic", "continue", "--state-dir", "/scratch/state", "--requeue-on", "119",
                  "--max-np", "8", "--spares", "2", "--remote-path", "ddlrun", "--", "./train"}});
  return all;
}

std::string golden_file(const std::string& name) {
  return std::string(DDL_SOURCE_DIR) + "/tests/cli/scripts/" + name + ".sh";
}

/// Golden scripts do not contain the version, which changes with every release.
std::string without_version(std::string text) {
  const std::string version = "ddlrun " + std::string(ddl::contract::kVersion);
  const std::size_t at = text.find(version);
  if (at != std::string::npos) text.replace(at, version.size(), "ddlrun VERSION");
  return text;
}

bool has_command(const std::string& name) {
  const char* path = std::getenv("PATH");
  return ddl::find_in_path(name, path != nullptr ? path : "").has_value();
}

}  // namespace

TEST_CASE("a script of a scaling study asks for its largest number of ranks") {
  const std::string text = script({"--scaling", "1,8,4", "--repeat", "2", "--time", "1:00", "./train"});
  CHECK_THAT(text, Contains("#SBATCH --ntasks=8\n") && Contains("  --scaling 1,8,4 \\\n") &&
                       Contains("--repeat 2") && !Contains("-np"));
  const ProgramRun refused = slurm({"--scaling", "1,8", "-np", "2", "./train"});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("--scaling and -np/--num-proc contradict each other"));
}

TEST_CASE("scripts equal the golden files") {
  // DDL_WRITE_GOLDEN=1 writes new golden files; check the difference.
  const bool writes = std::getenv("DDL_WRITE_GOLDEN") != nullptr;
  for (const Golden& golden : goldens()) {
    INFO(golden.name);
    const std::string text = without_version(script(golden.words));
    if (writes) std::ofstream(golden_file(golden.name)) << text;
    const auto kept = ddl::read_file(golden_file(golden.name));
    REQUIRE(kept);
    CHECK(text == *kept);
  }
}

TEST_CASE("every golden file belongs to a case of this test") {
  const auto all = goldens();
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(DDL_SOURCE_DIR) + "/tests/cli/scripts")) {
    INFO(entry.path());
    CHECK(std::any_of(all.begin(), all.end(),
                      [&](const Golden& one) { return one.name == entry.path().stem(); }));
  }
}

TEST_CASE("bash and shellcheck find no errors in the golden files") {
  Words files;
  for (const Golden& golden : goldens()) files.push_back(golden_file(golden.name));
  for (const std::string& file : files) {
    const ProgramRun parsed = run_here({"/bin/bash", "-n", file});
    INFO(file << ": " << parsed.err);
    CHECK(parsed.exit_code == 0);
  }
  if (!has_command("shellcheck")) {
    WARN("shellcheck is not installed: nothing was checked by it");
    CHECK(std::getenv("CI") == nullptr);
    return;
  }
  // SC1091: files that a script sources exist only on the cluster.
  Words words = {"/usr/bin/env", "shellcheck", "-e", "SC1091"};
  words.insert(words.end(), files.begin(), files.end());
  const ProgramRun checked = run_here(words);
  INFO(checked.out);
  CHECK(checked.exit_code == 0);
}

TEST_CASE("the script for LUMI-G contains the site's masks, and both ways of selecting GPUs") {
  const std::string kMasks =
      "mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,"
      "0xfe0000000000";
  const Words lumi = {"--site", "lumi-g", "-np", "8", "--account", "p"};
  const auto with = [&](Words more) {
    Words words = lumi;
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "./train"});
    return script(words);
  };
  CHECK_THAT(with({}), Contains("map_cpu:49,57,17,25,1,9,33,41") && Contains(kMasks));
  const std::string bound = with({"--launcher", "srun"});
  CHECK_THAT(bound, Contains("--cpu-bind=" + kMasks) && Contains("--gpu-bind=map:0,1,2,3,4,5,6,7") &&
                        Contains("--gres-flags=allow-task-sharing") && !Contains("ROCR_VISIBLE_DEVICES"));
  const std::string chosen = with({"--launcher", "srun", "--gpu-choice", "visible-devices"});
  CHECK_THAT(chosen, Contains("--cpu-bind=" + kMasks) && Contains("ROCR_VISIBLE_DEVICES") &&
                         Contains("exec \"$@\"") && !Contains("--gpu-bind"));
}

TEST_CASE("every word of the command reaches the program unchanged") {
  const TemporaryDirectory folder;
  const std::string echo = folder.path() + "/echo_words";
  std::ofstream(echo) << "#!/bin/sh\nprintf '%s\\0' \"$@\"\n";
  REQUIRE(::chmod(echo.c_str(), 0755) == 0);
  const std::string alphabet = "ab \t\n'\"\\$`!*?[]{}()<>|&;#~%=,-\x01\xc3\xa9";
  std::mt19937 random(20261122);
  for (int round = 0; round < 60; ++round) {
    Words words;
    for (std::size_t i = 0; i <= random() % 5; ++i) {
      std::string word;
      for (std::size_t c = 0; c < random() % 12; ++c) word += alphabet[random() % alphabet.size()];
      words.push_back(word);
    }
    Words asked = {"-np", "3", "--remote-path", echo, "--", "./a"};
    asked.insert(asked.end(), words.begin(), words.end());
    const std::string file = folder.path() + "/job.sh";
    std::ofstream(file, std::ios::trunc) << script(asked);
    const ProgramRun ran = run_here({"/bin/bash", file}, folder.path());
    std::string expected;
    Words passed = {"-np", "3", "--", "./a"};
    passed.insert(passed.end(), words.begin(), words.end());
    for (const std::string& word : passed) expected += word + '\0';
    INFO(*ddl::read_file(file));
    REQUIRE(ran.exit_code == 0);
    REQUIRE(ran.out == expected);
  }
}

TEST_CASE("options of a configuration file are written into the script") {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() + "/job.yaml")
      << "num-proc: 4\ntimeout: 90\nbind-to: none\naccount: p1\nx: [A=1]\n";
  const std::string text = script(
      {"--config-file", folder.path() + "/job.yaml", "--account", "p2", "--remote-path", "ddlrun", "./a"});
  CHECK_THAT(text, Contains("#SBATCH --account=p2\n") && Contains("-np 4") && Contains("--timeout 90") &&
                       Contains("--bind-to none") && Contains("-x A=1"));
}

TEST_CASE("-o writes an executable file, and replaces an existing one only with --force") {
  const TemporaryDirectory folder;
  const std::string file = folder.path() + "/job.sh";
  ProgramRun written = slurm({"-np", "2", "-o", file, "./a"});
  CHECK(written.exit_code == 0);
  CHECK(written.out.empty());
  CHECK_THAT(written.err, Contains("sbatch " + file));
  struct stat status {};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0111) != 0);
  const std::string first = *ddl::read_file(file);
  written = slurm({"-np", "3", "-o", file, "./a"});
  CHECK(written.exit_code == 2);
  CHECK_THAT(written.err, Contains("File exists") && Contains("--force"));
  CHECK(*ddl::read_file(file) == first);
  CHECK(slurm({"-np", "3", "-o", file, "--force", "./a"}).exit_code == 0);
  CHECK_THAT(*ddl::read_file(file), Contains("--ntasks=3"));
  CHECK(slurm({"-np", "2", "-o", "/nonexistent/job.sh", "./a"}).exit_code == 2);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a folder for the job's output that is not there is a warning, because Slurm makes none") {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder.path() + "/here");
  const auto warning = [&](const std::string& output) {
    return slurm({"-np", "2", "--remote-path", "ddlrun", "--output", output, "./a"}, folder.path()).err;
  };
  CHECK(warning("here/%j.out").empty());
  CHECK(warning("%j.out").empty());
  CHECK_THAT(warning("logs/x y/%j.out"), Contains("Slurm drops the output: mkdir -p 'logs/x y'\n"));
  CHECK_THAT(warning("%j/out"), Contains("warning: the folder %j ") && !Contains("mkdir"));
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/logs"));
}

TEST_CASE("with --expand the script replaces variables and its arguments in the command") {
  const TemporaryDirectory folder;
  const std::string echo = folder.path() + "/echo_words";
  std::ofstream(echo) << "#!/bin/sh\nprintf '<%s>' \"$@\"\n";
  REQUIRE(::chmod(echo.c_str(), 0755) == 0);
  const std::string file = folder.path() + "/job.sh";
  std::ofstream(file) << script({"-np", "2", "--expand", "--remote-path", echo, "-x", "SEED=$TASK", "--",
                                 "./a", "$TASK", "it's \"$TASK\"", "\\$TASK", "a\\b `c` $1", "$@",
                                 "two\n$2"});
  ProgramSetup setup;
  setup.argv = {"/bin/bash", file, "one", "two words"};
  setup.environment = {"TASK=x y"};
  const ProgramRun ran = run_program(setup);
  INFO(*ddl::read_file(file) << ran.err);
  CHECK(ran.out ==
        "<-np><2><-x><SEED=x y><--><./a><x y><it's \"x y\"><$TASK><a\\b `c` one><one><two words><two\ntwo "
        "words>");
  // Without it the words are as they were given, and a note says what is there.
  const ProgramRun noted = slurm({"-np", "2", "--remote-path", echo, "--", "./a", "$SLURM_ARRAY_TASK_ID"});
  CHECK_THAT(noted.out, Contains("./a '$SLURM_ARRAY_TASK_ID'"));
  CHECK_THAT(noted.err, Contains("with --expand the script replaces"));
}

TEST_CASE("lines after the ranks run whatever these have ended with, and so does a trap for the exit") {
  const TemporaryDirectory folder;
  const auto run = [&](const std::string& ranks, Words options) {
    const std::string file = folder.path() + "/job.sh";
    options.insert(options.begin(), {"-np", "2", "--remote-path", "/bin/sh"});
    options.insert(options.end(), {"--", "./a"});
    // Stands in for ddlrun: a shell whose first argument is "-np".
    std::string text = script(options);
    const std::size_t at = text.find("/bin/sh -np 2");
    REQUIRE(at != std::string::npos);
    text.replace(at, std::string("/bin/sh -np 2").size(), "/bin/sh -c '" + ranks + "'");
    std::ofstream(file, std::ios::trunc) << text;
    return run_here({"/bin/bash", file}, folder.path());
  };
  const ProgramRun failed = run("exit 7", {"--after", "echo \"after $status\"", "--after", "false"});
  CHECK(failed.exit_code == 7);
  CHECK(failed.out == "after 7\n");
  const ProgramRun passed =
      run("echo ranks", {"--after", "(exit 3)", "--after", "echo last", "--after", "false"});
  CHECK(passed.exit_code == 3);
  CHECK(passed.out == "ranks\nlast\n");
  const ProgramRun trapped = run("exit 5", {"--setup", "trap 'echo \"exit $?\"' EXIT"});
  CHECK(trapped.exit_code == 5);
  CHECK(trapped.out == "exit 5\n");
}

TEST_CASE("a template and a partial of the user are used, and errors in them are reported") {
  const TemporaryDirectory folder;
  const std::string frame = folder.path() + "/frame.sh";
  std::ofstream(frame) << "#!/bin/sh\n# {{num-proc}} ranks\n{{> directives}}\n{{> launch}}\n";
  CHECK_THAT(script({"-np", "2", "--template", frame, "--remote-path", "ddlrun", "./a"}),
             Catch::StartsWith("#!/bin/sh\n# 2 ranks\n#SBATCH") && Contains("exec ddlrun -np 2 -- ./a\n"));
  std::ofstream(frame) << "#!/bin/sh\n{{#directive}}\n";
  const ProgramRun broken = slurm({"-np", "2", "--template", frame, "./a"});
  CHECK(broken.exit_code == 2);
  CHECK_THAT(broken.err, Contains(frame));

  std::filesystem::create_directories(folder.path() + "/ddlrun/slurm");
  std::ofstream(folder.path() + "/ddlrun/slurm/modules.mustache") << "\nmodule purge\n";
  ProgramSetup setup;
  setup.argv = {DDLRUN_PATH, "--slurm", "-np", "2", "./a"};
  setup.environment = {"XDG_CONFIG_HOME=" + folder.path()};
  CHECK_THAT(run_program(setup).out, Contains("\nmodule purge\n"));
}

TEST_CASE("options that a script cannot have are refused with a hint") {
  const std::vector<std::pair<Words, std::string>> kRefused = {
      {{"./a"}, "the number of ranks is unknown"},
      {{"-np", "2"}, "no command was given"},
      {{"-np", "9", "--nodes", "2", "--ranks-per-node", "4", "./a"},
       "-np 9 is more than 2 nodes of 4 ranks hold"},
      {{"-np", "1", "--nodes", "2", "./a"}, "--nodes 2 is more than the 1 rank"},
      {{"-np", "9", "--nodes", "2", "--launcher", "srun", "./a"}, "do not divide evenly"},
      {{"-np", "2", "-H", "a:2", "./a"}, "-H/--hosts cannot be used in a job script"},
      {{"-np", "2", "--dry-run", "./a"}, "--dry-run cannot be used in a job script"},
      {{"-np", "2", "--submit", "--sbatch=--wait", "./a"}, "--submit does not wait for the job"},
      {{"-np", "2", "--launcher", "ssh", "./a"}, "cannot be used in a job script"},
      {{"-np", "2", "--launcher", "srun", "--timeout", "3", "./a"},
       "--timeout needs ddlrun's agents, and srun"},
      {{"-np", "2", "--mpi-type", "pmix", "./a"}, "--mpi-type belongs to --launcher srun"},
      {{"-np", "2", "--mem", "1G", "--mem-per-cpu", "1G", "./a"}, "--mem-per-cpu"},
      {{"-np", "2", "--site", "atlantis", "./a"}, "there is no profile of a site 'atlantis'"},
      {{"-np", "2", "--site", "lumi-g", "./a"}, "--account PROJECT"},
      {{"-np", "2", "--site", "nris-saga", "--account", "p", "./a"}, "--mem-per-cpu 4G"},
      {{"-np", "2", "--job-name", "a\nb", "./a"}, "several lines"},
      {{"-np", "2", "--time", "2w", "./a"}, "'2w' is not a time limit: minutes"},
      {{"-np", "2", "--container", "x", "--container-runtime", "pyxis", "./a"},
       "add --launcher srun, or choose"},
      {{"-np", "2", "--launcher", "srun", "--container", "e", "--container-runtime", "container-engine",
        "--container-bind", "/x", "./a"},
       "add /x to its mounts, and omit --container-bind"},
      {{"-np", "8", "--nodes", "2-4", "./a"}, "-np 8 is one number: omit it, and give --ranks-per-node N"},
      {{"--nodes", "2-4", "./a"}, "the number of ranks of a node has to be known"},
      {{"-np", "2", "--sbatch", "licenses=x", "./a"}, "--sbatch=--licenses=x"},
      {{"-np", "2", "--container-bind", "/x", "./a"}, "--container-bind belongs to --container"},
      {{"-np", "2", "--force", "./a"}, "--force belongs to -o"},
      {{"-np", "2", "--template", "/nonexistent", "./a"}, "/nonexistent"},
      {{"-np", "2", "--site", "nris-olivia", "--account", "p", "./a"}, "--time 2:00:00"},
      {{"-np", "2", "--gpu-vendor", "3dfx", "./a"}, "not one of nvidia, amd, intel"},
  };
  for (const auto& [words, message] : kRefused) {
    const ProgramRun refused = slurm(words);
    INFO(message);
    CHECK(refused.exit_code == 2);
    CHECK(refused.out.empty());
    CHECK_THAT(refused.err, Contains(message));
  }
}

TEST_CASE("a script that needs GPUs is refused if their number is unknown or too small") {
  const std::string unknown = "the number of GPUs of a node is unknown: --gpus-per-node N";
  const std::vector<std::pair<Words, std::string>> kRefused = {
      {{"--site", "generic-gpu", "-np", "8", "./a"}, "jobs of generic-gpu request GPUs, and " + unknown},
      {{"--site", "brown-oscar", "-np", "8", "./a"}, "jobs of brown-oscar request GPUs, and " + unknown},
      {{"--site", "zih-power9", "-np", "8", "./a"}, "jobs of zih-power9 request GPUs, and " + unknown},
      {{"-np", "8", "--bind-to", "gpu", "./a"}, "--bind-to gpu requests GPUs, and " + unknown},
      {{"-np", "8", "--nodes", "2", "--bind-to", "gpu", "./a"},
       "--bind-to gpu requests GPUs, and " + unknown},
      {{"-np", "8", "--gpus-per-rank", "1", "./a"}, "--gpus-per-rank requests GPUs, and " + unknown},
      {{"-np", "8", "--mem-per-gpu", "1G", "./a"}, "--mem-per-gpu requests GPUs, and " + unknown},
      {{"--site", "generic-cpu", "-np", "8", "--ranks-per-gpu", "2", "./a"},
       "--ranks-per-gpu requests GPUs, and"},
      {{"-np", "8", "--launcher", "srun", "--gpu-choice", "gpu-bind", "./a"},
       "--gpu-choice requests GPUs, and"},
      {{"-np", "8", "--gpus-per-node", "0", "--bind-to", "gpu", "./a"}, "--gpus-per-node 0 requests none"},
      {{"-np", "8", "--container", "a.sif", "--gpu-vendor", "amd", "./a"},
       "--gpu-vendor requests GPUs, and " + unknown},
      {{"-np", "4", "--nodes", "1", "--gpus-per-rank", "2", "--gpus-per-node", "4", "./a"},
       "4 ranks of a node need 8 GPUs by --gpus-per-rank, and it has 4 by --gpus-per-node"},
      {{"--site", "lumi-g", "--account", "p", "--nodes", "1", "-np", "8", "--gpus-per-rank", "2", "./a"},
       "8 ranks of a node need 16 GPUs by --gpus-per-rank, and it has 8 at lumi-g"},
  };
  for (const auto& [words, message] : kRefused) {
    const ProgramRun refused = slurm(words);
    INFO(message << "\n" << refused.err);
    CHECK(refused.exit_code == 2);
    CHECK(refused.out.empty());
    CHECK_THAT(refused.err, Contains(message));
  }
  CHECK_THAT(script({"--site", "generic-gpu", "-np", "8", "--gpus-per-node", "4", "./a"}),
             Contains("--nodes=2\n") && Contains("--gpus-per-node=4\n"));
  CHECK_THAT(script({"--site", "brown-oscar", "-np", "8", "--gpus-per-node", "2", "./a"}),
             Contains("--gres=gpu:2\n"));
  CHECK_THAT(script({"-np", "8", "--nodes", "2", "--gpus-per-rank", "2", "./a"}),
             Contains("--gpus-per-node=8\n"));
  CHECK_THAT(script({"-np", "8", "--bind-to", "gpu", "--sbatch=--gres=gpu:4", "./a"}),
             Contains("--gres=gpu:4\n"));
  CHECK_THAT(script({"--site", "generic-gpu", "-np", "8", "--gpus-per-node", "0", "./a"}), !Contains("gpu"));
}

TEST_CASE("a container gets the option for its GPU vendor, or --gpu-vendor is required") {
  const Words generic = {"--site", "generic-gpu", "-np", "8", "--gpus-per-node", "4", "--container", "a.sif"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), generic.begin(), generic.end());
    more.emplace_back("./a");
    return more;
  };
  const ProgramRun refused = slurm(with({}));
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("--nv") && Contains("--rocm") && Contains("--gpu-vendor"));
  CHECK_THAT(script(with({"--gpu-vendor", "nvidia"})), Contains(" exec --nv a.sif)"));
  CHECK_THAT(script(with({"--gpu-vendor", "amd"})), Contains(" exec --rocm a.sif)"));
  CHECK_THAT(script(with({"--gpu-vendor", "intel"})), Contains(" exec a.sif)"));
  CHECK_THAT(script({"--site", "zih-alpha", "-np", "8", "--container", "a.sif", "./a"}),
             Contains(" exec --nv a.sif)"));
  CHECK_THAT(script({"-np", "8", "--container", "a.sif", "./a"}), Contains(" exec a.sif)"));
}

TEST_CASE("a container at LUMI has the site's folders, and no --rocm") {
  const std::string text =
      script({"--site", "lumi-g", "-np", "8", "--account", "p", "--container", "i.sif", "./a"});
  CHECK_THAT(text, Contains("container=(singularity exec ") && Contains(" --bind /opt/cray ") &&
                       Contains(" i.sif)") && !Contains("--rocm"));
}

TEST_CASE("with --smt the script asks for the second hardware threads that its masks contain") {
  for (const Words& launcher : {Words{}, Words{"--launcher", "srun"}}) {
    for (const auto& [site, directive] : {std::pair<std::string, std::string>{"lumi-g", "--hint=multithread"},
                                          {"frontier", "--threads-per-core=2"}}) {
      Words words = {"--site", site, "-np", "8", "--account", "p"};
      words.insert(words.end(), launcher.begin(), launcher.end());
      words.emplace_back("./a");
      CHECK_THAT(script(words), !Contains(directive) && Contains("#SBATCH --cpus-per-task=7\n"));
      words.insert(words.begin(), "--smt");
      // Slurm's CPUs are then threads.
      CHECK_THAT(script(words), Contains("#SBATCH " + directive + "\n") &&
                                    Contains("0xfe00000000000000fe,") &&
                                    Contains("#SBATCH --cpus-per-task=14\n"));
      words.insert(words.begin(), {"--bind-to", "none"});
      CHECK_THAT(script(words), !Contains(directive));
    }
  }
  const TemporaryDirectory folder;
  const std::string site = folder.path() + "/ours.yaml";
  std::ofstream(site) << "name: ours\nnode: {cores-per-l3: 8, threads-per-core: 2}\n"
                         "slurm: {whole-nodes: true, gpu-request: none, cpus-are: cores}\n";
  const Words words = {"--site", site, "-np", "4", "--nodes", "1", "--smt", "./a"};
  const ProgramRun refused = slurm(words);
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("only if they ask for them") && Contains("--sbatch=--hint=multithread"));
  Words with_own = {"--sbatch=--hint=multithread"};
  with_own.insert(with_own.end(), words.begin(), words.end());
  CHECK_THAT(script(with_own), Contains("#SBATCH --cpus-per-task=4\n"));
}

TEST_CASE("a partition with other CPUs than the site's usual one") {
  const auto with = [](const std::string& partition) {
    return script({"--site", "nris-saga", "-np", "4", "--gpus-per-node", "4", "--account", "p",
                   "--mem-per-cpu", "4G", "--partition", partition, "./a"});
  };
  CHECK_THAT(with("accel"), Contains("#SBATCH --cpus-per-task=6\n"));
  CHECK_THAT(with("a100"), Contains("#SBATCH --cpus-per-task=8\n"));
  // It may get the one or the other, so nothing is assumed of its nodes.
  CHECK_THAT(with("a100,accel"), !Contains("cpus-per-task"));
}

TEST_CASE(
    "a partition decides about the nodes, and a note says it where the site's profile does not know them") {
  const Words words = {"--site", "lumi-g", "-np", "128", "--nodes", "1", "--account", "p", "--partition"};
  const auto with = [&](const std::string& partition) {
    Words all = words;
    all.insert(all.end(), {partition, "./a"});
    return slurm(all);
  };
  CHECK_THAT(with("standard").out, Contains("# Written by ddlrun") && Contains("for LUMI-C at CSC") &&
                                       Contains("#SBATCH --ntasks-per-node=128\n") && !Contains("gpu"));
  // The same by --sbatch.
  const auto by_sbatch = [&](const Words& options) {
    Words all(words.begin(), words.end() - 1);
    for (const std::string& option : options) all.push_back("--sbatch=" + option);
    all.emplace_back("./a");
    return slurm(all).out;
  };
  for (const std::string option : {"--partition=standard", "-p standard", "-pstandard"})
    CHECK(by_sbatch({option}) == with("standard").out);
  const std::string several = by_sbatch({"-C x --partition=standard", "-q high", "--licenses=l"});
  CHECK_THAT(several, Contains("#SBATCH --partition=standard\n") && Contains("#SBATCH --qos=high\n") &&
                          Contains("#SBATCH --constraint=x\n") && Contains("#SBATCH --licenses=l\n"));
  const auto nodes_at = [](const std::string& site, const Words& options) {
    Words all = {"--site", site, "-np", "4", "--nodes", "1", "--account", "p", "--time", "1:00"};
    all.insert(all.end(), options.begin(), options.end());
    all.emplace_back("./a");
    return slurm(all).out;
  };
  CHECK(nodes_at("perlmutter", {"--sbatch=-C cpu"}) == nodes_at("perlmutter", {"--constraint", "cpu"}));
  CHECK(nodes_at("marenostrum5", {"--sbatch=-q gp_debug"}) ==
        nodes_at("marenostrum5", {"--qos", "gp_debug"}));
  const ProgramRun unknown = with("largemem");
  CHECK(unknown.exit_code == 0);
  CHECK_THAT(unknown.err,
             Contains("lumi: the profile has no partition 'largemem'; it has ") && Contains("standard-g"));
  const ProgramRun refused =
      slurm({"--site", "lumi-g", "-np", "8", "--account", "p", "--partition", "eap", "./a"});
  CHECK(refused.exit_code != 0);
  CHECK_THAT(refused.err, Contains("no partition 'eap'") && Contains("number of GPUs of a node is unknown"));
  // A job that is there already has its partition.
  ProgramSetup setup;
  setup.argv = {DDLRUN_PATH, "--dry-run", "-np", "1", "--site", "lumi", "./a"};
  for (const std::string partition : {"standard-g", "standard"}) {
    setup.environment = {"SLURM_JOB_ID=4711", "SLURM_JOB_NODELIST=node1", "SLURM_JOB_PARTITION=" + partition};
    CHECK((run_program(setup).out.find("MPICH_GPU_SUPPORT_ENABLED=1  (site lumi)") != std::string::npos) ==
          (partition == "standard-g"));
  }
  CHECK_THAT(slurm({"--site", "mahti", "-np", "2", "./a"}).err,
             Contains("there is no profile of mahti: its jobs ended on 2026-08-31, and Roihu follows it"));
}

TEST_CASE("a container at Alps gets its settings of NCCL from what starts it") {
  const Words words = {"--site", "alps-gh200", "-np", "8", "--account", "p", "./a"};
  CHECK_THAT(script(words), Contains("export NCCL_NET='AWS Libfabric'"));
  Words inside = {"--container", "i.sif"};
  inside.insert(inside.end(), words.begin(), words.end());
  CHECK_THAT(script(inside), !Contains("NCCL_NET") && !Contains("FI_CXI"));
}

TEST_CASE("a job of one node has the directives that the site wants for it") {
  const auto with = [](const std::string& ranks) {
    return script({"--site", "nris-olivia", "-np", ranks, "--account", "p", "--time", "30:00",
                   "--mem-per-gpu", "10G", "./a"});
  };
  CHECK_THAT(with("4"), Contains("#SBATCH --network=single_node_vni\n"));
  CHECK_THAT(with("8"), !Contains("single_node_vni"));
}

TEST_CASE("the notes of a site are printed when a script is written, but not with --quiet") {
  const Words words = {"--site", "lumi-g", "-np", "8", "--account", "p", "./a"};
  const ProgramRun noted = slurm(words);
  CHECK_THAT(noted.err, Contains("ddlrun: lumi-g: RCCL silently uses TCP"));
  Words quiet = {"--quiet"};
  quiet.insert(quiet.end(), words.begin(), words.end());
  CHECK(slurm(quiet).err.empty());
}

TEST_CASE("a script that cannot be written for lack of room is lost output, and not a wrong option") {
  const TemporaryDirectory folder;
  // Of 1024 bytes at most, which is enough for standard error.
  const std::string limited = "trap '' XFSZ; ulimit -f 2; exec \"$0\" --slurm -np 2 \"$@\"";
  const ProgramRun full = run_here({"/bin/sh", "-c", limited, DDLRUN_PATH, "-o", folder.path() + "/job.sh",
                                    "--setup", std::string(5000, '#'), "./a"});
  CHECK(full.exit_code == 123);
  CHECK_THAT(full.err, Contains("File too large") && Contains("make room"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a misspelt site of --show-bind leads to the list of sites") {
  const ProgramRun refused = run_here({DDLRUN_PATH, "--show-bind", "-np", "2", "--site", "lumig"});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("did you mean lumi-g?") && Contains("hint: ddlrun --list-sites"));
  CHECK_THAT(run_here({DDLRUN_PATH, "--show-bind", "-np", "200", "--site", "lumi-g"}).err,
             Contains("--help binding lists the options of binding"));
}

TEST_CASE("the script selects the GPU of each rank, or a note says that it does not") {
  const Words words = {"--site", "generic-gpu", "-np", "8", "--gpus-per-node", "4", "--launcher", "srun"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), words.begin(), words.end());
    more.emplace_back("./a");
    return more;
  };
  CHECK_THAT(slurm(with({})).err,
             Contains("every rank sees all GPUs of its node") && Contains("--gpu-vendor"));
  CHECK_THAT(script(with({"--gpu-vendor", "nvidia"})), Contains("export CUDA_VISIBLE_DEVICES="));
  CHECK_THAT(slurm(with({"--gpu-choice", "visible-devices"})).err,
             Contains("--gpu-vendor nvidia, amd or intel"));
  CHECK_THAT(script(with({"--gpu-choice", "gpu-bind"})), Contains("--gpu-bind=map:0,1,2,3"));
}

TEST_CASE("on shared nodes ranks select from the GPUs that Slurm gives the job") {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() + "/srun")
      << "#!/bin/sh\nwhile [ \"$1\" != bash ]; do shift; done\nexec \"$@\"\n";
  REQUIRE(::chmod((folder.path() + "/srun").c_str(), 0755) == 0);
  const std::string file = folder.path() + "/job.sh";
  const auto gpus_of = [&](const std::string& per_rank, const std::string& rank, const std::string& given) {
    std::ofstream(file, std::ios::trunc) << script(
        {"--site", "generic-gpu", "-np", "2", "--nodes", "1", "--gpus-per-node", "4", "--gpus-per-rank",
         per_rank, "--launcher", "srun", "--gpu-vendor", "nvidia", "printenv", "CUDA_VISIBLE_DEVICES"});
    ProgramSetup setup;
    setup.argv = {"/usr/bin/env", "-u", "CUDA_VISIBLE_DEVICES", "SLURM_LOCALID=" + rank,
                  "PATH=" + folder.path() + ":" + std::getenv("PATH")};
    if (!given.empty()) setup.argv.push_back("CUDA_VISIBLE_DEVICES=" + given);
    setup.argv.insert(setup.argv.end(), {"/bin/bash", file});
    const ProgramRun ran = run_program(setup);
    INFO(ran.err);
    CHECK(ran.exit_code == 0);
    return ran.out;
  };
  CHECK(gpus_of("1", "1", "4,5,6,7") == "5\n");
  CHECK(gpus_of("2", "0", "4,5,6,7") == "4,5\n");
  CHECK(gpus_of("2", "1", "GPU-a,GPU-b,GPU-c,GPU-d") == "GPU-c,GPU-d\n");
  CHECK(gpus_of("2", "1", "") == "2,3\n");
}

TEST_CASE("options of binding become --cpu-bind of srun, or are refused") {
  const auto with = [&](Words more) {
    more.insert(more.begin(), {"-np", "2", "--launcher", "srun"});
    more.emplace_back("./a");
    return more;
  };
  CHECK_THAT(script(with({})), Contains("--cpu-bind=cores"));
  CHECK_THAT(script(with({"--bind-to", "none"})), Contains("--cpu-bind=none"));
  CHECK_THAT(script(with({"--bind-to", "numa"})), Contains("--cpu-bind=ldoms"));
  CHECK_THAT(script(with({"--bind-to", "socket"})), Contains("--cpu-bind=sockets"));
  CHECK_THAT(script(with({"--bind-to", "pu"})), Contains("--cpu-bind=threads"));
  for (const Words& asked :
       {Words{"--bind-to", "l3"}, Words{"--smt"}, Words{"--reserve", "0"}, Words{"--rank-order", "cpu"}}) {
    const ProgramRun refused = slurm(with(asked));
    INFO(asked.front());
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, Contains(asked.front()) && Contains("needs a plan of the node"));
  }
}

TEST_CASE("a list of CPUs is combined with --cpus-per-task only if the ranks use the whole node") {
  const auto by_srun = [&](const std::string& site, const std::string& ranks, Words more = {}) {
    more.insert(more.begin(), {"--site", site, "-np", ranks, "--account", "p_g", "--launcher", "srun"});
    more.emplace_back("./a");
    return script(more);
  };
  CHECK_THAT(by_srun("lumi-g", "8"), Contains("--cpus-per-task=7") && Contains("OMP_NUM_THREADS=7") &&
                                         Contains("mask_cpu:0xfe000000000000"));
  CHECK_THAT(by_srun("lumi-g", "4"), !Contains("--cpus-per-task") && Contains("OMP_NUM_THREADS=7") &&
                                         Contains("mask_cpu:0xfe000000000000"));
  // At this site Slurm counts hardware threads, and OpenMP counts cores.
  CHECK_THAT(by_srun("perlmutter-gpu", "4"),
             Contains("--cpus-per-task=32") && Contains("OMP_NUM_THREADS=16") && Contains("--qos=regular"));
  // It is not known whether Slurm counts threads or cores at this site; six of a rank's twelve cores are near its
  // GPU.
  CHECK_THAT(by_srun("juwels-booster", "4"),
             !Contains("--cpus-per-task") && Contains("OMP_NUM_THREADS=6") && Contains("mask_cpu:0xfc0000,"));
  // On shared nodes there is no list, and a job requests only the resources that it uses.
  CHECK_THAT(by_srun("lumi-g", "4", {"--partition", "small-g"}),
             Contains("--gpus-per-node=4\n") && Contains("--cpus-per-task=7") && !Contains("mask_cpu"));
  CHECK_THAT(by_srun("perlmutter-gpu", "2", {"--qos", "shared"}),
             Contains("--gpus-per-node=2\n") && Contains("--cpus-per-task=32") && !Contains("mask_cpu"));
}

namespace {

/// A Slurm of this machine, and a PATH without ddlrun.
class StandInCluster {
 public:
  StandInCluster() {
    std::ofstream(folder_.path() + "/partition") << ddl::test::kScontrolPartitions;
    std::ofstream(folder_.path() + "/node") << ddl::test::kScontrolNodes;
    std::ofstream(folder_.path() + "/slurm.conf") << "";
    const std::string scontrol = folder_.path() + "/scontrol";
    std::ofstream(scontrol) << "#!/bin/sh\nfor last; do :; done\ncat " << folder_.path() << "/$last\n";
    REQUIRE(::chmod(scontrol.c_str(), 0755) == 0);
  }
  ProgramRun write(const Words& words) const {
    ProgramSetup setup;
    setup.argv = {DDLRUN_PATH, "--slurm"};
    setup.argv.insert(setup.argv.end(), words.begin(), words.end());
    setup.environment = {"HOME=/nonexistent",
                         "XDG_CONFIG_HOME=", "SLURM_CONF=" + folder_.path() + "/slurm.conf",
                         "PATH=" + folder_.path() + ":/usr/bin:/bin"};
    ProgramRun written = run_program(setup);
    INFO(written.err);
    CHECK(written.exit_code == 0);
    return written;
  }

 private:
  TemporaryDirectory folder_;
};

}  // namespace

TEST_CASE("findings about the local cluster are not written into a script for a site") {
  const ProgramRun written = StandInCluster().write(
      {"--site", "lumi-g", "-np", "8", "--account", "p", "--remote-path", "ddlrun", "./a"});
  CHECK_THAT(written.out, !Contains("Warning") && !Contains("no-such-partition"));
}

TEST_CASE("a script with --site calls ddlrun by its path if this cluster would take it") {
  const std::string path = std::filesystem::canonical(DDLRUN_PATH).string();
  const StandInCluster cluster;
  const ProgramRun here = cluster.write({"--site", "generic-cpu", "-np", "4", "./a"});
  CHECK_THAT(here.out, Contains("exec " + path + " -np 4") && !Contains("command -v"));
  CHECK_THAT(here.err, Contains("the script calls " + path) && Contains("--remote-path ddlrun"));
  const ProgramRun elsewhere = cluster.write({"--site", "lumi-g", "-np", "8", "--account", "p", "./a"});
  CHECK_THAT(elsewhere.out, Contains("exec ddlrun -np 8"));
  CHECK_THAT(elsewhere.err,
             Contains("none is in PATH here") && Contains("--module") && Contains("--remote-path"));
}

TEST_CASE("a script that calls ddlrun by its name says what to do where there is none") {
  const TemporaryDirectory folder;
  const std::string file = folder.path() + "/job.sh";
  std::ofstream(file) << script({"-np", "2", "--remote-path", "ddlrun", "./a"});
  ProgramSetup setup;
  setup.argv = {"/bin/bash", file};
  setup.environment = {"PATH=/usr/bin:/bin"};
  const ProgramRun ran = run_program(setup);
  CHECK(ran.exit_code == ddl::contract::kNotFound);
  CHECK_THAT(ran.err, Contains("ddlrun is not in PATH on ") && Contains("load its module") &&
                          Contains("--remote-path") && !Contains("line "));
}

TEST_CASE("a variable that no shell can export reaches the program of a script") {
  const TemporaryDirectory folder;
  // Stands in for srun: runs the command behind its options.
  const std::string starts = folder.path() + "/srun";
  std::ofstream(starts) << "#!/bin/sh\nwhile [ \"${1#--}\" != \"$1\" ]; do shift; done\nexec \"$@\"\n";
  REQUIRE(::chmod(starts.c_str(), 0755) == 0);
  const std::string file = folder.path() + "/job.sh";
  std::ofstream(file) << script({"-np", "2", "--launcher", "srun", "-x", "some.setting=a b", "-x", "OTHER=c",
                                 "/usr/bin/printenv", "some.setting", "OTHER"});
  ProgramSetup setup;
  setup.argv = {"/bin/bash", file};
  setup.environment = {"PATH=" + folder.path() + ":/usr/bin:/bin"};
  const ProgramRun ran = run_program(setup);
  INFO(*ddl::read_file(file) << ran.err);
  CHECK(ran.exit_code == 0);
  CHECK(ran.out == "a b\nc\n");
}

TEST_CASE("--lint finds nothing in the scripts that ddlrun writes") {
  for (const Golden& golden : goldens()) {
    Words words = {DDLRUN_PATH, "--lint", golden_file(golden.name)};
    if (golden.words[0] == "--site")
      words.insert(words.end(), golden.words.begin(), golden.words.begin() + 2);
    const ProgramRun linted = run_here(words);
    INFO(golden.name << "\n" << linted.out << linted.err);
    CHECK(linted.exit_code == 0);
    CHECK(linted.out.empty());
  }
}

TEST_CASE("an option of job scripts needs --slurm on the command line, but not in a configuration file") {
  const ProgramRun refused = run_here({DDLRUN_PATH, "-np", "1", "--account", "p", "/bin/true"});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("-A/--account belongs to --slurm"));
  const TemporaryDirectory folder;
  std::ofstream(folder.path() + "/job.yaml") << "account: p\nnum-proc: 1\n";
  CHECK(run_here({DDLRUN_PATH, "--config-file", folder.path() + "/job.yaml", "/bin/true"}).exit_code == 0);
}

TEST_CASE("sites can be listed and shown, with those of the user") {
  const TemporaryDirectory folder;
  std::filesystem::create_directories(folder.path() + "/ddlrun/sites");
  std::ofstream(folder.path() + "/ddlrun/sites/ours.yaml") << "name: ours\ntitle: Our own\n";
  ProgramSetup setup;
  setup.environment = {"XDG_CONFIG_HOME=" + folder.path()};
  setup.argv = {DDLRUN_PATH, "--list-sites"};
  const ProgramRun listed = run_program(setup);
  CHECK_THAT(listed.out, Contains("lumi-g ") && Contains("ours ") && Contains("Our own"));
  setup.argv = {DDLRUN_PATH, "--list-sites", "--json"};
  const std::string as_json = run_program(setup).out;
  CHECK_THAT(as_json, Catch::StartsWith(R"({"ddlrun":")") && Contains(R"(","kind":"sites",)"));
  CHECK(nlohmann::json::parse(as_json)["sites"].size() > 1);
  setup.argv = {DDLRUN_PATH, "--show-site", "ours"};
  CHECK(run_program(setup).out == "name: ours\ntitle: Our own\n");
  setup.argv = {DDLRUN_PATH, "--show-site", "lumi-g"};
  CHECK_THAT(run_program(setup).out, Contains("standard-g"));
  setup.argv = {DDLRUN_PATH, "--show-site", "atlantis"};
  CHECK(run_program(setup).exit_code == 2);
  setup.argv = {DDLRUN_PATH, "--explain"};
  CHECK_THAT(run_program(setup).err, Contains("--explain belongs to --site"));
  std::ofstream(folder.path() + "/ddlrun/sites/ours.yaml")
      << "name: ours\nslurm: {partition: a, qos: b, time-required: true}\nvariants: {x: {slurm: {qos: c}}, "
         "y: {}}\n"
         "sources:\n- {title: Old, url: 'http://old', date: 2001-05, facts: [slurm.partition]}\n"
         "- {title: New, url: 'http://new', date: 2999, read: part, facts: [slurm, x]}\n";
  setup.argv = {DDLRUN_PATH, "--site", "ours-x", "--explain"};
  CHECK(run_program(setup).out ==
        "slurm.partition      [1]  2001-05, more than a year ago  a\n"
        "slurm.time-required  [2]  2999; read in part             true\n"
        "x.slurm.qos          [2]  2999; read in part             c\n\n"
        "[1] Old, 2001-05, more than a year ago: http://old\n[2] New, 2999; read in part: http://new\n");
  setup.argv.emplace_back("--json");
  const auto explained = nlohmann::json::parse(run_program(setup).out);
  CHECK(explained["kind"] == "site");
  CHECK(explained["facts"][0] == nlohmann::json{{"key", "slurm.partition"},
                                                {"value", "a"},
                                                {"title", "Old"},
                                                {"url", "http://old"},
                                                {"date", "2001-05"},
                                                {"old", true},
                                                {"read", "whole"}});
}

TEST_CASE("--lint reports the errors of a script with their lines") {
  const TemporaryDirectory folder;
  const std::string file = folder.path() + "/job.sh";
  std::ofstream(file)
      << "#!/bin/bash\n#SBATCH --mem=1G --mem-per-cpu=1G\n#SBATCH --signal=USR1@60\nsrun ./a\n";
  const ProgramRun found = run_here({DDLRUN_PATH, "--lint", file});
  CHECK(found.exit_code == 1);
  CHECK_THAT(found.out, Contains(file + ":2: error: [mem-twice]") &&
                            Contains(file + ":3: warning: [signal-usr1]") && Contains("(sbatch(1), --mem)"));
  const ProgramRun as_json = run_here({DDLRUN_PATH, "--lint", file, "--json"});
  CHECK(as_json.exit_code == 1);
  const auto report = nlohmann::json::parse(as_json.out);
  // The same first fields as in every object that ddlrun prints.
  CHECK_THAT(as_json.out, Catch::StartsWith(R"({"ddlrun":")") && Contains(R"(","kind":"lint",)"));
  CHECK(report["findings"].size() == 2);
  CHECK(report["findings"][0]["rule"] == "mem-twice");
  CHECK(report["findings"][0]["line"] == 2);
  CHECK(report["findings"][1]["severity"] == "warning");
  std::ofstream(file, std::ios::trunc) << "#!/bin/bash\n#SBATCH --requeue\nsrun ./a\n";
  const ProgramRun noted = run_here({DDLRUN_PATH, "--lint", file});
  CHECK(noted.exit_code == 0);
  CHECK_THAT(noted.out, Contains(file + ":2: note: [requeue-open-mode]"));
  std::ofstream(file, std::ios::trunc) << "#!/bin/bash\nsrun --mpi=pmix ./a\n";
  CHECK(run_here({DDLRUN_PATH, "--lint", file}).exit_code == 0);
  CHECK_THAT(run_here({DDLRUN_PATH, "--lint", file, "--site", "lumi-g"}).out, Contains("[mpi-type]"));
  // The node of the site's profile is the one that the script requests.
  for (const std::string partition : {"standard", "standard-g"}) {
    std::ofstream(file, std::ios::trunc)
        << "#!/bin/bash\n#SBATCH -p " << partition << " -N 1 --ntasks-per-node=128\nsrun ./a\n";
    const ProgramRun linted = run_here({DDLRUN_PATH, "--lint", file, "--site", "lumi-g"});
    CHECK((linted.out.find("[too-many-cpus]") != std::string::npos) == (partition == "standard-g"));
  }
  const ProgramRun missing = run_here({DDLRUN_PATH, "--lint", folder.path() + "/none.sh"});
  CHECK(missing.exit_code == 127);
  CHECK_THAT(missing.err, Contains("none.sh: No such file or directory"));
}

TEST_CASE(
    "--lint of a directory, an unreadable file or one of more than 16 MiB is wrong input, and not a missing "
    "script") {
  const TemporaryDirectory folder;
  const ProgramRun directory = run_here({DDLRUN_PATH, "--lint", folder.path()});
  CHECK(directory.exit_code == 2);
  CHECK_THAT(directory.err,
             Contains(folder.path() + " is a directory") && Contains("name a job script in it"));
  const std::string large = folder.path() + "/large.sh";
  std::ofstream(large) << "#!/bin/bash\n";
  std::filesystem::resize_file(large, (std::size_t{16} << 20) + 1);
  const ProgramRun too_large = run_here({DDLRUN_PATH, "--lint", large});
  CHECK(too_large.exit_code == 2);
  CHECK_THAT(too_large.err, Contains("longer than 16777216 bytes") && !Contains("that exists"));
  const std::string unreadable = folder.path() + "/closed.sh";
  std::ofstream(unreadable) << "#!/bin/bash\n";
  std::filesystem::permissions(unreadable, std::filesystem::perms::none);
  if (std::ifstream(unreadable).is_open()) return;  // this process may read everything
  const ProgramRun closed = run_here({DDLRUN_PATH, "--lint", unreadable});
  CHECK(closed.exit_code == 2);
  CHECK_THAT(closed.err, Contains("Permission denied") && Contains("must be readable"));
}

TEST_CASE("a script with an error is not written, and a warning is written into it") {
  const ProgramRun refused = slurm({"--site", "lumi-g", "--account", "p", "-np", "8", "--cores-per-rank", "8",
                                    "--bind-to", "none", "--remote-path", "ddlrun", "./a"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.out.empty());
  CHECK_THAT(refused.err, Contains("error: [too-many-cpus]"));
  const ProgramRun warned = slurm({"-np", "8", "--signal", "USR1@60", "--remote-path", "ddlrun", "./a"});
  CHECK(warned.exit_code == 0);
  CHECK_THAT(warned.err, Contains("warning: [signal-usr1]"));
  CHECK_THAT(warned.out, Contains("# Warning: [signal-usr1]"));
  CHECK(slurm({"--quiet", "-np", "8", "--signal", "USR1@60", "./a"}).err.empty());
}
