// The PMIx server of one node: how ranks learn their numbers and exchange what they need to connect to each other.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/deadline.h"
#include "base/error.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

/// Hosts the library's server (one per process; it starts threads, so nothing may fork after start()).
/// It serves the ranks of this node: job information, fence, abort, publish/lookup/unpublish, events. Requests that
/// concern other nodes go to the head.
class PmixServer {
 public:
  /// Sends to the head: AbortRequested when a rank calls PMIx_Abort (or MPI_Abort), SpawnRefused, RankProgress, and the
  /// Pmix messages. Called on the loop's thread.
  using Report = std::function<void(const message::AgentToHead& message)>;

  /// Sets variables of this process that the library reads as it starts. Call it before anything starts a thread:
  /// another thread could be reading the environment. Ranks do not inherit them. A variable that the user has set
  /// keeps its value, except hwloc's descriptions of another machine, which are removed.
  static void prepare_environment(const std::string& directory);

  /// Starts the library, after prepare_environment(). It keeps its files in directory, which the caller removes after
  /// the server is gone. The loop must outlive the server. Error: the library's reason, or why root should not use
  /// this library.
  static Result<std::unique_ptr<PmixServer>> start(EventLoop& loop, const std::string& directory,
                                                   const std::string& hostname, Report report);
  virtual ~PmixServer() = default;

  /// Registers the job; call once, before ranks are started.
  virtual Status register_job(const JobLaunch& job, int node_index) = 0;
  /// The variables by which this rank finds the server.
  virtual Result<Environment> client_environment(int rank) = 0;
  virtual void take(const message::PmixAnswer& message) = 0;
  /// Ends the library, which removes what its clients have asked it to remove. False if it does not end in time: it
  /// may wait for a lock of its own. Then the server must not be destroyed before the process ends.
  virtual bool shut_down(Deadline deadline) = 0;
};

}  // namespace ddl::launcher
