// The PMI-1 bootstrap, for MPICH's hydra and for Slurm's srun --mpi=pmi2, which speaks PMI-1 as well: this process's
// connection to the launcher, and PMI_process_mapping, the text that says which rank is on which node.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "net/pmi_line.h"

namespace ddl::runtime {

// This process's connection to a launcher that speaks PMI-1.

/// Opened by the first context and closed when the process exits, for the launcher takes who has said goodbye once for gone. Not
/// closed at all if a context is still alive at exit, so that the launcher can tell such an end from a proper one. Not
/// thread-safe, as is creating contexts.
///
/// An MPI of the same program may use the descriptor, too: each asks and reads its answer, and never at the same time.
class PmiSession {
 public:
  /// A launcher that is there answers at once, where it has nobody else to wait for.
  static constexpr std::chrono::seconds kAnswerPatience{30};

  /// The only one: there is one descriptor.
  static PmiSession& instance();

  /// True in a forked child, whose copy of the connection belongs to the parent.
  bool is_inherited() const;
  /// Greets the launcher, unless that has been done. Error: nobody there speaks PMI-1.
  Status open(int fd);

  /// Sends a line and returns the answer, which must be that command, with rc=0 if it has one. Error: it is not, with the
  /// launcher's own words; or the deadline passes, after which nothing more can be asked.
  Result<net::PmiLine> ask(const net::PmiLine& line, std::string_view answer, Deadline deadline);

  /// Has the launcher end the job; there is no answer. A single write, so another thread may be in ask().
  void abort_job(int code) const;

  const std::string& space() const { return space_; }     ///< the job's key-value space
  std::size_t value_bytes() const { return max_value_; }  ///< that a value may have
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

// Which rank is on which node, as PMI tells it: "(vector,(0,2,4))".

/// The ranks of each node, of a job of size ranks. The text is "(vector" and blocks (first node, number of nodes, ranks on each
/// of them), which are dealt out again from the first as long as ranks are left. Error: it is something else. Pure.
Result<std::vector<std::vector<int>>> parse_process_mapping(std::string_view text, int size);

}  // namespace ddl::runtime
