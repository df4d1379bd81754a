// Horovod, built with Gloo: its ranks find each other by ddlrun's rendezvous. And the package horovod of ddlrun, by
// Horovod's names and Horovod's own tests.
#include <cstdio>
#include <filesystem>

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

/// Runs those of a file with the framework of an environment. The sources lie in that of Horovod.
void run_own_tests(const std::string& environment, const std::string& file) {
  const auto python = python_of("horovod");
  if (!python) return;
  const auto sources = std::filesystem::path(*python).parent_path().parent_path() / "sources";
  if (!std::filesystem::exists(sources)) {
    std::printf("SKIPPED: Horovod's sources are not there; scripts/frameworks horovod gets them\n");
    return;
  }
  run(Place::kHere, {.environment = environment,
                     .file = "horovod_tests.py",
                     .options = {"-np", "2", "--as-horovod"},
                     .arguments = {sources.string(), file},
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

}  // namespace ddl::frameworks
