#include "cli/rank_ranges.h"

#include "base/text.h"

namespace ddl::cli {

std::string rank_ranges(const std::vector<int>& ranks) {
  constexpr std::size_t kMostRanges = 12;
  std::vector<std::string> parts;
  std::size_t next = 0;
  while (next < ranks.size()) {
    if (parts.size() == kMostRanges) {
      return join(parts, ", ") + " and " + std::to_string(ranks.size() - next) + " more";
    }
    std::size_t last = next;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    std::string part = std::to_string(ranks[next]);
    if (last > next) part += (last == next + 1 ? ", " : "-") + std::to_string(ranks[last]);
    parts.push_back(std::move(part));
    next = last + 1;
  }
  return join(parts, ", ");
}

std::string ranks_text(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_ranges(ranks);
}

}  // namespace ddl::cli
