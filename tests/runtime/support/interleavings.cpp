#include "runtime/support/interleavings.h"

#include <thread>

namespace ddl::runtime::test {

thread_local std::size_t World::self_ = World::kNobody;

void World::wait_until(std::function<bool()> ready) {
  std::unique_lock lock(mutex_);
  Thread& own = threads_[self_];
  own.ready = std::move(ready);
  own.parked = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return chosen_ == self_; });
  chosen_ = kNobody;
  own.parked = false;
  own.history = own.history * 0x9E3779B97F4A7C15u + 1;
}

void World::observe(std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  Thread& own = threads_[self_];
  own.history = (own.history ^ (value + 1)) * 0xD1B54A32D192ED03u;
}

World::State World::state() const {
  State state;
  for (const Thread& thread : threads_) state.push_back(thread.done ? 0 : thread.history);
  for (const auto& value : memory_) state.push_back(value());
  return state;
}

Exploration Explorer::explore(const MakePrograms& make) {
  Exploration found;
  for (;;) {
    ++found.executions;
    found.states = visited_.size();
    if (!run(make)) {
      for (const Choice& choice : path_) {
        found.deadlock +=
            (found.deadlock.empty() ? "" : " ") + std::to_string(choice.candidates[choice.taken]);
      }
      return found;
    }
    while (!path_.empty() && path_.back().taken + 1 == path_.back().candidates.size()) path_.pop_back();
    if (path_.empty()) return found;
    ++path_.back().taken;
  }
}

/// Runs one execution along the path, extending it with first choices until the state is known. False after a
/// deadlock.
bool Explorer::run(const MakePrograms& make) {
  World world;
  const auto programs = make(world);
  world.threads_.resize(programs.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    threads.emplace_back([&world, &program = programs[i], i] {
      World::self_ = i;
      world.step();
      program();
      const std::lock_guard lock(world.mutex_);
      world.threads_[i].done = true;
      world.changed_.notify_all();
    });
  }

  bool progressed = true, known = false;
  for (std::size_t depth = 0;;) {
    std::unique_lock lock(world.mutex_);
    world.changed_.wait(lock, [&world] {
      if (world.chosen_ != World::kNobody) return false;
      for (const World::Thread& thread : world.threads_) {
        if (!thread.parked && !thread.done) return false;
      }
      return true;
    });
    std::vector<std::size_t> ready, parked;
    for (std::size_t i = 0; i < world.threads_.size(); ++i) {
      const World::Thread& thread = world.threads_[i];
      if (thread.done) continue;
      parked.push_back(i);
      if (thread.ready()) ready.push_back(i);
    }
    if (parked.empty()) break;
    if (!known && depth == path_.size() && !visited_.insert(world.state()).second) known = true;
    if (ready.empty()) {
      progressed = progressed && known;
      world.chosen_ = parked.front();  // ends the sleep, so that the threads can be joined
    } else if (!progressed || known) {
      world.chosen_ = ready.front();  // winding down: no longer part of the path
    } else {
      if (depth == path_.size()) path_.push_back(Choice{ready, 0});
      world.chosen_ = path_[depth].candidates[path_[depth].taken];
      ++depth;
    }
    world.changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  return progressed;
}

}  // namespace ddl::runtime::test
