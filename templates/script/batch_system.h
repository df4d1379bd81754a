// A batch system as job scripts see it: the directives by which a script asks for resources, and the command that takes
// a script. One file for each (sbatch.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "templates/profile/site_profile.h"
#include "templates/script/batch_job.h"

namespace ddl::templates {

enum class Submission {
  kReal,
  kTest  ///< the system checks the script and starts nothing
};

/// Without state; all functions are pure.
class BatchSystem {
 public:
  virtual ~BatchSystem() = default;

  virtual std::string command() const = 0;  ///< "sbatch"

  /// "--nodes=2" and so on, in the order in which a script has them, quoted as the system reads them. site: null where
  /// none is named. Error kInvalidArgument: a value that no directive can hold.
  virtual Result<std::vector<std::string>> directives(const ScriptRequest& request, const BatchJob& job,
                                                      const SiteProfile* site) const = 0;

  /// argv of the command that reads a script from standard input.
  virtual std::vector<std::string> submit_command(Submission submission) const = 0;
  /// own, without the variables that the command reads as options (SBATCH_ACCOUNT) and prefers to the script, where the
  /// script has that option itself; and without those with which it would wait for the job's end. The others are the
  /// user's defaults.
  virtual Environment submit_environment(const Environment& own, std::string_view script) const = 0;
  /// The job's number, from what the command has printed.
  virtual std::string job_id(std::string_view output) const = 0;
};

const BatchSystem& sbatch();

}  // namespace ddl::templates
