#include "launcher/scheduler/find_allocation.h"

#include "launcher/job_text.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;
using ddl::launcher::test::text_of;

namespace {

JobSpec with_hosts(const std::string& hosts, const std::string& exclude = "") {
  JobSpec spec;
  spec.hosts = hosts;
  spec.hosts_exclude = exclude;
  return spec;
}

std::string error_of(const ddl::Result<Allocation>& allocation) {
  REQUIRE_FALSE(allocation);
  CHECK(allocation.error().code() == ddl::ErrorCode::kInvalidArgument);
  return allocation.error().message();
}

AllocatedNode named(const std::string& name) {
  AllocatedNode node;
  node.name = name;
  return node;
}

}  // namespace

TEST_CASE("an allocation names the origin of its nodes") {
  const auto here = make_allocation({}, "ignored", "head1");
  REQUIRE(here);
  CHECK(text_of(here->nodes) == "head1");
  CHECK(here->origin == "this machine");

  const auto listed = make_allocation(with_hosts("a:2,b"), "ignored", "head1");
  REQUIRE(listed);
  CHECK(text_of(listed->nodes) == "a:2 b");
  CHECK(listed->origin == "-H");

  JobSpec spec;
  spec.hostfile = "etc/hosts.txt";
  const auto filed = make_allocation(spec, "a slots=2\nb\n", "head1");
  REQUIRE(filed);
  CHECK(text_of(filed->nodes) == "a:2 b");
  CHECK(filed->origin == "etc/hosts.txt");
  spec.hostfile = "-";
  CHECK(make_allocation(spec, "a", "head1")->origin == "standard input");
}

TEST_CASE("an error names -H or the line of the hostfile") {
  CHECK(error_of(make_allocation(with_hosts("a:x"), "", "h")) ==
        "-H: \"a:x\": slots must be a positive integer, found \"x\"");
  JobSpec spec;
  spec.hostfile = "hosts.txt";
  CHECK(error_of(make_allocation(spec, "a\nb:x\n", "h")) ==
        "hosts.txt:2: slots must be a positive integer, found \"x\"");
  spec.hostfile = "-";
  CHECK(error_of(make_allocation(spec, "b:x", "h")) ==
        "standard input:1: slots must be a positive integer, found \"x\"");
  CHECK_THAT(error_of(make_allocation(with_hosts("a", "b:2"), "", "h")),
             Catch::StartsWith("--hosts-exclude: "));
}

TEST_CASE("excluded hosts are removed, whatever their case; unknown ones are ignored") {
  CHECK(text_of(make_allocation(with_hosts("n[1-5]:2", "n[2-3],N5,gone"), "", "h")->nodes) == "n1:2 n4:2");
  JobSpec spec;
  spec.hostfile = "f";
  spec.hosts_exclude = "b";
  CHECK(text_of(make_allocation(spec, "a\nb\n", "h")->nodes) == "a");
  CHECK(error_of(make_allocation(with_hosts("a,b", "b,a"), "", "h")) ==
        "--hosts-exclude leaves no host of -H");
  CHECK_FALSE(make_allocation(with_hosts("", "h"), "", "h"));
}

TEST_CASE("without -np, the slots that were given are the number of ranks") {
  const auto implied = [](const JobSpec& spec) {
    const auto count = implied_num_ranks(spec, *make_allocation(spec, "", "h"));
    return count ? std::to_string(*count) : count.error().message();
  };
  CHECK(implied(with_hosts("a:2,b:3")) == "5");
  CHECK(implied(with_hosts("a:2,b:3", "b")) == "2");
  CHECK(implied(with_hosts("a:2,b")) == "-H does not say how many slots b has");
  JobSpec spec = with_hosts("a,b");
  spec.ranks_per_node = 4;
  CHECK(implied(spec) == "8");
  spec.hosts = "n[1-1001]";
  spec.ranks_per_node = 1000;
  CHECK_THAT(implied(spec), Catch::Contains("1001000 slots") && Catch::Contains("at most 1000000 ranks"));
}

TEST_CASE("this machine is recognised by its names and loopback addresses") {
  for (const char* name : {"localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "::1", "head1", "HEAD1"}) {
    INFO(name);
    CHECK(is_this_machine(named(name), "head1"));
  }
  CHECK(is_this_machine(named("head1"), "head1.site.example"));
  CHECK(is_this_machine(named("head1.site.example"), "head1.site.example"));
  for (const char* name : {"head2", "head", "head1.other.example", "10.0.0.1", "127.evil.example", "::2"}) {
    INFO(name);
    CHECK_FALSE(is_this_machine(named(name), "head1.site.example"));
  }
}

TEST_CASE("a node with a user or a port of its own is reached by ssh, even if it is this machine") {
  AllocatedNode node = named("localhost");
  node.user = "me";
  CHECK_FALSE(is_this_machine(node, "head1"));
  node.user.reset();
  node.port = 2222;
  CHECK_FALSE(is_this_machine(node, "head1"));
}

namespace {

const Environment kInSlurm = {{"SLURM_JOB_ID", "7"},
                              {"SLURM_JOB_NODELIST", "node[3-4]"},
                              {"SLURM_TASKS_PER_NODE", "2(x2)"},
                              {"SLURM_NTASKS", "4"}};

JobSpec started_by(LauncherChoice launcher) {
  JobSpec spec;
  spec.launcher = launcher;
  return spec;
}

}  // namespace

TEST_CASE("ranks are started in the Slurm job around ddlrun, unless another way was asked for") {
  for (const auto launcher : {LauncherChoice::kAuto, LauncherChoice::kSrun, LauncherChoice::kMpirun}) {
    const auto slurm = job_to_use(started_by(launcher), kInSlurm);
    REQUIRE(slurm);
    CHECK(slurm->value().id == "7");
  }
  JobSpec by_agent = started_by(LauncherChoice::kAuto);
  by_agent.ssh.launch_agent = {"rsh", "%h"};
  for (const JobSpec& spec :
       {started_by(LauncherChoice::kLocal), started_by(LauncherChoice::kSsh), by_agent}) {
    const auto slurm = job_to_use(spec, kInSlurm);
    REQUIRE(slurm);
    CHECK_FALSE(*slurm);
  }
  CHECK_FALSE(*job_to_use({}, {}));
  CHECK_THAT(job_to_use(started_by(LauncherChoice::kSrun), {}).error().message(),
             Catch::Contains("does not run in one"));
  Environment broken = kInSlurm;
  broken["SLURM_TASKS_PER_NODE"] = "2(x3)";
  CHECK_THAT(job_to_use({}, broken).error().message(), Catch::Contains("SLURM_TASKS_PER_NODE"));
  Environment task = kInSlurm;
  task["SLURM_STEP_NUM_TASKS"] = "4";
  task["SLURM_PROCID"] = "2";
  CHECK_THAT(job_to_use(started_by(LauncherChoice::kSsh), task).error().message(),
             Catch::Contains("one of 4 tasks"));
  CHECK(job_to_use(started_by(LauncherChoice::kLocal), task));
}

namespace {

ddl::Result<Allocation> allocated(const JobSpec& spec, const std::optional<SchedulerJob>& job,
                                  const std::string& hostname) {
  DDL_ASSIGN(hosts, named_hosts(spec, "", job, hostname));
  return find_allocation(spec, std::move(hosts), job, hostname);
}

}  // namespace

TEST_CASE("the hosts of a job are Slurm's, or those among them that the user names") {
  const auto slurm = job_to_use({}, kInSlurm).value();
  const auto found = [&](const JobSpec& spec) {
    const auto allocation = allocated(spec, slurm, "node3");
    return allocation ? text_of(allocation->nodes) : "refused: " + allocation.error().message();
  };
  CHECK(found({}) == "node3:2 node4:2");
  CHECK(found(with_hosts("", "node3")) == "node4:2");
  CHECK(found(with_hosts("localhost:1")) == "node3:1");
  CHECK(implied_num_ranks({}, allocated({}, slurm, "node3").value()) == 4);
  CHECK_THAT(found(with_hosts("node5")), Catch::Contains("refused: node5 is not a node of Slurm job 7"));
  JobSpec tree;
  tree.ssh.fan_out = 2;
  CHECK_FALSE(check_fan_out(tree, slurm));
  CHECK(check_fan_out(tree, std::nullopt));
  CHECK_FALSE(named_hosts(with_hosts("a:x"), "", slurm, "node3"));
}

TEST_CASE("--launcher local accepts only this machine") {
  JobSpec spec = started_by(LauncherChoice::kLocal);
  CHECK(allocated(spec, std::nullopt, "head"));
  spec.hosts = "localhost:1,b:1";
  CHECK_THAT(allocated(spec, std::nullopt, "head").error().message(),
             Catch::Contains("this machine, head, but b is another one"));
}
