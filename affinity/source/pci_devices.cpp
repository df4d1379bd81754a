#include "affinity/source/pci_devices.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace ddl::affinity {
namespace {

struct GpuPlace {
  std::string_view bus_id;
  std::size_t l3;  ///< the n-th of the machine, by first CPU
};

struct Board {
  std::string_view name;  ///< as the firmware has it
  std::array<GpuPlace, 8> gpus;
};

constexpr std::array kBoards{
    // EPYC 7A53 with four MI250X. sysfs reports the NUMA node of a GCD and not its chiplet. Recorded as hwloc 2.8 and
    // later have it on a node of Tioga at LLNL; LUMI's and Frontier's guides show the same wiring.
    Board{"HPE CRAY EX235A",
          {{{"0000:d1:00.0", 0},
            {"0000:d6:00.0", 1},
            {"0000:c9:00.0", 2},
            {"0000:ce:00.0", 3},
            {"0000:d9:00.0", 4},
            {"0000:de:00.0", 5},
            {"0000:c1:00.0", 6},
            {"0000:c6:00.0", 7}}}},
};

}  // namespace

void apply_board_quirks(Topology& topology) {
  for (const Board& board : kBoards) {
    if (topology.board != board.name) continue;
    for (const GpuPlace& place : board.gpus) {
      if (place.l3 >= topology.l3s.size()) continue;
      const CpuDomain& l3 = topology.l3s[place.l3];
      for (Gpu& gpu : topology.gpus) {
        const bool is_wider =
            l3.complete != gpu.complete_local_cpus && l3.complete.is_subset_of(gpu.complete_local_cpus);
        if (gpu.bus_id != place.bus_id || !is_wider) continue;
        gpu.complete_local_cpus = l3.complete;
        gpu.local_cpus = l3.cpus;
        gpu.locality_from = "table of boards";
      }
    }
  }
}

}  // namespace ddl::affinity
