// Asks running jobs of this host from outside.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "launcher/control/job_socket.h"
#include "launcher/job/job_inspection.h"
#include "launcher/protocol/control_messages.h"

namespace ddl::launcher {

/// The answers of several jobs to the same request, all asked at the same time; result[i] is of sockets[i]. Returns
/// when all have answered, or at the deadline. Errors:
/// kPermissionDenied: the process that listens there belongs to another user, and this process is not root's;
/// kClosed: it has ended meanwhile;
/// kTimeout: it does not answer, and maybe why;
/// kUnavailable: the job's own sentence, such as that this user may not look at it;
/// kProtocol: it has sent something else.
std::vector<Result<std::vector<message::JobToClient>>> ask_jobs(const std::vector<JobSocket>& sockets,
                                                                const message::ClientToJob& request,
                                                                Deadline deadline);

/// For a request, from its answers: as ask_jobs(). Error kProtocol: they are not those of this request.
Result<JobDescription> description_of(Result<std::vector<message::JobToClient>>&& answers);
Result<JobInspection> inspection_of(Result<std::vector<message::JobToClient>>&& answers);
/// The path of the timeline.
Result<std::string> timeline_of(Result<std::vector<message::JobToClient>>&& answers);

}  // namespace ddl::launcher
