// An agent's part in answering requests that are made on its node: of those who ask about the job, and of ranks that
// meet by Horovod's Gloo. The head has the answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/control/job_server.h"
#include "launcher/http/http_server.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

/// Takes requests at a socket of this node, sends them to the head, and its answers back. If the head does not answer,
/// the client gets a sentence that names it. One thread.
class QuestionForwarder {
 public:
  /// If the socket cannot be opened, nobody on this node can ask; the job runs without it.
  QuestionForwarder(EventLoop& loop, const JobLaunch& job,
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

/// Serves the head's store over HTTP on this node's loopback: hands requests to the head, and its answers back. Only
/// processes of the job's user are served. One thread: the loop's.
class GlooService {
 public:
  /// report sends a message to the head. Error: there is no port, or the kernel does not say whose connections are.
  static Result<std::unique_ptr<GlooService>> open(EventLoop& loop,
                                                   std::function<void(const message::AgentToHead&)> report);

  /// The variables by which ranks find it.
  Environment client_environment() const;
  void on(const message::GlooStoreAnswered& answered);

 private:
  explicit GlooService(std::function<void(const message::AgentToHead&)> report)
      : report_(std::move(report)) {}
  void on_request(HttpServer::Id id, HttpRequest&& request);

  std::function<void(const message::AgentToHead&)> report_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace ddl::launcher
