// A private directory of one job on one node, for the PMIx server's files.
#pragma once

#include <string>

#include "base/error.h"

namespace ddl::launcher {

/// A new name, "$TMPDIR/ddlrun-<uid>-<random>" (or in /tmp). Makes nothing: the spawner makes the directory, because
/// it will remove it, whichever other process ends. Error: as random_hex().
Result<std::string> new_session_directory_name();

/// Makes it, mode 0700; it is an error if there is something of that name. To be removed, with everything in it.
Status make_session_directory(const std::string& path);
/// Leaves alone what is another user's.
void remove_session_directory(const std::string& path);

}  // namespace ddl::launcher
