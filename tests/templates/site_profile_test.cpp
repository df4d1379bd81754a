// A profile's text becomes a site, or a sentence with file and line.
#include "templates/profile/site_profile.h"

#include "support/catch.h"

using namespace ddl::templates;
using ddl::affinity::NodeModel;

namespace {

std::string error_of(std::string_view text) {
  const auto site = read_site_profile(text, "own.yaml");
  return site ? "" : site.error().message();
}

}  // namespace

TEST_CASE("a profile with everything") {
  const auto site = read_site_profile(R"(
name: own
title: Our cluster
node:
  board: B
  packages: 2
  numa-per-package: 2
  l3s-per-numa: 2
  cores-per-l3: 4
  threads-per-core: 4
  threads: adjacent
  memory-per-numa-gb: 64
  reserved: 0,12
  gpus:
    vendor: amd
    model: MI250X
    numa: [3, 0]
  nics:
    hsn0: 3
binding:
  rank-order: cpu
)",
                                      "own.yaml");
  REQUIRE(site);
  CHECK(site->name == "own");
  CHECK(site->title == "Our cluster");
  CHECK(site->rank_order == ddl::affinity::RankOrder::kCpu);
  REQUIRE(site->node);
  NodeModel node;
  node.board = "B";
  node.packages = 2;
  node.numa_per_package = 2;
  node.l3s_per_numa = 2;
  node.cores_per_l3 = 4;
  node.threads_per_core = 4;
  node.threads = NodeModel::Threads::kAdjacent;
  node.numa_memory_bytes = 64'000'000'000;
  node.reserved.cpus = ddl::CpuSet::of({0, 12});
  node.gpu_vendor = ddl::affinity::GpuVendor::kAmd;
  node.gpu_model = "MI250X";
  node.gpu_numa = {3, 0};
  node.nics = {{"hsn0", 3}};
  CHECK(*site->node == node);
}

TEST_CASE("a profile need not describe the nodes") {
  const auto site = read_site_profile("name: small\n", "own.yaml");
  REQUIRE(site);
  CHECK_FALSE(site->node);
  CHECK(site->rank_order == ddl::affinity::RankOrder::kGpu);
}

TEST_CASE("a profile's Slurm, and what its scripts set up") {
  using namespace ddl::templates;
  const auto site = read_site_profile(R"(
name: own
slurm:
  account-required: true
  account-suffix: _g
  partition: gpu
  qos: regular
  time-required: true
  whole-nodes: true
  whole-node-partitions: [gpu, big]
  shared-qos: [shared]
  gpu-request: gres
  gpu-vendor: amd
  gpus-per-node: 4
  cpus-per-task: 8
  cpus-are: threads
  smt-directive: --hint=multithread
  one-node-directives: [--network=single_node_vni]
  mpi-type: pmix
  srun-only: [--hint]
setup:
  container-gpu: none
  needed:
    variables: {A: 1}
    reason: why
    between-nodes: true
)",
                                      "own.yaml");
  REQUIRE(site);
  const SiteSlurm& slurm = site->slurm;
  CHECK(slurm.account_suffix == "_g");
  CHECK(slurm.qos == "regular");
  CHECK(slurm.time_required);
  CHECK(slurm.gpu_vendor == ddl::affinity::GpuVendor::kAmd);
  CHECK(slurm.cpus_are == SlurmCpus::kThreads);
  CHECK(slurm.mpi_type == "pmix");
  CHECK(slurm.srun_only == std::vector<std::string>{"--hint"});
  CHECK(slurm.smt_directive == "--hint=multithread");
  CHECK(slurm.one_node_directives == std::vector<std::string>{"--network=single_node_vni"});
  CHECK_FALSE(site->setup.container_gpu_option);
  REQUIRE(site->setup.needed);
  CHECK(site->setup.needed->between_nodes);
  CHECK(gives_whole_nodes(slurm, "", ""));
  CHECK(gives_whole_nodes(slurm, "big", ""));
  CHECK_FALSE(gives_whole_nodes(slurm, "small", ""));
  CHECK_FALSE(gives_whole_nodes(slurm, "gpu", "shared"));
  CHECK(error_of("name: a\nslurm:\n  cpus-are: 2\n")
            .find("own.yaml:3: cpus-are: '2' is not one of cores, threads") == 0);
}

TEST_CASE("an error in a profile is reported with its line") {
  CHECK(error_of("").find("own.yaml:") == 0);
  CHECK(error_of("title: x\n") == "own.yaml: has no name");
  CHECK(error_of("name: a\nnode:\n  numa: 4\n")
            .find("own.yaml:3: unknown key numa; the keys here are board,") == 0);
  CHECK(error_of("name: a\nnode:\n  gpus:\n    vendor: nvdia\n") ==
        "own.yaml:4: vendor: 'nvdia' is not one of nvidia, amd, intel");
  CHECK(error_of("name: a\nnode:\n  gpus:\n    numa: 3\n") ==
        "own.yaml:4: numa: it takes a list of NUMA nodes, one for each GPU");
  CHECK(error_of("name: a\nnode:\n  gpus:\n    numa: [-1]\n").find("own.yaml:4: numa: it takes a number") ==
        0);
  CHECK(error_of("name: a\nnode:\n  nics: [hsn0]\n") ==
        "own.yaml:3: nics: it takes the NUMA node of each adapter, as in hsn0: 3");
  CHECK(error_of("name: a\nnode:\n  threads: both\n") ==
        "own.yaml:3: threads: 'both' is not one of across, adjacent");
  CHECK(error_of("name: a\nnode:\n  reserved: first\n").find("own.yaml:3: reserved: 'first' is neither") ==
        0);
  CHECK(error_of("name: a\nbinding:\n  rank-order: gcd\n") ==
        "own.yaml:3: rank-order: 'gcd' is not one of gpu, cpu");
  // What each number allows and all of them together do not.
  CHECK(error_of("name: a\nnode:\n  gpus:\n    numa: [1]\n") ==
        "own.yaml:3: GPU 0 is on NUMA node 1, and the node has 1");
  CHECK(error_of("name: a\nnode:\n  packages: 100\n  cores-per-l3: 100\n") ==
        "own.yaml:3: the node has more than 8192 CPUs");
  CHECK(error_of("name: a\nnode:\n  cores-per-l3: 1\n  reserved: 0\n") ==
        "own.yaml:3: every core is reserved");
}

TEST_CASE("the nodes that a job requests decide which variant of a site it is") {
  const auto site = read_site(R"(
name: own
title: own
slurm: {account-required: true, cpus-per-task: 2, directives: [--all]}
setup: {variables: {A: 1, B: 1}}
notes: [all]
default-variant: gpu
variants:
  gpu:
    title: own-gpu
    partitions: [gpu, "gpu-*"]
    constraints: [gpu]
    qos: ["acc_*"]
    node: {gpus: {numa: [0]}}
    slurm: {partition: gpu, cpus-per-task: 8}
    setup: {variables: {B: 2, C: 3}}
    notes: [of gpu]
  cpu:
    title: own-cpu
    partitions: [cpu, both]
    constraints: [cpu, zen4]
    qos: [gp]
    node: {cores-per-l3: 4}
  fat: {title: own-fat, partitions: [fat, both]}
  tuned: {title: own-tuned, slurm: {directives: [--tuned]}}
  mi250: {title: own-mi250, constraints: [MI250], slurm: {constraint: MI250}}
)",
                              "own.yaml");
  INFO((site ? std::string() : site.error().message()));
  REQUIRE(site);
  const auto name = [&](const NodeRequest& request, std::string_view variant = {}) {
    return profile_of(*site, request, variant).title;
  };
  CHECK(name({}) == "own-gpu");
  CHECK(name({"cpu", "", ""}) == "own-cpu");
  CHECK(name({"gpu-test", "", ""}) == "own-gpu");
  CHECK(name({"gpu,gpu-test", "", ""}) == "own-gpu");
  CHECK(name({"", "[zen4*2|ib]", ""}) == "own-cpu");
  CHECK(name({"", "gpu&hbm80g", ""}) == "own-gpu");
  CHECK(name({"", "", "gp"}) == "own-cpu");
  CHECK(name({"", "", "acc_debug"}) == "own-gpu");
  // The user's word precedes the default, and the request precedes the word.
  CHECK(name({}, "cpu") == "own-cpu");
  CHECK(name({"gpu", "", ""}, "cpu") == "own-gpu");
  CHECK(name({"both", "", ""}, "fat") == "own-fat");
  CHECK(name({"fat", "", ""}, "tuned") == "own-fat");
  CHECK(name({"any", "", ""}, "tuned") == "own-tuned");
  // Nodes of several variants, or of none: only what holds for all.
  CHECK(name({"cpu,gpu", "", ""}) == "own");
  CHECK(name({"both", "", ""}) == "own");
  CHECK(name({"any", "", ""}) == "own");
  CHECK(name({"", "cpu|gpu", ""}) == "own");
  // Words that no variant has say nothing.
  CHECK(name({"", "ib", "high"}) == "own-gpu");
  CHECK(name({"", "ib", "high"}, "cpu") == "own-cpu");
  // But a job of this one needs its constraint.
  CHECK(name({}, "mi250") == "own-mi250");
  CHECK(name({"", "ib", ""}, "mi250") == "own");
  // A note names a partition that is unknown.
  const auto note = [&](const NodeRequest& request) { return profile_of(*site, request).notes.back(); };
  CHECK(note({"cpu,any", "", ""}) ==
        "the profile has no partition 'any'; it has gpu, gpu-*, cpu, both, fat, "
        "so only what holds for all its jobs is known");
  CHECK(note({"both", "", ""}).find("the profile does not describe the nodes that the job requests") == 0);

  // A variant has what holds for all, and in its place what differs.
  const SiteProfile gpu = profile_of(*site, {});
  CHECK(gpu.name == "own");
  CHECK(profile_of(*site, {}, "gpu").name == "own-gpu");
  CHECK(profile_of(*site, {"cpu", "", ""}).name == "own-cpu");
  CHECK(gpu.slurm.account_required);
  CHECK(gpu.slurm.cpus_per_task == 8);
  CHECK(gpu.slurm.directives == std::vector<std::string>{"--all"});
  CHECK(gpu.setup.variables == std::vector<SiteVariable>{{"A", "1"}, {"B", "2"}, {"C", "3"}});
  CHECK(gpu.notes == std::vector<std::string>{"all", "of gpu"});
  CHECK(profile_of(*site, {}, "tuned").slurm.directives == std::vector<std::string>{"--tuned"});
  CHECK_FALSE(site->all.node);

  CHECK(error_of("name: a\nvariants: [big]\n").find("own.yaml:2: variants: it takes names") == 0);
  CHECK(error_of("name: a\nvariants:\n  b: {cpus: 2}\n").find("own.yaml:3: unknown key cpus") == 0);
  CHECK(error_of("name: a\nvariants:\n  b: {}\n  b: {}\n") == "own.yaml:4: b occurs twice");
  CHECK(error_of("name: a\ndefault-variant: b\n") == "own.yaml: default-variant: there is no variant b");
}
