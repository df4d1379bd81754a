// Rankfiles with arbitrary text: accepted ranks are unchanged after they are written and read again, and their hosts
// are safe arguments of ssh; all other text gives an error of one sentence.
#include <cstdint>
#include <string>

#include "fuzz/require.h"
#include "launcher/job/allocation.h"
#include "launcher/job/host_name.h"
#include "launcher/job/rankfile.h"

namespace {

using ddl::affinity::CoreRange;
using ddl::launcher::RankfileEntry;

std::string as_line(std::size_t rank, const RankfileEntry& entry) {
  std::string line = "rank " + std::to_string(rank) + "=" +
                     (entry.host_index ? "+n" + std::to_string(*entry.host_index) : entry.host) + " slot=";
  for (std::size_t i = 0; i < entry.cores.size(); ++i) {
    const CoreRange& range = entry.cores[i];
    if (i > 0) line += ";";
    if (range.package) line += std::to_string(*range.package) + ":";
    if (range.are_cpus) line += "p";
    line += range.last == CoreRange::kToTheEnd
                ? "*"
                : std::to_string(range.first) + "-" + std::to_string(range.last);
  }
  return line + "\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto ranks = ddl::launcher::parse_rankfile({reinterpret_cast<const char*>(data), size}, "f");
  if (!ranks) {
    require_refusal(ranks.error());
    return 0;
  }
  std::string written;
  for (std::size_t rank = 0; rank < ranks->size(); ++rank) {
    const RankfileEntry& entry = (*ranks)[rank];
    require(entry.host_index.has_value() == entry.host.empty());
    require(entry.host.empty() || ddl::launcher::check_host_name(entry.host));
    require(!entry.cores.empty());
    for (const CoreRange& range : entry.cores) require(range.first <= range.last);
    written += as_line(rank, entry);
  }
  const auto again = ddl::launcher::parse_rankfile(written, "f");
  require(again && again->size() == ranks->size());
  for (std::size_t rank = 0; rank < ranks->size(); ++rank) {
    RankfileEntry before = (*ranks)[rank];
    before.origin = (*again)[rank].origin;
    require(before == (*again)[rank]);
  }
  if (const auto status =
          ddl::launcher::resolve_hosts(*ranks, ddl::launcher::local_allocation("head"), "head");
      !status)
    require_refusal(status.error());
  return 0;
}
