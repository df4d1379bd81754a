#include "launcher/head/job_measuring.h"

#include <chrono>
#include <utility>

namespace ddl::launcher {
namespace {

constexpr HttpLimits kLimits{.header_bytes = std::size_t{8} << 10,
                             .body_bytes = 1024,
                             .connections = 64,
                             .client_time = std::chrono::seconds(10)};
constexpr int kNotFound = 404, kMethodNotAllowed = 405;
constexpr char kText[] = "text/plain; charset=utf-8";

}  // namespace

JobMeasuring::JobMeasuring(EventLoop& loop, Measuring wanted, std::function<void(Measuring::Tell)> ask)
    : loop_(loop), wanted_(std::move(wanted)), ask_(std::move(ask)) {}

Status JobMeasuring::open(const std::string& job_id) {
  if (!wanted_.access) return {};
  auto server = HttpServer::open(
      loop_, [this](HttpServer::Id id, HttpRequest&& request) { on_request(id, request); }, kLimits,
      *wanted_.access);
  if (!server)
    return refuse("--metrics-listen: " + server.error().message(),
                  "choose another port, or 0 for a free one");
  server_ = *std::move(server);
  wanted_.opened(job_id, server_->address());
  return {};
}

void JobMeasuring::begin() {
  if (wanted_.tell) measure();
}

void JobMeasuring::measure() {
  timer_ = loop_.after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           std::chrono::duration<double>(wanted_.seconds)),
                       [this] { measure(); });
  ask_(wanted_.tell);
}

void JobMeasuring::close() {
  timer_.cancel();
  server_.reset();
}

void JobMeasuring::on_request(HttpServer::Id id, const HttpRequest& request) {
  if (request.path.substr(0, request.path.find('?')) != "/metrics")
    return server_->answer(id, {kNotFound, "this server has /metrics\n", kText});
  if (request.method != "GET") return server_->answer(id, {kMethodNotAllowed, "ask with GET\n", kText});
  ask_([answer = wanted_.answer, weak = std::weak_ptr(server_), id,
        accept = request.accept](const JobInspection& job) {
    if (const auto server = weak.lock()) server->answer(id, answer(job, accept));
  });
}

}  // namespace ddl::launcher
