// A thread that does blocking writes, so that a slow terminal, pipe or disk never blocks the event loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/deadline.h"
#include "base/error.h"
#include "launcher/output/sink.h"

namespace ddl::launcher {

/// Writes what it is given, in order. Used from one thread, except that write and post are called on the new thread.
class WriterThread {
 public:
  /// May block for as long as it likes. Returns what is to be posted besides done (an error, perhaps), or nothing.
  using Write = std::function<std::function<void()>(int target, const std::string& bytes)>;

  /// write must own what it uses: if the thread is stuck in it when this object is destroyed, it lives on.
  static Result<WriterThread> start(Write write, Post post);
  /// Drops what has not been begun. Never waits for a write that is going on: the thread is left behind, with its own
  /// data, and ends when the write does. Nothing is posted after this, and what has been posted does nothing.
  ~WriterThread();
  WriterThread(WriterThread&&) = default;
  WriterThread& operator=(WriterThread&&) = delete;

  /// done is posted when the bytes have been written. Short neighbours for the same target are written together.
  void push(int target, std::string bytes, std::function<void()> done);

  /// Waits until everything has been written; false if the deadline passed first.
  bool drain(Deadline deadline);

 private:
  struct State;
  explicit WriterThread(std::shared_ptr<State> state);
  static void run(State& state);

  std::shared_ptr<State> state_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // what has been posted asks whether we still are
};

}  // namespace ddl::launcher
