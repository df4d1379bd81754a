// Jobs of which one process is killed at random: whichever it is, nothing is left on any host.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <random>

#include "base/process.h"
#include "base/text.h"
#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "e2e/harness/fifo.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

// Whose death may mean something to the job. A rank's daemons may end as they like; of sshd's two processes for an
// ordinary login the privileged one has nothing to do any more.
bool matters(const HostProcess& process) {
  if (process.name == "daemon_family") return ::getsid(process.pid) != process.pid;
  return process.command.find("[priv]") == std::string::npos;
}

void kill_at_random(int rounds) {
  std::random_device device;
  const unsigned seed = device();
  std::mt19937 random(seed);
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  // A way to the hosts that tells when it is taken.
  const SharedScratch files;
  std::map<std::string, int> killed;
  for (int round = 0; round < rounds; ++round) {
    e2e::Fifo started(files, "started-" + std::to_string(round));
    REQUIRE(::chmod(started.path().c_str(), 0666) == 0);
    const std::string starter = files.write(
        "starter", "#!/bin/sh\necho started >>" + started.path() + "\nexec ssh -T -o BatchMode=yes \"$@\"\n",
        true);
    HostJob job({"-np", "3", "-H", "node1:1,node2:1,head:1", "--launch-agent", starter + " %h",
                 "--kill-grace", "0.2", e2e::program("daemon_family"), "stay",
                 below(2) == 0 ? "meek" : "stubborn"});
    // From the first connection, which is not yet one, to all ranks at work.
    const int ready = static_cast<int>(below(4));
    if (ready == 0) {
      REQUIRE(started.wait_for("started", 1 + static_cast<int>(below(2))));
    } else {
      job.job().wait_for("ready", ready);
    }
    const auto victims = job.before().new_processes(matters);
    REQUIRE_FALSE(victims.empty());
    const HostProcess victim = victims[below(victims.size())];
    INFO("seed " << seed << ", round " << round << ", " << ready << " ready, killed " << describe({victim}));
    const auto pidfd = open_pidfd(victim.pid);
    const bool sent = pidfd && send_signal(pidfd->get(), SIGKILL);
    if (sent) ++killed[victim.name];
    // A connection that breaks while it is made is made again, and then all is well.
    if (!sent || !job.job().ends_within(std::chrono::seconds(10))) job.job().send(SIGTERM);
    CHECK(job.wait() != 0);
  }
  for (const auto& [name, times] : killed) std::printf("killed %s %d times\n", name.c_str(), times);
}

TEST_CASE("whichever process is killed, and whenever, nothing is left", "[random_kills]") {
  kill_at_random(30);
}

TEST_CASE("the same, two hundred times", "[many_random_kills]") { kill_at_random(200); }

}  // namespace
}  // namespace ddl::cluster
