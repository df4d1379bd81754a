// Who takes part in a benchmark, as a value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/command.h"

namespace ddl::bench {

/// As a shell would take it: "NAME=value /path/to/program argument".
std::string command_text(const Command& command);

struct Contender {
  std::string name;   ///< unique within its case: "ddlrun", "openmpi-tuned"
  std::string label;  ///< for people: "Open MPI, malloc tuned"
  std::string why;    ///< why it takes part, and why it is set as it is
  Command command;
  std::string again_of;  ///< the contender that this one repeats for the A/A run; "" if it is none
  bool is_ours = false;  ///< drawn in the accent colour
  std::optional<std::string> absent;  ///< why it cannot run here; it then has no figures
  int failed_runs = 0;                ///< runs that failed and were repeated
  std::string last_failure;           ///< how the last of them failed
  std::optional<std::string> failed;  ///< how two runs in a row failed; it then has no figures either

  /// What nobody can beat: the measuring loop, or a prototype that does only what cannot be avoided.
  bool is_limit() const { return name.ends_with("floor") || name.ends_with("limit"); }
  bool is_excluded() const { return absent || failed; }
  /// "absent: mpirun is not in PATH", "FAILED: exited with 3"; "" if it is not out.
  std::string why_excluded() const {
    if (failed) return "FAILED: " + *failed;
    return absent ? "absent: " + *absent : "";
  }
};

}  // namespace ddl::bench
