// Horovod, built with Gloo: its ranks find each other by ddlrun's rendezvous; built with MPI, for Adasum. And the package
// horovod of ddlrun, by Horovod's names, Horovod's own tests, and its benchmarks.
#include <cstdio>
#include <filesystem>

#include "e2e/harness/fifo.h"
#include "frameworks/environment.h"
#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

Program by_gloo(const std::string& file, const std::string& ranks) {
  return {.environment = "horovod",
          .file = file,
          .options = {"-np", ranks, "--map-by", "node", "--gloo"},
          .lines = std::stoi(ranks)};
}

/// Horovod's repository, which lies in its environment. If it is not there, a line says why the test is skipped.
std::optional<std::string> repository() {
  const auto python = python_of("horovod");
  if (!python) return std::nullopt;
  const auto sources = std::filesystem::path(*python).parent_path().parent_path() / "sources";
  if (std::filesystem::exists(sources)) return sources.string();
  std::printf("SKIPPED: Horovod's sources are not there; scripts/frameworks horovod gets them\n");
  return std::nullopt;
}

/// Runs those of a file with the framework of an environment. keras_2: TF_USE_LEGACY_KERAS, which the newest know.
void run_own_tests(const std::string& environment, const std::string& file,
                   const std::string& keras_2 = "0") {
  const auto sources = repository();
  if (!sources) return;
  run(Place::kHere, {.environment = environment,
                     .file = "horovod_tests.py",
                     .options = {"-np", "2", "--as-horovod", "-x", "TF_USE_LEGACY_KERAS=" + keras_2},
                     .arguments = {*sources, file},
                     .has_ddl = true});
}

}  // namespace

TEST_CASE("ranks of Horovod meet twice, with a process set, and train with PyTorch", "[horovod]") {
  run(Place::kHere, by_gloo("horovod_torch.py", "3"));
}
TEST_CASE("ranks of Horovod train with PyTorch on two hosts", "[horovod_on_hosts]") {
  run(Place::kTwoHosts, by_gloo("horovod_torch.py", "3"));
}
TEST_CASE("ranks of Horovod train with Keras", "[horovod]") {
  run(Place::kHere, by_gloo("horovod_keras.py", "2"));
}
TEST_CASE("ranks of Horovod train in a job of Slurm", "[horovod_in_slurm]") {
  run(Place::kSlurm, by_gloo("horovod_torch.py", "2"));
}
TEST_CASE("Adasum of ddl.torch is that of Horovod, built with MPI, but for rounding", "[horovod_adasum]") {
  for (const int ranks : {2, 4})  // Horovod needs a power of two
    run(Place::kHere, {.environment = "horovod-mpi",
                       .file = "horovod_adasum.py",
                       .options = {"-np", std::to_string(ranks)},
                       .lines = ranks,
                       .has_ddl = true});
}
TEST_CASE(
    "every public name of Horovod is in the package horovod of ddlrun, which hides an installed Horovod",
    "[horovod_names]") {
  run(Place::kHere, {.environment = "horovod",
                     .file = "horovod_names.py",
                     .options = {"-np", "1", "--as-horovod"},
                     .lines = 1,
                     .has_ddl = true});
}
TEST_CASE("Horovod's own tests of PyTorch pass with ddl by its name", "[horovod_tests]") {
  run_own_tests("horovod", "test_torch.py");
}
TEST_CASE("Horovod's own tests pass with ddl by its name and the newest PyTorch", "[horovod_tests_newest]") {
  run_own_tests("torch", "test_torch.py");
}
TEST_CASE("Horovod's own tests of TensorFlow pass with ddl by its name", "[horovod_tests_tensorflow]") {
  run_own_tests("tensorflow-2.15", "test_tensorflow.py");
}
TEST_CASE("Horovod's own tests of TensorFlow's process sets and of Keras pass with ddl by its name",
          "[horovod_tests_keras]") {
  for (const char* const file : {"test_tensorflow_process_sets.py", "test_tensorflow2_keras.py",
                                 "test_tensorflow2_keras_process_sets.py"})
    run_own_tests("tensorflow-2.15", file);
}

TEST_CASE("Horovod's own tests of TensorFlow pass with the newest, but for what Keras 3 lacks",
          "[horovod_tests_tensorflow_newest]") {
  run_own_tests("tensorflow", "test_tensorflow.py");
}
TEST_CASE("Horovod's own tests of Keras pass with tf_keras, and with Keras 3, but for what it lacks",
          "[horovod_tests_keras_newest]") {
  for (const char* const file : {"test_tensorflow2_keras.py", "test_tensorflow2_keras_process_sets.py"})
    for (const char* const keras_2 : {"0", "1"}) run_own_tests("tensorflow", file, keras_2);
  run_own_tests("tensorflow", "test_tensorflow_process_sets.py");
}

/// Each of Horovod's elastic examples but that of ImageNet, with one rank of four that is killed.
void run_elastic_examples(const std::vector<std::string>& options, bool has_ddl) {
  const auto sources = repository();
  if (!sources) return;
  const auto example = [&](const std::string& file, const std::string& dies, const std::string& after,
                           const std::vector<std::string>& arguments) {
    Program program{.environment = "horovod", .file = "horovod_example.py", .lines = 3, .has_ddl = has_ddl};
    program.options = {"-H", "localhost:2,127.0.0.1:2", "--min-np", "2", "-x", "TF_CPP_MIN_LOG_LEVEL=2"};
    program.options.insert(program.options.end(), options.begin(), options.end());
    program.arguments = {*sources + "/examples/elastic/" + file, dies, after};
    program.arguments.insert(program.arguments.end(), arguments.begin(), arguments.end());
    run(Place::kHere, program);
  };
  const std::vector<std::string> few{
      "--batch-size", "2", "--num-warmup-batches", "2", "--num-batches-per-iter", "2", "--num-iters", "6",
      "--no-cuda"};
  const auto with_model = [&](const std::string& model) {
    std::vector<std::string> words = few;
    words.insert(words.end(), {"--model", model});
    return words;
  };
  example("pytorch/pytorch_synthetic_benchmark_elastic.py", "1", "5", with_model("small"));
  example("pytorch/pytorch_mnist_elastic.py", "0", "7",
          {"--batch-size", "16", "--epochs", "2", "--test-batch-size", "64"});
  example("tensorflow2/tensorflow2_synthetic_benchmark_elastic.py", "0", "5", with_model("Small"));
  example("tensorflow2/tensorflow2_mnist_elastic.py", "2", "7", {});
  example("tensorflow2/tensorflow2_keras_mnist_elastic.py", "3", "40", {});
}

TEST_CASE("Horovod's elastic examples go on with ddl by its name when a rank is killed",
          "[horovod_examples]") {
  run_elastic_examples({"--as-horovod", "--blacklist-cooldown-range", "3600", "3600"}, true);
}
TEST_CASE("Horovod's elastic examples go on with Horovod itself when a rank is killed",
          "[horovod_examples_gloo]") {
  run_elastic_examples({"--gloo", "--gloo-timeout-seconds", "20"}, false);
}

TEST_CASE("Horovod's benchmarks of TensorFlow run as they stand", "[horovod_benchmarks]") {
  const auto sources = repository();
  if (!sources) return;
  const auto benchmark = [&](const std::string& environment, const std::string& file,
                             const std::string& keras_2) {
    run(Place::kHere, {.environment = environment,
                       .file = *sources + "/examples/tensorflow2/" + file,
                       .options = {"-np", "2", "--as-horovod", "--no-tag-output", "-x",
                                   "TF_CPP_MIN_LOG_LEVEL=2", "-x", "TF_USE_LEGACY_KERAS=" + keras_2},
                       .arguments = {"--no-cuda", "--model=MobileNet", "--batch-size=2",
                                     "--num-batches-per-iter=1", "--num-iters=2"},
                       .lines = 1,
                       .printed = "Total img/sec on 2 CPU(s): ",
                       .has_ddl = true});
  };
  benchmark("tensorflow-2.15", "tensorflow2_synthetic_benchmark.py", "0");
  benchmark("tensorflow-2.15", "tensorflow2_keras_synthetic_benchmark.py", "0");
  // It calls variables() of an optimizer, which is no function in Keras 3.
  benchmark("tensorflow", "tensorflow2_synthetic_benchmark.py", "1");
  benchmark("tensorflow", "tensorflow2_keras_synthetic_benchmark.py", "0");
}

}  // namespace ddl::frameworks
