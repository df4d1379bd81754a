// Every shipped profile can be read, and gives the bindings that its site publishes.
#include "affinity/output/binding_format.h"
#include "affinity/plan/binding_plan.h"
#include "base/fd.h"
#include "base/text.h"
#include "support/catch.h"
#include "templates/profile/site_catalog.h"

using namespace ddl::affinity;
using ddl::templates::SiteCatalog;

namespace {

ddl::templates::SiteProfile site_named(const std::string& name) {
  auto site = SiteCatalog({}, [](const std::string& path) { return ddl::read_file(path); }).find(name);
  INFO((site ? std::string() : site.error().message()));
  REQUIRE(site);
  return *std::move(site);
}

BindingPlan plan_of(const ddl::templates::SiteProfile& site, int ranks, int gpus_per_rank = 0) {
  REQUIRE(site.node);
  const auto topology = topology_of_model(*site.node, site.name);
  REQUIRE(topology);
  CHECK(is_consistent(*topology));
  BindingPolicy policy;
  policy.rank_order = site.rank_order;
  policy.gpus_per_rank = gpus_per_rank;
  auto plan = plan_binding(*topology, policy, ranks);
  REQUIRE(plan);
  return *std::move(plan);
}

std::string map_cpu(const std::string& name, int ranks) {
  const auto site = site_named(name);
  const auto topology = topology_of_model(*site.node, site.name);
  return std::string(ddl::trim(format_binding(*topology, plan_of(site, ranks), BindingFormat::kMapCpu)));
}

std::string gpus_of(const std::string& name, int ranks) {
  std::vector<std::string> gpus;
  for (const RankBinding& rank : plan_of(site_named(name), ranks).ranks)
    gpus.push_back(std::to_string(rank.gpus.front().index));
  return ddl::join(gpus, ",");
}

}  // namespace

TEST_CASE("every shipped profile has the name of its file, a title, and a node that can be planned on") {
  for (const std::string& name : ddl::templates::shipped_sites()) {
    INFO(name);
    const auto site = site_named(name);
    CHECK(site.name == name);
    CHECK_FALSE(site.title.empty());
    if (!site.node) continue;
    for (const RankBinding& rank : plan_of(site, static_cast<int>(site.node->gpu_numa.size())).ranks)
      CHECK(rank.gpus.size() == 1);
  }
}

TEST_CASE("the bindings that sites publish") {
  CHECK(map_cpu("lumi-g", 8) == "map_cpu:49,57,17,25,1,9,33,41");
  CHECK(map_cpu("frontier", 8) == "map_cpu:1,9,17,25,33,41,49,57");
  CHECK(gpus_of("frontier", 8) == "4,5,2,3,6,7,0,1");
  CHECK(map_cpu("juwels-booster", 4) == "map_cpu:18,6,42,30");
  CHECK(map_cpu("perlmutter-gpu", 4) == "map_cpu:48,32,16,0");
  CHECK(map_cpu("alps-gh200", 4) == "map_cpu:0,72,144,216");
  CHECK(map_cpu("nris-olivia", 4) == "map_cpu:0,72,144,216");
}

TEST_CASE("what sites publish of their Slurm and their networks") {
  using ddl::templates::gives_whole_nodes;
  using ddl::templates::SlurmCpus;
  const auto variables = [](const std::string& name) {
    std::vector<std::string> all;
    for (const auto& one : site_named(name).setup.variables) all.push_back(one.name + "=" + one.value);
    return all;
  };
  using Catch::Matchers::VectorContains;
  const auto perlmutter = site_named("perlmutter-gpu");
  CHECK(perlmutter.slurm.qos == "regular");
  CHECK(perlmutter.slurm.account_suffix == "_g");
  CHECK(perlmutter.slurm.cpus_are == SlurmCpus::kThreads);
  CHECK_THAT(perlmutter.slurm.directives, VectorContains(std::string("--gpu-bind=none")));
  CHECK_THAT(variables("perlmutter-gpu"), VectorContains(std::string("MPICH_OFI_NIC_POLICY=GPU")));
  CHECK(gives_whole_nodes(perlmutter.slurm, "", ""));
  CHECK_FALSE(gives_whole_nodes(perlmutter.slurm, "", "shared"));

  // Each is of use with the other only.
  CHECK_THAT(site_named("frontier").slurm.directives,
             VectorContains(std::string("--network=disable_rdzv_get")));
  CHECK_THAT(variables("frontier"), VectorContains(std::string("FI_CXI_RDZV_PROTO=alt_read")));
  CHECK_THAT(variables("frontier"), VectorContains(std::string("NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3")));
  REQUIRE(site_named("frontier").setup.needed);
  CHECK(site_named("frontier").setup.needed->module == "rccl-net-plugin");
  CHECK_THAT(variables("alps-gh200"), VectorContains(std::string("NCCL_NET=AWS Libfabric")));
  CHECK_THAT(variables("alps-gh200"), VectorContains(std::string("FI_CXI_RX_MATCH_MODE=software")));

  CHECK(site_named("juwels-booster").slurm.cpus_are == SlurmCpus::kUnknown);
  CHECK_THAT(site_named("juwels-booster").slurm.srun_only, VectorContains(std::string("--hint")));
  CHECK_THAT(variables("juwels-booster"), VectorContains(std::string("CUDA_VISIBLE_DEVICES=0,1,2,3")));
  const auto lumi = site_named("lumi-g");
  CHECK(gives_whole_nodes(lumi.slurm, "", ""));
  CHECK(gives_whole_nodes(lumi.slurm, "standard-g", ""));
  CHECK_FALSE(gives_whole_nodes(lumi.slurm, "small-g", ""));
  CHECK_FALSE(gives_whole_nodes(lumi.slurm, "standard-g,small-g", ""));
}

TEST_CASE("the adapters of LUMI-G's GPUs") {
  std::vector<std::string> nics;
  for (const RankBinding& rank : plan_of(site_named("lumi-g"), 8).ranks)
    nics.push_back(ddl::join(rank.nics, "+"));
  CHECK(ddl::join(nics, ",") == "hsn0,hsn0,hsn1,hsn1,hsn2,hsn2,hsn3,hsn3");
  // A rank with several GPUs has the adapters of all of them.
  nics.clear();
  for (const RankBinding& rank : plan_of(site_named("juwels-booster"), 2, 2).ranks)
    nics.push_back(ddl::join(rank.nics, "+"));
  CHECK(ddl::join(nics, ",") == "mlx5_0+mlx5_1,mlx5_2+mlx5_3");
}
