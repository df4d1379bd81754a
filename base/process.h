// Other programs as processes: how a command is found in PATH and started, and how this process waits for its end by pidfd.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"

namespace ddl {

// Texts as the C library's calls that start programs want them.

/// Pointers into the texts, which must outlive them unchanged, and a null pointer at the end.
inline std::vector<char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}
/// Of texts that end with the statement the pointers would lead into freed memory.
std::vector<char*> c_strings(const std::vector<std::string>&& texts) = delete;

// Where a command is.

/// What a shell would start for a bare name: the first executable file in the folders of a PATH, parted by ':'. Asks the file
/// system.
std::optional<std::string> find_in_path(std::string_view name, std::string_view path);

// Another program, started beside this process's threads or in place of this process.

/// The descriptors that become a program's standard streams. They stay open here.
struct StandardStreams {
  int in = 0;
  int out = 1;
  int err = 2;
};

/// Starts words[0], looked for in PATH, with these streams, every signal at its default and none blocked, and a process group
/// of its own, so that ^C does not reach it and all of it can be killed. environment: entries NAME=VALUE; nullopt: ours. Does
/// not fork this process: threads may exist. The child is the caller's to wait for. Errors: kNotFound, kPermissionDenied: there
/// is no such program, or it may not be started.
Result<pid_t> spawn(const std::vector<std::string>& words, const StandardStreams& streams,
                    const std::optional<std::vector<std::string>>& environment = std::nullopt);

/// Becomes words[0], looked for in PATH. Returns only if that fails. environment: entries NAME=VALUE; nullopt: ours.
Error become(const std::vector<std::string>& words,
             const std::optional<std::vector<std::string>>& environment = std::nullopt);

// Processes by descriptor: a pidfd never means another process, as a recycled pid may.

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
