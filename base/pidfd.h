// Processes by descriptor: a pidfd never means another process, as a recycled pid may.
#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"

namespace ddl {

/// pidfd_open(2); needs Linux 5.3. The descriptor is readable once the process has ended.
Result<UniqueFd> open_pidfd(pid_t pid);
/// pidfd_send_signal(2). Success also when the process has already ended.
Status send_signal(int pidfd, int signal);
/// True once the process has ended (also while it is an unreaped zombie).
bool has_ended(int pidfd);

}  // namespace ddl
