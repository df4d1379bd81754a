// An agent's part in answering those who ask about its job on this node: the head has the answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "launcher/control/job_server.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

/// Takes requests at a socket of this node, sends them to the head, and its answers back. If the head does not answer,
/// the client gets a sentence that names it. One thread.
class QuestionForwarder {
 public:
  /// If the socket cannot be opened, nobody on this node can ask; the job runs without it.
  QuestionForwarder(EventLoop& loop, const NodeLaunch& node,
                    std::function<void(const message::AgentToHead&)> report);

  void on(const message::ForwardedAnswer& answer);

 private:
  void forward(JobServer::Client client, message::ClientToJob&& request);

  EventLoop& loop_;
  std::string head_;  ///< for a message
  std::function<void(const message::AgentToHead&)> report_;
  std::unique_ptr<JobServer> server_;
  std::map<JobServer::Client, EventLoop::Timer> waiting_;  ///< for the head
};

}  // namespace ddl::launcher
