// A private directory of one job on one node, for the PMIx server's files.
#pragma once

#include <string>

#include "base/error.h"

namespace ddl::launcher {

/// Makes "$TMPDIR/ddlrun-<uid>-XXXXXX" (or /tmp), mode 0700. The caller removes it, with everything in it.
Result<std::string> make_session_directory();
void remove_session_directory(const std::string& path);

}  // namespace ddl::launcher
