#include "templates/cluster/slurm_memory.h"

#include "base/text.h"

namespace ddl::templates {

std::optional<std::int64_t> slurm_megabytes(std::string_view text) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  const char unit = text.empty() ? '\0' : text.back();
  const bool has_unit = unit != '\0' && std::string_view("kKmMgGtT").find(unit) != std::string_view::npos;
  const auto number = parse_integer(has_unit ? text.substr(0, text.size() - 1) : text);
  if (!number || *number <= 0 || *number > kLargest) return std::nullopt;
  switch (has_unit ? unit : 'M') {
    case 'k':
    case 'K': return (*number + 1023) / 1024;
    case 'g':
    case 'G': return *number * 1024;
    case 't':
    case 'T': return *number * 1024 * 1024;
    default: return *number;
  }
}

}  // namespace ddl::templates
