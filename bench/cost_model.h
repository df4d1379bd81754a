// The cost of a collective on more ranks than there are, T = alpha * steps + beta * bytes sent + gamma * bytes combined, and
// the report that predicts it from measured results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/workload.h"

namespace ddl::bench {

// What a collective costs on more ranks than there are: T = alpha * steps + beta * bytes sent + gamma * bytes combined.
// Pure.

/// One measured median.
struct CostPoint {
  Collective what = Collective::kAllreduce;
  int ranks = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;  ///< positive
};

/// How often each of the three is paid: messages one after the other, and bytes that one rank sends and combines. It is that
/// of the best known algorithms: logarithmic trees for the steps, and no byte that can be avoided.
struct CostShape {
  double steps = 0;
  double sent = 0;
  double combined = 0;
};
CostShape cost_shape(Collective what, int ranks, std::uint64_t bytes);

struct CostModel {
  double alpha = 0;         ///< seconds of a step
  double beta = 0;          ///< seconds of a byte sent
  double gamma = 0;         ///< seconds of a byte combined; 0 where it is part of beta
  double median_error = 0;  ///< of the points that it was made from: |predicted - measured| / measured
  double worst_error = 0;
};

/// The three numbers, none of them below 0, that fit all points best: least squares of the relative errors, so that small
/// messages count as much as large ones. What cannot be told apart, such as bytes sent and bytes combined where only one
/// collective was measured, is told by fewer numbers. At least one point.
CostModel fit(const std::vector<CostPoint>& points);

double predict(const CostModel& model, Collective what, int ranks, std::uint64_t bytes);

// Reads what benchmarks of collectives have written as JSON, and tells what larger jobs would take by the cost model.

/// A document and the name it has in messages.
struct ResultFile {
  std::string name;
  std::string text;
};

/// Tables for people: one model for each contender and network of the files, and what it predicts for collectives that were
/// measured. All predictions are labelled as a model's. An error names the file that is not what it should be.
Result<std::string> model_report(const std::vector<ResultFile>& files);

}  // namespace ddl::bench
