// Hands what a job has used so far to a site's monitoring: at intervals, and as an answer to HTTP requests.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "launcher/http/http_server.h"
#include "launcher/job/job_inspection.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// What is exported, and to whom. All functions are called on the job's thread.
struct MetricsExport {
  using OnSample = std::function<void(const JobInspection&)>;

  /// A moment after the ranks are started, then every interval_seconds, and at their end. Empty: nobody wants it.
  OnSample on_sample{};
  double interval_seconds = 0;

  /// GET /metrics is answered there. nullopt: there is no server.
  std::optional<HttpAccess> access{};
  /// accept: the header of the request.
  std::function<HttpAnswer(const JobInspection&, const std::string& accept)> answer{};
  /// The server is open at this address. In a job that is started again once for each generation.
  std::function<void(const std::string& job_id, const net::SocketAddress&)> opened{};
  std::function<void()> closed{};  ///< it is not open any more
};

/// One thread.
class MetricsExporter {
 public:
  /// ask: soon has its argument called with the job's numbers.
  MetricsExporter(EventLoop& loop, MetricsExport wanted, std::function<void(MetricsExport::OnSample)> ask);

  /// From now on requests are answered. Error: the address cannot be had.
  Status open(const std::string& job_id);
  /// The ranks are started: from now until end() samples are taken.
  void begin();
  /// They have ended. last: what is known then.
  void end(const std::function<JobInspection()>& last);
  /// While what it returns lives, the process has no thread of this, and may fork.
  std::shared_ptr<void> pause();

 private:
  void collect();
  void close();
  void on_request(HttpServer::Id id, const HttpRequest& request);

  EventLoop& loop_;
  MetricsExport wanted_;
  std::function<void(MetricsExport::OnSample)> ask_;
  std::shared_ptr<HttpServer> server_;  // an answer that comes after close() finds none
  EventLoop::Timer timer_;
  bool has_begun_ = false;
};

}  // namespace ddl::launcher
