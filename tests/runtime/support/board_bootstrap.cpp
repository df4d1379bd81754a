#include "runtime/support/board_bootstrap.h"

#include <numeric>

namespace ddl::runtime::test {

Hosts hosts_of_sizes(const std::vector<int>& sizes) {
  Hosts hosts;
  int next = 0;
  for (const int size : sizes) {
    std::vector<int>& ranks = hosts.emplace_back(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), next);
    next += size;
  }
  return hosts;
}

BoardBootstrap::BoardBootstrap(Board& board, int rank, std::uint32_t generation, const Hosts& hosts)
    : board_(board) {
  membership_.generation = generation;
  membership_.rank = rank;
  membership_.size = board.size();
  auto layout = HostLayout::of(hosts.empty() ? hosts_of_sizes({board.size()}) : hosts, rank, board.size());
  DDL_CHECK(layout.has_value(), layout.error().message());
  membership_.layout = *std::move(layout);
  // Every rank has a host of its own name, so that a test sees whether a sentence names the right one.
  membership_.host = "host" + std::to_string(rank);
}

}  // namespace ddl::runtime::test
