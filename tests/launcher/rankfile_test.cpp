#include "launcher/job/rankfile.h"

#include <algorithm>

#include "affinity/source/topology_source.h"
#include "base/text.h"
#include "launcher/facts.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/node_binding.h"
#include "support/catch.h"

using namespace ddl::launcher;
using ddl::launcher::test::facts_of;
using ddl::launcher::test::job_of;

namespace {

Allocation hosts_named(const std::vector<std::string>& names) {
  Allocation allocation;
  allocation.origin = "-H";
  for (const std::string& name : names) allocation.nodes.emplace_back().name = name;
  return allocation;
}

std::string rankfile_error(const std::string& text) {
  const auto ranks = parse_rankfile(text, "r.txt");
  return ranks ? "accepted" : ranks.error().message();
}

/// The job of a rankfile on these hosts.
JobSpec job_by(const std::string& text, const Allocation& allocation) {
  auto ranks = parse_rankfile(text, "r.txt");
  REQUIRE(ranks);
  JobSpec spec = job_of(static_cast<int>(ranks->size()));
  spec.placed_ranks = *std::move(ranks);
  REQUIRE(resolve_hosts(spec.placed_ranks, allocation, "head"));
  return spec;
}

/// Two packages of four cores with two threads each, of which the job may use all.
NodeFacts facts_of_two_packages(const std::string& name) {
  NodeFacts facts = facts_of(name, 16);
  facts.topology = *ddl::affinity::hwloc_synthetic("pack:2 core:4 pu:2")->load();
  return facts;
}

}  // namespace

TEST_CASE("a rankfile gives each rank its host and its cores") {
  const auto ranks = parse_rankfile(
      "# two hosts\n"
      "rank 2=+n1 slot=1:0-2,1:3 # of package 1\r\n"
      "\n"
      "rank 0=node1 slot=10-12\n"
      "  rank 1 = node2  slot = 0, 1;4\n",
      "r.txt");
  REQUIRE(ranks);
  REQUIRE(ranks->size() == 3);
  CHECK((*ranks)[0] == RankfileEntry{"node1", {}, {{{}, 10, 12}}, "r.txt:4", 0});
  CHECK((*ranks)[1] == RankfileEntry{"node2", {}, {{{}, 0, 0}, {{}, 1, 1}, {{}, 4, 4}}, "r.txt:5", 0});
  CHECK((*ranks)[2] == RankfileEntry{"", 1, {{1, 0, 2}, {1, 3, 3}}, "r.txt:2", 0});
  const auto package = parse_rankfile("\xef\xbb\xbfrank 0=a slot=1:*", "r.txt");
  REQUIRE(package);
  CHECK(package->front().cores == ddl::affinity::NamedCores{{1, 0, ddl::affinity::CoreRange::kToTheEnd}});
}

TEST_CASE("cores of a rankfile are named by package, by CPU, or as all") {
  using ddl::affinity::NamedCores;
  constexpr int kAll = ddl::affinity::CoreRange::kToTheEnd;
  const auto cores = [](const std::string& slots) {
    const auto ranks = parse_rankfile("rank 0=a slot=" + slots, "r.txt");
    INFO((ranks ? std::string() : ranks.error().message()));
    REQUIRE(ranks);
    return ranks->front().cores;
  };
  CHECK(cores("0:0,1,4") == NamedCores{{0, 0, 0}, {0, 1, 1}, {0, 4, 4}});
  CHECK(cores("0:1;1:0-2") == NamedCores{{0, 1, 1}, {1, 0, 2}});
  CHECK(cores("0:1,1:0-2,4") == NamedCores{{0, 1, 1}, {1, 0, 2}, {1, 4, 4}});
  CHECK(cores("1:0;3") == NamedCores{{1, 0, 0}, {{}, 3, 3}});
  CHECK(cores("3;1:0") == NamedCores{{{}, 3, 3}, {1, 0, 0}});
  CHECK(cores("*") == NamedCores{{{}, 0, kAll}});
  CHECK(cores("0:* ; 1:1") == NamedCores{{0, 0, kAll}, {1, 1, 1}});
  CHECK(cores("p0-3,8") == NamedCores{{{}, 0, 3, true}, {{}, 8, 8, true}});
  CHECK(cores("P2;0") == NamedCores{{{}, 2, 2, true}, {{}, 0, 0}});
  CHECK(cores("S0:C1") == NamedCores{{0, 1, 1}});
  CHECK(cores("1:c0-2") == NamedCores{{1, 0, 2}});
  CHECK(cores("s1") == NamedCores{{1, 0, kAll}});
  CHECK(cores("S0-1") == NamedCores{{0, 0, kAll}, {1, 0, kAll}});
  CHECK(parse_rankfile("rank 0=a slots=3", "r.txt")->front().cores == NamedCores{{{}, 3, 3}});
}

TEST_CASE("an invalid line of a rankfile is refused with its number, and what to write") {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"", "r.txt places no rank; a line is rank N=HOST slot=CORES, as in rank 0=node1 slot=0-3"},
      {"node1 slots=4", "r.txt:1: found \"node1 slots=4\"; a line is rank N=HOST slot=CORES"},
      {"\nrank x=a slot=0", "r.txt:2: \"x\" is not a rank, a number from 0 to 999999"},
      {"rank 0 a slot=0", "r.txt:1: no \"=\" after rank 0"},
      {"rank 0= slot=0", "rank 0 has no slot=CORES after its host"},
      {"rank 0=a", "r.txt:1: rank 0 has no slot=CORES after its host; a line is"},
      {"rank 0=a slot=", "r.txt:1: rank 0: \"\" are no cores; they are numbers as in 0-3 or 0,2"},
      {"rank 0=a slot=p", "\"p\" are no cores"},
      {"rank 0=a slot=p0:1",
       "\"p0:1\" has a package, but p stands for CPUs of the operating system, as in p0-3"},
      {"rank 0=a slot=p*", "\"p*\" has no number; all cores of the node are slot=*"},
      {"rank 0=a slot=s0-9999", "\"s0-9999\" names more packages than a node has"},
      {"rank 0=a slot=s*", "\"s*\" names no package"},
      {"rank 0=a slot=L0-1", "\"L0-1\" are no cores"},
      {"rank 0=a slot=0:0:1", "\"0:0:1\" are no cores"},
      {"rank 0=a slot=0;", "\"\" are no cores"},
      {"rank 0=a slot=3-1", "\"3-1\" runs backwards"},
      {"rank 0=a slot=x:1", "\"x:1\" does not begin with the number of a package"},
      {"rank 0=a slot=0,1:2",
       "\"0,1:2\" names cores without a package before others with one; write \";\" between them, as in "
       "0;1:2"},
      {"rank 0=a slot=99999999999999999999", "are no cores"},
      {"rank 0=+1 slot=0", "\"+1\" is not a host's index, as in +n0"},
      {"rank 0=-oProxyCommand slot=0", "r.txt:1: rank 0: "},
      {"rank 0=me@a slot=0", "r.txt:1: rank 0: \"me@a\" has a user; write the host alone here"},
      {"\xff\xfer", "r.txt is encoded in UTF-16, as some programs of Windows write; save it as UTF-8"},
      {"rank 0=a slot=0\nrank 0=b slot=1",
       "r.txt:2: rank 0 was placed already, by r.txt:1; remove one of these lines"},
      {"rank 0=a slot=0\nrank 2=a slot=1", "r.txt places rank 2 and not rank 1; add a line for it"},
  };
  for (const auto& [text, message] : refused) {
    CAPTURE(text);
    CHECK_THAT(rankfile_error(text), Catch::Contains(message));
  }
}

TEST_CASE("hosts of a rankfile are those of the job, by name or by index") {
  const Allocation two = hosts_named({"Node1", "head.site"});
  const JobSpec spec = job_by("rank 0=node1 slot=0\nrank 1=+n1 slot=0\nrank 2=+n0 slot=1", two);
  CHECK(spec.placed_ranks[0].node == 0);
  CHECK(spec.placed_ranks[1].node == 1);
  CHECK(spec.placed_ranks[2].node == 0);
  CHECK(job_by("rank 0=localhost slot=0", hosts_named({"a", "head"})).placed_ranks[0].node == 1);

  const auto refusal_on = [](const std::string& text, const Allocation& allocation) {
    Rankfile ranks = parse_rankfile(text, "r.txt").value();
    const auto status = resolve_hosts(ranks, allocation, "head");
    return status ? "accepted" : status.error().message();
  };
  CHECK(refusal_on("rank 0=node3 slot=0", two) ==
        "r.txt:1: rank 0: node3 is not a host of -H; name one of its hosts, or add this one there");
  CHECK(refusal_on("rank 0=+n2 slot=0", two) ==
        "r.txt:1: rank 0: +n2 is beyond the 2 hosts of -H, which count from +n0");
  Allocation full = two;
  full.nodes[0].max_slots = 1;
  CHECK_THAT(refusal_on("rank 0=node1 slot=0\nrank 1=node1 slot=1", full),
             Catch::Contains("r.txt:2: rank 1: Node1 takes 1 rank (its max_slots)"));
}

TEST_CASE("without -H, a hostfile and a Slurm job, the job has the hosts of its rankfile") {
  JobSpec spec;
  spec.rankfile = "r.txt";
  spec.placed_ranks = parse_rankfile("rank 1=a slot=0\nrank 0=b slot=0\nrank 2=B slot=1", "r.txt").value();
  const auto allocation = make_allocation(spec, "", "head");
  REQUIRE(allocation);
  CHECK(allocation->origin == "r.txt");
  REQUIRE(allocation->nodes.size() == 2);
  CHECK(allocation->nodes[0].name == "b");
  spec.placed_ranks = parse_rankfile("rank 0=head slot=0\nrank 1=localhost slot=1", "r.txt").value();
  CHECK(make_allocation(spec, "", "head")->nodes.size() == 1);
  spec.placed_ranks = parse_rankfile("rank 0=+n0 slot=0", "r.txt").value();
  CHECK(make_allocation(spec, "", "head").error().message() ==
        "r.txt:1: +n0 counts the hosts of -H, of a hostfile or of a Slurm job; give one, or name the host");
  spec.hosts = "a";
  CHECK(make_allocation(spec, "", "head")->nodes.front().name == "a");
}

TEST_CASE("ranks of a rankfile are placed and bound as it says, whatever the slots") {
  const Allocation two = hosts_named({"a", "b"});
  const JobSpec spec =
      job_by("rank 0=b slot=0-1\nrank 1=a slot=1:0\nrank 2=b slot=1:2-3\nrank 3=b slot=7", two);
  const auto placement = place(spec, two, {1, 1});
  REQUIRE(placement);
  REQUIRE(placement->nodes.size() == 2);
  CHECK(placement->nodes[0].ranks == std::vector{1});
  CHECK(placement->nodes[1].ranks == std::vector{0, 2, 3});
  const std::vector<NodeFacts> facts = {facts_of_two_packages("a"), facts_of_two_packages("b")};
  const auto bindings = bind_nodes(spec, *placement, facts, {});
  REQUIRE(bindings);
  CHECK((*bindings)[0].plan.ranks.at(0).cpus.list() == "8-9");
  CHECK((*bindings)[1].plan.ranks.at(0).cpus.list() == "0-3");
  CHECK((*bindings)[1].plan.ranks.at(1).cpus.list() == "12-15");
  CHECK((*bindings)[1].plan.ranks.at(2).cpus.list() == "14-15");
  CHECK((*bindings)[1].plan.ranks.at(1).why == "is placed by r.txt:3");

  const JobSpec wrong = job_by("rank 0=a slot=0\nrank 1=b slot=8", two);
  CHECK(bind_nodes(wrong, *place(wrong, two, {1, 1}), facts, {}).error().message() ==
        "b: r.txt:2: rank 1: there is no core 8: the node has 8 cores, which count from 0");

  // Before the hosts are asked only the places are known.
  const auto dry = make_dry_plan(spec, two, {std::nullopt, facts[1]}, facts_of("head", 4), {});
  REQUIRE(dry);
  CHECK(dry->launch.nodes.at(0).ranks.at(0).cpus.is_empty());
  CHECK(dry->launch.nodes.at(1).ranks.at(2).cpus.list() == "14-15");
}
