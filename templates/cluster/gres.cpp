#include "templates/cluster/gres.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/text.h"

namespace ddl::templates {
namespace {

constexpr std::int64_t kMostGpus = 65536;

/// "gpu:a100:4(S:0,2),nvme:1" without what stands in parentheses, where a comma separates sockets.
std::string without_places(std::string_view gres) {
  std::string text;
  int depth = 0;
  for (const char c : gres) {
    if (c == '(') ++depth;
    if (depth == 0) text += c;
    if (c == ')' && depth > 0) --depth;
  }
  return text;
}

/// The last part of "gpu", "gpu:4", "gpu:a100" or "gpu:a100:4" says how many if it is a number; else it is one.
std::int64_t gres_count(std::string_view item) {
  const auto parts = split(item, ':');
  if (trim(parts.front()) != "gpu") return 0;
  if (parts.size() == 1) return 1;
  const auto count = parse_integer(trim(parts.back()));
  return count ? std::clamp<std::int64_t>(*count, 0, kMostGpus) : 1;
}

}  // namespace

int gpus_of_gres(std::string_view gres) {
  std::int64_t sum = 0;
  const std::string text = without_places(gres);
  for (const std::string_view item : split(text, ',')) sum = std::min(sum + gres_count(item), kMostGpus);
  return static_cast<int>(sum);
}

}  // namespace ddl::templates
