// How a process set is made from the ranks of another, its parent: the members, and the bootstrap by which they find
// each other, which gathers texts over the parent.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/context/process_set.h"

namespace ddl::runtime {

// The members of a new process set and their hosts: pure functions with the same result on all ranks.

/// A rank's arguments of a split.
struct Coloring {
  std::int32_t color = 0;  ///< negative: in no set
  std::int32_t key = 0;
};

/// The ranks with own's color, by key and then by rank; empty if the color is negative.
std::vector<int> members_of_color(std::span<const Coloring> all, int own);

/// The membership of rank members[i] of the parent, which becomes rank i; members are ranks of the parent, each once.
/// made: the number of sets that the parent has made, so that no two memberships of a parent have the same
/// generation.
Membership membership_of(const Membership& parent, const std::vector<int>& members, std::uint32_t made);

// How the ranks of a new process set find each other: through collectives of the parent.

/// A text of every rank of the parent, in rank order. Collective over the parent.
using GatherTexts = std::function<Result<std::vector<std::string>>(const std::string& own)>;

class SetBootstrap final : public Bootstrap {
 public:
  /// parent_ranks: the ranks in the parent of the set's ranks. gather is used by fence() alone.
  SetBootstrap(Membership membership, std::vector<int> parent_ranks, GatherTexts gather)
      : membership_(std::move(membership)),
        parent_ranks_(std::move(parent_ranks)),
        gather_(std::move(gather)) {}

  const char* name() const override { return "process set"; }
  const Membership& membership() const override { return membership_; }
  Status put(std::string_view key, std::string_view value) override;
  /// May be called once.
  Status fence(Deadline) override;
  Result<std::string> get(int rank, std::string_view key, Deadline) override;
  void notify_launcher(int) override {}
  Status leave() override { return {}; }

 private:
  Membership membership_;
  std::vector<int> parent_ranks_;
  GatherTexts gather_;
  PutValues own_;
  std::vector<PutValues> all_;  ///< by rank of the set
};

// A text of every rank of a process set, on every rank.

/// Inside a CallScope of the set; collective. Uses only allreduce, which needs no further connections.
Result<std::vector<std::string>> gather_texts(ProcessSet& set, const std::string& own, CallDeadline deadline);

}  // namespace ddl::runtime
