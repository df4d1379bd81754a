#include "runtime/support/board_bootstrap.h"

#include <numeric>

namespace ddl::runtime::test {

BoardBootstrap::BoardBootstrap(Board& board, int rank, std::uint32_t generation) : board_(board) {
  membership_.generation = generation;
  membership_.rank = rank;
  membership_.size = board.ranks();
  membership_.local_members.resize(static_cast<std::size_t>(board.ranks()));
  std::iota(membership_.local_members.begin(), membership_.local_members.end(), 0);
  // Every rank has a host of its own name, so that a test sees whether a sentence names the right one.
  membership_.host = "host" + std::to_string(rank);
}

}  // namespace ddl::runtime::test
