#include "launcher/node/gloo_service.h"

#include <string>
#include <utility>

#include "contract/environment.h"
#include "launcher/plan/meeting_point.h"

namespace ddl::launcher {

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
          {contract::env::kHorovodGlooPort, std::to_string(server_->port())}};
}

void GlooService::on_request(HttpServer::Id id, HttpRequest&& request) {
  auto read = read_gloo_request(request.method, request.path, std::move(request.body));
  if (!read) return server_->answer(id, read.error().status, std::move(read.error().body));
  report_(message::AskGlooStore{id, *std::move(read)});
}

void GlooService::on(const message::GlooStoreAnswered& answered) {
  server_->answer(answered.id, answered.answer.status, answered.answer.body);
}

}  // namespace ddl::launcher
