// Whether this machine has far more to run than CPUs to run it on.
#pragma once

#include <optional>
#include <string_view>

namespace ddl::launcher {

/// The number of threads that run or wait for a CPU, from the text of /proc/loadavg (proc(5)). Pure.
std::optional<int> parse_runnable(std::string_view loadavg);

/// True while so many threads wait for each CPU that a process may not run for seconds although nothing is wrong with
/// it. False where /proc does not tell.
bool is_machine_overloaded();

}  // namespace ddl::launcher
