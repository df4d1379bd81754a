// A bootstrap over a Board: ranks as threads or as forked processes, all on this host.
#pragma once

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/support/board.h"

namespace ddl::runtime::test {

class BoardBootstrap final : public Bootstrap {
 public:
  /// board outlives the bootstrap. generation: as many contexts as this rank has made on the board.
  BoardBootstrap(Board& board, int rank, std::uint32_t generation = 1);

  const char* name() const override { return "board"; }
  const Membership& membership() const override { return membership_; }
  Status put(std::string_view key, std::string_view value) override {
    return board_.put(membership_.rank, key, value);
  }
  Status fence(Deadline deadline) override { return board_.fence(deadline); }
  Result<std::string> get(int rank, std::string_view key, Deadline) override { return board_.get(rank, key); }
  Status leave() override { return {}; }

 private:
  Board& board_;
  Membership membership_;
};

}  // namespace ddl::runtime::test
