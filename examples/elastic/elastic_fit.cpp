// Fits a polynomial to a sine by gradient descent, on as many ranks as there are: kill one, and the others go on.
//
//   ddlrun --min-np 1 -H localhost:2,127.0.0.1:2 ./elastic_fit 200000
//
// With --state-dir DIR, 'kill' of ddlrun ends it after a commit, and the same command goes on from there.
// Arguments: the number of steps. The result does not depend on which ranks were there when.
#include <unistd.h>
#include <ddl/elastic.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kPoints = 4096;
constexpr std::size_t kTerms = 6;
constexpr double kRate = 0.2;
constexpr int kStepsToCommit = 100;

/// Of this rank's points: the derivatives of the loss by the coefficients, and the loss.
std::array<double, kTerms + 1> derivatives(const std::array<double, kTerms>& coefficients, int rank,
                                           int size) {
  std::array<double, kTerms + 1> sums{};
  for (int point = rank; point < kPoints; point += size) {
    const double x = 2.0 * point / kPoints - 1;
    double error = -std::sin(3 * x), power = 1;
    for (const double coefficient : coefficients) {
      error += coefficient * power;
      power *= x;
    }
    power = 1;
    for (std::size_t term = 0; term < kTerms; ++term) {
      sums[term] += 2 * error * power / kPoints;
      power *= x;
    }
    sums[kTerms] += error * error / kPoints;
  }
  return sums;
}

}  // namespace

int main(int argc, char** argv) {
  const long steps = argc > 1 ? std::atol(argv[1]) : 20000;
  std::array<double, kTerms> coefficients{};
  double loss = 0;
  long step = 0;

  ddl::elastic::State state;
  state.add(coefficients);
  state.add(loss);
  state.add(step);
  try {
    const bool is_done = ddl::elastic::run(state, [&](ddl::elastic::Generation& generation) {
      ddl::Context& context = generation.context();
      std::printf("generation %d: rank %d of %d (process %d) goes on from step %ld\n", generation.number(),
                  context.rank(), context.size(), static_cast<int>(::getpid()), step);
      std::fflush(stdout);
      while (step < steps) {
        auto sums = derivatives(coefficients, context.rank(), context.size());
        context.allreduce(sums);
        for (std::size_t term = 0; term < kTerms; ++term) coefficients[term] -= kRate * sums[term];
        loss = sums[kTerms];
        if (++step % kStepsToCommit == 0) generation.commit();
      }
      if (context.rank() == 0) std::printf("after %ld steps the loss is %.6f\n", step, loss);
    });
    return is_done ? 0 : ddl::elastic::kDrained;
  } catch (const ddl::Error& error) {
    std::fprintf(stderr, "elastic_fit: %s\n", error.what());
    return 1;
  }
}
