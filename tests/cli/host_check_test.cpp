// --check-hosts: the differences that are noticed, and how they are printed.
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/reports/check_hosts_report.h"
#include "contract/ddlrun.h"
#include "contract/version.h"
#include "launcher/facts.h"
#include "launcher/head/host_comparison.h"
#include "support/catch.h"

using namespace ddl::cli;
using namespace ddl::launcher;
using nlohmann::json;

namespace {

/// This number of equal hosts.
std::vector<HostCheck> hosts(std::size_t count) {
  std::vector<HostCheck> result;
  for (std::size_t i = 0; i < count; ++i) {
    HostCheck host;
    host.name = "node" + std::to_string(i + 1);
    host.facts = ddl::launcher::test::facts_of(host.name, 8);
    host.answer_seconds = 0.25;
    host.clock_offset_seconds = -0.004;
    result.push_back(host);
  }
  return result;
}

HostCheck failed(const std::string& name, const std::string& why) {
  HostCheck host;
  host.name = name;
  host.failure = why;
  return host;
}

/// "kernel node3, clock node1": what is noticed, column by column.
std::string noticed(const std::vector<HostCheck>& checks) {
  std::vector<std::string> found;
  for (const HostColumn& column : compare_hosts(checks).columns) {
    for (std::size_t i = 0; i < checks.size(); ++i) {
      if (column.values[i].noticed) found.push_back(column.name + " " + checks[i].name);
    }
  }
  return ddl::join(found, ", ");
}

}  // namespace

TEST_CASE("equal hosts give no remarks") {
  for (const std::size_t count : {0, 1, 2, 5}) {
    CHECK(noticed(hosts(count)).empty());
    CHECK(compare_hosts(hosts(count)).remarks.empty());
  }
}

TEST_CASE("every value that differs from most hosts is noticed") {
  struct Change {
    std::string column;
    void (*apply)(NodeFacts&);
    std::string remark;
  };
  const std::vector<Change> changes = {
      {"version", [](NodeFacts& f) { f.version = "0.0.9"; },
       "node2: version is 0.0.9; most hosts have 0.1.0"},
      {"cores", [](NodeFacts& f) { f.allowed_cpus = 4; }, "node2: cores/CPUs is 8/4; most hosts have 8/8"},
      {"cores", [](NodeFacts& f) { f.allowed_cores = 4; }, "node2: cores/CPUs is 4/8; most hosts have 8/8"},
      {"memory_bytes", [](NodeFacts& f) { f.memory_bytes /= 2; },
       "node2: memory is 32.0 GB; the median is 64.0 GB"},
      {"memlock_bytes", [](NodeFacts& f) { f.memlock_bytes = 8'388'608; },
       "node2: memlock is 8 MB; most hosts have no limit"},
      {"nofile", [](NodeFacts& f) { f.nofile = 256; }, "node2: nofile is 256; most hosts have 1024"},
      {"shm_free_bytes", [](NodeFacts& f) { f.shm_free_bytes = 60'000'000; },
       "node2: only 60 MB free in /dev/shm"},
      {"shm_free_bytes", [](NodeFacts& f) { f.shm_free_bytes = 10'000'000'000; },
       "node2: only 10.0 GB free in /dev/shm; the median is 32.0 GB"},
      {"shm_free_bytes", [](NodeFacts& f) { f.shm_free_bytes = -1; }, "node2: /dev/shm cannot be read"},
      {"tmp_free_bytes", [](NodeFacts& f) { f.tmp_free_bytes = 0; }, "node2: only 0 MB free in /tmp"},
      {"kernel", [](NodeFacts& f) { f.kernel = "5.10.0"; }, "node2: kernel is 5.10.0; most hosts have 6.1.0"},
      {"architecture", [](NodeFacts& f) { f.architecture = "aarch64"; },
       "node2: arch is aarch64; most hosts have x86_64"},
      {"interfaces", [](NodeFacts& f) { f.addresses[0].interface = "ib0"; },
       "node2: interfaces is ib0,eth0; most hosts have eth0"},
      {"interfaces", [](NodeFacts& f) { f.addresses.clear(); },
       "node2: interfaces is none; most hosts have eth0"},
      {"libddl", [](NodeFacts& f) { f.libddl.clear(); }, "node2: libddl is none; most hosts have 0.1.0"},
  };
  for (const Change& change : changes) {
    INFO(change.remark);
    auto checks = hosts(4);
    change.apply(*checks[1].facts);
    CHECK(noticed(checks) == change.column + " node2");
    CHECK(compare_hosts(checks).remarks == std::vector<std::string>{change.remark});
  }
}

TEST_CASE("if no value is shared by more than half of the hosts, all are noticed") {
  auto checks = hosts(4);
  checks[2].facts->kernel = "5.10.0";
  checks[3].facts->kernel = "5.10.0";
  CHECK(noticed(checks) == "kernel node1, kernel node2, kernel node3, kernel node4");
  CHECK(compare_hosts(checks).remarks ==
        std::vector<std::string>{"node1, node2: kernel is 6.1.0; no value is shared by most hosts",
                                 "node3, node4: kernel is 5.10.0; no value is shared by most hosts"});
  checks.push_back(failed("node5", "it is off"));  // a host that has not answered is not counted
  CHECK(noticed(checks) == "kernel node1, kernel node2, kernel node3, kernel node4");
  checks.pop_back();
  checks.pop_back();
  CHECK(noticed(checks) == "kernel node3");
}

TEST_CASE("small differences of memory, and of clocks up to a second, are not noticed") {
  auto checks = hosts(3);
  checks[0].facts->memory_bytes += 2'000'000'000;
  checks[1].clock_offset_seconds = 0.9;
  CHECK(noticed(checks).empty());
  checks[1].clock_offset_seconds = 3600.4;
  checks[2].clock_offset_seconds = -2;
  CHECK(noticed(checks) == "clock_offset_seconds node2, clock_offset_seconds node3");
  CHECK(compare_hosts(checks).remarks ==
        std::vector<std::string>{"node2: its clock is 3600.4 s ahead of this machine's",
                                 "node3: its clock is 2.0 s behind this machine's"});
}

TEST_CASE("missing resources are noticed even if all hosts are equal") {
  auto checks = hosts(2);
  for (HostCheck& host : checks) {
    host.facts->tmp_directory = "/scratch";
    host.facts->tmp_free_bytes = 1'000'000;
    host.facts->libddl.clear();
  }
  CHECK(noticed(checks) == "tmp_free_bytes node1, tmp_free_bytes node2, libddl node1, libddl node2");
  CHECK(compare_hosts(checks).remarks ==
        std::vector<std::string>{"node1, node2: only 1 MB free in /scratch",
                                 "node1, node2: there is no libddl beside its ddlrun"});
  auto many = hosts(20);
  for (HostCheck& host : many) host.facts->libddl.clear();
  CHECK(compare_hosts(many).remarks ==
        std::vector<std::string>{
            "node1, node2, node3, node4, node5, node6, node7, node8 and 12 others: there is no "
            "libddl beside its ddlrun"});
}

TEST_CASE("only a host that does not answer changes the exit code") {
  auto checks = hosts(2);
  checks[0].facts->nofile = 1;
  CHECK(exit_code_of(compare_hosts(checks)) == ddl::contract::kSuccess);
  checks.push_back(failed("node3", "connection refused"));
  const HostComparison comparison = compare_hosts(checks);
  CHECK(comparison.failed == 1);
  CHECK(exit_code_of(comparison) == ddl::contract::kStartFailure);
}

TEST_CASE("the comparison as text") {
  auto checks = hosts(2);
  checks.push_back(failed("a-long-name", "connection refused (port 22)"));
  checks[1].facts->shm_free_bytes = 60'000'000;
  checks[1].answer_seconds = 10;
  const HostComparison comparison = compare_hosts(checks);
  CHECK(check_hosts_text(checks, comparison, TerminalStyle(false)) ==
        "host         answer   version  cores/CPUs  NUMA/L3  GPUs  memory   memlock   nofile  /dev/shm  tmp  "
        "   clock   "
        "kernel  arch  "
        "  interfaces  libddl\n"
        "node1        0.25 s   0.1.0    8/8         unknown  none  64.0 GB  no limit  1024    32.0 GB   100 "
        "GB  +0.0 s  "
        "6.1.0   "
        "x86_64  eth0        0.1.0\n"
        "node2        10.00 s  0.1.0    8/8         unknown  none  64.0 GB  no limit  1024    60 MB!    100 "
        "GB  +0.0 s  "
        "6.1.0   "
        "x86_64  eth0        0.1.0\n"
        "a-long-name  failed: connection refused (port 22)\n"
        "\n"
        "node2: only 60 MB free in /dev/shm\n"
        "\n"
        "2 of 3 hosts answered\n");
  const std::string coloured = check_hosts_text(checks, comparison, TerminalStyle(true));
  CHECK_THAT(coloured, Catch::Contains("32.0 GB   100 GB"));
  CHECK_THAT(coloured, Catch::Contains("\x1b[1;31m60 MB!\x1b[0m    100 GB"));
  CHECK_THAT(coloured, Catch::Contains("\x1b[1;31mfailed:\x1b[0m connection"));
}

TEST_CASE("hosts whose GPUs or memory differ are noticed") {
  auto checks = hosts(3);
  for (HostCheck& check : checks) {
    check.facts->topology.cores.resize(8);
    check.facts->topology.numa_nodes.resize(2);
    check.facts->topology.l3s.resize(4);
    check.facts->topology.gpus.resize(4);
    check.facts->topology.allowed = ddl::CpuSet::range(0, 7);
  }
  checks[1].facts->topology.gpus.resize(3);
  checks[2].facts->topology.numa_nodes.resize(1);
  const HostComparison comparison = compare_hosts(checks);
  const std::string text = check_hosts_text(checks, comparison, TerminalStyle(false));
  CHECK_THAT(text, Catch::Contains("2/4      4 nvidia") && Catch::Contains("1/4!"));
  CHECK_THAT(text, Catch::Contains("node2: GPUs is 3 nvidia; most hosts have 4 nvidia\n"));
  CHECK_THAT(text, Catch::Contains("node3: NUMA/L3 is 1/4; most hosts have 2/4\n"));
  CHECK_THAT(check_hosts_json(checks, comparison), Catch::Contains(R"("allowed_cpus":"0-7")"));
}

TEST_CASE("the text states that all hosts answered if nothing is noticed") {
  const auto checks = hosts(1);
  CHECK_THAT(check_hosts_text(checks, compare_hosts(checks), TerminalStyle(false)),
             Catch::EndsWith("0.1.0\n\n1 host answered\n"));
}

TEST_CASE("the comparison as JSON") {
  auto checks = hosts(1);
  checks[0].facts->tmp_free_bytes = -1;
  checks[0].clock_offset_seconds = 0.5;
  checks.push_back(failed("node2", "connection refused \xff"));
  const std::string text = check_hosts_json(checks, compare_hosts(checks));
  CHECK(text.find('\n') == text.size() - 1);
  CHECK(json::parse(text) == json::parse(R"({"ddlrun": ")" + std::string(ddl::contract::kVersion) + R"(",
    "kind": "check_hosts", "failed": 1, "remarks": ["node1: /tmp cannot be read"],
    "hosts": [
      {"name": "node1", "reachable": true, "failure": null, "answer_seconds": 0.25, "clock_offset_seconds": 0.5,
       "hostname": "node1", "version": "0.1.0", "kernel": "6.1.0", "architecture": "x86_64", "cores": 8, "cpus": 8,
       "allowed_cpus": null, "numa_nodes": 0, "l3s": 0, "gpus": [],
       "memory_bytes": 64000000000, "memory_available_bytes": 60000000000, "memlock_bytes": null, "nofile": 1024,
       "shm_free_bytes": 32000000000, "tmp_directory": "/tmp", "tmp_free_bytes": null,
       "libddl": "/usr/lib/libddl.so.0.1.0",
       "addresses": [{"interface": "eth0", "address": "10.0.0.8", "family": 4},
                     {"interface": "eth0", "address": "2001:db8::1", "family": 6}],
       "noticed": ["tmp_free_bytes"]},
      {"name": "node2", "reachable": false, "failure": "connection refused \ufffd"}]})"));
}
