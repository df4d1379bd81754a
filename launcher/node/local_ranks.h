// The ranks of a node, as their agent serves them: their start, their standard streams, and the servers that they ask.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "launcher/loop/event_loop.h"
#include "launcher/node/gpu_questions.h"
#include "launcher/node/io_forwarding.h"
#include "launcher/node/rank_process.h"
#include "launcher/node/rank_watch.h"
#include "launcher/node/request_forwarding.h"
#include "launcher/node/spawner.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/pmix/pmi_server.h"
#include "launcher/pmix/pmix_server.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

/// Lives on the loop's thread.
class LocalRanks {
 public:
  using Report = std::function<void(const message::AgentToHead&)>;
  /// report sends a message to the head. on_joined: a rank has begun to use PMIx or PMI-1. on_sent: is_all_sent() may be
  /// true from now on.
  LocalRanks(EventLoop& loop, Report report, std::function<void(int rank)> on_joined,
             std::function<void()> on_sent);

  /// Starts the PMIx server, after PmixServer::prepare_environment(directory).
  Status start_pmix(const std::string& directory);
  bool has_pmix() const { return pmix_ != nullptr; }
  void shut_down_pmix();
  /// A sealed memfd with the job's key, which the ranks inherit; there is none in a job of one node.
  void take_key(UniqueFd job_key) { job_key_ = std::move(job_key); }

  /// Tells the servers about the job; call once, before ranks are started.
  Status register_job(const JobLaunch& job, int node_index);
  /// The rank inherits its record in watch, which is prepared. The spawner reports its start, or the failure.
  Status start(const JobLaunch& job, const NodeLaunch& node, const RankLaunch& launch, const RankWatch& watch,
               SpawnerChannel& spawner);

  /// The number of those that start() was called for.
  std::size_t size() const { return outputs_.size(); }
  /// That of the last start of a rank.
  int incarnation(int rank) const { return outputs_.at(rank).incarnation; }
  /// What all of them execute, once one was started.
  const FailedCommand& command() const { return command_; }
  /// Sends what the pipes of a rank that has ended hold.
  void drain(int rank);
  std::vector<std::string> stderr_tail(int rank) const { return outputs_.at(rank).err->tail(); }
  /// Whether all output has ended, and all GPUs that ranks see are known.
  bool is_all_sent() const;
  /// Asks no more which GPUs ranks see.
  void give_up_questions() { gpu_questions_.give_up(); }

  // From the head.
  void on(const message::StdinData& message) { stdin_feed_.send(message.bytes); }
  void on(const message::StdinEof&) { stdin_feed_.end(); }
  void on(const message::OutputCredit& message);
  void on(const message::PmiBarrierDone& message) { pmi_.take(message); }
  void on(const message::ElasticPlan& plan) { pmi_.take(plan); }
  void on(const message::HostLost&) { pmi_.give_up_barriers(); }
  void on(const message::GlooStoreAnswered& message);
  void on(const message::PmixAnswer& answer);

 private:
  struct Output {
    int incarnation = 0;  // NodeLaunch::incarnation
    std::unique_ptr<RankOutput> out;
    std::unique_ptr<RankOutput> err;
  };
  std::unique_ptr<RankOutput> make_output(const JobLaunch& job, int rank, OutputStream stream, UniqueFd pipe);

  EventLoop& loop_;
  Report report_;
  std::function<void(int)> on_joined_;
  std::function<void()> on_sent_;
  std::unique_ptr<PmixServer> pmix_;
  PmiServer pmi_;
  std::unique_ptr<GlooService> gloo_;  // only if programs of Horovod need it
  UniqueFd job_key_;
  StdinFeed stdin_feed_;
  std::map<int, Output> outputs_;  // by rank
  FailedCommand command_;
  GpuQuestions gpu_questions_;
};

}  // namespace ddl::launcher
