// How programs of MPICH learn who they are: a node's agent as a launcher that speaks PMI-1.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "launcher/job/environment.h"
#include "launcher/loop/event_loop.h"
#include "launcher/message/message.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/pmi/pmi_space.h"

namespace ddl::launcher {

/// Every rank is offered a connection; one that says nothing on it costs a descriptor. Serves what MPI_Init, MPI_Finalize and
/// MPI_Abort ask: who am I, put, get, barrier. Spawning and published names are refused. Lives on the loop's thread.
class PmiServer {
 public:
  /// Messages for the head: PmiBarrier, and AbortRequested when a rank calls MPI_Abort.
  using Say = std::function<void(message::Any&& message)>;
  PmiServer(EventLoop& loop, Say say);
  ~PmiServer();

  /// Makes the job known; call once, before ranks connect.
  void register_job(const NodeLaunch& node);
  /// The rank's end of a new connection, for its descriptor contract::kPmiFd. Error: no descriptors are left.
  Result<UniqueFd> connect(int rank);
  /// What this rank needs in its environment to find it.
  Environment client_environment(int rank) const;
  /// The head's answer.
  void take(const message::PmiBarrierDone& done);

 private:
  class Client;
  void on_barrier();
  void end_barrier(const std::vector<message::PmiPair>& pairs);

  EventLoop& loop_;
  Say say_;
  std::string job_id_;
  int size_ = 0;
  std::size_t local_size_ = 0;
  bool is_alone_ = true;  // no other node has ranks
  PmiSpace space_;
  std::map<int, std::unique_ptr<Client>> clients_;
  std::size_t waiting_ = 0;  // in a barrier
};

}  // namespace ddl::launcher
