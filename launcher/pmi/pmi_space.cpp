#include "launcher/pmi/pmi_space.h"

#include "net/pmi_line.h"

namespace ddl::launcher {
namespace {

/// MPICH puts a handful for each rank; whoever puts millions is no MPI program.
constexpr std::size_t kMostPairs = std::size_t{1} << 20;

}  // namespace

bool PmiSpace::put(std::string_view key, std::string_view value) {
  if (key.empty() || key.size() >= net::kMostPmiKey || value.size() >= net::kMostPmiValue ||
      new_.size() >= kMostPairs)
    return false;
  keep(std::string(key), std::string(value));
  new_.push_back({std::string(key), std::string(value)});
  return true;
}

const std::string* PmiSpace::get(std::string_view key) const {
  const auto found = pairs_.find(key);
  return found == pairs_.end() ? nullptr : &found->second;
}

void PmiSpace::add(const std::vector<message::PmiPair>& pairs) {
  for (const message::PmiPair& pair : pairs) keep(pair.key, pair.value);
}

}  // namespace ddl::launcher
