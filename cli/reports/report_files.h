// The files of --report, --report-json and --report-dir, of a job or of a study.
#pragma once

#include <memory>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "cli/options/request.h"
#include "launcher/job/job_report.h"
#include "timeline/draft_file.h"

namespace ddl::cli {

/// What is kept of a job that has ended. began: seconds since 1970. environment: of its ranks. Pure.
report::JobRecord record_of(const Request& request, const Environment& environment, double began,
                            launcher::JobReport report);

class ReportFiles {
 public:
  /// Makes the folder of --report-dir, and checks that the files can be written: an error now is better than after the
  /// job. Leaves nothing else behind.
  /// suffix: of the names of files in that folder.
  static Result<ReportFiles> plan(const Request& request, const std::string& suffix = "");
  /// Error: the first one that could not be written. The others are.
  Status write(const report::Record& record);
  /// The page alone.
  Status write_page(const std::string& page);

 private:
  std::shared_ptr<const report::JobRecord> baseline_;
  std::vector<std::unique_ptr<timeline::DraftFile>> pages_, records_;
};

}  // namespace ddl::cli
