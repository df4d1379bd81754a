// Probes of the machine: what the kernel permits this user, and which sources of its topology work.
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "affinity/source/topology_source.h"
#include "affinity/source/vendor_gpus.h"
#include "base/command.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/process.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "cli/check_build/probe.h"
#include "cli/options/this_process.h"
#include "launcher/node/node_probe.h"
#include "templates/profile/site_catalog.h"

namespace ddl::cli {

// What the kernel permits this user.

namespace {

Finding refused(const char* call, const std::string& remedy = {}) {
  return fails(errno_error(call, errno).message(), remedy);
}

std::string limit_text(int resource, const char* name) {
  const std::int64_t limit = launcher::soft_limit(resource);
  return limit < 0 ? fmt::format("{} unlimited", name) : fmt::format("{} {}", name, limit);
}

Finding found(const Result<std::vector<affinity::VendorGpu>>& gpus, const char* remedy) {
  if (!gpus) return fails(gpus.error().message(), remedy);
  return works({}, {}, counted(gpus->size(), "GPU"));
}

}  // namespace

/// The shared memory of libddl's ranks: a memfd of fixed size that every rank maps.
Finding probe_sealed_memory() {
  const UniqueFd memory(::memfd_create("ddlrun-check-build", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return refused("memfd_create");
  constexpr std::size_t kSize = 4096;
  if (::ftruncate(memory.get(), kSize) != 0) return refused("ftruncate of a memfd");
  constexpr int kSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) return refused("F_ADD_SEALS");
  if (::fcntl(memory.get(), F_GET_SEALS) != kSeals)
    return fails("the kernel accepted the seals of a memfd but does not report them");
  const auto mapped = MappedMemory::map_shared(memory.get(), kSize);
  if (!mapped) return fails(mapped.error().message());
  return works({}, {}, "memfd_create with F_SEAL_GROW, F_SEAL_SHRINK, F_SEAL_SEAL");
}

Finding probe_pidfd() {
  const auto pidfd = open_pidfd(::getpid());
  if (!pidfd) return fails(pidfd.error().message());
  if (const auto sent = send_signal(pidfd->get(), 0); !sent) return fails(sent.error().message());
  return works({}, {}, "pidfd_open and pidfd_send_signal");
}

/// The system call by which a bound rank requests memory near its CPUs.
Finding probe_memory_policy() {
  constexpr int kPreferredMany = 5;  // MPOL_PREFERRED_MANY, of Linux 5.15
  unsigned long node0 = 1;
  constexpr unsigned long kBits = sizeof node0 * 8;
  if (::syscall(SYS_set_mempolicy, kPreferredMany, &node0, kBits) == 0)
    return works({}, {}, "MPOL_PREFERRED_MANY");
  if (::syscall(SYS_set_mempolicy, MPOL_PREFERRED, &node0, kBits) == 0)
    return works({}, {}, "MPOL_PREFERRED: of several NUMA nodes, the first is preferred");
  return refused("set_mempolicy", "containers often forbid it; ranks run without a memory policy then");
}

/// Cross-memory attach: copies directly between processes. MPI libraries use it; libddl does not.
Finding probe_cma() {
  std::array<char, 5> there{'h', 'e', 'r', 'e', '\0'}, here{};
  auto pipe = make_pipe();
  if (!pipe) return fails(pipe.error().message());
  // Not by Child::start(): the child executes no program, so its array has the same address.
  const pid_t pid = ::fork();
  if (pid < 0) return refused("fork");
  if (pid == 0) {
    there[0] = 'H';
    (void)::write(pipe->second.get(), "x", 1);
    for (;;) ::pause();
  }
  const Child child(pid, false);  // its destructor kills and reaps the process
  char ready = 0;
  (void)retry_eintr([&] { return ::read(pipe->first.get(), &ready, 1); });
  const iovec local{here.data(), here.size()}, remote{there.data(), there.size()};
  if (::process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0)
    return refused("process_vm_readv", "/proc/sys/kernel/yama/ptrace_scope decides who may do this");
  if (here[0] != 'H') return fails("process_vm_readv reads wrong bytes");
  return works({}, {}, "process_vm_readv, from parent to child");
}

/// In a delegated cgroup, all processes of a job could be ended at once.
Finding probe_cgroups() {
  const auto text = read_file("/proc/self/cgroup");
  if (!text) return fails(text.error().message());
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.starts_with("0::")) continue;
    const std::string folder = "/sys/fs/cgroup" + std::string(line.substr(3));
    if (::access((folder + "/cgroup.procs").c_str(), F_OK) != 0)
      return fails("cgroup v2 is not mounted at /sys/fs/cgroup");
    const std::string own = folder + "/ddlrun-check-build-" + std::to_string(::getpid());
    if (::mkdir(own.c_str(), 0700) != 0) {
      return fails(errno_error("mkdir in " + folder, errno).message(),
                   "start it in a delegated cgroup: systemd-run --user --scope -p Delegate=yes");
    }
    const bool can_kill = ::access((own + "/cgroup.kill").c_str(), W_OK) == 0;
    ::rmdir(own.c_str());
    return can_kill ? works({}, folder, "cgroup.kill") : fails("this kernel has no cgroup.kill (Linux 5.14)");
  }
  return fails("this process is not in a cgroup v2");
}

Finding probe_io_uring() {
  std::array<char, 120> parameters{};  // struct io_uring_params
  const long fd = ::syscall(SYS_io_uring_setup, 1, parameters.data());
  if (fd < 0)
    return refused("io_uring_setup",
                   "/proc/sys/kernel/io_uring_disabled decides who may use it; ddlrun does not need it");
  ::close(static_cast<int>(fd));
  return works({}, {}, "io_uring_setup");
}

Finding probe_limits() {
  constexpr std::int64_t kMinFiles = 1024;
  const std::string text =
      join({limit_text(RLIMIT_NOFILE, "open files"), limit_text(RLIMIT_NPROC, "processes"),
            limit_text(RLIMIT_MEMLOCK, "locked memory in bytes"), limit_text(RLIMIT_CORE, "core file")},
           ", ");
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max != RLIM_INFINITY && files.rlim_max < static_cast<rlim_t>(kMinFiles))
    return fails(text + "; an agent needs 5 descriptors for each rank",
                 "raise the hard limit of open files (ulimit -Hn)");
  return works({}, {}, text);
}

// Where topologies come from.

Finding probe_hwloc() {
  const auto node = affinity::this_machine(affinity::Devices::kAll)->load();
  if (!node) return fails(node.error().message(), "run lstopo here to see why");
  const affinity::HwlocLibrary library = affinity::linked_hwloc();
  return works(library.version, library.path,
               fmt::format("{}, {}, {}", counted(node->cores.size(), "core"),
                           counted(node->numa_nodes.size(), "NUMA node"), counted(node->gpus.size(), "GPU")));
}

Finding probe_hwloc_plugins() {
  namespace fs = std::filesystem;
  constexpr char kNotNeeded[] = "ddlrun finds GPUs without them";
  const std::string hwloc = affinity::linked_hwloc().path;
  if (hwloc == own_path()) return fails("the hwloc that is a part of ddlrun loads none", kNotNeeded);
  const char* configured = std::getenv("HWLOC_PLUGINS_PATH");
  const fs::path folder =
      configured != nullptr ? fs::path(configured) : fs::path(hwloc).parent_path() / "hwloc";
  std::vector<std::string> loaded, broken;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with("hwloc_") || !file.ends_with(".so")) continue;
    const auto library = SharedLibrary::load(entry.path().string());
    if (library) {
      loaded.push_back(entry.path().stem().string().substr(std::string_view("hwloc_").size()));
    } else {
      broken.push_back(library.error().message());
    }
  }
  std::sort(loaded.begin(), loaded.end());
  if (!broken.empty()) return fails(join(broken, "; "), kNotNeeded);
  if (loaded.empty()) return fails("there are no plugins in " + folder.string(), kNotNeeded);
  return works({}, folder.string(), join(loaded, ", ") + "; " + kNotNeeded);
}

Finding probe_hwloc_files() {
  const auto node = affinity::hwloc_synthetic("pack:1 numa:2 core:4 pu:2")->load();
  if (!node) return fails(node.error().message());
  if (node->cores.size() != 8) return fails("hwloc counts 8 cores as " + std::to_string(node->cores.size()));
  return works({}, {}, "lstopo's XML, and short forms such as \"pack:1 numa:4 core:8 pu:2\"");
}

Finding probe_nvml() {
  return found(affinity::ask_nvml(), "install NVIDIA's driver, if this host has NVIDIA GPUs");
}
Finding probe_rocm_smi() {
  return found(affinity::ask_rocm_smi(), "install ROCm, if this host has AMD GPUs");
}

Finding probe_site_models() {
  const templates::SiteCatalog catalog(config_folders(process_environment(), "sites"), read_user_file);
  std::vector<std::string> broken;
  const auto sites = catalog.list();
  for (const auto& site : sites) {
    if (const auto profile = catalog.find(site.name); !profile) broken.push_back(profile.error().message());
  }
  if (!broken.empty())
    return fails(join(broken, "; "), "correct it: " + document("reference/site-schema.md"));
  const auto variants =
      std::count_if(sites.begin(), sites.end(), [](const auto& site) { return site.is_variant; });
  return works({}, {}, counted(sites.size() - variants, "site"));
}

}  // namespace ddl::cli
