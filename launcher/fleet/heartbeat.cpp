#include "launcher/fleet/heartbeat.h"

#include <fmt/format.h>

#include "launcher/process/cpu_demand.h"

namespace ddl::launcher {

std::string silence_text(HeartbeatPace pace) {
  return fmt::format("{:g} s", std::chrono::duration<double>(pace.limit * pace.period).count());
}

Heartbeat::Heartbeat(EventLoop& loop, HeartbeatPace pace, Handlers handlers)
    : loop_(loop), pace_(pace), handlers_(std::move(handlers)) {}

void Heartbeat::start() {
  timer_ = loop_.after(pace_.period, [this] { on_tick(); });
}

// True if this tick is one more without a word.
bool Heartbeat::counts() {
  // Only who has already been quiet for a whole tick is worth a look at the machine.
  if (quiet_ticks_ > 0 && is_machine_overloaded()) return false;
  ++quiet_ticks_;
  return true;
}

void Heartbeat::on_tick() {
  if (!excused_ && counts() && quiet_ticks_ > pace_.limit) return handlers_.on_silence();
  start();
  handlers_.say();
}

}  // namespace ddl::launcher
