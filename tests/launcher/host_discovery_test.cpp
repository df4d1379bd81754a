// What an elastic job makes of a script that prints hosts.
#include "launcher/elastic/host_discovery.h"

#include <sys/stat.h>

#include <fstream>

#include "base/text.h"
#include "launcher/elastic/membership_watch.h"
#include "launcher/scheduler/slurm.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace ddl::launcher;

namespace {

std::string discovered_names(const std::vector<AllocatedNode>& hosts) {
  std::string text;
  for (const AllocatedNode& one : hosts) {
    text += (text.empty() ? "" : " ") + one.name;
    if (one.slots) text += ":" + std::to_string(*one.slots);
  }
  return text;
}

std::string parsed_hosts(std::string_view text, std::optional<int> slots = 1) {
  const auto hosts = parse_discovered_hosts(text, "hosts.sh", slots);
  return hosts ? discovered_names(*hosts) : hosts.error().message();
}

/// What the first run of a script gives: hosts, or the error.
std::string first_run(const std::string& script) {
  const ddl::test::TemporaryDirectory folder;
  const std::string path = folder / "hosts.sh";
  std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  EventLoop loop;
  std::string result;
  JobSpec spec;
  spec.elastic.discovery = path;
  const HostDiscovery running(loop, spec,
                              {[&](const DiscoveredHosts& found) {
                                 result = "hosts " + discovered_names(found.hosts);
                                 loop.stop();
                               },
                               [&](const ddl::Error& error) {
                                 result = error.message();
                                 loop.stop();
                               }});
  loop.run();
  const auto at = result.find(path);
  return at == std::string::npos ? result : result.replace(at, path.size(), "SCRIPT");
}

}  // namespace

TEST_CASE("a discovery script prints a host a line, as a hostfile has it") {
  CHECK(parsed_hosts("a:2\nb slots=4\n\n  c  # new\r\n") == "a:2 b:4 c:1");
  CHECK(parsed_hosts("").empty());
  CHECK(parsed_hosts("[2001:db8::1]:2\n") == "2001:db8::1:2");
  CHECK(parsed_hosts("a:2\nb:four\n") == "hosts.sh:2: slots must be a positive integer, found \"four\"");
  CHECK(parsed_hosts("a\nb:2\n", 4) == "a:4 b:2");
  CHECK(parsed_hosts("a:1\nb\n", std::nullopt) == "hosts.sh:2: b has no slots");
  CHECK(parsed_hosts("a:1\nb:1\nA:2\n") == "hosts.sh:3: A is there twice");
  CHECK_THAT(parsed_hosts(std::string_view("a\0b\n", 4)), Catch::StartsWith("hosts.sh:1: "));
}

TEST_CASE("a discovery script is run, and its failures are sentences") {
  CHECK(first_run("echo a:1; echo b:2") == "hosts a:1 b:2");
  CHECK(first_run("echo nothing here >&2; exit 3") ==
        "SCRIPT (--host-discovery-script) exits with 3: nothing here");
  CHECK_THAT(first_run("kill -SEGV $$"),
             Catch::StartsWith("SCRIPT (--host-discovery-script) was killed by SIGSEGV"));
  CHECK_THAT(first_run("head -c 2000000 /dev/zero"), Catch::EndsWith("prints more than 1048576 bytes"));
  // A process that it leaves behind holds its output open.
  CHECK(first_run("sleep 1000 & echo a:1") == "hosts a:1");
}

TEST_CASE("a script that cannot be executed is named") {
  EventLoop loop;
  std::string message;
  JobSpec spec;
  spec.elastic.discovery = "/nonexistent/hosts.sh";
  const HostDiscovery running(loop, spec, {nullptr, [&](const ddl::Error& error) {
                                             message = error.message();
                                             loop.stop();
                                           }});
  loop.run();
  CHECK_THAT(message,
             Catch::StartsWith("--host-discovery-script: ") && Catch::Contains("/nonexistent/hosts.sh"));
}

TEST_CASE("the nodes of Slurm jobs of a name are hosts, each once") {
  CHECK(slurm_jobs_of("slurm:extra") == "extra");
  CHECK(!slurm_jobs_of("/home/me/slurm"));
  const auto jobs = parse_slurm_jobs(
      "7|2|16|gres/gpu:2|n[1-2]\n 12|1|8|gres:gpu:a100:4(S:0-1),gres:tmp:9|n3 \n13|2|7|N/A|n[3-4]\n");
  REQUIRE(jobs);
  REQUIRE(jobs->size() == 3);
  CHECK(jobs->at(0).id == "7");
  CHECK(jobs->at(0).nodes == std::vector<SchedulerNode>{{"n1", 8, 8, 2}, {"n2", 8, 8, 2}});
  CHECK(jobs->at(1).nodes == std::vector<SchedulerNode>{{"n3", 8, 8, 4}});
  CHECK(jobs->at(2).nodes == std::vector<SchedulerNode>{{"n3", 0, 1, 0}, {"n4", 0, 1, 0}});
  CHECK(discovered_names(hosts_of_jobs(*jobs, 3)->hosts) == "n1:3 n2:3 n3:3 n4:3");
  CHECK(hosts_of_jobs(*jobs, std::nullopt).error().message() ==
        "n4 (--host-discovery-script) has no GPUs, and so no known number of slots");
  CHECK(discovered_names(hosts_of_jobs({jobs->at(0)}, std::nullopt)->hosts) == "n1:2 n2:2");
  CHECK(parse_slurm_jobs("\n")->empty());
  for (const char* const line :
       {"7|2|16|N/A", "|2|16|N/A|n1", "7|0|16|N/A|n1", "7|2|x|N/A|n1", "7|2|16|N/A|n[1"})
    CHECK_THAT(parse_slurm_jobs(line).error().message(),
               Catch::StartsWith("squeue prints a line that is no job"));
}

TEST_CASE("a host that is to join is asked with the job's own way to reach it") {
  JobSpec spec;
  spec.ssh.start_timeout_seconds = 7;
  AllocatedNode node;
  node.name = "n1";
  CHECK(ddl::join(check_command(spec, node, "/bin/ddlrun"), " ")
            .find("/bin/ddlrun --check-hosts --quiet -H n1 --start-timeout 7") == 0);
  spec.ssh.port = 22;
  spec.ssh.identity_file = "/k";
  spec.ssh.args = {"-J", "me@b c"};
  spec.ssh.remote_path = "/opt/ddlrun";
  node.name = "2001:db8::1";
  node.user = "me";
  node.port = 2222;
  const auto words = check_command(spec, node, "/bin/ddlrun");
  CHECK(std::vector(words.begin() + 3, words.begin() + 13) ==
        std::vector<std::string>{"-H", "me@[2001:db8::1]", "--ssh-port", "2222", "--ssh-identity-file", "/k",
                                 "--ssh-args", "-J 'me@b c'", "--remote-path", "/opt/ddlrun"});
}
