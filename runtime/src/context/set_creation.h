// How a process set is made from the ranks of another, its parent: the members, and the bootstrap by which they find
// each other. It gathers texts over the parent or, if the members alone take part, by a StoreExchange.
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
/// number: of no other set of the parent with the same first member, so that no two of its memberships have the same
/// generation.
Membership membership_of(const Membership& parent, const std::vector<int>& members, std::uint64_t number);

// How the ranks of a new process set find each other.

/// A text of every rank of the new set, in the set's order. Collective over its ranks, at least.
using GatherTexts = std::function<Result<std::vector<std::string>>(const std::string& own)>;

class SetBootstrap final : public Bootstrap {
 public:
  /// gather is used by fence() alone.
  SetBootstrap(Membership membership, GatherTexts gather)
      : membership_(std::move(membership)), gather_(std::move(gather)) {}

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
  GatherTexts gather_;
  PutValues own_;
  std::vector<PutValues> all_;  ///< by rank of the set
};

// A text of every rank of a process set, on every rank.

/// Inside a CallScope of the set; collective. Uses only allreduce, which needs no further connections.
Result<std::vector<std::string>> gather_texts(ProcessSet& set, const std::string& own, CallDeadline deadline);

}  // namespace ddl::runtime
