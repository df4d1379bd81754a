// A text of every rank of a process set, on every rank.
#pragma once

#include <string>
#include <vector>

#include "runtime/src/context/process_set.h"

namespace ddl::runtime {

/// Inside a run() of the set; collective. By allreduce alone, which needs no connections but those that the set has.
Result<std::vector<std::string>> gather_texts(ProcessSet& set, const std::string& own, CallDeadline deadline);

}  // namespace ddl::runtime
