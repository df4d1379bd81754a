#include "runtime/src/bootstrap/host_layout.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

namespace ddl::runtime {

Result<HostLayout> HostLayout::of(std::vector<std::vector<int>> groups, int rank, int size) {
  std::vector<bool> seen(static_cast<std::size_t>(size));
  int count = 0;
  for (std::vector<int>& group : groups) {
    std::sort(group.begin(), group.end());
    for (const int member : group) {
      if (member < 0 || member >= size || seen[member]) {
        return fail(ErrorCode::kProtocol, "rank " + std::to_string(member) +
                                              " is on two hosts or does not exist in a job of " +
                                              std::to_string(size));
      }
      seen[member] = true;
      ++count;
    }
  }
  if (count != size || rank < 0 || rank >= size) {
    return fail(ErrorCode::kProtocol, "the hosts hold " + std::to_string(count) + " ranks, but the job has " +
                                          std::to_string(size));
  }
  groups.erase(std::remove_if(groups.begin(), groups.end(), [](const auto& group) { return group.empty(); }),
               groups.end());
  std::sort(groups.begin(), groups.end());  // by their lowest ranks, which differ
  HostLayout layout;
  layout.hosts = std::move(groups);
  const auto has_rank = [rank](const auto& group) {
    return std::binary_search(group.begin(), group.end(), rank);
  };
  layout.own = static_cast<int>(std::find_if(layout.hosts.begin(), layout.hosts.end(), has_rank) -
                                layout.hosts.begin());
  return layout;
}

int HostLayout::size() const {
  std::size_t count = 0;
  for (const auto& ranks : hosts) count += ranks.size();
  return static_cast<int>(count);
}

int HostLayout::host_of(int rank) const {
  const auto has_it = [rank](const std::vector<int>& ranks) {
    return std::binary_search(ranks.begin(), ranks.end(), rank);
  };
  const auto found = std::find_if(hosts.begin(), hosts.end(), has_it);
  DDL_CHECK(found != hosts.end(), std::to_string(rank));
  return static_cast<int>(found - hosts.begin());
}

int HostLayout::max_local_size() const {
  std::size_t largest = 0;
  for (const auto& ranks : hosts) largest = std::max(largest, ranks.size());
  return static_cast<int>(largest);
}

int HostLayout::local_rank(int rank) const {
  const std::vector<int>& ranks = local();
  return static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

int HostLayout::lane_count() const {
  const auto smallest = std::min_element(hosts.begin(), hosts.end(),
                                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return std::ssize(*smallest);
}

int HostLayout::cross_rank(int local_rank) const {
  return static_cast<int>(std::count_if(hosts.begin(), hosts.begin() + own, [local_rank](const auto& ranks) {
    return std::ssize(ranks) > local_rank;
  }));
}

int HostLayout::cross_size(int local_rank) const {
  return static_cast<int>(std::count_if(hosts.begin(), hosts.end(), [local_rank](const auto& ranks) {
    return std::ssize(ranks) > local_rank;
  }));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

}  // namespace ddl::runtime
