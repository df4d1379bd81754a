// An MPI whose ranks are threads of the test: what the backend asks of it happens at once, and is checked for what a
// real MPI would take for granted, such as that all ranks make the same step and mean the same numbers of bytes.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "runtime/src/bootstrap/mpi_world.h"

namespace ddl::runtime::test {

/// The level at which the program has initialised its MPI.
enum class MpiThreads { kFunneled, kSerialized, kMultiple };

/// Of one job. All functions may be called from any thread.
class ThreadMpi {
 public:
  ThreadMpi(int ranks, MpiThreads level);
  ~ThreadMpi();
  ThreadMpi(const ThreadMpi&) = delete;
  ThreadMpi& operator=(const ThreadMpi&) = delete;

  /// The world of a rank, whose main thread is the calling one. This outlives it and its communicators.
  std::shared_ptr<MpiWorld> join(int rank);
  /// What was wrong first: a step that does not fit those of the other ranks, or a call by a thread that must not call
  /// MPI. "" if nothing was.
  std::string error() const;

  struct Job;

 private:
  std::unique_ptr<Job> job_;
};

}  // namespace ddl::runtime::test
