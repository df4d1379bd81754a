// A network learns y = sin(2 pi x) + sin(4 pi x), on one rank or on many. What makes the difference is numbered;
// docs/guide/training.md walks through it.
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/Core>

#include <ddl/ddl.hpp>

#include "checkpoint.h"
#include "gpu_copy.h"
#include "mlp.h"
#include "optimizer.h"
#include "options.h"
#include "picture.h"
#include "plot.h"
#include "target.h"

namespace {

using namespace fit;

constexpr Eigen::Index kGridPoints = 401;  // where the finished fit is compared with the target

/// The network's layers: one input, the hidden ones, one output.
std::vector<Eigen::Index> layer_widths(const Options& options) {
  std::vector<Eigen::Index> widths = {1};
  widths.insert(widths.end(), options.hidden.begin(), options.hidden.end());
  widths.push_back(1);
  return widths;
}

/// Finds out before the training, not after it, that a file could not be written.
void check_directory(const std::string& file) {
  const std::filesystem::path directory = std::filesystem::path(file).parent_path();
  if (!directory.empty() && !std::filesystem::is_directory(directory)) {
    throw std::invalid_argument("cannot write " + file + ": there is no directory " + directory.string());
  }
}

void print_loss(std::int64_t epoch, double loss, bool all_bits) {
  std::printf("epoch %6" PRId64 "  loss %.3e", epoch, loss);
  if (all_bits) std::printf("  %a", loss);
  std::printf("\n");
}

/// How far a fit is from the target for begin <= x <= end.
void print_error(const char* whose, const Eigen::RowVectorXd& grid, const Eigen::VectorXd& fit, double begin,
                 double end) {
  double squares = 0.0, largest = 0.0;
  int count = 0;
  const Eigen::RowVectorXd truth = target(grid);
  for (Eigen::Index i = 0; i < grid.size(); ++i) {
    if (grid[i] < begin || grid[i] > end) continue;
    const double error = std::abs(fit[i] - truth[i]);
    squares += error * error;
    largest = std::max(largest, error);
    ++count;
  }
  std::printf("%s: rmse %.2e, largest error %.2e on %.3g <= x <= %.3g\n", whose, std::sqrt(squares / count),
              largest, begin, end);
}

/// With named tensors: stores in buffer what the ordered allreduce of a step stores, with the same bits.
void sum_by_layers(ddl::Context& context, const Mlp& model, const Part& mine, double batch,
                   Eigen::VectorXd& buffer) {
  const Eigen::Index weights = model.parameters().size();
  std::vector<ddl::Future<void>> sums;
  const auto submit = [&](const std::string& name, Eigen::Index first, Eigen::Index count) {
    auto part = buffer.segment(first, count);
    part /= batch;
    sums.push_back(context.allreduce_async(name, part, ddl::Op::sum));
  };
  // libddl adds up the gradient of a layer while those of the layers below are computed. The range shows this in the
  // timeline (ddlrun --timeline-filename).
  {
    const ddl::Range computes = context.range("gradients");
    buffer[weights] = model.squared_error(
        mine.x, mine.y, buffer.head(weights), [&](std::size_t layer, Eigen::Index first, Eigen::Index count) {
          submit("gradient of layer " + std::to_string(layer), first, count);
        });
  }
  submit("loss", weights, 1);
  for (ddl::Future<void>& sum : sums) sum.get();
}

/// In memory of this rank's GPU: the call is the same, since libddl sees from the pointer where the memory lies.
void sum_on_gpu(ddl::Context& context, const Mlp& model, const Part& mine, double batch, GpuCopy& gpu,
                Eigen::VectorXd& buffer) {
  const Eigen::Index weights = model.parameters().size();
  buffer[weights] = model.squared_error(mine.x, mine.y, buffer.head(weights));
  buffer /= batch;
  gpu.upload(buffer.data());
  context.allreduce(gpu.data(), static_cast<std::size_t>(buffer.size()), ddl::Op::sum);
  gpu.download(buffer.data());
}

void train(ddl::Context& context, const Options& options) {
  // 1. Who am I, and how many are we? Started alone, the program is a job of one rank.
  const int rank = context.rank();
  const int size = context.size();
  const bool speaks = rank == 0;  // one rank prints and writes files, the others only work
  if (speaks) {
    check_directory(options.plot);
    check_directory(options.checkpoint);
  }

  // 2. Each rank takes its part of the interval.
  const Eigen::Index points = options.points > 0 ? options.points : options.points_per_rank * size;
  const Part mine = part_of_rank(points, rank, size);

  // 3. The learning rate belongs to a batch. If every rank brings its own points, the batch of a step is size times
  //    that of one rank, and so is the rate, after a warm-up. If the points are given in all, it stays.
  LearningRate learning_rate;
  learning_rate.base = options.learning_rate;
  learning_rate.scale = options.points > 0 || options.ensemble ? 1.0 : size;
  learning_rate.warmup_epochs = options.warmup_epochs;
  learning_rate.epochs = options.epochs;

  // 4. Ranks begin with different weights; rank 0's count. It may have found them in a checkpoint, and then the
  //    optimizer's state belongs to them.
  Mlp model(layer_widths(options), options.seed + static_cast<std::uint64_t>(rank));
  Adam optimizer(model.parameters().size());
  const bool resumed =
      speaks && !options.checkpoint.empty() && load_checkpoint(options.checkpoint, model, optimizer);
  context.broadcast(model.parameters(), 0);
  context.broadcast(optimizer.mean, 0);
  context.broadcast(optimizer.mean_squares, 0);
  context.broadcast(&optimizer.steps, 1, 0);

  if (speaks) {
    std::printf("%d rank%s, %td points, %td weights, learning rate %g x %g%s\n", size, size == 1 ? "" : "s",
                points, model.parameters().size(), learning_rate.base, learning_rate.scale,
                options.ensemble ? ", an ensemble: each rank fits its own part; losses are rank 0's" : "");
    if (resumed) {
      std::printf("going on from %s at epoch %" PRId64 "\n", options.checkpoint.c_str(), optimizer.steps);
    }
  }

  // 5. Train. One buffer holds the gradient and, behind it, the loss: a step costs one allreduce. Every rank puts in
  //    the sum over its points divided by the number of all points, so that the total is the mean over all points
  //    however unevenly they are spread.
  const double batch = static_cast<double>(options.ensemble ? mine.x.size() : points);
  const Eigen::Index weights = model.parameters().size();
  Eigen::VectorXd buffer(weights + 1);
  std::optional<GpuCopy> gpu;
  if (options.on_gpu) gpu.emplace(static_cast<std::size_t>(buffer.size()), context.local_rank());
  const auto start = std::chrono::steady_clock::now();
  while (optimizer.steps < options.epochs) {
    if (options.async) {
      sum_by_layers(context, model, mine, batch, buffer);
    } else if (gpu) {
      sum_on_gpu(context, model, mine, batch, *gpu, buffer);
    } else {
      buffer[weights] = model.squared_error(mine.x, mine.y, buffer.head(weights));
      buffer /= batch;
      if (!options.ensemble) context.allreduce(buffer, ddl::Op::sum);
    }

    const double loss = buffer[weights];
    {
      const ddl::Range computes = context.range("optimizer");
      optimizer.step(model.parameters(), buffer.head(weights), learning_rate.at(optimizer.steps));
    }

    const std::int64_t epoch = optimizer.steps;
    const bool last = epoch == options.epochs;
    if (!std::isfinite(loss)) {
      throw std::runtime_error("the training diverged in epoch " + std::to_string(epoch) +
                               "; try a smaller --learning-rate or a longer --warmup-epochs");
    }
    if (!speaks) continue;
    if (epoch == 1 || last || epoch % options.log_every == 0) print_loss(epoch, loss, options.verbose);
    // 6. All ranks hold the same state, so one checkpoint is enough.
    if (!options.checkpoint.empty() && (last || epoch % options.checkpoint_every == 0)) {
      save_checkpoint(options.checkpoint, model, optimizer);
    }
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

  // 7. Rank 0 shows the result. The fits of an ensemble are different ones, and have to be fetched from the ranks.
  const Eigen::RowVectorXd grid = even_grid(kGridPoints);
  const Eigen::VectorXd fit = model.predict(grid).transpose();
  Eigen::MatrixXd fits = fit;
  if (options.ensemble) {
    fits.resize(kGridPoints, size);  // a column for each rank, in rank order
    context.allgather(fit.data(), fits.data(), static_cast<std::size_t>(kGridPoints));
  }
  if (!speaks) return;

  std::vector<Part> parts;
  for (int r = 0; r < size; ++r) parts.push_back(part_of_rank(points, r, size));
  if (options.ensemble) {
    for (int r = 0; r < size; ++r) {
      const Part& part = parts[static_cast<std::size_t>(r)];
      print_error(("rank " + std::to_string(r)).c_str(), grid, fits.col(r), part.begin, part.end);
    }
  } else {
    print_error("fit", grid, fit, kLeft, kRight);
  }
  if (options.verbose) {
    const std::size_t bytes = static_cast<std::size_t>(weights) * sizeof(double);
    std::printf("weights %016" PRIx64 "\ntrained in %.2f s\n", fnv1a(model.parameters().data(), bytes),
                elapsed.count());
  }
  if (!options.plot.empty()) {
    const std::string subtitle = std::to_string(size) + (size == 1 ? " rank, " : " ranks, ") +
                                 std::to_string(points) + " points, " + std::to_string(options.epochs) +
                                 " epochs";
    const char* const title = options.ensemble ? "sin 2πx + sin 4πx, an ensemble: each rank fits its own part"
                              : size == 1 ? "sin 2πx + sin 4πx, fitted by one rank"
                                          : "sin 2πx + sin 4πx, fitted by all ranks together";
    write_file(options.plot, to_svg(fit_picture(parts, grid, fits, title, subtitle)));
    std::printf("wrote %s\n", options.plot.c_str());
  }
}

/// Ends the process while it is still a member of the job, so that its own exit is the job's first failure. A return
/// from main would first leave the job in order; a rank that waits for this one would notice, and might exit first.
[[noreturn]] void give_up(const std::exception& error, int exit_code) {
  std::fprintf(stderr, "function_approximation: %s\n", error.what());
  std::exit(exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // show every loss at once, also through a pipe
  const Options options = parse_options(argc, argv);
  std::optional<ddl::Context>
      context;  // outside of the block, so that it is still there when give_up() is called
  try {
    context.emplace();
    train(*context, options);
    return 0;
  } catch (const std::invalid_argument& error) {
    give_up(error, 2);
  } catch (const std::exception& error) {
    give_up(error, 1);
  }
}
