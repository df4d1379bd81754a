// Horovod, built with Gloo: its ranks find each other by ddlrun's rendezvous.
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

}  // namespace ddl::frameworks
