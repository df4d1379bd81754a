// The cluster itself: its hosts are separate, and its faults have the documented effect.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_processes.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::cluster {
namespace {

using Catch::Matchers::Contains;
using e2e::Command;
using e2e::Job;
using e2e::Scratch;

/// ssh as a login of the head, to [LOGIN@]HOST.
Command ssh(const std::string& login, const std::string& to, const std::string& command) {
  return as_login(login, {"ssh", "-T", "-o", "BatchMode=yes", to, command});
}

std::string remote_output(const Scratch& scratch, const Command& command) {
  Job job(scratch, command);
  const int status = job.wait();
  INFO(job.err());
  REQUIRE(status == 0);
  return job.out();
}

/// A TCP connection to a host's sshd that has sent its banner.
class Connection {
 public:
  explicit Connection(int number) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(22);
    ::inet_pton(AF_INET, ("10.77.0." + std::to_string(number)).c_str(), &address.sin_addr);
    REQUIRE(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(is_readable_within(e2e::kTestTimeout));
    std::array<char, 256> words;
    REQUIRE(::read(fd_.get(), words.data(), words.size()) > 0);
  }
  /// True if data, the end or an error arrives in this time.
  bool is_readable_within(std::chrono::milliseconds duration) const {
    pollfd entry{fd_.get(), POLLIN, 0};
    return retry_eintr([&] { return ::poll(&entry, 1, Deadline::after(duration).poll_milliseconds()); }) > 0;
  }
  /// The same, while this side sends data.
  bool is_readable_after_send(std::chrono::milliseconds duration) const {
    (void)::send(fd_.get(), "SSH-2.0-test\r\n", 14, MSG_NOSIGNAL);
    return is_readable_within(duration);
  }
  bool is_reset() const {
    std::array<char, 4096> bytes;
    ssize_t got = 0;
    while ((got = ::read(fd_.get(), bytes.data(), bytes.size())) > 0) {
    }
    return got < 0 && errno == ECONNRESET;
  }

 private:
  UniqueFd fd_;
};

// Longer than any message between two hosts of one machine takes.
constexpr auto kSilence = std::chrono::milliseconds(300);

TEST_CASE("ssh reaches every host as root and as ordinary users, by IPv4 and by IPv6", "[bed]") {
  const Scratch scratch;
  for (const std::string login : {"root", "plain"}) {
    for (const std::string& host : Cluster::hosts()) {
      CHECK(remote_output(scratch, ssh(login, host, "hostname; whoami")) == host + "\n" + login + "\n");
    }
  }
  CHECK(remote_output(scratch, ssh("plain", "other@node2", "hostname; whoami; echo $HOME | tail -c 7")) ==
        "node2\nother\n/other\n");
  CHECK(remote_output(scratch, ssh("plain", "inner", "hostname")) == "inner\n");  // through node1
  if (remote_output(scratch, as_login("root", {"getent", "hosts", "node2"})).find("10.77.0.2") ==
      std::string::npos)
    FAIL("node2 has another address");
  if (e2e::names_in("/proc/sys/net").size() > 0 && e2e::names_in("/proc/sys/net/ipv6").empty())
    DDL_CLUSTER_SKIP("the kernel has no IPv6");
  CHECK(remote_output(scratch, ssh("plain", "node2-ip6", "hostname")) == "node2\n");
}

TEST_CASE("the ssh configuration of the machine has no effect on the hosts", "[bed]") {
  // A nested cluster on a head that an administrator has configured. In a mount namespace, so that the head itself is
  // unchanged; by /run the script detects that it is on a head.
  const Scratch scratch;
  const Before before;
  const std::string nested = std::string(DDL_CLUSTER_SCRIPT) + " --state /tmp/nested ";
  const std::string script =
      "set -e; mount -t tmpfs run /run; mkdir /run/lock; mount -t tmpfs ssh /etc/ssh; mount -t tmpfs keys "
      "/etc/ddl-cluster; mkdir "
      "/etc/ssh/ssh_config.d; "
      "echo 'exit 1' >/etc/ssh/sshrc; echo 'Include /etc/ssh/ssh_config.d/*.conf' >/etc/ssh/ssh_config; "
      "printf 'Host node*\\n  Port 1\\n' | tee -a /etc/ssh/ssh_config >/etc/ssh/ssh_config.d/site.conf; " +
      nested + "up 1; " + nested + "exec head ssh -o BatchMode=yes node1 hostname; " + nested +
      "down; rm -r /tmp/nested";
  CHECK(remote_output(scratch, as_login("root", {"unshare", "--mount", "bash", "-c", script})) == "node1\n");
  before.require_nothing_left();
}

TEST_CASE("hosts share files, but not /tmp, /dev/shm, processes and interfaces", "[bed]") {
  const Scratch scratch;
  const Before before;
  CHECK(remote_output(scratch, ssh("plain", "node1", "cd /tmp && echo 1 >bed && cd /dev/shm && echo 1 >bed"))
            .empty());
  CHECK(remote_output(scratch, ssh("plain", "node2", "ls /tmp /dev/shm | grep bed || echo none")) ==
        "none\n");
  CHECK(e2e::bytes_of(Cluster::path_on("node1", "/tmp/bed")) == "1\n");
  CHECK(remote_output(scratch, ssh("plain", "node1",
                                   "rm /tmp/bed /dev/shm/bed; ls " + std::string(DDL_CLUSTER_SCRIPT))) ==
        std::string(DDL_CLUSTER_SCRIPT) + "\n");
  CHECK(remote_output(scratch, ssh("plain", "node1", "cat /proc/1/comm; ls /sys/class/net")) ==
        "sshd\neth0\nib0\ninner0\nlo\n");
  CHECK(remote_output(scratch, ssh("plain", "node2", "ls /sys/class/net")) == "ens3\nib0\nlo\n");
  before.require_nothing_left();
}

TEST_CASE("a host that is killed closes and resets no connection, and all of its processes are gone",
          "[bed]") {
  const Scratch scratch;
  Cluster cluster;
  Job sleeper(scratch, ssh("plain", "node2", "echo here; exec sleep 1000"));
  sleeper.wait_for("here");
  const Before before;
  const Connection idle(2), sending(2);
  cluster.kill("node2");
  CHECK(Cluster::first_process("node2") == 0);
  CHECK(before.new_processes().empty());
  for (const HostProcess& process : processes_of_all_hosts()) CHECK(process.host != "node2");
  CHECK_FALSE(idle.is_readable_within(kSilence));
  CHECK_FALSE(sending.is_readable_after_send(kSilence));
  CHECK(sleeper.is_silent_for(kSilence));
  cluster.restart("node2");
  // The data are retransmitted; the host does not know the old connection, and resets it.
  CHECK(sending.is_readable_within(e2e::kTestTimeout));
  CHECK(sending.is_reset());
  CHECK(remote_output(scratch, ssh("plain", "node2", "hostname")) == "node2\n");
}

TEST_CASE("data that are sent during a partition arrive after it is healed", "[bed]") {
  const Scratch scratch;
  Cluster cluster;
  Command command = ssh("plain", "node3", "cat");
  command.input = Command::Input::kPipe;
  Job echo(scratch, command);
  echo.write("one\n");
  echo.wait_for("one");
  cluster.partition("node3");
  echo.write("two\n");
  CHECK(echo.is_silent_for(kSilence));
  cluster.heal("node3");
  echo.wait_for("two");
  echo.close_input();
  CHECK(echo.wait() == 0);
}

TEST_CASE("two hosts can be partitioned from each other only", "[bed]") {
  const Scratch scratch;
  Cluster cluster;
  const std::string other = "ssh -o BatchMode=yes -o ConnectTimeout=1 ";
  cluster.partition("node1", "node2");
  CHECK(remote_output(scratch,
                      ssh("plain", "node1", other + "node2 hostname 2>&1; " + other + "node3 hostname")) ==
        "ssh: connect to host node2 port 22: Connection timed out\r\nnode3\n");
  CHECK(remote_output(scratch, ssh("plain", "node2", "hostname")) == "node2\n");
  cluster.heal("node1", "node2");
  CHECK(remote_output(scratch, ssh("plain", "node1", other + "node2 hostname")) == "node2\n");
}

TEST_CASE("a process that is left on a host is found, with the name of the host", "[bed]") {
  const Scratch scratch;
  const Before before;
  CHECK(remote_output(scratch,
                      ssh("plain", "node3", "setsid sleep 1000 </dev/null >/dev/null 2>&1 & touch /tmp/left"))
            .empty());
  const auto left = before.new_processes([](const HostProcess& process) { return !process.is_sshd(); });
  INFO(describe(left));
  REQUIRE(left.size() == 1);
  CHECK(left.front().host == "node3");
  CHECK_THAT(left.front().command, Contains("sleep 1000 "));  // setsid may not have called exec yet
  const auto pidfd = open_pidfd(left.front().pid);
  REQUIRE(pidfd);
  REQUIRE(send_signal(pidfd->get(), SIGKILL));
  CHECK(remote_output(scratch, ssh("plain", "node3", "rm /tmp/left")).empty());
  before.require_nothing_left();
}

TEST_CASE("the cluster has a host or login for each way in which ssh can fail", "[bed]") {
  const Scratch scratch;
  const std::vector<std::pair<std::string, std::string>> failures = {
      {"nowhere", "Could not resolve hostname nowhere: Name or service not known"},
      {"refused", "connect to host refused port 22: Connection refused"},
      {"silent", "connect to host silent port 22: Connection timed out"},
      {"mute", "Connection timed out during banner exchange"},
      {"unknown", "Host key verification failed"},
      {"changed", "REMOTE HOST IDENTIFICATION HAS CHANGED"},
      {"denied@node1", "Permission denied (publickey)"},
  };
  for (const auto& [to, words] : failures) {
    CAPTURE(to);
    Job job(scratch,
            as_login("plain", {"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=1", to, "true"}));
    CHECK(job.wait() == 255);
    CHECK_THAT(job.err(), Contains(words));
  }
}

TEST_CASE("logins have the shells and start-up files that their names describe", "[bed]") {
  const Scratch scratch;
  CHECK(remote_output(scratch, ssh("plain", "noisy@node1", "true")).size() == 32 * 64);
  CHECK(remote_output(scratch, ssh("plain", "flood@node1", "true")).size() == 1600 * 64);
  Job refused(scratch, ssh("plain", "nologin@node1", "true"));
  CHECK(refused.wait() == 1);
  CHECK_THAT(refused.out(), Contains("This account is currently not available."));
  {
    Command waiting = ssh("plain", "hang@node1", "echo never");
    waiting.input = Command::Input::kPipe;
    Job hanging(scratch, waiting);
    CHECK(hanging.is_silent_for(kSilence));
  }
  Job csh(scratch, ssh("plain", "cshell@node1", "echo $version"));
  if (csh.wait() != 0) DDL_CLUSTER_SKIP("there is no csh");
  CHECK_THAT(csh.out(), Contains("csh"));
}

TEST_CASE("nothing can be created in a full /tmp until it has space again", "[bed]") {
  const Scratch scratch;
  {
    Cluster cluster;
    cluster.fill("node4");
    Job job(scratch, ssh("plain", "node4", "mkdir /tmp/new"));
    CHECK(job.wait() == 1);
    CHECK_THAT(job.err(), Contains("No space left on device"));
  }
  CHECK(remote_output(scratch, ssh("plain", "node4", "mkdir /tmp/new && rmdir /tmp/new && echo yes")) ==
        "yes\n");
}

TEST_CASE("a file can be replaced on a single host", "[bed]") {
  const Scratch scratch;
  const std::string path = scratch.write("file", "everywhere\n");
  const std::string script = DDL_CLUSTER_SCRIPT;
  {
    Cluster cluster;
    const std::string substitute = "/etc/hostname";
    cluster.cover("node2", script, substitute);
    CHECK(remote_output(scratch, ssh("root", "node2", "cat " + script)) ==
          remote_output(scratch, ssh("root", "node2", "cat " + substitute)));
    CHECK(remote_output(scratch, ssh("root", "node1", "head -n 1 " + script)) == "#!/usr/bin/env bash\n");
  }
  CHECK(remote_output(scratch, ssh("root", "node2", "head -n 1 " + script)) == "#!/usr/bin/env bash\n");
}

TEST_CASE("several hosts can have the same address on a bridge of their own", "[bed]") {
  const Scratch scratch;
  Cluster cluster;
  for (const std::string host : {"node1", "node2"}) cluster.twin(host);
  CHECK(remote_output(scratch, ssh("plain", "node1",
                                   "ssh -o BatchMode=yes -o HostKeyAlias=node1 172.17.0.1 hostname")) ==
        "node1\n");
}

}  // namespace
}  // namespace ddl::cluster
