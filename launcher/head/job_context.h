// What the two parts of a job in the head share: its start, and its run.
#pragma once

#include <string>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/fleet/fleet.h"
#include "launcher/head/member_channel.h"
#include "launcher/head/reports.h"
#include "launcher/head/run_job.h"
#include "launcher/head/supervisor.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/loop/event_loop.h"
#include "net/frame.h"

namespace ddl::launcher {

/// The sentence of a job that ends with this process (--end-with).
inline std::string caller_ended_text(int pid) {
  return "process " + std::to_string(pid) + " has ended, and the job with it (--end-with)";
}

/// It only refers to the values.
struct JobContext {
  const JobSpec& spec;
  const Allocation& allocation;
  const Environment& head_environment;
  const Notices& notices;
  EventLoop& loop;
  Fleet& fleet;
  Supervisor& supervisor;
  StartTimes& times;
  MemberChannel* elastic_job;  ///< that this launch belongs to; null: none
};

/// A part of the job, which gets what happens while it goes on. One thread.
class JobPart {
 public:
  virtual ~JobPart() = default;
  /// A message of a node's agent. Error: what was wrong with it; the link ends.
  virtual Status on_report(int node, const net::Frame& frame) = 0;
  virtual void on_agent_lost(int node, const std::string& why) = 0;
  virtual void on_signal(int signal) = 0;
  /// The process has ended that the job is to end with, as this sentence says.
  virtual void on_caller_ended(const std::string& text) = 0;
};

}  // namespace ddl::launcher
