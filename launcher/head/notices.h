// How a job in the head talks to its user.
#pragma once

#include <functional>
#include <string>

namespace ddl::launcher {

/// Sentences for the user while the job runs, each without a newline.
struct Notices {
  std::function<void(const std::string&)> note;    ///< worth a line unless --quiet
  std::function<void(const std::string&)> detail;  ///< only with --verbose
  /// What ddlrun waits for, called whenever the text changes; "" when the wait is over. For a terminal's last line.
  /// The function may be empty.
  std::function<void(const std::string&)> progress;
};

}  // namespace ddl::launcher
