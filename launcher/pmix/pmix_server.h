// The PMIx server of one node: how ranks learn who they are and exchange what they need to find each other.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/launch_plan.h"

namespace ddl::launcher {

/// Hosts the library's server (one per process; it starts threads, so nothing may fork after start()).
/// It serves the ranks of this node: job information, fence, abort, publish/lookup/unpublish.
class PmixServer {
 public:
  /// Called on the loop's thread when a rank calls PMIx_Abort (or MPI_Abort).
  using OnAbort = std::function<void(int rank, int exit_code, const std::string& text)>;

  /// Starts the library. It keeps its files in directory, which the caller removes after the server is gone.
  /// The loop must outlive the server. Error: the library's reason.
  static Result<std::unique_ptr<PmixServer>> start(EventLoop& loop, const std::string& directory,
                                                   const std::string& hostname, OnAbort on_abort);
  virtual ~PmixServer() = default;

  /// Makes the job known; call once, before ranks are started.
  virtual Status register_job(const NodeLaunch& node) = 0;
  /// What this rank needs in its environment to find the server.
  virtual Result<Environment> client_environment(int rank) = 0;
};

}  // namespace ddl::launcher
