#include "options.h"

#include <cmath>
#include <cstdlib>

#include <CLI/CLI.hpp>

namespace fit {
namespace {

constexpr int kUsageError = 2;

/// CLI11's Range and PositiveNumber work on double: too coarse for 64-bit counts, and NaN passes.
CLI::Validator positive_number() {
  return CLI::Validator(
      [](std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool ok = end != text.c_str() && *end == '\0' && std::isfinite(value) && value > 0;
        return ok ? std::string() : "'" + text + "' is not a positive number";
      },
      "");
}

CLI::Validator count_in(std::int64_t low, std::int64_t high) {
  const std::string range = std::to_string(low) + " to " + std::to_string(high);
  return CLI::Validator(
      [=](std::string& text) {
        std::int64_t value = 0;
        const bool ok = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
        return ok ? std::string() : "'" + text + "' is not a whole number from " + range;
      },
      "");
}

CLI::Validator svg_name() {
  return CLI::Validator(
      [](std::string& text) {
        const bool ok = text.size() > 4 && text.compare(text.size() - 4, 4, ".svg") == 0;
        return ok ? std::string() : "'" + text + "' does not end in .svg, the one format that is written";
      },
      "");
}

}  // namespace

Options parse_options(int argc, char** argv) {
  constexpr std::int64_t kMany = 1000000000;  // epochs and intervals of them
  constexpr std::int64_t kMostPoints = 1000000;
  constexpr std::int64_t kMostUnits = 4096;

  Options options;
  CLI::App app(
      "Fits y = sin(2 pi x) + sin(4 pi x) on [-1, 1] with a small neural network, on one rank or many:\n"
      "each rank holds its part of the interval, and gradients are averaged in every step.",
      "function_approximation");
  app.footer(
      "Examples:\n"
      "  ddlrun -np 2 function_approximation --plot fit.svg\n"
      "  ddlrun -np 4 function_approximation --points 128 --checkpoint fit.ckpt\n"
      "  ddlrun -np 3 function_approximation --ensemble --plot ensemble.svg");
  app.get_formatter()->column_width(34);

  const char* const data = "Data and network";
  auto* per_rank =
      app.add_option("--points-per-rank", options.points_per_rank,
                     "Training points of each rank; the learning rate is multiplied by the number\n"
                     "of ranks, with warm-up [32]")
          ->check(count_in(1, kMostPoints))
          ->group(data);
  app.add_option("--points", options.points,
                 "Training points of all ranks together; the learning rate stays as given, and any\n"
                 "number of ranks gives the same fit up to rounding")
      ->check(count_in(2, kMostPoints))
      ->excludes(per_rank)
      ->group(data);
  app.add_option("--hidden", options.hidden, "Units of each hidden layer [32,32]")
      ->delimiter(',')
      ->check(count_in(1, kMostUnits))
      ->group(data);
  app.add_option("--seed", options.seed, "Seed of the initial weights [1]")
      ->check(count_in(0, INT64_MAX))
      ->group(data);
  auto* ensemble = app.add_flag("--ensemble", options.ensemble,
                                "Average nothing: each rank fits its own part of the interval")
                       ->group(data);

  const char* const training = "Training";
  app.add_option("--epochs", options.epochs, "Steps over all points [2000]")
      ->check(count_in(1, kMany))
      ->group(training);
  app.add_option("--learning-rate", options.learning_rate, "Rate for the batch of one rank [0.01]")
      ->check(positive_number())
      ->group(training);
  app.add_option("--warmup-epochs", options.warmup_epochs, "Epochs until a scaled rate is reached [100]")
      ->check(count_in(0, kMany))
      ->group(training);
  auto* async =
      app.add_flag("--async", options.async,
                   "Submit the gradient of each layer as a named tensor, while those of the layers\n"
                   "below are computed; the result is the same")
          ->excludes(ensemble)
          ->group(training);

  std::string device = "cpu";
  app.add_option("--device", device,
                 "gpu: gradients are added in memory of this rank's GPU; they are computed by the\n"
                 "CPU all the same [cpu]")
      ->check(CLI::IsMember({"cpu", "gpu"}))
      ->excludes(async)
      ->excludes(ensemble)
      ->group(training);

  const char* const output = "Output (written by rank 0)";
  app.add_option("--plot,--output", options.plot, "Draw the fit into this SVG file")
      ->check(svg_name())
      ->type_name("FILE")
      ->group(output);
  auto* checkpoint =
      app.add_option("--checkpoint", options.checkpoint,
                     "Keep the state of the training in this file, and go on from it if it is there")
          ->type_name("FILE")
          ->excludes(ensemble)
          ->group(output);
  app.add_option("--checkpoint-every", options.checkpoint_every, "Epochs between checkpoints [500]")
      ->check(count_in(1, kMany))
      ->needs(checkpoint)
      ->group(output);
  app.add_option("--log-every", options.log_every, "Epochs between printed losses [500]")
      ->check(count_in(1, kMany))
      ->group(output);
  app.add_flag("--verbose", options.verbose,
               "Print losses with all their bits, and a hash of the final weights")
      ->group(output);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);  // prints help or the mistake
    std::exit(code == 0 ? 0 : kUsageError);
  }
  options.on_gpu = device == "gpu";
  return options;
}

}  // namespace fit
