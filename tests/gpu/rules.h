// What libddl and the stand-ins assume of the vendor's libraries: one rule after the other, each in processes of its
// own, because a rule that does not hold may leave a GPU's context in error, or wait for ever.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace ddl::gpu_rules {

/// A rule does not hold, and what was seen instead.
class Broken : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A rule cannot be asked here, and why.
class Skipped : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void expect(bool holds, const std::string& otherwise) {
  if (!holds) throw Broken(otherwise);
}

/// "after 0.3 s"
inline std::string seconds_since(std::chrono::steady_clock::time_point begin) {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  char text[32];
  (void)std::snprintf(text, sizeof text, "after %.3g s", passed.count());
  return text;
}

/// Between the two processes of a rule. The end of the other process is an error here.
class Other {
 public:
  explicit Other(UniqueFd fd) : fd_(std::move(fd)) {}

  template <class T>
  void send(const T& value) {
    put(&value, sizeof value);
  }
  template <class T>
  T receive() {
    T value{};
    get(&value, sizeof value);
    return value;
  }
  /// Tells the other process that this one has come so far, and waits until it says so.
  void say_done() { send('.'); }
  void wait_done() { (void)receive<char>(); }
  /// Waits for the end of the other process.
  void wait_end();

 private:
  void put(const void* data, std::size_t bytes);
  void get(void* data, std::size_t bytes);

  UniqueFd fd_;
};

struct Rule {
  const char* sentence;
  /// What the process does that answers; the result is shown: a number, an error, or nothing. other: null unless
  /// there is a second process.
  std::string (*answer)(Other* other);
  /// What the second process does; null: there is none.
  void (*assist)(Other& other) = nullptr;
};

/// Of one process: memory, streams, events, graphs.
std::vector<Rule> driver_rules();
/// Of two processes that share memory and events.
std::vector<Rule> process_rules();
std::vector<Rule> nccl_rules();

}  // namespace ddl::gpu_rules
