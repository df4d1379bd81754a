#include "runtime/src/wire/clock_comparison.h"

namespace ddl::runtime {

std::int64_t ClockComparison::begin() {
  left_ = kRoundTrips;
  best_ = {0, 0, std::numeric_limits<std::int64_t>::max()};
  return next();
}

bool ClockComparison::add_answer(std::int64_t asked, std::int64_t answered) {
  if (asked_ == 0 || asked != asked_) return false;
  const std::int64_t now = log_.exact_now();
  asked_ = 0;
  const std::int64_t half = (now - asked + 1) / 2;
  if (half < best_.bound) best_ = {asked + half, answered - (asked + half), half};
  if (--left_ > 0) return true;
  log_.add_clock_sample(peer_, best_);
  return false;
}

}  // namespace ddl::runtime
