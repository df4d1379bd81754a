// Horovod, built with Gloo: its ranks find each other by ddlrun's rendezvous. And ddl.torch, by Horovod's own tests.
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

/// Runs them with the PyTorch of an environment. The sources lie in that of Horovod.
void run_own_tests(const std::string& environment) {
  const auto python = python_of("horovod");
  if (!python) return;
  const auto sources = std::filesystem::path(*python).parent_path().parent_path() / "sources";
  if (!std::filesystem::exists(sources)) {
    std::printf("SKIPPED: Horovod's sources are not there; scripts/frameworks horovod gets them\n");
    return;
  }
  run(Place::kHere, {.environment = environment,
                     .file = "horovod_tests.py",
                     .options = {"-np", "2", "--map-by", "node"},
                     .arguments = {sources.string()},
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
TEST_CASE("Horovod's own tests pass with ddl.torch in its place, but for those that are named",
          "[horovod_tests]") {
  run_own_tests("horovod");
}
TEST_CASE("Horovod's own tests pass with ddl.torch and the newest PyTorch", "[horovod_tests_newest]") {
  run_own_tests("torch");
}

}  // namespace ddl::frameworks
