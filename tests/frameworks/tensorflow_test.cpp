// TensorFlow: MultiWorkerMirroredStrategy and ParameterServerStrategy, newest and 2.15.
#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

Program workers(const std::string& environment, const std::string& file) {
  return {.environment = environment,
          .file = file,
          .options = {"-np", "2", "--map-by", "node", "--framework", "tensorflow"}};
}

/// The chief prints; the others serve it, and are ended when it has ended.
Program parameter_servers(const std::string& environment) {
  return {.environment = environment,
          .file = "tensorflow_parameters.py",
          .options = {"--tf-roles", "chief:1,worker:2,ps:1"},
          .lines = 1};
}

void run_here(const std::string& environment) {
  run(Place::kHere, workers(environment, "tensorflow_loop.py"));
  run(Place::kHere, workers(environment, "tensorflow_fit.py"));
  run(Place::kHere, parameter_servers(environment));
}

}  // namespace

TEST_CASE("TensorFlow's strategies train as one process does", "[tensorflow]") { run_here("tensorflow"); }
TEST_CASE("TensorFlow's strategies train on two hosts", "[tensorflow_on_hosts]") {
  run(Place::kTwoHosts, workers("tensorflow", "tensorflow_loop.py"));
  run(Place::kTwoHosts, parameter_servers("tensorflow"));
}
TEST_CASE("workers of TensorFlow train in a job of Slurm", "[tensorflow_in_slurm]") {
  run(Place::kSlurm, workers("tensorflow", "tensorflow_loop.py"));
}

TEST_CASE("the strategies of TensorFlow 2.15 train as one process does", "[tensorflow_2.15]") {
  run_here("tensorflow-2.15");
}
TEST_CASE("workers of TensorFlow 2.15 train on two hosts", "[tensorflow_2.15_on_hosts]") {
  run(Place::kTwoHosts, workers("tensorflow-2.15", "tensorflow_loop.py"));
}

}  // namespace ddl::frameworks
