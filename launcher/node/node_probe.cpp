#include "launcher/node/node_probe.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <sstream>

#include "affinity/source/topology_source.h"
#include "base/cpu_set.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/text.h"
#include "contract/version.h"
#include "launcher/job/clock_offset.h"
#include "launcher/plan/node_binding.h"
#include "net/address.h"

namespace ddl::launcher {

std::string hostname() {
  char name[HOST_NAME_MAX + 1] = {};
  if (::gethostname(name, sizeof name) != 0 || name[0] == '\0') return "localhost";
  return name;
}

bool is_loopback_in(const std::string& hosts, const std::string& name) {
  for (const std::string_view line : split(hosts, '\n')) {
    std::istringstream words{std::string(line.substr(0, line.find('#')))};
    std::string address, one;
    words >> address;
    while (words >> one) {
      if (one == name) return address.starts_with("127.") || address == "::1";
    }
  }
  return false;
}

int count_cores(const std::vector<std::string>& sibling_lists) {
  std::set<std::string> cores;
  int unknown = 0;
  for (const auto& siblings : sibling_lists) {
    if (siblings.empty()) {
      ++unknown;
    } else {
      cores.insert(siblings);
    }
  }
  return std::ssize(cores) + unknown;
}

NodeFacts probe_node() {
  const std::vector<int> cpus = CpuSet::allowed().cpus();
  std::vector<std::string> sibling_lists;
  for (const int cpu : cpus) {
    sibling_lists.push_back(
        read_file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list")
            .value_or(""));
  }
  utsname system{};
  ::uname(&system);

  NodeFacts facts;
  facts.version = contract::kVersion;
  facts.hostname = hostname();
  facts.kernel = system.release;
  facts.architecture = system.machine;
  facts.allowed_cpus = std::max<int>(1, cpus.size());
  facts.allowed_cores = std::max(1, count_cores(sibling_lists));
  facts.slots = facts.allowed_cpus;
  facts.master_address = "127.0.0.1";  // every rank is on this node
  facts.hostname_is_loopback = is_loopback_in(read_file("/etc/hosts").value_or(""), facts.hostname);
  facts.agent_pid = ::getpid();

  const NodeMemory memory = node_memory();
  facts.addresses = node_addresses();
  facts.memory_bytes = memory.total_bytes;
  facts.memory_available_bytes = memory.available_bytes;
  facts.memlock_bytes = soft_limit(RLIMIT_MEMLOCK);
  facts.nofile = soft_limit(RLIMIT_NOFILE);
  facts.hard_limits = own_hard_limits();
  facts.shm_free_bytes = free_bytes("/dev/shm");
  facts.tmp_directory = tmp_directory();
  facts.tmp_free_bytes = free_bytes(facts.tmp_directory);
  facts.libddl = installed_libddl();
  facts.horovod = installed_horovod();
  facts.wall_time_ns = wall_time_ns();
  if (auto topology = affinity::this_machine(affinity::Devices::kBesideGpus)->load()) {
    facts.topology = *std::move(topology);
  } else {
    facts.topology_failure = topology.error().message();
  }
  for (const std::string& name : visible_device_variables()) {
    if (const char* const value = std::getenv(name.c_str())) facts.visible_devices[name] = value;
  }
  return facts;
}

std::vector<NodeAddress> node_addresses() {
  const auto all = net::local_addresses();
  if (!all) return {};
  const auto usable = net::usable_addresses(*all, {});
  if (!usable) return {};
  std::vector<NodeAddress> addresses;
  for (const net::InterfaceAddress& one : *usable) {
    addresses.push_back({one.interface, one.address.host_text(), one.address.family() == AF_INET6 ? 6 : 4});
  }
  return addresses;
}

namespace fs = std::filesystem;

NodeMemory parse_meminfo(std::string_view text) {
  NodeMemory memory;
  for (const std::string_view line : split(text, '\n')) {
    // "MemTotal:       65843028 kB"
    const auto value_of = [line](std::string_view name) -> std::int64_t {
      if (!line.starts_with(name) || !line.ends_with(" kB")) return 0;
      const auto kilobytes = parse_integer(trim(line.substr(name.size(), line.size() - name.size() - 3)));
      constexpr std::int64_t kMaxKilobytes = INT64_MAX / 1024;
      return kilobytes && *kilobytes > 0 && *kilobytes <= kMaxKilobytes ? *kilobytes * 1024 : 0;
    };
    if (const auto total = value_of("MemTotal:")) memory.total_bytes = total;
    if (const auto available = value_of("MemAvailable:")) memory.available_bytes = available;
  }
  return memory;
}

NodeMemory node_memory() { return parse_meminfo(read_file("/proc/meminfo").value_or("")); }

std::int64_t soft_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return -1;
  return limit.rlim_cur > INT64_MAX ? -1
                                    : static_cast<std::int64_t>(limit.rlim_cur);  // RLIM_INFINITY is all ones
}

std::int64_t free_bytes(const std::string& directory) {
  struct statvfs file_system {};
  if (::statvfs(directory.c_str(), &file_system) != 0) return -1;
  return file_system.f_bavail * file_system.f_frsize;
}

namespace {

/// The first of the directories, which are relative to that of this program, that has the entry; "": none has it.
fs::path beside_ddlrun(std::initializer_list<const char*> directories, const char* entry) {
  const fs::path program = own_path();
  if (program.empty()) return "";
  for (const char* const directory : directories) {
    std::error_code error;
    fs::path found = fs::canonical(program.parent_path() / directory / entry, error);
    if (!error) return found;
  }
  return "";
}

}  // namespace

std::string installed_libddl() {
  return beside_ddlrun({"../lib", DDL_LIBDIR_FROM_BINDIR}, contract::kLibddlSoname).string();
}

std::string installed_horovod() {
  // In the build tree the package itself is a link, to sources that another host may lack.
  const fs::path folder = beside_ddlrun({"../share/ddlrun", DDL_DATADIR_FROM_BINDIR "/ddlrun"}, "as-horovod");
  std::error_code error;
  return fs::exists(folder / "horovod/__init__.py", error) ? folder.string() : "";
}

}  // namespace ddl::launcher
