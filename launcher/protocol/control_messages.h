// Messages between a running job and those who ask it from outside, by a socket of its head or of one of its agents
// (launcher/control): one request for each connection, and its answer. And the messages by which an agent forwards a
// request to the head, and the head answers it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "launcher/job/job_inspection.h"

namespace ddl::launcher::message {

// ---- client to job ----

/// Which job is it? Answered by JobDescribed.
struct DescribeJob {
  std::string version;  ///< the client's; a job of another version refuses
  bool operator==(const DescribeJob&) const = default;
};
/// What do its ranks do? Answered by JobOverview, as many InspectedRanks as it takes, and InspectionEnd.
struct InspectJob {
  std::string version;
  /// At once, with what ranks and nodes have used so far: for metrics. Otherwise after a pause, by which it is known what
  /// has not changed meanwhile.
  bool counts = false;
  bool operator==(const InspectJob&) const = default;
};

/// Record a timeline from now on, or write what has been recorded. Answered by TimelineChanged.
struct ChangeTimeline {
  std::string version;
  bool starts = false;
  std::string path;  ///< of the file, if it starts: absolute; "": the job chooses a name
  bool operator==(const ChangeTimeline&) const = default;
};

using ClientToJob = std::variant<DescribeJob, InspectJob, ChangeTimeline>;

// ---- job to client ----

/// In place of an answer: one sentence that says why there is none.
struct Refused {
  std::string why;
  bool is_timeout = false;  ///< the job is there, but does not answer now
  bool operator==(const Refused&) const = default;
};
struct JobDescribed {
  JobDescription job;
  bool operator==(const JobDescribed&) const = default;
};
/// A JobInspection without its ranks.
struct JobOverview {
  JobDescription job;
  std::vector<InspectedNode> nodes;
  std::vector<InspectedWait> waits;
  bool operator==(const JobOverview&) const = default;
};
/// Some of its ranks, ascending.
struct InspectedRanks {
  std::vector<InspectedRank> ranks;
  bool operator==(const InspectedRanks&) const = default;
};
struct InspectionEnd {
  bool operator==(const InspectionEnd&) const = default;
};

struct TimelineChanged {
  std::string path;  ///< of the file that is recorded for, or that is being written
  bool operator==(const TimelineChanged&) const = default;
};

using JobToClient =
    std::variant<Refused, JobDescribed, JobOverview, InspectedRanks, InspectionEnd, TimelineChanged>;

// ---- agent to head, and back ----

/// A ClientToJob that has come to this agent, encoded.
struct ForwardedRequest {
  std::int64_t client = 0;  ///< the agent's own number for it
  std::uint16_t type = 0;
  std::string payload;
  bool operator==(const ForwardedRequest&) const = default;
};
/// A JobToClient for this client of the agent, encoded.
struct ForwardedAnswer {
  std::int64_t client = 0;
  std::uint16_t type = 0;
  std::string payload;
  bool operator==(const ForwardedAnswer&) const = default;
};

}  // namespace ddl::launcher::message
