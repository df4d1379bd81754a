#include "launcher/head/metrics_exporter.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/deadline.h"

namespace ddl::launcher {
namespace {

constexpr HttpLimits kLimits{.header_bytes = std::size_t{8} << 10,
                             .body_bytes = 1024,
                             .connections = 256,
                             .client_time = std::chrono::seconds(3)};
constexpr int kNotFound = 404, kMethodNotAllowed = 405;
constexpr char kText[] = "text/plain; charset=utf-8";

}  // namespace

MetricsExporter::MetricsExporter(EventLoop& loop, MetricsExport wanted,
                                 std::function<void(MetricsExport::OnSample)> ask)
    : loop_(loop), wanted_(std::move(wanted)), ask_(std::move(ask)) {}

Status MetricsExporter::open(const std::string& job_id) {
  if (!wanted_.access) return {};
  auto server = HttpServer::open(
      loop_, [this](HttpServer::Id id, HttpRequest&& request) { on_request(id, request); }, kLimits,
      *wanted_.access);
  if (!server) {
    const bool is_taken = server.error().code() != ErrorCode::kUnavailable;
    return refuse("--metrics-listen: " + server.error().message(),
                  is_taken ? "choose another port, or 0 for a free one" : "--metrics-file needs no port");
  }
  server_ = *std::move(server);
  wanted_.opened(job_id, server_->address());
  return {};
}

void MetricsExporter::begin() {
  constexpr double kFirst = 1;  // ranks need a moment to start
  has_begun_ = true;
  if (wanted_.on_sample)
    timer_ = loop_.after(clock_duration(std::min(wanted_.interval_seconds, kFirst)), [this] { collect(); });
}

void MetricsExporter::end(const std::function<JobInspection()>& last) {
  if (wanted_.on_sample && has_begun_) wanted_.on_sample(last());
  close();
}

void MetricsExporter::collect() {
  timer_ = loop_.after(clock_duration(wanted_.interval_seconds), [this] { collect(); });
  ask_(wanted_.on_sample);
}

void MetricsExporter::close() {
  timer_.cancel();
  if (!server_) return;
  server_.reset();
  wanted_.closed();
}

std::shared_ptr<void> MetricsExporter::pause() {
  if (!server_) return nullptr;
  server_->pause();
  return {nullptr, [this](void*) {
            if (server_ && !server_->resume()) close();
          }};
}

void MetricsExporter::on_request(HttpServer::Id id, const HttpRequest& request) {
  if (request.path.substr(0, request.path.find('?')) != "/metrics")
    return server_->answer(id, {kNotFound, "this server has /metrics\n", kText});
  if (request.method != "GET") return server_->answer(id, {kMethodNotAllowed, "ask with GET\n", kText});
  ask_([answer = wanted_.answer, weak = std::weak_ptr(server_), id,
        accept = request.accept](const JobInspection& job) {
    if (const auto server = weak.lock()) server->answer(id, answer(job, accept));
  });
}

}  // namespace ddl::launcher
