// Which CPUs share a last-level cache, a NUMA node or a package, as the kernel says it in /sys.
#pragma once

#include <string>
#include <vector>

#include "runtime/src/channel/exchange_groups.h"
#include "runtime/src/transport/cpu_set.h"

namespace ddl::runtime {

class CpuPlaces {
 public:
  /// Reads what there is of these CPUs; what is missing or makes no sense is not known. root: instead of it.
  static CpuPlaces read(const CpuSet& cpus, const std::string& root = "/sys/devices/system");

  /// Where all of these CPUs lie; not known if there are none.
  CpuPlace of(const CpuSet& cpus) const;

 private:
  void place(const std::string& list_file, int CpuPlace::*level);

  std::vector<CpuPlace> place_of_;  ///< by CPU; a cache, node or package is named after its first CPU
};

/// The numbers in a list as the kernel writes them, "0-3,8,10-11\n"; empty unless it is one of CPUs below
/// CpuSet::kMaxCpus.
std::vector<int> parse_cpu_list(const std::string& text);

}  // namespace ddl::runtime
