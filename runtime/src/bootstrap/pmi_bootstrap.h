// The PMI-1 bootstrap, for MPICH's hydra and for Slurm's srun --mpi=pmi2, which also speaks PMI-1: this process's
// connection to the launcher.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/error.h"
#include "net/pmi_line.h"

namespace ddl::runtime {

/// Opened by the first context and closed when the process exits, because for the launcher a process that has
/// finalised once is gone. Not closed at all if a context is still alive at exit, so that the launcher can tell such
/// an end from a proper one. Not thread-safe; neither is the creation of contexts.
///
/// An MPI of the same program may use the descriptor too: each sends a request and reads its answer, never at the
/// same time.
class PmiSession {
 public:
  /// For requests for which the launcher need not wait for other ranks: it answers these at once.
  static constexpr std::chrono::seconds kAnswerPatience{30};

  /// The only instance: there is one descriptor.
  static PmiSession& instance();

  /// True in a forked child, whose copy of the connection belongs to the parent.
  bool is_inherited() const;
  /// Performs the initial handshake with the launcher, unless that has been done. Error: it does not speak PMI-1.
  Status open(int fd);

  /// Sends a line and returns the reply, whose command must be answer and whose rc must be 0 if it has one. Error: it
  /// is not, with the launcher's own message; or the deadline has passed, after which the session cannot be used any
  /// more.
  Result<net::PmiLine> ask(const net::PmiLine& line, std::string_view answer, Deadline deadline);

  /// Asks the launcher to end the job; there is no reply. A single write, so another thread may be in ask().
  void abort_job(int code, std::string text) const;

  const std::string& space() const { return space_; }     ///< the job's key-value space
  std::size_t value_bytes() const { return max_value_; }  ///< the maximum for a value
  std::size_t key_bytes() const { return max_key_; }

  void add_user() { ++users_; }
  void remove_user() { --users_; }

 private:
  PmiSession() = default;
  ~PmiSession();
  Result<net::PmiLine> exchange(const net::PmiLine& line, std::string_view answer, Deadline deadline);
  Status greet();
  Status send_text(std::string_view text) const;

  int fd_ = -1;
  net::PmiLineReader reader_;
  std::string space_;
  std::size_t max_value_ = 0;
  std::size_t max_key_ = 0;
  pid_t owner_ = 0;
  int users_ = 0;
  bool is_broken_ = false;
};

}  // namespace ddl::runtime
