// A timeline of a training job, as TraceFile writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ddl::test {

/// Each step of each rank is a range "step N" with ranges "forward" and "backward" in it, the mark "loaded", kTensors
/// named tensors, batches and exchanges that move them, a wait for the last one, and the mark of the engine's step; then
/// an ordered allreduce. The last rank begins each step late, by kLate.
struct TrainingJob {
  static constexpr int kTensors = 20;
  static constexpr int kBatches = 4;
  static constexpr int kEventsOfStep = 4 + kTensors + 3 * kBatches + 3;
  static constexpr std::int64_t kStep = 20'000'000, kLate = 1'000'000;  // ns
  int ranks = 4;
  int steps = 10;
  std::string range = "forward";  ///< its name
  std::string host = "node";      ///< the beginning of hosts' names; two ranks share one
};

/// The path may end with ".gz".
void write_timeline(const std::string& path, const TrainingJob& job);

/// Writes it, and returns the page that shows it.
std::string write_timeline_and_page(const std::string& path, const TrainingJob& job,
                                    const std::string& title = "t.json");

/// The steps with which the file has about so many bytes, before it is compressed.
int steps_for(std::size_t bytes, int ranks);

}  // namespace ddl::test
