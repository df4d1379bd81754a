#include "affinity/topology_json.h"

#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

namespace ddl {

void to_json(nlohmann::json& j, const CpuSet& cpus) { j = cpus.list(); }
void from_json(const nlohmann::json& j, CpuSet& cpus) {
  auto parsed = CpuSet::parse_list(j.get_ref<const std::string&>());
  if (!parsed) throw std::out_of_range(parsed.error().message());
  cpus = *std::move(parsed);
}

}  // namespace ddl

namespace ddl::affinity {

/// More cores, caches or devices than any node has: a set of CPUs is a few characters in a message and kilobytes in
/// memory.
constexpr std::size_t kMaxTopologyItems = 4096;

void from_json(const nlohmann::json& j, GpuVendor& vendor) {
  const auto number = j.get<std::int64_t>();
  if (number < 0 || number > static_cast<std::int64_t>(GpuVendor::kIntel))
    throw std::out_of_range("a GPU's vendor");
  vendor = static_cast<GpuVendor>(number);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Core, cpus, package, numa, l3, kind)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NumberedCore, cpus, package)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CpuDomain, os_index, cpus, complete)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CoreKind, name, cpus)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NumaNode, os_index, cpus, complete, memory_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Gpu, index, vendor, bus_id, uuid, model, visible_as, local_cpus,
                                   complete_local_cpus, numa, pci_switch, locality_from)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Nic, name, bus_speed, is_fabric, bus_id, local_cpus, numa, pci_switch)

void to_json(nlohmann::json& j, const Topology& t) {
  j = nlohmann::json{{"source", t.source},
                     {"board", t.board},
                     {"allowed", t.allowed},
                     {"complete", t.complete},
                     {"cores", t.cores},
                     {"packages", t.packages},
                     {"numa", t.numa_nodes},
                     {"l3s", t.l3s},
                     {"gpus", t.gpus},
                     {"nics", t.nics},
                     {"warnings", t.warnings},
                     {"numbered_cores", t.numbered_cores},
                     {"core_kinds", t.core_kinds}};
}
void from_json(const nlohmann::json& j, Topology& t) {
  for (const char* many :
       {"cores", "numbered_cores", "packages", "numa", "l3s", "core_kinds", "gpus", "nics"}) {
    if (j.at(many).size() > kMaxTopologyItems) throw std::out_of_range(std::string("too many ") + many);
  }
  j.at("source").get_to(t.source);
  j.at("board").get_to(t.board);
  j.at("allowed").get_to(t.allowed);
  j.at("complete").get_to(t.complete);
  j.at("cores").get_to(t.cores);
  j.at("numbered_cores").get_to(t.numbered_cores);
  j.at("packages").get_to(t.packages);
  j.at("numa").get_to(t.numa_nodes);
  j.at("l3s").get_to(t.l3s);
  j.at("core_kinds").get_to(t.core_kinds);
  j.at("gpus").get_to(t.gpus);
  j.at("nics").get_to(t.nics);
  j.at("warnings").get_to(t.warnings);
  if (!t.cores.empty() && !is_consistent(t)) throw std::out_of_range("a topology that contradicts itself");
}

}  // namespace ddl::affinity
