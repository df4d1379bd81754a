// The one file that includes hwloc.
#include <hwloc.h>
#include <hwloc/cpukinds.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "affinity/source/child_query.h"
#include "affinity/source/core_kinds.h"
#include "affinity/source/pci_devices.h"
#include "affinity/source/topology_source.h"
#include "affinity/source/vendor_gpus.h"
#include "base/fd.h"
#include "base/shared_library.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;

CpuSet cpus_of(hwloc_const_bitmap_t bitmap) {
  CpuSet set;
  if (bitmap == nullptr || hwloc_bitmap_weight(bitmap) < 0) return set;  // an infinite bitmap names no CPUs
  for (int cpu = hwloc_bitmap_first(bitmap); cpu >= 0; cpu = hwloc_bitmap_next(bitmap, cpu)) set.add(cpu);
  return set;
}

std::string info(hwloc_obj_t object, const char* name) {
  const char* text = hwloc_obj_get_info_by_name(object, name);
  return text == nullptr ? "" : text;
}

std::string bus_id_of(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", static_cast<unsigned>(pci.domain),
                     static_cast<unsigned>(pci.bus), static_cast<unsigned>(pci.dev),
                     static_cast<unsigned>(pci.func));
}

/// Reads one loaded hwloc topology.
class Reader {
 public:
  Reader(hwloc_topology_t hwloc, CpuSet may_use) : hwloc_(hwloc), may_use_(std::move(may_use)) {}

  Topology read(std::string source) {
    topology_.source = std::move(source);
    topology_.board = info(hwloc_get_root_obj(hwloc_), "DMIBoardName");
    topology_.complete = cpus_of(hwloc_topology_get_complete_cpuset(hwloc_));
    topology_.allowed = cpus_of(hwloc_topology_get_allowed_cpuset(hwloc_)) & may_use_;
    read_domains();
    read_cores();
    if (!topology_.cores.empty()) set_core_kinds(topology_, kinds_of(listed_kinds()));
    read_devices();
    apply_board_quirks(topology_);
    return std::move(topology_);
  }

 private:
  template <class Each>
  void for_each(hwloc_obj_type_t type, Each each) const {
    for (hwloc_obj_t object = hwloc_get_next_obj_by_type(hwloc_, type, nullptr); object != nullptr;
         object = hwloc_get_next_obj_by_type(hwloc_, type, object)) {
      each(object);
    }
  }

  CpuDomain domain_of(hwloc_obj_t object) const {
    return {static_cast<int>(object->os_index), cpus_of(object->cpuset) & topology_.allowed,
            cpus_of(object->complete_cpuset)};
  }

  /// Firmware of POWER, s390, ia64, Arm boards and virtual machines numbers packages as it likes, or not at all. A
  /// number that no int holds, or that several packages have, tells nobody which package is meant.
  void number_packages() {
    std::vector<int> numbers;
    for (const CpuDomain& package : topology_.packages) numbers.push_back(package.os_index);
    std::sort(numbers.begin(), numbers.end());
    const bool is_numbered = (numbers.empty() || numbers.front() >= 0) &&
                             std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
    for (int i = 0; i < std::ssize(topology_.packages) && !is_numbered; ++i)
      topology_.packages[i].os_index = i;
  }

  void read_domains() {
    // HWLOC_UNKNOWN_INDEX becomes -1.
    for_each(HWLOC_OBJ_PACKAGE, [&](hwloc_obj_t object) { topology_.packages.push_back(domain_of(object)); });
    number_packages();
    if (topology_.packages.empty()) topology_.packages.push_back({0, topology_.allowed, topology_.complete});
    for_each(HWLOC_OBJ_L3CACHE, [&](hwloc_obj_t object) { topology_.l3s.push_back(domain_of(object)); });
    for (int l3 = 0; l3 < std::ssize(topology_.l3s); ++l3) topology_.l3s[l3].os_index = l3;
    for_each(HWLOC_OBJ_NUMANODE, [&](hwloc_obj_t object) {
      const CpuDomain domain = domain_of(object);
      topology_.numa_nodes.push_back(
          {domain.os_index, domain.cpus, domain.complete, object->attr->numanode.local_memory});
    });
    if (topology_.numa_nodes.empty())
      topology_.numa_nodes.push_back({0, topology_.allowed, topology_.complete, 0});
  }

  /// The narrowest of domains that contains a CPU, if one does.
  template <class Domain>
  static std::optional<int> narrowest(const std::vector<Domain>& domains, int cpu) {
    std::optional<int> found;
    for (int i = 0; i < std::ssize(domains); ++i) {
      if (!domains[i].complete.contains(cpu)) continue;
      if (!found || domains[i].complete.count() < domains[*found].complete.count()) found = i;
    }
    return found;
  }

  void add_core(const CpuSet& all) {
    if (all.is_empty()) return;
    topology_.numbered_cores.push_back({all, narrowest(topology_.packages, all.first()).value_or(0)});
    Core core;
    core.cpus = all & topology_.allowed;
    if (core.cpus.is_empty()) return;
    const int cpu = core.cpus.first();
    core.package = narrowest(topology_.packages, cpu).value_or(0);
    core.numa = narrowest(topology_.numa_nodes, cpu).value_or(0);
    core.l3 = narrowest(topology_.l3s, cpu).value_or(-1);
    topology_.cores.push_back(std::move(core));
  }

  void read_cores() {
    for_each(HWLOC_OBJ_CORE, [&](hwloc_obj_t object) { add_core(cpus_of(object->cpuset)); });
    if (topology_.cores.empty()) {
      // Some virtual machines do not report cores.
      for (const int cpu : topology_.allowed.cpus()) add_core(CpuSet::of({cpu}));
    }
    sort_by_first_cpu(topology_.cores);
  }

  std::vector<ListedKind> listed_kinds() const {
    std::vector<ListedKind> kinds;
    const hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    const int count = cpus == nullptr ? 0 : hwloc_cpukinds_get_nr(hwloc_, 0);
    for (int i = 0; i < count; ++i) {
      ListedKind& kind = kinds.emplace_back();
      unsigned num_infos = 0;
      hwloc_info_s* infos = nullptr;
      if (hwloc_cpukinds_get_info(hwloc_, i, cpus, &kind.efficiency, &num_infos, &infos, 0) != 0) break;
      kind.cpus = cpus_of(cpus);
      for (unsigned info = 0; info < num_infos; ++info) {
        const std::string_view name = infos[info].name, value = infos[info].value;
        const auto number = parse_integer(value).value_or(0);
        const int small = number > 0 && number < 1'000'000 ? static_cast<int>(number) : 0;
        if (name == "CoreType" || name == "DarwinCompatible") kind.type = value;
        if (name == "LinuxCapacity") kind.capacity = small;
        if (name == "FrequencyMaxMHz") kind.max_mhz = small;
      }
    }
    hwloc_bitmap_free(cpus);
    return kinds;
  }

  /// The CPUs that a device is nearest to.
  struct Place {
    CpuSet cpus;
    CpuSet complete;
    int numa = -1;
  };
  Place place_of(hwloc_obj_t device) const {
    Place place;
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(hwloc_, device);
    place.complete = cpus_of(near->complete_cpuset);
    // A locality of the whole machine is no information, unless the machine is small.
    if (place.complete == topology_.complete && topology_.packages.size() + topology_.numa_nodes.size() > 2)
      return {};
    place.cpus = place.complete & topology_.allowed;
    for (int node = 0; node < std::ssize(topology_.numa_nodes); ++node) {
      if (!place.complete.is_empty() && place.complete.is_subset_of(topology_.numa_nodes[node].complete))
        place.numa = node;
    }
    return place;
  }

  /// The bus id of the nearest bridge above that has other devices below; a bridge above this device alone is a port
  /// and not a switch.
  static std::string switch_of(hwloc_obj_t device) {
    for (hwloc_obj_t above = device->parent; above != nullptr && above->type == HWLOC_OBJ_BRIDGE;
         above = above->parent) {
      const bool is_pci = above->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
      if (is_pci && above->io_arity > 1) return bus_id_of(above->attr->bridge.upstream.pci);
    }
    return "";
  }

  /// The index in "rsmi4", "nvml0", "cuda1", "opencl0d2"; -1 if the device has no such name.
  static int index_by_name(hwloc_obj_t device) {
    for (hwloc_obj_t child = device->io_first_child; child != nullptr; child = child->next_sibling) {
      if (child->type != HWLOC_OBJ_OS_DEVICE || child->name == nullptr) continue;
      for (const char* prefix : {"rsmi", "nvml", "cuda"}) {
        const std::size_t length = std::strlen(prefix);
        if (std::strncmp(child->name, prefix, length) != 0) continue;
        if (const auto index = parse_integer(child->name + length)) return static_cast<int>(*index);
      }
    }
    return -1;
  }

  static std::string uuid_of(hwloc_obj_t device) {
    for (hwloc_obj_t child = device->io_first_child; child != nullptr; child = child->next_sibling) {
      for (const char* key : {"NVIDIAUUID", "AMDUUID"}) {
        if (std::string text = info(child, key); !text.empty()) return text;
      }
    }
    return "";
  }

  void read_gpu(hwloc_obj_t device, GpuVendor vendor) {
    const Place place = place_of(device);
    Gpu gpu;
    gpu.index = index_by_name(device);
    gpu.vendor = vendor;
    gpu.bus_id = bus_id_of(device->attr->pcidev);
    gpu.uuid = uuid_of(device);
    gpu.model = info(device, "PCIDevice");
    gpu.local_cpus = place.cpus;
    gpu.complete_local_cpus = place.complete;
    gpu.numa = place.numa;
    gpu.pci_switch = switch_of(device);
    gpu.locality_from = "PCI locality";
    topology_.gpus.push_back(std::move(gpu));
  }

  void read_nic(hwloc_obj_t device, const PciIdentity& identity) {
    const Place place = place_of(device);
    std::string name;
    for (hwloc_obj_t child = device->io_first_child; child != nullptr; child = child->next_sibling) {
      if (child->type != HWLOC_OBJ_OS_DEVICE || child->name == nullptr) continue;
      // Libraries of fabrics take the name of the verbs device; without one, the interface's name is used.
      const bool has_verbs = child->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
      if (name.empty() || has_verbs) name = child->name;
    }
    topology_.nics.push_back(Nic{std::move(name), device->attr->pcidev.linkspeed, is_fabric(identity),
                                 bus_id_of(device->attr->pcidev), place.complete, place.numa,
                                 switch_of(device)});
  }

  void read_devices() {
    for_each(HWLOC_OBJ_PCI_DEVICE, [&](hwloc_obj_t device) {
      const auto& pci = device->attr->pcidev;
      const PciIdentity identity{pci.vendor_id, pci.device_id, pci.class_id};
      if (const auto vendor = gpu_vendor_of(identity)) read_gpu(device, *vendor);
      if (is_nic(identity)) read_nic(device, identity);
    });
    auto& gpus = topology_.gpus;
    std::sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.bus_id < b.bus_id; });
    const bool all_told =
        std::all_of(gpus.begin(), gpus.end(), [](const Gpu& gpu) { return gpu.index >= 0; });
    // Each vendor's library counts its own from 0.
    std::map<GpuVendor, int> next;
    for (Gpu& gpu : gpus) {
      if (!all_told) gpu.index = next[gpu.vendor]++;
    }
    std::stable_sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) {
      return std::pair(a.vendor, a.index) < std::pair(b.vendor, b.index);
    });
    std::stable_sort(topology_.nics.begin(), topology_.nics.end(),
                     [](const Nic& a, const Nic& b) { return a.name < b.name; });
  }

  hwloc_topology_t hwloc_;
  CpuSet may_use_;
  Topology topology_;
};

Result<Handle> new_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail_errno("start hwloc");
  Handle handle(raw);
  // Only GPUs, network and storage devices and the like: reading one takes milliseconds in a virtual machine.
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // These would connect to X displays and load GPU runtimes.
  for (const char* component : {"gl", "opencl"})
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  return handle;
}

/// A number as sysfs writes it: "0x10de\n"; 0 if there is none.
unsigned long sysfs_number(const std::filesystem::path& file) {
  const auto text = read_file(file.string());
  return text ? std::strtoul(text->c_str(), nullptr, 16) : 0;
}

/// Without asking the devices themselves.
bool has_gpu() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/pci/devices", error)) {
    const PciIdentity identity{static_cast<std::uint16_t>(sysfs_number(entry.path() / "vendor")), 0,
                               static_cast<std::uint16_t>(sysfs_number(entry.path() / "class") >> 8)};
    if (gpu_vendor_of(identity)) return true;
  }
  return false;
}

/// hwloc's plugins are for XML and for devices that Linux reports itself; loading them takes longer than all the
/// rest. A user who has set their path gets them. Changes the environment while it lives: for a process with one
/// thread.
class WithoutPlugins {
 public:
  WithoutPlugins() : is_users_(std::getenv(kName) != nullptr) {
    if (!is_users_) ::setenv(kName, "", 1);
  }
  ~WithoutPlugins() {
    if (!is_users_) ::unsetenv(kName);
  }
  WithoutPlugins(const WithoutPlugins&) = delete;
  WithoutPlugins& operator=(const WithoutPlugins&) = delete;

 private:
  static constexpr const char* kName = "HWLOC_PLUGINS_PATH";
  bool is_users_;
};

/// hwloc reads the largest nodes that exist in less than a tenth of a second. An agent that is silent for longer than
/// a few seconds is considered lost.
constexpr std::chrono::seconds kFilePatience{10};
constexpr std::chrono::seconds kOwnPatience{2};

/// Variables that make hwloc read a description in place of the machine itself.
constexpr const char* kDescriptions[] = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT",
                                         "HWLOC_CPUID_PATH"};

class ThisMachine final : public TopologySource {
 public:
  explicit ThisMachine(Devices devices) : devices_(devices) {}
  Result<Topology> load() const override {
    auto topology = load_without_vendors();
    if (topology) ask_vendors(*topology);
    return topology;
  }

 private:
  Result<Topology> load_without_vendors() const {
    std::string described;
    for (const char* name : kDescriptions) {
      if (const char* value = std::getenv(name); value != nullptr && *value != '\0')
        described += std::string(described.empty() ? "" : ", ") + name + "=" + value;
    }
    if (described.empty()) return load_here();
    // Of a description the devices are wanted, too, whatever this machine has.
    auto topology = topology_in_child([this] { return load_here(true); }, described, kOwnPatience);
    if (topology) return topology;
    for (const char* name : kDescriptions) ::unsetenv(name);
    const std::string warning = topology.error().message() + "; the machine itself was read";
    topology = load_here();
    if (topology) topology->warnings.push_back(warning);
    return topology;
  }

  Result<Topology> load_here(bool is_described = false) const {
    const WithoutPlugins while_loading;
    DDL_ASSIGN(handle, new_topology());
    if (devices_ == Devices::kBesideGpus && !is_described && !has_gpu())
      hwloc_topology_set_io_types_filter(handle.get(), HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(handle.get()) != 0) return fail_errno("read this machine's topology");
    // The CPUs to which taskset or a launcher has bound this process; the cgroup's limits are in the topology
    // already.
    CpuSet may_use = cpus_of(hwloc_topology_get_complete_cpuset(handle.get()));
    const hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    if (bound != nullptr && hwloc_get_cpubind(handle.get(), bound, HWLOC_CPUBIND_PROCESS) == 0)
      may_use = cpus_of(bound);
    hwloc_bitmap_free(bound);
    return Reader(handle.get(), may_use).read("this machine");
  }

  Devices devices_;
};

constexpr std::size_t kMaxXmlBytes = 64 << 20;

/// A topology all of which a job may use.
Result<Topology> read_whole(hwloc_topology_t hwloc, const std::string& source) {
  const hwloc_const_bitmap_t complete = hwloc_topology_get_complete_cpuset(hwloc);
  if (const int last = hwloc_bitmap_last(complete); last >= kMaxCpuNumbers)
    return refuse(fmt::format("{}: has a CPU {}, but the highest possible CPU number is {}", source, last,
                              kMaxCpuNumbers - 1));
  return Reader(hwloc, cpus_of(complete)).read(source);
}

/// hwloc 2.9 refuses files of hwloc 3 without a message.
bool is_of_hwloc_3(const std::string& text) {
  const std::size_t at = text.find("<topology version=\"3");
  return at != std::string::npos && at < 4096;
}

class XmlFile final : public TopologySource {
 public:
  explicit XmlFile(std::string path) : path_(std::move(path)) {}
  Result<Topology> load() const override {
    DDL_ASSIGN(text, read_file(path_, kMaxXmlBytes));
    if (is_of_hwloc_3(text)) {
      return fail(ErrorCode::kUnavailable, path_ +
                                               ": written by hwloc 3, which this ddlrun's hwloc cannot read; "
                                               "`lstopo --export-xml-flags v2` writes a file for hwloc 2");
    }
    return topology_in_child([&] { return read(text); }, path_, kFilePatience);
  }

 private:
  Result<Topology> read(const std::string& text) const {
    DDL_ASSIGN(handle, new_topology());
    const int size = text.size() + 1;
    if (hwloc_topology_set_xmlbuffer(handle.get(), text.c_str(), size) != 0 ||
        hwloc_topology_load(handle.get()) != 0) {
      return fail(ErrorCode::kInvalidArgument, path_ + " is not a topology that hwloc has written");
    }
    return read_whole(handle.get(), path_);
  }

  std::string path_;
};

class Synthetic final : public TopologySource {
 public:
  explicit Synthetic(std::string text) : text_(std::move(text)) {}
  Result<Topology> load() const override {
    return topology_in_child([this] { return read(); }, "\"" + text_ + "\"", kFilePatience);
  }

 private:
  Result<Topology> read() const {
    DDL_ASSIGN(handle, new_topology());
    if (hwloc_topology_set_synthetic(handle.get(), text_.c_str()) != 0 ||
        hwloc_topology_load(handle.get()) != 0) {
      return fail(
          ErrorCode::kInvalidArgument,
          "\"" + text_ +
              "\" is neither a file nor a synthetic topology such as \"pack:2 numa:2 l3:2 core:8 pu:2\"");
    }
    return read_whole(handle.get(), "\"" + text_ + "\"");
  }

  std::string text_;
};

}  // namespace

std::unique_ptr<TopologySource> this_machine(Devices devices) {
  return std::make_unique<ThisMachine>(devices);
}
std::unique_ptr<TopologySource> hwloc_xml(std::string path) {
  return std::make_unique<XmlFile>(std::move(path));
}
std::unique_ptr<TopologySource> hwloc_synthetic(std::string text) {
  return std::make_unique<Synthetic>(std::move(text));
}
std::unique_ptr<TopologySource> topology_named(const std::string& text) {
  const bool is_synthetic = text.find(':') != std::string::npos && ::access(text.c_str(), F_OK) != 0;
  return is_synthetic ? hwloc_synthetic(text) : hwloc_xml(text);
}

HwlocLibrary linked_hwloc() {
  // 0x00MMmmrr.
  const unsigned version = hwloc_get_api_version();
  constexpr unsigned kByte = 0xff;
  return {"hwloc " + std::to_string(version >> 16) + "." + std::to_string(version >> 8 & kByte) + "." +
              std::to_string(version & kByte),
          file_of_code(reinterpret_cast<void*>(&hwloc_get_api_version))};
}

}  // namespace ddl::affinity
