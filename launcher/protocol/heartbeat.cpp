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
// With fewer threads, Linux 6.18 lets one that has just woken wait for seconds behind others that compute, if some of
// these call sched_yield() or sleep for microseconds again and again, as ranks do that share CPUs. A host that is dead
// is then noticed after 13 s in place of 3.
constexpr double kContendedPercent = 40;
constexpr int kContendedTicks = 4;

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

std::optional<double> parse_cpu_pressure(std::string_view pressure) {
  // "some avg10=76.37 avg60=70.15 avg300=47.95 total=255205538", and a line of "full".
  constexpr std::string_view kBegin = "some avg10=";
  if (!pressure.starts_with(kBegin)) return std::nullopt;
  const std::string_view rest = pressure.substr(kBegin.size());
  return parse_number(rest.substr(0, rest.find(' ')));
}

bool is_cpu_contended() {
  const auto pressure = read_file("/proc/pressure/cpu");
  return pressure && parse_cpu_pressure(*pressure).value_or(0) > kContendedPercent;
}

std::string silence_text(HeartbeatPace pace) {
  return fmt::format("{:g} s", std::chrono::duration<double>(pace.limit * pace.period).count());
}

Heartbeat::Heartbeat(EventLoop& loop, HeartbeatPace pace, Handlers handlers)
    : loop_(loop), pace_(pace), handlers_(std::move(handlers)) {}

void Heartbeat::start() {
  timer_ = loop_.after(pace_.period, [this] { on_tick(); });
}

// True if this tick counts as one more without a message.
bool Heartbeat::counts() {
  // The machine's load is read only if the other side has been silent for a whole tick already.
  if (quiet_ticks_ > 0 && is_machine_overloaded()) return false;
  if (quiet_ticks_ > 0 && ++contended_ticks_ % kContendedTicks != 0 && handlers_.is_contended()) return false;
  ++quiet_ticks_;
  return true;
}

void Heartbeat::on_tick() {
  if (!excused_ && counts() && quiet_ticks_ > pace_.limit) return handlers_.on_silence();
  start();
  handlers_.send();
}

}  // namespace ddl::launcher
