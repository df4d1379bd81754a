// A small model checker: runs small programs of several threads in every order of their steps.
//
// Each program is ordinary code that calls World::step() before each access to shared state. All threads but one are
// parked at a step; the explorer chooses who goes on, runs the programs to their end, and then starts over with the
// next choice, depth first, until no choice is left. Steps are taken one after the other, so this explores exactly
// the sequentially consistent executions. Where all threads have read the same values so far and shared memory is the
// same as at an earlier point, what follows is known, and the execution is cut short.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace ddl::runtime::test {

/// One execution: parks and releases its threads.
class World {
 public:
  /// Waits for the explorer's choice. To be called by a program before each access to shared state.
  void step() {
    wait_until([] { return true; });
  }
  /// The same, but the program is not chosen while ready() is false: the model of a sleep in the kernel.
  void wait_until(std::function<bool()> ready);
  /// Records what the calling program just read from shared state, which determines its further execution.
  void observe(std::uint64_t value);
  /// Adds value() to the state of shared memory; it is called between steps. To be called before the programs start.
  void watch(std::function<std::uint64_t()> value) { memory_.push_back(std::move(value)); }

 private:
  friend class Explorer;
  struct Thread {
    bool parked = false;
    bool done = false;
    std::function<bool()> ready;
    std::uint64_t history = 0;
  };
  using State = std::vector<std::uint64_t>;

  State state() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Thread> threads_;
  std::vector<std::function<std::uint64_t()>> memory_;
  std::size_t chosen_ = kNobody;
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
  static thread_local std::size_t self_;
};

/// The result of an exploration.
struct Exploration {
  std::size_t executions = 0;
  std::size_t states = 0;  ///< different states of threads and memory in which a thread was to be chosen
  std::string deadlock;    ///< the choices that led to one; empty if there is none
};

class Explorer {
 public:
  /// Makes the programs of one execution, with fresh shared state; called once per execution. A program that is stuck
  /// when no other can go on is a deadlock: it is released, and World::wait_until() returns nevertheless.
  using MakePrograms = std::function<std::vector<std::function<void()>>(World& world)>;

  Exploration explore(const MakePrograms& make);

 private:
  struct Choice {
    std::vector<std::size_t> candidates;
    std::size_t taken = 0;
  };
  bool run(const MakePrograms& make);

  std::vector<Choice> path_;
  std::set<World::State> visited_;
};

}  // namespace ddl::runtime::test
