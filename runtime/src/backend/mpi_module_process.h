// MPI in this process: who initialised it, which threads may call it, and when it is finalised.
#pragma once

#include <mutex>
#include <string>

#include "base/error.h"

namespace ddl::runtime::mpi {

/// Success, or "MPI_Ibcast: MPI_ERR_TRUNCATE: message truncated".
Status check(int code, const char* function);

/// The process's one MPI. May be called from any thread.
class MpiProcess {
 public:
  static MpiProcess& instance();
  /// MPI has not been finalised. Only after enter().
  static bool is_running();
  /// MPI's initialisation fails if PMIx has been initialised in this process by others.
  static bool must_precede_pmix();

  /// Initialises MPI for several threads unless the program has done so; an error if it has been finalised.
  Status enter();
  /// A World of libddl is created, or destroyed.
  void begin_world();
  void end_world();
  /// MPI must not be finalised any more.
  void abandon();

  bool takes_threads() const;
  /// kUnavailable if the program has initialised MPI so that this thread must not call it.
  Status allows_call() const;
  /// Held around every call that starts or progresses an operation, none of which waits. MPIs that allow several
  /// threads at once spin on their own locks: with four threads on two cores, both MPIs that were tried made no
  /// progress for seconds.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(one_at_a_time_); }
  /// For a caller that probes again soon: not held if another thread is in MPI, which progresses all operations
  /// meanwhile.
  std::unique_lock<std::mutex> lock_if_free() { return {one_at_a_time_, std::try_to_lock}; }
  /// The lock around a call that waits for other ranks; none if MPI allows other threads meanwhile.
  std::unique_lock<std::mutex> lock_to_wait() {
    return takes_threads() ? std::unique_lock<std::mutex>() : std::unique_lock(one_at_a_time_);
  }
  const std::string& library() const { return library_; }

 private:
  MpiProcess() = default;
  static void on_exit(int status, void*);

  std::mutex entering_;
  std::mutex one_at_a_time_;
  bool is_entered_ = false;
  int level_ = 0;  ///< of threads, as MPI numbers them
  std::string library_;
  int worlds_ = 0;             ///< guarded by entering_
  bool is_abandoned_ = false;  ///< guarded by entering_
};

}  // namespace ddl::runtime::mpi
