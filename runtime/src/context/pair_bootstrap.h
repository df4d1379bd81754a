// Who two ranks are that send to each other. They find each other through the process set that they are in.
#pragma once

#include <string>
#include <utility>

#include "runtime/src/bootstrap/bootstrap.h"

namespace ddl::runtime {

/// Carries nothing: what the two need to know of each other they have known since their set was joined.
class PairBootstrap final : public Bootstrap {
 public:
  explicit PairBootstrap(Membership membership) : membership_(std::move(membership)) {}

  const char* name() const override { return "pair"; }
  const Membership& membership() const override { return membership_; }
  Status put(std::string_view, std::string_view) override { return {}; }
  Status fence(Deadline) override { return {}; }
  Result<std::string> get(int rank, std::string_view key, Deadline) override {
    return fail(ErrorCode::kNotFound,
                "rank " + std::to_string(rank) + " of a pair puts nothing under " + std::string(key));
  }
  void tell_launcher(int) override {}
  Status leave() override { return {}; }

 private:
  Membership membership_;
};

}  // namespace ddl::runtime
