// What a person sees while hosts come up.
#pragma once

#include <functional>
#include <string>

#include "launcher/fleet/fleet.h"
#include "launcher/job/allocation.h"
#include "launcher/loop/event_loop.h"
#include "launcher/supervise/job_report.h"

namespace ddl::launcher {

/// Says "2 of 4 hosts have answered, waiting for node3 (3 s)" once a second from a moment on, then "". Nothing without
/// a function to say it with. Lives on the loop's thread.
class FleetProgress {
 public:
  FleetProgress(EventLoop& loop, const Fleet& fleet, const Allocation& allocation,
                std::function<void(const std::string&)> say)
      : loop_(loop), fleet_(fleet), allocation_(allocation), say_(std::move(say)) {}

  void start();
  void stop();

 private:
  void tick();

  EventLoop& loop_;
  const Fleet& fleet_;
  const Allocation& allocation_;
  std::function<void(const std::string&)> say_;
  EventLoop::Timer timer_;
  int seconds_ = 0;
};

/// The report of a job some of whose hosts did not come up: one sentence a host.
JobReport start_failure_report(const Fleet& fleet, const Allocation& allocation);

}  // namespace ddl::launcher
