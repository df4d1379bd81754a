#include "launcher/process/node_usage.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace ddl::launcher;
using ddl::test::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

/// A folder in place of "/", whose files are the counters.
class Machine {
 public:
  void write(const std::string& file, const std::string& text) const {
    const fs::path path = folder_.path() + file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string root() const { return folder_.path(); }

 private:
  TemporaryDirectory folder_;
};

/// A cgroup of version 2 in a container, below one with a limit of its own.
void make_cgroup(const Machine& machine) {
  machine.write("/proc/self/mountinfo", "30 25 0:26 /docker/a1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
  machine.write("/proc/self/cgroup", "0::/docker/a1/job/step\n");
  machine.write("/sys/fs/cgroup/job/step/memory.events", "oom 0\noom_kill 2\n");
  machine.write("/sys/fs/cgroup/job/step/memory.max", "max\n");
  machine.write("/sys/fs/cgroup/job/step/memory.peak", "1000\n");
  machine.write("/sys/fs/cgroup/job/memory.max", "4096\n");
}

}  // namespace

TEST_CASE("memory is that of the cgroup, and its limit the lowest above it") {
  const Machine machine;
  make_cgroup(machine);
  const MemoryCgroup cgroup = MemoryCgroup::watch(machine.root());
  machine.write("/sys/fs/cgroup/job/step/memory.events", "oom_kill 3\n");
  machine.write("/sys/fs/cgroup/job/step/memory.peak", "2000\n");
  const MemoryUse use = cgroup.use();
  CHECK(use.limit == 4096);
  CHECK(use.peak == 2000);
  CHECK(use.oom_kills == 1);
  CHECK(use.cgroup == "/job/step");
  CHECK(use.unknown.empty());
  fs::remove(machine.root() + "/sys/fs/cgroup/job/step/memory.peak");  // before Linux 5.19
  machine.write("/sys/fs/cgroup/job/memory.max", "max\n");
  CHECK(cgroup.use().peak == -1);
  CHECK(cgroup.use().limit == std::numeric_limits<std::int64_t>::max());

  const MemoryUse none = MemoryCgroup::watch(machine.root() + "/none").use();
  CHECK(none.peak == -1);
  CHECK_FALSE(none.unknown.empty());
}

TEST_CASE("memory of version 1 has other names") {
  const Machine machine;
  machine.write("/proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  machine.write("/proc/self/cgroup", "4:memory:/job\n");
  machine.write("/sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\noom_kill 0\n");
  machine.write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  machine.write("/sys/fs/cgroup/memory/job/memory.max_usage_in_bytes", "77\n");
  const MemoryUse use = MemoryCgroup::watch(machine.root()).use();
  CHECK(use.limit == std::numeric_limits<std::int64_t>::max());
  CHECK(use.peak == 77);
}

TEST_CASE("networks count from the begin on, the busiest first") {
  const Machine machine;
  const auto count = [&](const std::string& device, int received, int sent) {
    machine.write("/sys/class/net/" + device + "/statistics/rx_bytes", std::to_string(received) + "\n");
    machine.write("/sys/class/net/" + device + "/statistics/tx_bytes", std::to_string(sent) + "\n");
  };
  const std::string port = "/sys/class/infiniband/mlx5_0/ports/1/";
  for (const char* const device : {"lo", "eth0", "eth1", "idle", "anew"}) count(device, 1000, 2000);
  machine.write("/sys/class/net/eth0/speed", "1000\n");
  machine.write("/sys/class/net/eth1/speed", "-1\n");
  machine.write(port + "counters/port_rcv_data", "100\n");
  machine.write(port + "counters/port_xmit_data", "200\n");
  machine.write(port + "rate", "200 Gb/sec (4X HDR)\n");
  const NodeUsageWatch watch(machine.root());
  for (const char* const device : {"lo", "eth0", "eth1", "later"}) count(device, 1010, 2020);
  count("eth1", 1001, 2001);
  count("anew", 5, 5);
  machine.write(port + "counters/port_rcv_data", "1100\n");
  const NodeUsage usage = watch.use(MemoryCgroup::watch(machine.root()), 8);
  CHECK(usage.cpus == 8);
  REQUIRE(usage.networks.size() == 3);
  CHECK(usage.networks[0] == NetworkUse{"mlx5_0/1", 4000, 0, 25'000'000'000});
  CHECK(usage.networks[1] == NetworkUse{"eth0", 10, 20, 125'000'000});
  CHECK(usage.networks[2] == NetworkUse{"eth1", 1, 1, 0});
}

TEST_CASE("energy is that of the packages, or of the node where it counts itself") {
  const Machine machine;
  CHECK(NodeUsageWatch(machine.root()).use(MemoryCgroup::watch(machine.root()), 1).energy_unknown ==
        "this machine has no counter of energy that Linux shows");
  const auto zone = [&](const std::string& name, const std::string& file, const std::string& text) {
    machine.write("/sys/class/powercap/" + name + "/" + file, text);
  };
  zone("intel-rapl:0", "name", "package-0\n");
  zone("intel-rapl:0", "energy_uj", "9000000\n");
  zone("intel-rapl:0", "max_energy_range_uj", "10000000\n");
  zone("intel-rapl:0:0", "energy_uj", "1\n");
  NodeUsageWatch packages(machine.root());
  zone("intel-rapl:0", "energy_uj", "1000000\n");  // it has begun again at 0
  const MemoryCgroup memory = MemoryCgroup::watch(machine.root());
  NodeUsage usage = packages.use(memory, 1);
  REQUIRE(usage.energy.size() == 1);
  CHECK(usage.energy[0] == EnergyUse{"package-0", 2});
  CHECK(usage.energy_unknown.empty());

  fs::remove(machine.root() + "/sys/class/powercap/intel-rapl:0/energy_uj");
  CHECK_THAT(NodeUsageWatch(machine.root()).use(memory, 1).energy_unknown,
             Catch::Matchers::Contains("root only"));

  machine.write("/sys/cray/pm_counters/energy", "100 J 1700000000 us\n");
  const NodeUsageWatch node(machine.root());
  machine.write("/sys/cray/pm_counters/energy", "350 J 1700000010 us\n");
  usage = node.use(memory, 1);
  REQUIRE(usage.energy.size() == 1);
  CHECK(usage.energy[0] == EnergyUse{"node", 250});
}
