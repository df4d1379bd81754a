// Processes by descriptor: a pidfd never means another process, as a recycled pid may.
#pragma once

#include <sys/types.h>

#include "base/deadline.h"
#include "base/unique_fd.h"

namespace ddl {

/// pidfd_open(2); needs Linux 5.3. The descriptor is readable once the process has ended.
Result<UniqueFd> open_pidfd(pid_t pid);
/// pidfd_send_signal(2). Success also when the process has already ended.
Status send_signal(int pidfd, int signal);
/// True once the process has ended (also while it is an unreaped zombie).
bool has_ended(int pidfd);

/// True once a child of this process has ended, reaped or not.
bool has_child_ended(pid_t child);
/// Waits for that. False: the deadline passed first. Without a pidfd, which the kernel, a filter of system calls or the limit of
/// descriptors may refuse, it looks again and again.
bool wait_for_end(pid_t child, Deadline deadline);
/// How long to sleep between two such looks: some milliseconds, and not beyond the deadline.
int nap_milliseconds(Deadline deadline);

}  // namespace ddl
