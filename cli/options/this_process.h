// The context of this process: its standard streams, the paths of ddlrun's own files, and files that the user names.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"

namespace ddl::cli {

/// Opens /dev/null for each of standard input, output and error that is closed, so that no file or socket of ddlrun
/// gets its number and is written to by mistake.
void open_closed_standard_fds();

/// The folders of profiles (kind "sites") or templates (kind "slurm"): the user's, ~/.config/ddlrun/KIND or below
/// $XDG_CONFIG_HOME, then the administrator's, /etc/ddlrun/KIND. They need not exist.
std::vector<std::string> config_folders(const Environment& environment, std::string_view kind);

/// The path of one of ddlrun's internal programs, in the build and install trees. It need not exist.
std::string libexec_path(std::string_view name);

/// How a message names a document, such as "reference/lint.md": by its path in the build or install tree of this
/// program, or as a file of the sources if it is not there.
std::string document(std::string_view page);

/// Absolute. Error: the directory has been removed.
Result<std::string> current_directory();

// Files that the user names.

/// A file, or standard input to its end if path is "-". Error: the path with the system's reason, or more than 16
/// MiB.
Result<std::string> read_user_file(const std::string& path);

/// Writes the file completely or not at all: under another name in the same folder, which is then changed. The umask
/// restricts mode. Error: the path with the system's reason; system_errno() is EEXIST for a file that exists and may
/// not be replaced.
Status write_new_file(const std::string& path, std::string_view text, mode_t mode, bool replaces);

}  // namespace ddl::cli
