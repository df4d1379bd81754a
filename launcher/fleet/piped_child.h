// A process whose standard streams are pipes of ours: what connects to an agent elsewhere.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"
#include "launcher/job/environment.h"

namespace ddl::launcher {

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

}  // namespace ddl::launcher
