// Jobs over several hosts: placement of ranks, names of hosts, ways to reach them, input and output.
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <regex>

#include <nlohmann/json.hpp>

#include "base/cpu_set.h"
#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "contract/ddlrun.h"
#include "e2e/harness/fifo.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;
using e2e::Command;

const std::string kFourHosts = "node1:2,node2:2,node3:2,node4:2";
/// The command by which a rank prints its host and login.
const std::vector<std::string> kHello = {"sh", "-c", "echo rank $RANK on $(hostname) as $(whoami)"};

/// "node1 node1 node2": the host of each rank, by rank, from the output of kHello; with the login if it is not the
/// one under test.
std::string hosts_by_rank(const std::string& output) {
  std::map<int, std::string> hosts;
  for (const auto line : split(output, '\n')) {
    const std::size_t at = line.find("rank ");
    if (at == std::string_view::npos) continue;
    const auto words = split(line.substr(at), ' ');  // rank R on HOST as LOGIN
    std::string host(words.at(3));
    if (words.at(5) != tested_login()) host += " as " + std::string(words.at(5));
    hosts[static_cast<int>(parse_integer(words.at(1)).value())] = host;
  }
  std::vector<std::string> in_order;
  for (const auto& [rank, host] : hosts) {
    INFO(output);
    REQUIRE(rank == static_cast<int>(in_order.size()));
    in_order.push_back(host);
  }
  return join(in_order, " ");
}

std::string hello(std::vector<std::string> options, const Command& settings = {}) {
  options.insert(options.end(), kHello.begin(), kHello.end());
  HostJob job(options, settings);
  const int status = job.wait();
  INFO(job.err());
  CHECK(status == 0);
  return hosts_by_rank(job.out());
}

TEST_CASE("eight ranks run on four hosts", "[launch]") {
  CHECK(hello({"-np", "8", "-H", kFourHosts}) == "node1 node1 node2 node2 node3 node3 node4 node4");
}

TEST_CASE("ranks are bound on every host, and the kernel's binding is reported", "[launch]") {
  if (ddl::CpuSet::allowed().count() < 2)
    DDL_SKIP("a host has one CPU, so that two ranks of it are not bound");
  HostJob job({"-np", "4", "-H", "node1:2,node2:2", "--report-bindings", "grep", "Cpus_allowed_list",
               "/proc/self/status"});
  CHECK(job.wait() == 0);
  INFO(job.out() << job.err());
  for (int rank = 0; rank < 4; ++rank) {
    const std::string tag = "[" + std::to_string(rank) + "]<stdout>:Cpus_allowed_list:\t";
    const std::size_t at = job.out().find(tag);
    REQUIRE(at != std::string::npos);
    const std::string cpus = job.out().substr(at + tag.size(), job.out().find('\n', at) - at - tag.size());
    const std::string rank_on_host =
        "rank " + std::to_string(rank) + " on node" + std::to_string(1 + rank / 2) + ": CPU";
    // "CPU 1", "CPUs 0-3".
    CHECK_THAT(job.err(), Contains(rank_on_host + " " + cpus + " as planned") ||
                              Contains(rank_on_host + "s " + cpus + " as planned"));
  }
}

TEST_CASE("the report of a job has the clock of each rank's cores", "[launch]") {
  if (ddl::CpuSet::allowed().count() < 2)
    DDL_SKIP("a host has one CPU, so that two ranks of it are not bound");
  if (std::filesystem::exists("/sys/devices/system/cpu/cpu0/cpufreq"))
    DDL_SKIP("here a driver states the clocks, for which a test cannot put its own");
  const std::string cpuinfo = e2e::bytes_of("/proc/cpuinfo");
  const std::regex clock("(cpu MHz\\s*: )[0-9.]+");
  if (!std::regex_search(cpuinfo, clock)) DDL_SKIP("/proc/cpuinfo has no clocks");
  const SharedScratch folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);  // the login's head writes the report
  Cluster cluster;
  for (const auto& [node, megahertz] : {std::pair("node1", "$012400.000"), {"node2", "$011200.000"}})
    cluster.cover(node, "/proc/cpuinfo", folder.write(node, std::regex_replace(cpuinfo, clock, megahertz)));
  HostJob job({"-np", "4", "-H", "node1:2,node2:2", "--report-json", folder.path("r.json"), "sleep", "4"});
  CHECK(job.wait() == 0);
  const auto report = nlohmann::json::parse(e2e::bytes_of(folder.path("r.json")));
  for (std::size_t rank = 0; rank < 4; ++rank)
    CHECK(report["ranks"][rank]["clock_hertz"] == (rank < 2 ? 2'400'000'000 : 1'200'000'000));
}

TEST_CASE("--dry-run --probe asks the hosts, and its plan is that of the job", "[launch]") {
  if (ddl::CpuSet::allowed().count() < 2)
    DDL_SKIP("a host has one CPU, so that two ranks of it are not bound");
  HostJob plan({"--dry-run", "--probe", "--json", "-np", "4", "-H", "node1:2,node2:2", "true"});
  CHECK(plan.wait() == 0);
  INFO(plan.out() << plan.err());
  const auto asked = nlohmann::json::parse(plan.out());
  CHECK(asked["hosts_asked"] == true);
  HostJob job({"--report-bindings", "--json", "-np", "4", "-H", "node1:2,node2:2", "true"});
  CHECK(job.wait() == 0);
  const std::string report = job.err().substr(job.err().find('{'));
  const auto ran = nlohmann::json::parse(report);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto& planned = asked["nodes"][rank / 2]["ranks"][rank % 2];
    CHECK(planned["why"].get<std::string>().size() > 10);
    CHECK(planned["cpus"] == ran["ranks"][rank]["binding"]["planned_cpus"]);
    CHECK(ran["ranks"][rank]["binding"]["difference"].is_null());
  }

  HostJob missing({"--dry-run", "--probe", "-np", "2", "-H", "node1:1,nowhere:1", "true"});
  CHECK(missing.wait() == 122);
  CHECK_THAT(missing.err(), Contains("nowhere: "));
}

TEST_CASE("ranks are placed by slot, by node, or with --ranks-per-node", "[launch]") {
  CHECK(hello({"-np", "5", "-H", kFourHosts}) == "node1 node1 node2 node2 node3");
  CHECK(hello({"-np", "5", "-H", kFourHosts, "--map-by", "node"}) == "node1 node2 node3 node4 node1");
  CHECK(hello({"--ranks-per-node", "1", "-H", kFourHosts}) == "node1 node2 node3 node4");
  CHECK(hello({"-np", "3", "-H", "node2:1,node1:1", "--oversubscribe"}).size() == 17);  // three names
}

TEST_CASE("hosts can be given as names, ranges, repeated names, addresses, or in a file", "[launch]") {
  CHECK(hello({"-np", "3", "-H", "node[1-3]:1"}) == "node1 node2 node3");
  CHECK(hello({"-np", "3", "-H", "node2:1,node3:1,node2:1"}) == "node2 node2 node3");
  CHECK(hello({"-np", "2", "-H", "10.77.0.4:1,[fd77::3]:1"}) == "node4 node3");
  CHECK(hello({"-np", "3", "-H", kFourHosts, "--hosts-exclude", "node1,node3"}) == "node2 node2 node4");
  const SharedScratch files;
  const std::string hostfile =
      files.write("hosts", "# the cluster\r\nnode3 slots=1\r\n\r\nnode1:1\nnode2 2 # two\n");
  CHECK(hello({"-np", "4", "--hostfile", hostfile}) == "node3 node1 node2 node2");
  Command from_file;
  from_file.input = Command::Input::kFile;
  from_file.input_file = hostfile;
  CHECK(hello({"-np", "2", "--hostfile", "-"}, from_file) == "node3 node1");
}

TEST_CASE("a host without a number of slots has as many as its agent finds", "[launch]") {
  HostJob job({"-np", "1000", "-H", "node1,node2", "true"});
  CHECK(job.wait() == contract::kUsageError);
  CHECK_THAT(job.err(), Contains("1000") && Contains("--oversubscribe"));
  CHECK(hello({"-np", "2", "-H", "node1,node2", "--map-by", "node"}) == "node1 node2");
}

TEST_CASE("the machine that ddlrun runs on can be one of the hosts", "[launch]") {
  CHECK(hello({"-np", "3", "-H", "node1:1,head:1,node2:1"}) == "node1 head node2");
  CHECK(hello({"-np", "2", "-H", "head:1,node2:1", "--launcher", "ssh"}) == "head node2");
}

TEST_CASE("jobs run with other logins, noisy start-up files, csh and a jump host", "[launch]") {
  CHECK(hello({"-np", "3", "-H", "other@node1:1,noisy@node2:1,inner:1"}) ==
        "node1 as other node2 as noisy inner");
  if (e2e::bytes_of("/etc/passwd").find("/csh") == std::string::npos) DDL_CLUSTER_SKIP("there is no csh");
  CHECK(hello({"-np", "2", "-H", "cshell@node1:1,node2:1"}) == "node1 as cshell node2");
}

TEST_CASE("ssh gets additional options, and another command can replace it", "[launch]") {
  CHECK(hello({"-np", "1", "-H", "10.79.0.2:1", "--ssh-args", "-J node1 -o HostKeyAlias=inner"}) == "inner");
  CHECK(hello({"-np", "2", "-H", "node1:1,node2:1", "--launch-agent", "ssh -o BatchMode=yes %h"}) ==
        "node1 node2");
  CHECK(hello({"-np", "1", "-H", "node1:1", "-p", "22", "-i",
               tested_login() == "root" ? "/etc/ddl-cluster/root_key" : "/home/plain/.ssh/id_ed25519"}) ==
        "node1");
}

TEST_CASE("a failing rank on another host ends the job, and ddlrun returns its exit code", "[launch]") {
  HostJob job({"-np", "4", "-H", "node1:1,node2:1,node3:1,node4:1", "sh", "-c",
               "[ $RANK != 2 ] || exit 3; exec sleep 1000"});
  CHECK(job.wait() == 3);
  CHECK_THAT(job.err(), Contains("rank 2 on node3") && Contains("exited with 3"));
}

TEST_CASE("a command that is missing on one host is reported with the name of the host", "[launch]") {
  HostJob job({"-np", "2", "-H", "node1:1,node2:1", "sh", "-c",
               "[ $RANK = 0 ] || exec /nowhere/train; exec sleep 1000"});
  CHECK(job.wait() == contract::kNotFound);
  CHECK_THAT(job.err(), Contains("rank 1 on node2"));
  HostJob missing({"-np", "2", "-H", "node1:1,node2:1", "/nowhere/train"});
  CHECK(missing.wait() == contract::kNotFound);
  CHECK_THAT(missing.err(), Contains("/nowhere/train"));
}

TEST_CASE("megabytes of standard input reach rank 0, or all ranks, unchanged", "[launch]") {
  std::string sent;
  for (int line = 0; sent.size() < (std::size_t{2} << 20); ++line)
    sent += "line " + std::to_string(line) + "\n";
  const SharedScratch files;
  Command from_file;
  from_file.input = Command::Input::kFile;
  from_file.input_file = files.write("sent", sent);
  {
    HostJob job({"-np", "2", "-H", "node1:1,node2:1", "--no-tag-output", "cat"}, from_file);
    CHECK(job.wait() == 0);
    CHECK((job.out() == sent));  // not expanded: megabytes
  }
  {
    HostJob job({"-np", "2", "-H", "node1:1,node2:1", "--stdin", "all", "sh", "-c", "cksum"}, from_file);
    CHECK(job.wait() == 0);
    const auto first = job.out().find("<stdout>:"), second = job.out().rfind("<stdout>:");
    REQUIRE(first != second);
    CHECK(job.out().substr(first, job.out().find('\n', first) - first) ==
          job.out().substr(second, job.out().find('\n', second) - second));
  }
}

TEST_CASE("ranks on every host get the requested variables and working directory", "[launch]") {
  Command settings;
  settings.environment = {{"PASSED_ON", "a b"}};
  HostJob job({"-np", "2", "-H", "node1:1,node2:1", "-x", "PASSED_ON", "-x", "SET=c d", "--workdir",
               "/usr/share", "sh", "-c", "echo \"$PASSED_ON,$SET,$(pwd),$RANK,$WORLD_SIZE,$LOCAL_RANK\""},
              settings);
  CHECK(job.wait() == 0);
  CHECK_THAT(job.out(), Contains("[0]<stdout>:a b,c d,/usr/share,0,2,0\n") &&
                            Contains("[1]<stdout>:a b,c d,/usr/share,1,2,0\n"));
}

TEST_CASE("with --as-horovod every host names the folder of the package horovod beside its own ddlrun",
          "[launch]") {
  Command settings;
  settings.environment = {{"PYTHONPATH", "/of/the/user"}};
  HostJob job({"-np", "2", "-H", "node1:1,node2:1", "--as-horovod", "sh", "-c",
               "echo \"$PYTHONPATH\"; ls -d \"${PYTHONPATH%%:*}/horovod/torch/__init__.py\""},
              settings);
  CHECK(job.wait() == 0);
  INFO(job.err());
  for (const std::string rank : {"[0]<stdout>:/", "[1]<stdout>:/"}) CHECK_THAT(job.out(), Contains(rank));
  CHECK(e2e::occurrences(job.out(), "/as-horovod:/of/the/user\n") == 2);
  CHECK(e2e::occurrences(job.out(), "/as-horovod/horovod/torch/__init__.py\n") == 2);

  HostJob given({"-np", "2", "-H", "node1:1,node2:1", "--as-horovod", "-x", "PYTHONPATH=/of/the/option", "sh",
                 "-c", "echo \"$PYTHONPATH\""},
                settings);
  CHECK(given.wait() == 0);
  CHECK(e2e::occurrences(given.out(), "/as-horovod:/of/the/option\n") == 2);
}

TEST_CASE("with --as-horovod a host without the package horovod is named, and no rank starts", "[launch]") {
  const SharedScratch scratch;  // an empty folder
  const auto bin = std::filesystem::path(DDL_E2E_DDLRUN).parent_path();
  Cluster cluster;
  cluster.cover("node2", bin.parent_path() / "share/ddlrun/as-horovod", scratch.path());
  HostJob job({"-np", "2", "-H", "node1:1,node2:1", "--as-horovod", "echo", "started"});
  CHECK(job.wait() == contract::kStartFailure);
  INFO(job.out() << job.err());
  CHECK_THAT(job.err(), Contains("node2: its ddlrun has no package horovod beside it") &&
                            Contains("--remote-path") && !Contains("node1"));
  CHECK(job.out().empty());
}

// Over ssh they were those of the other host.
TEST_CASE("ranks on all hosts have the umask and the soft limits of the shell, as far as hard limits allow",
          "[launch]") {
  Cluster cluster;
  const std::string start_up = "/home/late/.bashrc";
  cluster.on_host("head", {"sh", "-c", "echo 'ulimit -n 300' >" + start_up});
  Command shell;
  shell.argv = {"sh", "-c", "umask 027; ulimit -S -n 500; ulimit -S -c 0; ulimit -S -s 4096; exec \"$@\"",
                "sh"};
  HostJob job({"--no-tag-output", "-np", "3", "-H", "node1:1,late@node2:1,late@node3:1", "sh", "-c",
               "echo $RANK $(umask; ulimit -Sn; ulimit -Sc; ulimit -Ss)"},
              shell);
  CHECK(job.wait() == 0);
  cluster.on_host("head", {"rm", start_up});
  INFO(job.err());
  for (const std::string rank : {"0 0027 500", "1 0027 300", "2 0027 300"})
    CHECK_THAT(job.out(), Contains(rank + " 0 4096\n"));
  CHECK_THAT(job.err(),
             Contains("ranks on node2, node3 have the soft limits nofile 300 and not 500 as in this shell"));
  CHECK(e2e::occurrences(job.err(), "soft limits") == 1);
}

TEST_CASE("--check-build checks every host, and also one capability of them", "[launch]") {
  HostJob all({"-H", "node1,node2,node3", "--check-build"});
  CHECK(all.wait() == 0);
  INFO(all.out() << all.err());
  CHECK_THAT(all.out(), Contains(" on node1, node2, node3:\n"));
  // With a sanitizer on few cores, the probes of three hosts take longer than they may.
  if (std::string_view(DDL_E2E_SANITIZE).empty())
    CHECK_THAT(all.out(), Contains("[X] PMIx\n") && Contains("[X] ssh\n"));
  // On a loaded host a probe may run into its timeout, which is a difference.
  CHECK_THAT(all.out(), Contains("No differences between 3 hosts.") || Contains(" in time"));
  HostJob one({"-H", "node1,node2", "--check-build=pmi"});
  CHECK(one.wait() == 0);
  CHECK_THAT(one.out(),
             Contains("node1: pmi: built yes, works here yes") && Contains("node2: pmi: built yes"));
  HostJob lost({"-H", "node1,nowhere", "--check-build"});
  CHECK(lost.wait() == contract::kStartFailure);
  CHECK(lost.out().empty());
  CHECK_THAT(lost.err(), Contains("nowhere: its name was not found"));
}

}  // namespace
}  // namespace ddl::cluster
