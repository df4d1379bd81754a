// What this process was started with, where ddlrun's own files are, and files that the user names.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"

namespace ddl::cli {

/// Opens /dev/null for whichever of standard input, output and error is closed, so that no file or socket of ours takes
/// its number and is written to as if it were the terminal.
void open_closed_standard_fds();

/// Where profiles ("sites") and templates ("slurm") of their own are kept: the user's, ~/.config/ddlrun/KIND or below
/// $XDG_CONFIG_HOME, then the admin's, /etc/ddlrun/KIND. Whether they are there or not.
std::vector<std::string> config_folders(const Environment& environment, std::string_view kind);

/// The path of one of ddlrun's internal programs, in the build and install trees. It need not exist.
std::string libexec_path(std::string_view name);

/// A document for people, "reference/lint.md", as a message names it: its path where it lies beside this program, in the
/// build and install trees.
std::string document(std::string_view page);

/// Absolute; an error where the directory has been removed.
Result<std::string> current_directory();

// Files that the user names.

/// The whole of a file, or of standard input if path is "-". Error: the path with the system's reason, or that it has
/// more than 16 MiB.
Result<std::string> read_user_file(const std::string& path);

/// The whole text or nothing: it is written beside the path and then given its name. mode is lessened by the umask. Error:
/// the path with the system's reason; system_errno() is EEXIST for a file that is there and may not be replaced.
Status write_new_file(const std::string& path, std::string_view text, mode_t mode, bool replaces);

}  // namespace ddl::cli
