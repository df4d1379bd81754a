// PyTorch: its own DistributedDataParallel, what is built on that, and ddl.torch.
#include <sys/stat.h>

#include "e2e/harness/scratch.h"
#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

const std::vector<std::string> kTwoRanks = {"-np", "2", "--map-by", "node"};

Program ddp(const std::string& environment, const std::string& backend) {
  return {.environment = environment,
          .file = "torch_ddp.py",
          .options = kTwoRanks,
          .arguments = {backend},
          .has_ddl = backend == "ddl"};
}
Program ddl_torch(const std::string& environment) {
  return {.environment = environment, .file = "torch_ddl.py", .options = kTwoRanks, .has_ddl = true};
}
Program compiled(std::vector<std::string> also = {}) {
  also.insert(also.begin(), "compile");
  return {.environment = "torch",
          .file = "torch_ddl.py",
          .options = kTwoRanks,
          .arguments = std::move(also),
          .has_ddl = true};
}
const Program kSharded{
    .environment = "torch", .file = "torch_sharded.py", .options = kTwoRanks, .has_ddl = true};

/// Ranks over the hosts divide an optimizer, and fewer on one host go on from what they have written.
void run_resharded(Place place, int ranks, int fewer) {
  const e2e::Scratch shared("/home/shared");
  REQUIRE(::chmod(shared.path().c_str(), 0777) == 0);
  const auto go_on = [&](int count, int hosts, int before) {
    run(place, {.environment = "torch",
                .file = "torch_resharded.py",
                .options = {"-np", std::to_string(count), "--map-by", hosts == 1 ? "slot" : "node"},
                .arguments = {shared.path()},
                .lines = count,
                .printed = " of " + std::to_string(count) + " on " + std::to_string(hosts) +
                           " hosts, after " + std::to_string(before) + ": right\n",
                .has_ddl = true});
  };
  go_on(ranks, 2, 0);
  go_on(fewer, 1, ranks);
}

const Program kAccelerate{.environment = "torch", .file = "torch_accelerate.py", .options = kTwoRanks};
const Program kLightning{.environment = "torch", .file = "torch_lightning.py", .options = kTwoRanks};
const Program kDeepspeed{.environment = "torch", .file = "torch_deepspeed.py", .options = kTwoRanks};

}  // namespace

TEST_CASE("DistributedDataParallel trains as one process does, over gloo and over libddl", "[torch]") {
  for (const std::string backend : {"gloo", "ddl"}) run(Place::kHere, ddp("torch", backend));
}
TEST_CASE("DistributedDataParallel trains on two hosts", "[torch_on_hosts]") {
  for (const std::string backend : {"gloo", "ddl"}) run(Place::kTwoHosts, ddp("torch", backend));
}
TEST_CASE("DistributedDataParallel trains in a job of Slurm", "[torch_in_slurm]") {
  run(Place::kSlurm, ddp("torch", "gloo"));
}

TEST_CASE("ddl.torch's DistributedOptimizer trains as one process does", "[torch]") {
  run(Place::kHere, ddl_torch("torch"));
}
TEST_CASE("ddl.torch trains on two hosts", "[torch_on_hosts]") { run(Place::kTwoHosts, ddl_torch("torch")); }
TEST_CASE("ddl.torch trains in a job of Slurm", "[torch_in_slurm]") {
  run(Place::kSlurm, ddl_torch("torch"));
}
TEST_CASE("ddl.torch trains a module that is compiled", "[torch_compiled]") {
  run(Place::kHere, compiled());
  run(Place::kHere, compiled({"views"}));
}

TEST_CASE("DistributedDataParallel whose ranks are started again trains as one process does",
          "[torch_restarted]") {
  run(Place::kHere,
      {.environment = "torch", .file = "torch_restarted.py", .options = {"-np", "2", "--max-restarts", "2"}});
}
TEST_CASE("Accelerate trains on several CPUs", "[accelerate]") { run(Place::kHere, kAccelerate); }
TEST_CASE("Lightning's Trainer trains by its strategy ddp", "[lightning]") { run(Place::kHere, kLightning); }
TEST_CASE("Lightning finds its ranks in a job of Slurm, beside Slurm's own variables",
          "[lightning_in_slurm]") {
  run(Place::kSlurm, kLightning);
}
TEST_CASE("DeepSpeed trains with ZeRO-1", "[deepspeed]") { run(Place::kHere, kDeepspeed); }
TEST_CASE("ddl.torch, PyTorch and DeepSpeed train alike with a divided optimizer", "[torch_sharded]") {
  run(Place::kHere, kSharded);
}
TEST_CASE("ddl.torch divides an optimizer among two hosts, and goes on with fewer ranks on one",
          "[torch_on_hosts]") {
  run_resharded(Place::kTwoHosts, 3, 2);
}
TEST_CASE("ddl.torch divides an optimizer in a job of Slurm, and goes on with one rank", "[torch_in_slurm]") {
  run_resharded(Place::kSlurm, 2, 1);
}
TEST_CASE("DeepSpeed trains on two hosts", "[deepspeed_on_hosts]") { run(Place::kTwoHosts, kDeepspeed); }

TEST_CASE("older versions of PyTorch train, too", "[torch_older]") {
  for (const std::string environment : {"torch-1.13", "torch-2.4"}) {
    for (const std::string backend : {"gloo", "ddl"}) run(Place::kHere, ddp(environment, backend));
    run(Place::kHere, ddl_torch(environment));
  }
}

}  // namespace ddl::frameworks
