// A model of the cost of a collective, T = alpha * steps + beta * bytes sent + gamma * bytes combined, fitted to
// measured results, and the report of what it predicts for more ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/workload.h"

namespace ddl::bench {

/// One measured median.
struct CostPoint {
  Collective what = Collective::kAllreduce;
  int ranks = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;  ///< positive
};

/// The three factors of the cost: messages one after the other, and bytes that one rank sends and combines. They are
/// those of the best known algorithms: logarithmic trees for the steps, and only the bytes that cannot be avoided.
struct CostShape {
  double steps = 0;
  double sent = 0;
  double combined = 0;
};
CostShape cost_shape(Collective what, int ranks, std::uint64_t bytes);

struct CostModel {
  double alpha = 0;         ///< seconds for a step
  double beta = 0;          ///< seconds for a byte sent
  double gamma = 0;         ///< seconds for a byte combined; 0 where it is part of beta
  double median_error = 0;  ///< of the points that it was fitted to: |predicted - measured| / measured
  double worst_error = 0;
};

/// The three numbers, none of them below 0, that fit all points best: least squares of the relative errors, so that
/// small messages count as much as large ones. Costs that the points cannot distinguish, such as bytes sent and bytes
/// combined where only one collective was measured, become fewer numbers. points must not be empty.
CostModel fit(const std::vector<CostPoint>& points);

double predict(const CostModel& model, Collective what, int ranks, std::uint64_t bytes);

/// The text of a file that `--json` has written, and its name in messages.
struct ResultFile {
  std::string name;
  std::string text;
};

/// Tables for people: one model for each contender and network of the files, and its predictions for the collectives
/// that were measured. All predictions are labelled as a model's. An error names the file from which no model can be
/// made.
Result<std::string> model_report(const std::vector<ResultFile>& files);

}  // namespace ddl::bench
