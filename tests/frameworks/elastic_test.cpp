// Programs of TensorFlow, Keras and Horovod whose ranks go on when one is killed: on this machine, whose two names count
// as two hosts.
#include <filesystem>

#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/scratch.h"
#include "frameworks/environment.h"
#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

/// ranks: at first. lines: of those that are there at the end. cooldown: seconds until a process takes the place of one
/// that is killed.
Program elastic(const std::string& environment, const std::string& file, int ranks, int lines,
                const std::string& cooldown) {
  Program program{.environment = environment, .file = file, .lines = lines, .has_ddl = true};
  program.options = {"-np",
                     std::to_string(ranks),
                     "--min-np",
                     std::to_string(ranks - 1),
                     "--max-np",
                     std::to_string(ranks),
                     "-H",
                     "localhost:2,127.0.0.1:1",
                     "--blacklist-cooldown-range",
                     cooldown,
                     cooldown,
                     "--elastic-settle",
                     "0",
                     "-x",
                     "TF_CPP_MIN_LOG_LEVEL=2"};
  return program;
}

/// Runs the program until it prints this and is asked to end, and then another one, which goes on where it was.
void run_as_two_jobs(Program first, const std::string& drained_at, Program second) {
  const e2e::Scratch scratch;
  const std::string folder = scratch.path("state");
  for (Program* one : {&first, &second}) one->options.insert(one->options.end(), {"--state-dir", folder});
  first.drained_at = drained_at;
  first.lines = 0;
  run(Place::kHere, first);
  run(Place::kHere, second);
  CHECK((!std::filesystem::exists(folder) || std::filesystem::is_empty(folder)));
}

/// kernels: "1"; "0": ddl.tensorflow is without them.
void run_tensorflow(const std::string& environment, const std::string& kernels) {
  const auto of_ranks = [&](int ranks) {
    Program program = elastic(environment, "tensorflow_elastic.py", ranks, 2, "3600");
    program.options.insert(program.options.end(), {"-x", "DDL_TENSORFLOW_KERNELS=" + kernels});
    program.arguments = {"0"};
    return program;
  };
  run_as_two_jobs(of_ranks(3), "commits until the job ends", of_ranks(2));
}

/// module: ddl.keras, or ddl.tensorflow.keras. settings: further variables of the ranks.
void run_keras(const std::string& environment, const std::string& module, int ranks,
               const std::vector<std::string>& settings = {}) {
  Program program = elastic(environment, "keras_elastic.py", ranks, ranks, "1");
  for (const std::string& one : settings) program.options.insert(program.options.end(), {"-x", one});
  program.arguments = {module, "1"};
  run(Place::kHere, program);
}

}  // namespace

TEST_CASE("a loop of TensorFlow goes on when a rank is killed, and in the next job", "[tensorflow_elastic]") {
  run_tensorflow("tensorflow", "1");
}
TEST_CASE("a loop of TensorFlow goes on without kernels, too", "[tensorflow_elastic_fallback]") {
  run_tensorflow("tensorflow", "0");
}
TEST_CASE("a model of tf_keras goes on when a rank is killed, and with one that comes", "[keras_elastic]") {
  run_keras("tensorflow", "ddl.tensorflow.keras", 2, {"TF_USE_LEGACY_KERAS=1"});
}
TEST_CASE("a model of Keras 3 with JAX goes on", "[keras_elastic_jax]") {
  run_keras("keras", "ddl.keras", 3, {"KERAS_BACKEND=jax"});
}
TEST_CASE("a model of Keras 3 with TensorFlow goes on", "[keras_elastic_2.16]") {
  run_keras("tensorflow-2.16", "ddl.tensorflow.keras", 3);
  Program example = elastic("tensorflow-2.16", DDL_PYTHON_EXAMPLES "/elastic_keras.py", 3, 1, "3600");
  example.printed = ":3 ranks: loss 0.0";
  Program longer = example;
  longer.arguments = {"--epochs", "1000", "--pause", "0.01"};
  run_as_two_jobs(longer, "goes on in epoch 0", example);
}

TEST_CASE("a loop of PyTorch with Horovod itself goes on when a rank is killed, also if that is rank 0",
          "[horovod_elastic]") {
  for (const char* const dies : {"3", "0"})
    run(Place::kHere, {.environment = "horovod",
                       .file = "horovod_elastic.py",
                       .options = {"-H", "localhost:2,127.0.0.1:2", "--min-np", "2", "--gloo",
                                   "--gloo-timeout-seconds", "20"},
                       .arguments = {dies},
                       .lines = 3});
}

TEST_CASE(
    "a loop of PyTorch with Horovod itself goes on over hosts, when a rank is killed and when a host dies",
    "[horovod_elastic_on_hosts]") {
  const auto python = python_of("horovod");
  if (!python) return;
  const std::vector<std::string> gloo{"--ranks-per-node",       "2", "--min-np", "2", "--gloo",
                                      "--gloo-timeout-seconds", "20"};
  run(Place::kTwoHosts, {.environment = "horovod",
                         .file = "horovod_elastic.py",
                         .options = gloo,
                         .arguments = {"3"},
                         .lines = 3});
  cluster::Cluster cluster;
  std::vector<std::string> words{"-H", "node1,node2"};
  words.insert(words.end(), gloo.begin(), gloo.end());
  words.insert(words.end(), {*python, DDL_FRAMEWORK_PROGRAMS "/horovod_elastic.py", "host"});
  e2e::Command settings;
  settings.patience = kPatience;
  cluster::HostJob job(words, settings);
  job.job().wait_for("waits", 4);
  cluster.kill("node2");
  CHECK(job.wait() == 0);
  INFO(job.out() << job.err());
  CHECK(e2e::occurrences(job.out(), ": right\n") == 2);
  CHECK_THAT(job.err(), Catch::Contains("generation 1: going on with 2 ranks on node1"));
}

}  // namespace ddl::frameworks
