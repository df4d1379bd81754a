// Blocking writes in a thread of their own, so that a slow terminal, pipe or disk never blocks the event loop; and
// the sink for a descriptor that ddlrun shares with others, such as the user's terminal.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

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

/// Writes in a thread of its own with plain write(2). The descriptor is never made non-blocking, because that would
/// hold for every process that has it; if another process made it so, the thread polls.
class BlockingWriter : public Sink {
 public:
  /// Works on a duplicate of fd. on_broken is posted once, with the errno, when a write has failed for good: EPIPE if
  /// the reader has gone (`ddlrun ... | head`), EIO after a hangup, ENOSPC. Everything after that is dropped, and
  /// done() is still called.
  static Result<std::unique_ptr<BlockingWriter>> create(int fd, Post post,
                                                        std::function<void(int errno_value)> on_broken);

  void write(std::string bytes, std::function<void()> done) override;

  /// Waits until everything has been written (or dropped); false if the deadline passed first. Destroying the writer
  /// drops what is left and does not wait, even if the terminal is stopped (^S).
  bool drain(Deadline deadline) { return thread_.drain(deadline); }

 private:
  explicit BlockingWriter(WriterThread thread) : thread_(std::move(thread)) {}
  WriterThread thread_;
};

/// True if both descriptors are one open terminal, pipe or file (`2>&1`): what goes to both must share one Sink, or
/// lines would mix. False if either cannot be asked.
bool is_same_file(int fd_a, int fd_b);

}  // namespace ddl::launcher
