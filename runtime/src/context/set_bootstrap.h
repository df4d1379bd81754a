// How the ranks of a new process set find each other: through collectives of the set that they come from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/bootstrap/put_values.h"

namespace ddl::runtime {

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
  void tell_launcher(int) override {}
  Status leave() override { return {}; }

 private:
  Membership membership_;
  std::vector<int> parent_ranks_;
  GatherTexts gather_;
  PutValues own_;
  std::vector<PutValues> all_;  ///< of the set's ranks
};

}  // namespace ddl::runtime
