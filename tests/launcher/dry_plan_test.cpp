#include "launcher/plan/launch_plan.h"

#include "affinity/source/topology_source.h"
#include "launcher/facts.h"
#include "support/catch.h"

using namespace ddl::launcher;
using ddl::launcher::test::facts_of;
using ddl::launcher::test::job_of;

namespace {

const std::string kUnknown(kUnknownUntilLaunch);

Allocation hosts(const std::string& list) {
  JobSpec spec;
  spec.hosts = list;
  return make_allocation(spec, "", "head").value();
}

/// Only this machine is known.
std::vector<std::optional<NodeFacts>> known_here(const Allocation& allocation) {
  std::vector<std::optional<NodeFacts>> known;
  for (const AllocatedNode& node : allocation.nodes)
    known.push_back(is_this_machine(node, "head") ? std::optional(facts_of("head", 4)) : std::nullopt);
  return known;
}

DryPlan plan_of(const JobSpec& spec, const Allocation& allocation) {
  auto plan = make_dry_plan(spec, allocation, known_here(allocation), facts_of("head", 4), {});
  INFO((plan ? "" : plan.error().message()));
  REQUIRE(plan);
  return *plan;
}

std::string variable(const DryPlan& plan, std::size_t node, std::size_t rank, const std::string& name) {
  const NodeLaunch& launch = plan.launch.nodes.at(node);
  return environment_of(plan.launch.job, launch, launch.ranks.at(rank)).at(name);
}

}  // namespace

TEST_CASE("on this machine only the port is unknown") {
  const DryPlan plan = plan_of(job_of(2), local_allocation("head"));
  CHECK(plan.hosts_from == "this machine");
  CHECK(plan.slots == std::vector<std::optional<int>>{4});
  CHECK(variable(plan, 0, 1, "MASTER_PORT") == kUnknown);
  CHECK(variable(plan, 0, 1, "MASTER_ADDR") == facts_of("head", 4).master_address);
  CHECK(variable(plan, 0, 1, "OMP_NUM_THREADS") == "2");
  CHECK(variable(plan, 0, 1, "HOROVOD_HOSTNAME") == "head");
}

TEST_CASE("the facts of other hosts are unknown, and as many slots as here are assumed") {
  const DryPlan plan = plan_of(job_of(7), hosts("a:2,b,head:1"));
  CHECK(plan.hosts_from == "-H");
  CHECK(plan.assumed_slots == 4);
  CHECK(plan.slots == std::vector<std::optional<int>>{2, std::nullopt, 1});
  CHECK(plan.launch.nodes.at(1).ranks.size() == 4);
  CHECK(variable(plan, 0, 0, "HOROVOD_HOSTNAME") == kUnknown);
  CHECK(variable(plan, 0, 0, "OMP_NUM_THREADS") == kUnknown);
  CHECK(variable(plan, 0, 0, "MASTER_ADDR") == kUnknown);
  CHECK(variable(plan, 2, 0, "HOROVOD_HOSTNAME") == "head");
  CHECK(variable(plan, 2, 0, "OMP_NUM_THREADS") == "4");
  CHECK(variable(plan, 2, 0, "MASTER_ADDR") == kUnknown);
  CHECK(variable(plan, 2, 0, "RANK") == "6");
}

TEST_CASE("one other host has an address of its own") {
  const DryPlan plan = plan_of(job_of(1), hosts("a:1"));
  CHECK(variable(plan, 0, 0, "MASTER_ADDR") == kUnknown);
}

TEST_CASE("threads that the user has chosen are known") {
  auto plan =
      make_dry_plan(job_of(1), hosts("a:1"), {std::nullopt}, facts_of("head", 4), {{"OMP_NUM_THREADS", "3"}});
  REQUIRE(plan);
  CHECK_FALSE(plan->launch.nodes[0].ranks[0].environment.contains("OMP_NUM_THREADS"));
  CHECK(ddl::launcher::test::inherited(plan->launch, 0).at("OMP_NUM_THREADS") == "3");
}

TEST_CASE("more ranks than fit are refused as at launch") {
  CHECK_FALSE(
      make_dry_plan(job_of(4), hosts("a:2,b:1"), {std::nullopt, std::nullopt}, facts_of("head", 4), {}));
}

TEST_CASE("if hosts were asked, only the port is unknown, and their own topologies are used for binding") {
  const Allocation allocation = hosts("a,b");
  std::vector<std::optional<NodeFacts>> known = {facts_of("a.site", 2), facts_of("b.site", 3)};
  for (std::optional<NodeFacts>& facts : known) {
    auto topology = ddl::affinity::hwloc_synthetic("pack:2 core:2 pu:1")->load();
    REQUIRE(topology);
    facts->topology = *topology;
  }
  const auto plan = make_dry_plan(job_of(4), allocation, known, facts_of("head", 4), {});
  REQUIRE(plan);
  CHECK(plan->asked_all);
  CHECK(plan->slots == std::vector<std::optional<int>>{2, 3});
  CHECK(plan->launch.nodes.at(1).ranks.size() == 2);
  CHECK(variable(*plan, 1, 0, "HOROVOD_HOSTNAME") == "b.site");
  CHECK(variable(*plan, 1, 0, "MASTER_ADDR") == facts_of("a.site", 2).master_address);
  CHECK(variable(*plan, 1, 0, "MASTER_PORT") == kUnknown);
  CHECK(variable(*plan, 0, 1, "OMP_NUM_THREADS") == "2");
  CHECK(plan->launch.nodes[0].ranks[1].cpus.list() == "2-3");
  CHECK_FALSE(plan->bindings.at(1).plan.ranks.at(0).why.empty());
  CHECK_FALSE(plan_of(job_of(2), allocation).asked_all);
}

TEST_CASE("a binding that was asked for is not refused for hosts whose facts are unknown") {
  JobSpec spec = job_of(2);
  spec.binding.bind_to = ddl::affinity::BindTo::kCore;
  const DryPlan plan = plan_of(spec, hosts("a:2"));
  CHECK(plan.bindings.at(0).plan.ranks.empty());
  CHECK(plan.bindings.at(0).unbound_because.empty());
}

TEST_CASE("for hosts that were not asked, objects are counted as on this machine, and that is said") {
  JobSpec spec = job_of(3);
  spec.binding.mapping = {ddl::affinity::BindTo::kNuma, 1};
  NodeFacts here = facts_of("head", 4);
  here.topology = *ddl::affinity::hwloc_synthetic("numa:2 core:2 pu:1")->load();
  const auto plan = make_dry_plan(spec, hosts("a:4,b:4"), {std::nullopt, std::nullopt}, here, {});
  REQUIRE(plan);
  CHECK(plan->launch.nodes.at(0).ranks.size() == 2);
  CHECK(plan->unknown_objects == 2);
  spec.num_ranks = 5;
  CHECK_FALSE(make_dry_plan(spec, hosts("a:4,b:4"), {std::nullopt, std::nullopt}, here, {}));
  // Another host, which was asked, has fewer.
  NodeFacts other = facts_of("a", 4);
  other.topology = *ddl::affinity::hwloc_synthetic("numa:1 core:4 pu:1")->load();
  spec.num_ranks = 3;
  const auto probed = make_dry_plan(spec, hosts("a:4,b:4"), {other, here}, here, {});
  REQUIRE(probed);
  CHECK(probed->launch.nodes.at(0).ranks.size() == 1);
  CHECK(probed->launch.nodes.at(1).ranks.at(1).cpus.list() == "2-3");
  CHECK(probed->unknown_objects == 0);
}
