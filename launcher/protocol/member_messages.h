// Messages between an elastic job and the launches that it consists of: each is a head of its own, which has started the
// processes of one host.
#pragma once

#include <string>
#include <variant>

#include "launcher/protocol/messages.h"

namespace ddl::launcher::message {

/// The host is to be taken away.
struct HostLeaving {
  std::string message;
  int signal = 0;  ///< that its agent has received; 0: it was told otherwise
  bool operator==(const HostLeaving&) const = default;
};

/// Nothing of the launch is left.
struct LaunchEnded {
  int reason = 0;  ///< EndReason
  int exit_code = 0;
  int first_failure = -1;  ///< rank; -1: none
  std::string message;
  std::string hint;
  int signal = 0;
  bool is_host_lost = false;  ///< its agent did not start, or was lost
  bool operator==(const LaunchEnded&) const = default;
};

/// What a launch says to the job.
using MemberReport = std::variant<RankStarted, RankEnded, ElasticJoin, ElasticFinished, PmiBarrier,
                                  AbortRequested, HostLeaving, Stalled, Activity, ForwardedRequest, Events,
                                  AskGlooStore, Finished, LaunchEnded>;
/// What it is told.
/// Signal: as ddlrun would get it. A launch heeds no signal itself: a resource manager sends SIGTERM to all processes.
using MemberOrder = std::variant<ElasticPlan, ElasticChange, KillRank, PmiBarrierDone, HostLost, AskActivity,
                                 ForwardedAnswer, GlooStoreAnswered, Signal>;

}  // namespace ddl::launcher::message
