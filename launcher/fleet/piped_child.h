// A process of ours that connects to agents elsewhere (ssh, srun): its standard streams are pipes, the end of what it
// writes is kept, and the lines that a person should read are picked from it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"
#include "launcher/job/environment.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

// A process whose standard streams are pipes of ours: what connects to an agent elsewhere.

/// A child of ours until it has been waited for; ended by force with its group by the destructor.
class PipedChild {
 public:
  struct Streams {
    UniqueFd out;  ///< what it writes
    UniqueFd in;   ///< what it reads
    UniqueFd err;
  };
  /// Searches words[0] in PATH. It gets a process group of its own, so that ^C does not reach it, every signal at its
  /// default, and this environment, or ours. No fork of this process: threads may exist. Error: it cannot be started.
  static Result<PipedChild> start(const std::vector<std::string>& words,
                                  const std::optional<Environment>& environment, Streams& streams);

  PipedChild(PipedChild&& other) noexcept;
  PipedChild& operator=(PipedChild&&) = delete;
  PipedChild(const PipedChild&) = delete;
  PipedChild& operator=(const PipedChild&) = delete;
  ~PipedChild() { end(Deadline::after(std::chrono::seconds(0))); }

  /// Whether it has ended by then.
  bool wait(Deadline deadline);
  /// As from waitpid(2), once it has ended.
  int status() const { return status_; }
  /// Waits, and kills its group after the deadline.
  void end(Deadline deadline);

 private:
  explicit PipedChild(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  int status_ = 0;
  bool ended_ = false;
};

// The end of what a process has written on one of its streams.

/// Reads along and keeps the last 8 KiB: enough for a program's and a shell's complaints, of which the end is what matters.
/// For the loop's thread.
class StreamTail {
 public:
  /// stream: may be empty, which is a stream without a word.
  explicit StreamTail(UniqueFd stream) : stream_(std::move(stream)) {}

  /// Begins to read; on_end: the stream has ended, once.
  void begin(EventLoop& loop, std::function<void()> on_end = {});
  /// Reads what there is now, without waiting for the loop to tell.
  void catch_up();
  void stop();
  const std::string& text() const { return text_; }

 private:
  UniqueFd stream_;
  std::string text_;
  EventLoop::FdWatch watch_;
  std::function<void()> on_end_;
};

// What a person should read of a text that a program wrote before it gave up.

/// The lines that say something, without ssh's routine notices and without control characters; at most the last three, joined
/// by " / ".
std::string last_error_lines(std::string_view text);

}  // namespace ddl::launcher
