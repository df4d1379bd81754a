#include "launcher/node/node_probe.h"

#include <sched.h>
#include <unistd.h>

#include "contract/version.h"
#include "support/catch.h"

using namespace ddl::launcher;

TEST_CASE("CPUs that share a core are one core") {
  CHECK(count_cores({}) == 0);
  CHECK(count_cores({"0\n", "1\n"}) == 2);
  CHECK(count_cores({"0,64\n", "1,65\n", "0,64\n", "1,65\n"}) == 2);
  CHECK(count_cores({"0-3\n", "0-3\n", "0-3\n", "4-7\n"}) == 2);
}

TEST_CASE("a CPU whose siblings cannot be read counts as a core of its own") {
  CHECK(count_cores({"", "", ""}) == 3);
  CHECK(count_cores({"0,1\n", "0,1\n", ""}) == 2);
}

TEST_CASE("the facts of the probe are true of this machine") {
  const NodeFacts facts = probe_node();
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  CHECK(facts.allowed_cpus == CPU_COUNT(&allowed));
  CHECK(facts.slots == facts.allowed_cpus);
  CHECK(facts.allowed_cores >= 1);
  CHECK(facts.allowed_cores <= facts.allowed_cpus);
  CHECK(facts.version == ddl::contract::kVersion);
  CHECK(facts.hostname == hostname());
  CHECK(facts.agent_pid == ::getpid());
  CHECK_FALSE(facts.kernel.empty());
}

TEST_CASE("/etc/hosts says whether a hostname is one of the loopback") {
  const std::string debian = "127.0.0.1\tlocalhost\n127.0.1.1\tnode7.site node7  # by the installer\n";
  CHECK(is_loopback_in(debian, "node7"));
  CHECK(is_loopback_in(debian, "node7.site"));
  CHECK_FALSE(is_loopback_in(debian, "node"));
  CHECK_FALSE(is_loopback_in(debian, "installer"));
  CHECK_FALSE(is_loopback_in("10.0.0.7 node7\n127.0.1.1 node7\n", "node7"));
  CHECK(is_loopback_in("::1 node7\n", "node7"));
  CHECK_FALSE(is_loopback_in("", "node7"));
}

TEST_CASE("only CPUs that this process may use are counted") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &before)) ++cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const NodeFacts facts = probe_node();
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(facts.allowed_cpus == 1);
  CHECK(facts.allowed_cores == 1);
  CHECK(facts.slots == 1);
}
