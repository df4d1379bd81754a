// What the command line asks for.
#pragma once

#include <cstdint>
#include <string>

#include <Eigen/Core>

namespace mnist {

struct Options {
  std::string data;              ///< folder with MNIST's files; "": the program draws digits
  std::uint64_t samples = 6000;  ///< that are drawn
  Eigen::Index hidden = 64;
  std::uint64_t seed = 1;

  std::uint64_t batch = 32;        ///< samples of each rank in a step; the rate is scaled
  std::uint64_t global_batch = 0;  ///< if not 0: of all ranks together; the rate stays
  std::uint64_t epochs = 3;
  std::uint64_t max_steps = UINT64_MAX;
  double rate = 0.05;
  double warmup_epochs = 1.0;
  bool sharded = false;

  std::string checkpoint;  ///< folder, "" for none
  std::uint64_t checkpoint_every = 100;
};

/// Reads the command line. For --help and mistakes it prints and ends the process: 0, or 2 for a mistake.
Options parse_options(int argc, char** argv);

}  // namespace mnist
