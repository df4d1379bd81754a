#include "launcher/head/start_times.h"

#include <fmt/format.h>

namespace ddl::launcher {

void StartTimes::on_agents_ready(const std::string& slowest, double seconds, double connect_seconds) {
  agents_ready_ = Clock::now();
  slowest_ = slowest;
  slowest_seconds_ = seconds;
  connect_seconds_ = connect_seconds;
}

void StartTimes::on_launched(int num_ranks) {
  launched_ = Clock::now();
  num_ranks_ = num_ranks;
}

std::string StartTimes::text() const {
  const auto after = [this](Clock::time_point when) {
    return fmt::format("{:.3f} s", std::chrono::duration<double>(when - begun_).count());
  };
  std::string text = "start-up: ";
  if (!agents_ready_) return text + "no agent was ready";
  text += fmt::format("agents ready after {} (slowest {}: {:.3f} s", after(*agents_ready_), slowest_,
                      slowest_seconds_);
  if (connect_seconds_ > 0) text += fmt::format(", of which ssh {:.3f} s", connect_seconds_);
  text += ")";
  if (launched_) text += ", launched after " + after(*launched_);
  if (all_started_) text += ", all ranks started after " + after(*all_started_);
  if (all_initialised_) {
    text += ", all initialised after " + after(*all_initialised_);
  } else if (all_started_) {
    text += initialised_ == 0 ? ", no rank was a PMIx client" : fmt::format(", {} initialised", initialised_);
  }
  if (first_collective_) text += ", first collective done after " + after(*first_collective_);
  return text;
}

}  // namespace ddl::launcher
