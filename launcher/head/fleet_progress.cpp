#include "launcher/head/fleet_progress.h"

#include "base/text.h"
#include "contract/ddlrun.h"

namespace ddl::launcher {

void FleetProgress::start() {
  if (say_) timer_ = loop_.after(std::chrono::seconds(1), [this] { tick(); });
}

void FleetProgress::stop() {
  timer_.cancel();
  if (say_ && seconds_ > 0) say_("");
  seconds_ = 0;
}

void FleetProgress::tick() {
  ++seconds_;
  const auto missing = fleet_.missing();
  if (!missing.empty()) {
    // The one that was begun first is the slowest.
    say_(std::to_string(fleet_.size() - missing.size()) + " of " +
         counted(static_cast<std::int64_t>(fleet_.size()), "host") + " have answered, waiting for " +
         allocation_.nodes[missing.front()].name +
         (missing.size() > 1 ? " and " + counted(static_cast<std::int64_t>(missing.size()) - 1, "other")
                             : "") +
         " (" + std::to_string(seconds_) + " s)");
  }
  timer_ = loop_.after(std::chrono::seconds(1), [this] { tick(); });
}

JobReport start_failure_report(const Fleet& fleet, const Allocation& allocation) {
  JobReport report;
  report.reason = EndReason::kStartFailed;
  report.exit_code = contract::kStartFailure;
  for (const Fleet::Failure& failure : fleet.failures())
    report.host_failures.push_back(allocation.nodes[failure.node].name + ": " + failure.sentence);
  if (report.host_failures.size() == 1) {
    report.message = std::move(report.host_failures.front());
    report.host_failures.clear();
  } else {
    report.message = std::to_string(report.host_failures.size()) + " of " +
                     counted(static_cast<std::int64_t>(fleet.size()), "host") + " did not come up";
  }
  return report;
}

}  // namespace ddl::launcher
