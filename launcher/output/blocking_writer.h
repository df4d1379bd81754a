// A sink for a descriptor that ddlrun shares with others: the user's terminal or pipe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/deadline.h"
#include "base/error.h"
#include "launcher/output/sink.h"
#include "launcher/output/writer_thread.h"

namespace ddl::launcher {

/// Writes in a thread of its own with plain write(2). The descriptor is never made non-blocking, because that would
/// hold for every process that has it; if somebody else made it so, the thread polls.
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
