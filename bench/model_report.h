// Reads what benchmarks of collectives have written as JSON, and tells what larger jobs would take by the cost model.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace ddl::bench {

/// A document and the name it has in messages.
struct ResultFile {
  std::string name;
  std::string text;
};

/// Tables for people: one model for each entrant and network of the files, and what it predicts for collectives that were
/// measured. All predictions are labelled as a model's. An error names the file that is not what it should be.
Result<std::string> model_report(const std::vector<ResultFile>& files);

}  // namespace ddl::bench
