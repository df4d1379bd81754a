// What to do next if the command of a job could not be started, or ended at once: what users of a shell expect ddlrun
// to do, and it does not; options in the wrong place; the package ddl that a rank's Python lacks.
#pragma once

#include <string>
#include <vector>

namespace ddl::cli {

/// One sentence; "" if the error says enough. start_error: of the rank that could not be started; command: of the job,
/// not empty. Pure.
std::string start_advice(const std::string& start_error, const std::vector<std::string>& command);

/// If a rank has complained about its options, and one of ddlrun's stands behind the program: what to do, in one
/// sentence; else "". stderr_tail: the rank's last lines. Pure.
std::string misplaced_option_advice(const std::vector<std::string>& command,
                                    const std::vector<std::string>& stderr_tail);

/// If a rank's Python has not found the package ddl, or PyTorch its backend: what to do, in one sentence; else "".
std::string missing_package_advice(const std::vector<std::string>& stderr_tail);

}  // namespace ddl::cli
