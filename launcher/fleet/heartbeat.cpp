#include "launcher/fleet/heartbeat.h"

#include <fmt/format.h>

namespace ddl::launcher {

std::string periods_text(int periods) {
  return fmt::format("{:g} s", std::chrono::duration<double>(periods * kHeartbeatPeriod).count());
}

Heartbeat::Heartbeat(EventLoop& loop, int limit, Handlers handlers)
    : loop_(loop), limit_(limit), handlers_(std::move(handlers)) {}

void Heartbeat::start() {
  timer_ = loop_.after(kHeartbeatPeriod, [this] { on_tick(); });
}

void Heartbeat::on_tick() {
  if (!excused_ && ++quiet_ticks_ > limit_ && handlers_.on_silence()) return;
  start();
  handlers_.say();
}

}  // namespace ddl::launcher
