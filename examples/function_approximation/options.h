// What the command line asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <Eigen/Core>

namespace fit {

struct Options {
  Eigen::Index points_per_rank =
      32;                   ///< the batch grows with the number of ranks, and the learning rate with it
  Eigen::Index points = 0;  ///< if not 0: that many in all, whatever the number of ranks; the rate stays
  std::vector<Eigen::Index> hidden = {32, 32};
  std::uint64_t seed = 1;
  bool ensemble = false;

  std::int64_t epochs = 2000;
  double learning_rate = 0.01;
  std::int64_t warmup_epochs = 100;
  bool async = false;   ///< named tensors, one for each layer
  bool on_gpu = false;  ///< gradients are added in memory of GPUs

  std::string plot;        ///< SVG file, "" for none
  std::string checkpoint;  ///< file, "" for none
  std::int64_t checkpoint_every = 500;
  std::int64_t log_every = 500;
  bool verbose = false;
};

/// Reads the command line. For --help, --version and mistakes it prints and ends the process: 0, or 2 for a mistake.
Options parse_options(int argc, char** argv);

}  // namespace fit
