// A job whose ranks are forked children of the test, wired up for real: sockets, descriptors, pidfds.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "ddl/ddl.h"
#include "runtime/src/common/settings.h"
#include "runtime/support/board.h"
#include "runtime/support/board_bootstrap.h"

namespace ddl::runtime::test {

/// How one rank ended.
struct RankEnd {
  pid_t pid = 0;
  int exit_code = -1;  ///< -1 if a signal ended it
  int signal = 0;
  bool was_stopped = false;  ///< as the job's stopped_rank
  std::string report;        ///< what the rank's body returned or threw
};

struct ProcessJob;

/// One rank's place in the job, from which it joins.
class RankPlace {
 public:
  /// living: a pipe whose writing end only the ranks hold, each of them.
  RankPlace(Board& board, int rank, const ProcessJob& job, FdPair living);

  int rank() const { return rank_; }
  /// This rank's own copy, for the next join().
  Settings& settings() { return settings_; }
  void use_key(int fd) { settings_.job_key_fd = fd; }
  /// Is called at every passage in contexts that are joined from now on; outlives them.
  void watch_faults(FaultWatch* watch) { watch_ = watch; }
  /// A new context, owned by the caller until ddl_finalize(); throws std::runtime_error.
  ddl_context* join();
  /// Kills the caller. A child of its lives on with all of the caller's descriptors until every other rank has
  /// exited.
  [[noreturn]] void die_leaving_a_child();

 private:
  Board& board_;
  int rank_;
  Hosts hosts_;
  Settings settings_;
  double wire_up_seconds_;
  FdPair living_;
  FaultWatch* watch_ = nullptr;
  std::uint32_t generation_ = 0;
};

struct ProcessJob {
  int ranks = 1;
  /// The ranks of each host, which speak to each other by TCP over loopback; empty: all on one.
  Hosts hosts;
  Settings settings;
  double wire_up_seconds = 60.0;
  double deadline_seconds = 60.0;  ///< ranks that still run then are killed, as their RankEnd shows
  /// A rank that will be stopped. When it is: continued if it is to go on, as soon as all others sleep, or last of
  /// all, when they have ended; otherwise killed then.
  std::optional<int> stopped_rank;
  bool goes_on = false;
  bool goes_on_last = false;
  std::optional<int> victim;  ///< is killed when stopped_rank has stopped

  /// Runs body(place) in one child per rank and waits for all. What body returns is the rank's report, with exit code
  /// 0; what it throws as well, with exit code 1. To be called while the process has one thread.
  std::vector<RankEnd> run(const std::function<std::string(RankPlace&)>& body) const;
};

}  // namespace ddl::runtime::test
