// A bootstrap over a Board: ranks as threads or as forked processes, on simulated hosts.
#pragma once

#include <vector>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/support/board.h"

namespace ddl::runtime::test {

/// The ranks of each host; empty: all on one.
using Hosts = std::vector<std::vector<int>>;

/// Hosts with these numbers of ranks, filled in order: {2, 1} is {{0, 1}, {2}}.
Hosts hosts_of_sizes(const std::vector<int>& sizes);

class BoardBootstrap final : public Bootstrap {
 public:
  /// board outlives the bootstrap. generation: the number of contexts that this rank has made on the board.
  BoardBootstrap(Board& board, int rank, std::uint32_t generation = 1, const Hosts& hosts = {});

  const char* name() const override { return "board"; }
  const Membership& membership() const override { return membership_; }
  Status put(std::string_view key, std::string_view value) override {
    return board_.put(membership_.rank, key, value);
  }
  Status fence(Deadline deadline) override { return board_.fence(deadline); }
  Result<std::string> get(int rank, std::string_view key, Deadline) override { return board_.get(rank, key); }
  void notify_launcher(int) override {}
  Status leave() override { return {}; }

 private:
  Board& board_;
  Membership membership_;
};

}  // namespace ddl::runtime::test
