#include "base/deadline.h"

#include <limits>

#include "support/catch.h"

using ddl::Deadline;
using namespace std::chrono_literals;

TEST_CASE("never does not pass, and poll waits for ever") {
  const Deadline never = Deadline::never();
  CHECK(never.is_never());
  CHECK_FALSE(never.has_passed());
  CHECK(never.remaining() == Deadline::Clock::duration::max());
  CHECK(never.poll_milliseconds() == -1);
}

TEST_CASE("a deadline in the past has passed and leaves nothing") {
  const Deadline past = Deadline::after(-1s);
  CHECK(past.has_passed());
  CHECK(past.remaining() == 0s);
  CHECK(past.poll_milliseconds() == 0);
}

TEST_CASE("a deadline ahead leaves at most what was given") {
  const Deadline ahead = Deadline::after(1h);
  CHECK_FALSE(ahead.has_passed());
  CHECK_FALSE(ahead.is_never());
  CHECK(ahead.remaining() <= 1h);
  CHECK(ahead.remaining() > 59min);
}

TEST_CASE(
    "poll gets whole milliseconds, rounded up so that it does not spin, and never too many for an int") {
  CHECK(Deadline::after(1h).poll_milliseconds() <= 3'600'000);
  CHECK(Deadline::after(1h).poll_milliseconds() > 3'500'000);
  CHECK(Deadline::after(100h * 24 * 365).poll_milliseconds() == std::numeric_limits<int>::max());
  // Whatever is left of this one, a fraction of a millisecond must not become 0 while it has not passed.
  const Deadline soon = Deadline::after(900us);
  const int milliseconds = soon.poll_milliseconds();
  CHECK((milliseconds >= 1 || soon.has_passed()));
}

TEST_CASE("seconds that mean no limit") {
  const double seconds = GENERATE(0.0, -1.0, 1e10, std::numeric_limits<double>::infinity());
  CAPTURE(seconds);
  CHECK(Deadline::after_seconds(seconds).is_never());
}

TEST_CASE("fractions of a second count") {
  const Deadline deadline = Deadline::after_seconds(1800.5);
  CHECK(deadline.remaining() > 1799s);
  CHECK(deadline.remaining() <= 1800500ms);
}
