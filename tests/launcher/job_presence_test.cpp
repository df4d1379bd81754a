// Several ddlruns in one Slurm job find each other on every node where both have ranks.
#include "launcher/node/job_presence.h"

#include <sched.h>

#include "support/catch.h"
#include "support/processes.h"

using namespace ddl::launcher;
using namespace ddl::test;

namespace {

/// A number of a Slurm job that no other test uses.
std::string job_of_test(const std::string& name) { return name + std::to_string(::getpid()); }

}  // namespace

TEST_CASE("agents of one job and user find each other's heads, and only while these exist") {
  const std::string job = job_of_test("both");
  const auto first = JobPresence::announce(job, {"login1.site", 11});
  REQUIRE(first);
  CHECK(first->others().empty());
  {
    const auto second = JobPresence::announce(job, {"node-2", 22});
    const auto elsewhere = JobPresence::announce(job + "0", {"node-2", 33});
    REQUIRE(second);
    REQUIRE(elsewhere);
    CHECK(second->others() == std::vector<JobHead>{{"login1", 11}});
    CHECK(first->others() == std::vector<JobHead>{{"node-2", 22}});
    CHECK(elsewhere->others().empty());
  }
  CHECK(first->others().empty());
  CHECK_FALSE(JobPresence::announce(job, {"login1", 11}));
  CHECK_FALSE(JobPresence::announce("7/../8", {"login1", 11}));
  CHECK_FALSE(JobPresence::announce(job, {"a b", 11}));
}

TEST_CASE("an agent on other CPUs is not reported, nor one that was killed") {
  cpu_set_t own;
  REQUIRE(::sched_getaffinity(0, sizeof own, &own) == 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &own)) cpus.push_back(cpu);
  }
  const auto bind_to = [](int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return ::sched_setaffinity(0, sizeof one, &one) == 0;
  };
  const std::string job = job_of_test("cpus");
  Readiness ready;
  const pid_t other = fork_process([&] {
    const bool is_bound = bind_to(cpus.back());
    const auto presence = JobPresence::announce(job, {"other", 1});
    if (is_bound && presence) ready.report();
    sleep_for_ever();
  });
  ready.wait_for(1);
  const auto presence = JobPresence::announce(job, {"here", 2});
  REQUIRE(presence);
  CHECK(presence->others() == std::vector<JobHead>{{"other", 1}});
  REQUIRE(bind_to(cpus.front()));
  CHECK(presence->others().size() == (cpus.size() == 1 ? 1 : 0));
  REQUIRE(::sched_setaffinity(0, sizeof own, &own) == 0);
  REQUIRE(::kill(other, SIGKILL) == 0);
  REQUIRE(::waitpid(other, nullptr, 0) == other);
  CHECK(presence->others().empty());
}

TEST_CASE("the ranks of mpirun announce the head that ddlrun has told them") {
  const JobAnnouncement job{"959", {"login1.site", 4711}};
  CHECK(announcement_text(job) == "959/login1.site/4711");
  CHECK(parse_announcement(announcement_text(job)) == job);
  CHECK(announcement_text({"", {"login1", 4711}}).empty());
  for (const char* text :
       {"", "959", "959/login1", "959/login1/0", "959/login1/x", "/login1/4711", "959/a/b/4711"})
    CHECK(parse_announcement(text) == JobAnnouncement());
}

TEST_CASE("names of sockets that other programs have chosen are checked") {
  const std::string text =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16165 @ddlrun/1000/7/login1/4711\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 16166 @ddlrun/1000/7/login1/4711\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16167 @ddlrun/1000/7/node1/12\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16168 @ddlrun/1000/77/node1/13\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16169 @ddlrun/1000/7/\x1b[31m/14\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16170 @ddlrun/1000/7/node1\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16171 @ddlrun/1000/7/node1/-1\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 16172 /run/ddlrun/1000/7/node1/15\n"
      "0000000000000000: 00000002 00000000 00000000 0002 01 16173\n";
  CHECK(announced_heads(text, "ddlrun/1000/7/", "ddlrun/1000/7/node1/12") ==
        std::vector<AnnouncedHead>{{{"login1", 4711}, "ddlrun/1000/7/login1/4711"}});
  CHECK(announced_heads("", "ddlrun/1000/7/", "").empty());
}
