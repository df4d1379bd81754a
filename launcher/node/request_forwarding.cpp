#include "launcher/node/request_forwarding.h"

#include <unistd.h>

#include <utility>

#include "contract/environment.h"
#include "launcher/plan/server_addresses.h"
#include "launcher/protocol/codec.h"

namespace ddl::launcher {
namespace {

/// Longer than the head gives the slowest agent, and less than a client waits.
constexpr auto kHeadPatience = std::chrono::milliseconds(1500);

}  // namespace

QuestionForwarder::QuestionForwarder(EventLoop& loop, const JobLaunch& job,
                                     std::function<void(const message::AgentToHead&)> report)
    : loop_(loop),
      head_("ddlrun itself (process " + std::to_string(job.head_pid) + " on " + job.head_host + ")"),
      report_(std::move(report)) {
  const std::string& id = job.elastic_job_id.empty() ? job.job_id : job.elastic_job_id;
  auto server = JobServer::open(loop, {JobSocket::Role::kAgent, ::getuid(), ::getpid(), id},
                                [this](JobServer::Client client, message::ClientToJob&& request) {
                                  forward(client, std::move(request));
                                });
  if (server) server_ = *std::move(server);
}

void QuestionForwarder::forward(JobServer::Client client, message::ClientToJob&& request) {
  net::Frame frame = message::encode(request);
  waiting_[client] = loop_.after(kHeadPatience, [this, client] {
    server_->answer(client, message::Refused{head_ + " does not answer: it is stopped, or cut off", true});
    waiting_.erase(client);
  });
  report_(message::ForwardedRequest{client, frame.type, std::move(frame.payload)});
}

void QuestionForwarder::on(const message::ForwardedAnswer& answer) {
  // The rest of an answer has no timer any more. One that comes too late finds no client, or one that does not listen.
  waiting_.erase(answer.client);
  if (server_) server_->answer(answer.client, net::Frame{answer.type, answer.payload});
}

Result<std::unique_ptr<GlooService>> GlooService::open(
    EventLoop& loop, std::function<void(const message::AgentToHead&)> report) {
  std::unique_ptr<GlooService> service(new GlooService(std::move(report)));
  auto server = HttpServer::open(loop, [&service = *service](HttpServer::Id id, HttpRequest&& request) {
    service.on_request(id, std::move(request));
  });
  if (!server) return fail(std::move(server.error()));
  service->server_ = *std::move(server);
  return service;
}

Environment GlooService::client_environment() const {
  return {{contract::env::kHorovodGlooAddress, kGlooAddress},
          {contract::env::kHorovodGlooPort, std::to_string(server_->address().port())}};
}

void GlooService::on_request(HttpServer::Id id, HttpRequest&& request) {
  auto read = read_gloo_request(request.method, request.path, std::move(request.body));
  if (!read) return server_->answer(id, {read.error().status, std::move(read.error().body), ""});
  report_(message::AskGlooStore{id, *std::move(read)});
}

void GlooService::on(const message::GlooStoreAnswered& answered) {
  server_->answer(answered.id, {answered.answer.status, answered.answer.body, ""});
}

}  // namespace ddl::launcher
