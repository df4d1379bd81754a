#include "options.h"

#include <cmath>
#include <cstdlib>

#include <CLI/CLI.hpp>

namespace mnist {
namespace {

CLI::Validator number_from(double least, const char* kind) {
  return CLI::Validator(
      [=](std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool ok = end != text.c_str() && *end == '\0' && std::isfinite(value) && value >= least;
        return ok ? std::string() : "'" + text + "' is not a " + kind + " number";
      },
      "");
}

CLI::Validator count_from(std::int64_t low, std::int64_t high = 1000000000) {
  return CLI::Validator(
      [=](std::string& text) {
        std::int64_t value = 0;
        const bool ok = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
        return ok ? std::string()
                  : "'" + text + "' is not a whole number from " + std::to_string(low) + " to " +
                        std::to_string(high);
      },
      "");
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  CLI::App app("Learns to read handwritten digits (MNIST), on one rank or many.", "mnist");
  app.footer(
      "Examples:\n"
      "  ddlrun -np 4 mnist --data DIRECTORY\n"
      "  ddlrun -np 2 mnist --sharded --checkpoint digits");
  app.get_formatter()->column_width(34);
  app.add_option("--data", options.data,
                 "Folder with the four files of MNIST, unpacked; without it digits are drawn");
  app.add_option("--samples", options.samples, "Digits to train with, without --data [6000]")
      ->check(count_from(1, 10000000));
  app.add_option("--hidden", options.hidden, "Units of the hidden layer [64]")->check(count_from(1, 65536));
  app.add_option("--seed", options.seed, "Of the weights and the order of samples [1]")->check(count_from(0));
  auto* const batch =
      app.add_option("--batch", options.batch,
                     "Samples of each rank in a step; the learning rate is multiplied by the number\n"
                     "of ranks, with warm-up [32]")
          ->check(count_from(1));
  app.add_option("--global-batch", options.global_batch,
                 "Samples of all ranks together in a step; the learning rate stays as given, and any\n"
                 "number of ranks that divides it gives the same result up to rounding")
      ->check(count_from(1))
      ->excludes(batch);
  app.add_option("--epochs", options.epochs, "[3]")->check(count_from(1));
  app.add_option("--max-steps", options.max_steps,
                 "End after so many steps, with a checkpoint, as if the time of the job were over")
      ->check(count_from(1));
  app.add_option("--rate", options.rate, "Learning rate of one rank [0.05]")
      ->check(number_from(1e-30, "positive"));
  app.add_option("--warmup-epochs", options.warmup_epochs, "[1]")->check(number_from(0, "non-negative"));
  app.add_flag("--sharded", options.sharded,
               "Each rank keeps a slice of the optimizer's state (ZeRO stage 1)");
  auto* const checkpoint = app.add_option("--checkpoint", options.checkpoint,
                                          "Folder: go on from the checkpoint there, and write others");
  app.add_option("--checkpoint-every", options.checkpoint_every,
                 "Steps between checkpoints; there is one after each epoch, too [100]")
      ->check(count_from(1))
      ->needs(checkpoint);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return options;
}

}  // namespace mnist
