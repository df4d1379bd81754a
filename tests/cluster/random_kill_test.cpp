// One random process of a job is killed: no process is left on any host.
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

// Whether the death of this process should end the job. The daemons of a rank may end at any time; of the two sshd
// processes for an ordinary login the privileged one is idle.
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
  // Starts ssh and reports that it was started.
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
    // The time of the kill: from the start of the first ssh to all ranks running.
    const int ready = static_cast<int>(below(4));
    if (ready == 0) {
      REQUIRE(started.wait_for("started", 1 + static_cast<int>(below(2))));
    } else {
      job.job().wait_for("ready", ready);
    }
    const auto victims = job.before().new_processes(matters);
    REQUIRE_FALSE(victims.empty());
    const HostProcess& victim = victims[below(victims.size())];
    INFO("seed " << seed << ", round " << round << ", " << ready << " ready, killed " << describe({victim}));
    const auto pidfd = open_pidfd(victim.pid);
    const bool sent = pidfd && send_signal(pidfd->get(), SIGKILL);
    if (sent) ++killed[victim.name];
    // A connection that breaks while it is made is retried, and then the job continues.
    if (!sent || !job.job().ends_within(std::chrono::seconds(10))) job.job().send(SIGTERM);
    CHECK(job.wait() != 0);
  }
  for (const auto& [name, times] : killed) std::printf("killed %s %d times\n", name.c_str(), times);
}

TEST_CASE("no process is left after any process is killed at a random time", "[random_kills]") {
  kill_at_random(30);
}

TEST_CASE("no process is left after two hundred random kills", "[many_random_kills]") { kill_at_random(200); }

}  // namespace
}  // namespace ddl::cluster
