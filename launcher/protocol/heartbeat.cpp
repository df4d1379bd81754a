#include "launcher/protocol/heartbeat.h"

#include <unistd.h>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/text.h"

namespace ddl::launcher {
namespace {

// At a scheduler's 3 ms a turn this makes a round of a tenth of a second; what needs several turns of several
// processes, such as a message through ssh, then takes a second or more.
constexpr long kRunnablePerCpu = 32;

}  // namespace

std::optional<int> parse_runnable(std::string_view loadavg) {
  // "0.20 0.18 0.12 3/412 11206": three averages, runnable/all, the newest process.
  const auto words = split(loadavg, ' ');
  if (words.size() < 5) return std::nullopt;
  const auto runnable = parse_integer(words[3].substr(0, words[3].find('/')));
  if (!runnable) return std::nullopt;
  return static_cast<int>(*runnable);
}

bool is_machine_overloaded() {
  const auto text = read_file("/proc/loadavg");
  const auto runnable = text ? parse_runnable(*text) : std::nullopt;
  return runnable && *runnable > kRunnablePerCpu * ::sysconf(_SC_NPROCESSORS_ONLN);
}

std::string silence_text(HeartbeatPace pace) {
  return fmt::format("{:g} s", std::chrono::duration<double>(pace.limit * pace.period).count());
}

Heartbeat::Heartbeat(EventLoop& loop, HeartbeatPace pace, Handlers handlers,
                     std::function<bool()> is_overloaded)
    : loop_(loop), pace_(pace), handlers_(std::move(handlers)), is_overloaded_(std::move(is_overloaded)) {}

void Heartbeat::start() {
  timer_ = loop_.after(pace_.period, [this] { on_tick(); });
}

// True if this tick counts as one more without a message.
bool Heartbeat::counts() {
  // The machine's load is read only if the other side has been silent for a whole tick already.
  if (quiet_ticks_ > 0 && is_overloaded_()) return false;
  ++quiet_ticks_;
  return true;
}

void Heartbeat::on_tick() {
  if (!excused_ && counts() && quiet_ticks_ > pace_.limit) return handlers_.on_silence();
  start();
  handlers_.send();
}

}  // namespace ddl::launcher
