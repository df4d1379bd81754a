// The fault points that a rank has passed, counted, and a way to wait until it passes one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/src/common/fault.h"

namespace ddl::runtime::test {

/// How often a rank passes a point: before the call under test, and in it.
struct Passages {
  std::int64_t before = 0;
  std::int64_t during = 0;
};

/// All functions may be called from any thread.
class PassedPoints final : public FaultWatch {
 public:
  void on_pass(const std::string& point) override;

  /// The call under test begins, and ends.
  void begin() { set_begun(true); }
  void end() { set_begun(false); }
  std::map<std::string, Passages> points() const;
  std::int64_t times(const std::string& point) const;

  /// A point, and how often it has been passed until now.
  struct Mark {
    std::string point;
    std::int64_t times = 0;
    std::int64_t endings = 0;
  };
  Mark mark(const std::string& point) const;
  /// Returns when the point has been passed since the mark was made, or note_ending() called. Throws
  /// std::runtime_error if that takes longer than any test.
  void wait_since(const Mark& mark);
  /// What a thread waits for may not come any more.
  void note_ending();

 private:
  void set_begun(bool begun);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Passages> points_;
  bool begun_ = false;
  std::int64_t endings_ = 0;
};

}  // namespace ddl::runtime::test
