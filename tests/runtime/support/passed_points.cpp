#include "runtime/support/passed_points.h"

#include <chrono>

#include "runtime/support/expect.h"

namespace ddl::runtime::test {
namespace {

constexpr std::chrono::seconds kLongerThanAnyTest{60};

std::int64_t times_in(const std::map<std::string, Passages>& points, const std::string& point) {
  const auto found = points.find(point);
  return found == points.end() ? 0 : found->second.before + found->second.during;
}

}  // namespace

void PassedPoints::on_pass(const std::string& point) {
  {
    const std::lock_guard lock(mutex_);
    Passages& passages = points_[point];
    ++(begun_ ? passages.during : passages.before);
  }
  changed_.notify_all();
}

std::map<std::string, Passages> PassedPoints::points() const {
  const std::lock_guard lock(mutex_);
  return points_;
}

std::int64_t PassedPoints::times(const std::string& point) const {
  const std::lock_guard lock(mutex_);
  return times_in(points_, point);
}

PassedPoints::Mark PassedPoints::mark(const std::string& point) const {
  const std::lock_guard lock(mutex_);
  return {point, times_in(points_, point), endings_};
}

void PassedPoints::wait_since(const Mark& mark) {
  std::unique_lock lock(mutex_);
  const bool has_come = changed_.wait_for(lock, kLongerThanAnyTest, [&] {
    return times_in(points_, mark.point) > mark.times || endings_ > mark.endings;
  });
  conformance::expect(has_come, "this rank has not passed " + mark.point);
}

void PassedPoints::note_ending() {
  {
    const std::lock_guard lock(mutex_);
    ++endings_;
  }
  changed_.notify_all();
}

void PassedPoints::set_begun(bool begun) {
  const std::lock_guard lock(mutex_);
  begun_ = begun;
}

}  // namespace ddl::runtime::test
