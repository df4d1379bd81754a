// The rendezvous store of Horovod's Gloo, as the ranks of a node reach it.
#pragma once

#include <functional>
#include <memory>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/gloo/http_server.h"
#include "launcher/loop/event_loop.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

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
