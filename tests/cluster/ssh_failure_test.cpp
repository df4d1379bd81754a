// Hosts that cannot be reached, or on which ddlrun cannot run: one sentence each, and nothing is started on any host.
#include <array>
#include <chrono>

#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "contract/ddlrun.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;

/// The line about a host in the output of ddlrun; "" if there is none.
std::string line_about(const std::string& text, const std::string& host) {
  for (const auto line : split(text, '\n')) {
    for (const std::string& start : {"ddlrun: " + host + ": ", "  " + host + ": "}) {
      if (line.starts_with(start)) return std::string(line);
    }
  }
  return "";
}

TEST_CASE("every host that fails is reported in one sentence, with ssh's message", "[ssh_failure]") {
  const std::vector<std::array<std::string, 3>> failures = {
      {"nowhere", "its name was not found",
       "(ssh: Could not resolve hostname nowhere: Name or service not known)"},
      {"refused", "it refuses ssh connections", "Connection refused"},
      {"unknown", "its host key is not known here", "Host key verification failed"},
      {"changed", "its host key has changed", "have requested strict checking"},
      {"node1", "ssh was not let in; it needs a key that works without a password",
       "Permission denied (publickey)"},
      {"node2", "ssh ended with 1 before ddlrun had answered", "This account is currently not available."},
      {"node3", "its login shell has written 64 KiB where ddlrun's answer was expected",
       "Welcome to the cluster"},
  };
  HostJob job(
      {"-np", "8", "-H",
       "nowhere:1,refused:1,unknown:1,changed:1,denied@node1:1,nologin@node2:1,flood@node3:1,node4:1",
       "touch", "/tmp/was-started"});
  CHECK(job.wait() == contract::kStartFailure);  // wait() also requires that there is no new file
  INFO(job.err());
  for (const auto& [host, sentence, quoted] : failures) {
    const std::string line = line_about(job.err(), host);
    CHECK_THAT(line, Contains(sentence) && Contains(quoted));
  }
  CHECK(line_about(job.err(), "node4").empty());
  CHECK_THAT(job.err(), Contains("7 of 8 hosts did not come up"));
}

TEST_CASE("hosts that do not answer fail after --start-timeout, all at the same time", "[ssh_failure]") {
  const auto began = std::chrono::steady_clock::now();
  HostJob job({"-np", "4", "--start-timeout", "5", "-H", "silent:1,mute:1,hang@node1:1,node2:1", "true"});
  CHECK(job.wait() == contract::kStartFailure);
  // The timeouts run at the same time: one after the other would take three times 5 s.
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(15));
  INFO(job.err());
  for (const std::string host : {"silent", "mute", "node1"}) CHECK_FALSE(line_about(job.err(), host).empty());
  CHECK_THAT(line_about(job.err(), "node1"), Contains("it has not answered within 5 s (--start-timeout)"));
  CHECK(line_about(job.err(), "node2").empty());
}

TEST_CASE("a closed port and a wrong key are reported", "[ssh_failure]") {
  HostJob port({"-np", "1", "-H", "node1:1", "-p", "2222", "true"});
  CHECK(port.wait() == contract::kStartFailure);
  CHECK_THAT(line_about(port.err(), "node1"), Contains("is sshd running there, and on this port?"));
  HostJob key(
      {"-np", "1", "-H", "node1:1", "-i", "/etc/hostname", "--ssh-args", "-o IdentitiesOnly=yes", "true"});
  CHECK(key.wait() == contract::kStartFailure);
  CHECK_THAT(line_about(key.err(), "node1"), Contains("ssh was not let in"));
}

TEST_CASE("a missing ddlrun, a file that is not executable, and another architecture are reported",
          "[ssh_failure]") {
  const SharedScratch files;
  std::string foreign = e2e::bytes_of("/proc/self/exe").substr(0, 4096);
  foreign[18] = static_cast<char>(0xb7);  // e_machine: AArch64
  const std::string other_machine = files.write("other-machine", foreign, true);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/nowhere/ddlrun",
       "ddlrun was not found at /nowhere/ddlrun; install it there, or name its place with --remote-path"},
      {"/etc/hosts", "ddlrun at /etc/hosts cannot be executed"},
      {other_machine, "ddlrun at " + other_machine + " was built for another kind of machine"},
  };
  for (const auto& [path, sentence] : cases) {
    for (const std::string login : {"", "cshell@"}) {
      CAPTURE(path, login);
      HostJob job({"-np", "1", "-H", login + "node1:1", "--remote-path", path, "true"});
      CHECK(job.wait() == contract::kStartFailure);
      CHECK_THAT(line_about(job.err(), "node1"), Contains(sentence));
    }
  }
}

TEST_CASE("another version of ddlrun on one host is reported with both versions", "[ssh_failure]") {
  const SharedScratch files;
  const std::string other =
      files.write("other-version", "#!/bin/sh\necho \"ddlrun-agent 9.8.7 $2\"\nexec cat >/dev/null\n", true);
  Cluster cluster;
  cluster.cover("node2", DDL_E2E_DDLRUN, other);
  HostJob job({"-np", "2", "-H", "node1:1,node2:1", "true"});
  CHECK(job.wait() == contract::kStartFailure);
  CHECK_THAT(line_about(job.err(), "node2"), Contains("ddlrun there is version 9.8.7, and this one is "));
}

TEST_CASE("a host whose /tmp is full is reported with the path and a hint", "[ssh_failure]") {
  Cluster cluster;
  cluster.fill("node2");
  HostJob job({"-np", "2", "-H", "node1:1,node2:1", "true"});
  CHECK(job.wait() == contract::kStartFailure);
  CHECK_THAT(line_about(job.err(), "node2"), Contains("TMPDIR") && Contains("No space left on device"));
}

}  // namespace
}  // namespace ddl::cluster
