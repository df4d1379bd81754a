// How a process set is made of the ranks of another: who is in it, and the bootstrap by which its ranks find each other,
// which gathers texts over the set that they come from.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/context/process_set.h"

namespace ddl::runtime {

// Who is in a new process set, and where its ranks are: pure functions, alike on all ranks.

/// What a rank says when a set is split.
struct Coloring {
  std::int32_t color = 0;  ///< negative: into no set
  std::int32_t key = 0;
};

/// The ranks with own's color, by key and then by rank; empty if the color is negative.
std::vector<int> members_of_color(std::span<const Coloring> all, int own);

/// The membership of rank members[i] of the parent, which becomes rank i; members are ranks of the parent, each once.
/// made: how many sets the parent has made before, so that no two memberships of a parent have the same generation.
Membership membership_of(const Membership& parent, const std::vector<int>& members, std::uint32_t made);

// How the ranks of a new process set find each other: through collectives of the set that they come from.

/// A text of every rank of the parent, in rank order. Collective over the parent.
using GatherTexts = std::function<Result<std::vector<std::string>>(const std::string& own)>;

class SetBootstrap final : public Bootstrap {
 public:
  /// parent_ranks: who the set's ranks are in the parent. gather is used by fence() alone.
  SetBootstrap(Membership membership, std::vector<int> parent_ranks, GatherTexts gather)
      : membership_(std::move(membership)),
        parent_ranks_(std::move(parent_ranks)),
        gather_(std::move(gather)) {}

  const char* name() const override { return "process set"; }
  const Membership& membership() const override { return membership_; }
  Status put(std::string_view key, std::string_view value) override;
  /// Once only.
  Status fence(Deadline) override;
  Result<std::string> get(int rank, std::string_view key, Deadline) override;
  void notify_launcher(int) override {}
  Status leave() override { return {}; }

 private:
  Membership membership_;
  std::vector<int> parent_ranks_;
  GatherTexts gather_;
  PutValues own_;
  std::vector<PutValues> all_;  ///< of the set's ranks
};

// A text of every rank of a process set, on every rank.

/// Inside a run() of the set; collective. By allreduce alone, which needs no connections but those that the set has.
Result<std::vector<std::string>> gather_texts(ProcessSet& set, const std::string& own, CallDeadline deadline);

}  // namespace ddl::runtime
