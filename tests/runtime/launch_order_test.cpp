// The order in which a rank puts collectives of several communicators on its GPU.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/src/device/launch_order.h"
#include "support/catch.h"

using ddl::runtime::LaunchOrder;

TEST_CASE("proposals grow, and two ranks never propose the same number") {
  LaunchOrder first, second;
  const LaunchOrder::Turn a(first, 0), b(first, 0), c(second, 1);
  CHECK(a.proposal() < b.proposal());
  CHECK(a.proposal() != c.proposal());
  CHECK(b.proposal() != c.proposal());
}

TEST_CASE("a call with the smallest number is the next one, and later proposals are larger") {
  LaunchOrder order;
  LaunchOrder::Turn turn(order, 3);
  const std::uint64_t agreed = turn.proposal() + (std::uint64_t{7} << 20);
  turn.wait(agreed);
  const LaunchOrder::Turn next(order, 3);
  CHECK(next.proposal() > agreed);
}

TEST_CASE("a call waits for one that may get a smaller number, until that is known or has ended") {
  LaunchOrder order;
  const bool is_given_up = GENERATE(false, true);
  auto first = std::make_unique<LaunchOrder::Turn>(order, 0),
       second = std::make_unique<LaunchOrder::Turn>(order, 0);
  const std::uint64_t agreed = second->proposal() + (std::uint64_t{5} << 20);
  std::atomic<bool> has_turn{false};
  std::thread waits([&] {
    second->wait(agreed);
    has_turn = true;
  });
  CHECK(!has_turn);
  if (is_given_up) {
    first.reset();
    waits.join();
  } else {
    // Its number turns out to be the larger one, so it is the one that waits.
    std::thread later([&] { first->wait(agreed + 1); });
    waits.join();
    second.reset();
    later.join();
  }
  CHECK(has_turn);
}

TEST_CASE("a communicator is alone until there is another one") {
  LaunchOrder order;
  const LaunchOrder::Place first(order);
  CHECK(first.alone().owns_lock());
  {
    const LaunchOrder::Place second(order);
    CHECK(!first.alone().owns_lock());
    CHECK(!second.alone().owns_lock());
    CHECK(first.others().empty());  // it has no stream yet
  }
  CHECK(first.alone().owns_lock());
}
