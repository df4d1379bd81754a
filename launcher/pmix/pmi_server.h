// The PMI-1 server of one node, for programs of MPICH: who a rank is, put, get and barrier, and where all ranks are.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "base/fd.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

// The pairs of PMI-1's key-value space that the ranks of a job have put, as far as this node knows them.

class PmiSpace {
 public:
  /// Stores a pair for the ranks of this node alone.
  void keep(std::string key, std::string value) { pairs_.insert_or_assign(std::move(key), std::move(value)); }
  /// Stores a pair of a rank of this node. False: key or value is empty or longer than PMI-1 allows, or there are too
  /// many.
  bool put(std::string_view key, std::string_view value);
  /// nullptr if no rank has put it.
  const std::string* get(std::string_view key) const;

  /// The pairs that ranks of this node have put since the last call.
  std::vector<message::PmiPair> take_new() { return std::exchange(new_, {}); }
  /// Stores the pairs that ranks of all nodes have put.
  void add(const std::vector<message::PmiPair>& pairs);

 private:
  std::map<std::string, std::string, std::less<>> pairs_;
  std::vector<message::PmiPair> new_;
};

// How programs of MPICH learn their ranks: a node's agent as a launcher that speaks PMI-1.

/// Every rank is offered a connection; one that never uses it costs a descriptor. Serves what MPI_Init, MPI_Finalize
/// and MPI_Abort request: rank and size, put, get, barrier. Spawning and published names are refused. Lives on the
/// loop's thread.
class PmiServer {
 public:
  /// Sends to the head: PmiBarrier, AbortRequested when a rank calls MPI_Abort, SpawnRefused.
  using Report = std::function<void(const message::AgentToHead& message)>;
  /// on_joined: a rank has begun to use its connection.
  PmiServer(
      EventLoop& loop, Report report, std::function<void(int rank)> on_joined = [](int) {});
  ~PmiServer();

  /// Registers the job; call once, before ranks connect.
  void register_job(const JobLaunch& job, int node_index);
  /// The rank's end of a new connection, for its descriptor contract::kPmiFd. Error: no descriptors are left.
  Result<UniqueFd> connect(int rank);
  /// The variables by which this rank finds the connection.
  Environment client_environment(int rank) const;
  /// The head's answer to a PmiBarrier.
  void take(const message::PmiBarrierDone& done);

  // Of an elastic job (contract/elastic.h): puts and barriers belong to one generation.

  /// Answers the processes of this node that wait for it. Their barriers have as many members as the plan.
  void take(const message::ElasticPlan& plan);
  /// A rank of the generation was lost: its barriers fail.
  void give_up_barriers();

 private:
  class Client;
  void on_barrier();
  void end_barrier(const std::vector<message::PmiPair>& pairs);

  EventLoop& loop_;
  Report report_;
  std::function<void(int)> on_joined_;
  std::string job_id_;
  int num_ranks_ = 0;
  std::size_t local_size_ = 0;
  bool is_alone_ = true;  // no other node has ranks
  PmiSpace space_;
  std::map<int, std::unique_ptr<Client>> clients_;
  std::size_t waiting_ = 0;  // in a barrier
  bool is_elastic_ = false;
  bool has_lost_rank_ = false;  // the generation
};

}  // namespace ddl::launcher
