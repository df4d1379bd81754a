// A plan that must succeed.
#pragma once

#include "affinity/plan/binding_plan.h"
#include "support/catch.h"

namespace ddl::affinity::test {

inline BindingPlan planned(const Topology& topology, const BindingPolicy& policy, int ranks) {
  auto plan = plan_binding(topology, policy, ranks);
  INFO((plan ? std::string() : plan.error().message()));
  REQUIRE(plan);
  REQUIRE(plan->ranks.size() == static_cast<std::size_t>(ranks));
  return *std::move(plan);
}

}  // namespace ddl::affinity::test
