// The page of a job, or of a study of several: one file of HTML without a script, which needs nothing else.
#pragma once

#include <string>

#include "report/job_record.h"

namespace ddl::report {

/// Every text of the user, a host or a rank is escaped, and what is not valid UTF-8 is replaced. The page says what was
/// not measured, and why. baseline: another run of the same work, with which this one is compared; null: none. Pure.
std::string page(const JobRecord& record, const JobRecord* baseline);
/// The same of a study.
std::string page(const ScalingStudy& study);
/// Of whichever it is. A study needs no baseline.
std::string page(const Record& record, const JobRecord* baseline);

}  // namespace ddl::report
