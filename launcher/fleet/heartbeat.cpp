#include "launcher/fleet/heartbeat.h"

#include <fmt/format.h>

#include "launcher/process/cpu_demand.h"

namespace ddl::launcher {

std::string silence_text() {
  return fmt::format("{:g} s", std::chrono::duration<double>(kSilentPeriods * kHeartbeatPeriod).count());
}

Heartbeat::Heartbeat(EventLoop& loop, int limit, Handlers handlers)
    : loop_(loop), limit_(limit), handlers_(std::move(handlers)) {}

void Heartbeat::start() {
  timer_ = loop_.after(kHeartbeatPeriod, [this] { on_tick(); });
}

// True if this tick is one more without a word.
bool Heartbeat::counts() {
  // Only who has already been quiet for a whole tick is worth a look at the machine.
  if (quiet_ticks_ > 0 && is_machine_overloaded()) return false;
  ++quiet_ticks_;
  return true;
}

void Heartbeat::on_tick() {
  if (!excused_ && counts() && quiet_ticks_ > limit_) return handlers_.on_silence();
  start();
  handlers_.say();
}

}  // namespace ddl::launcher
