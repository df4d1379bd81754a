// examples/libtorch: the errors against the exact functions, alone and on several ranks.
#include <cmath>
#include <string>

#include "examples/launch.h"
#include "support/catch.h"

using namespace ddl::test;
using Catch::Contains;

namespace {

/// What the example prints, which succeeds.
std::string output_of(const std::string& example, int size, const Arguments& arguments) {
  const Outcome outcome = run_example(example, size, arguments);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  return outcome.output;
}

double number_after(const std::string& text, const std::string& label) {
  INFO(text);
  const std::size_t at = text.find(label);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + label.size()));
}

// Doubles that are added up in groups of ranks differ in their last bits, and such differences grow with the steps. The
// programs print six decimals.
constexpr double kSame = 1e-5;

}  // namespace

TEST_CASE("libtorch approximates a function on any number of ranks alike") {
  const Arguments few = {"--epochs", "1000"};
  const std::string name = "torch_function_approximation", label = "ranks, data-parallel: largest error ";
  const double alone = number_after(output_of(name, 0, few), label);
  CHECK(alone < 0.15);
  // 64 points are not as many on each of 3 ranks.
  for (const int size : {2, 3})
    CHECK(std::abs(number_after(output_of(name, size, few), label) - alone) < kSame);
}

TEST_CASE("networks of libtorch approximate a function each on its rank's part") {
  const std::string output = output_of("torch_function_approximation", 2, {"--epochs", "1000", "--ensemble"});
  CHECK(number_after(output, "rank 0: on its part: largest error ") < 0.2);
  CHECK(number_after(output, "rank 1: on its part: largest error ") < 0.2);
  CHECK_THAT(output, Contains("2 ranks, ensemble: largest error "));
}

TEST_CASE("libtorch solves a differential equation on any number of ranks alike") {
  const Arguments few = {"--epochs", "1000"};
  const std::string label = "ranks, data-parallel: largest error ";
  const double alone = number_after(output_of("torch_pinn", 0, few), label);
  CHECK(alone < 0.01);
  for (const int size : {2, 3})
    CHECK(std::abs(number_after(output_of("torch_pinn", size, few + Arguments{"--points", "121"}), label) -
                   number_after(output_of("torch_pinn", 1, few + Arguments{"--points", "121"}), label)) <
          kSame);
}

TEST_CASE("networks of libtorch solve one equation together, or one each") {
  const std::string ensemble = output_of("torch_pinn", 2, {"--epochs", "1000", "--form", "ensemble"});
  CHECK(number_after(ensemble, "2 ranks, ensemble: largest error ") < 0.02);
  CHECK(number_after(ensemble, "mean spread ") > 0);
  const std::string problems = output_of("torch_pinn", 2, {"--epochs", "1000", "--form", "problems"});
  CHECK(number_after(problems, "rank 0: u = sin(1 pi x): largest error ") < 0.01);
  CHECK(number_after(problems, "rank 1: u = sin(2 pi x): largest error ") < 0.01);
}

TEST_CASE("options of the examples of libtorch that are not right end them") {
  CHECK(run_example("torch_pinn", 0, {"--form", "alone"}).exit_code != 0);
  const Outcome few = run_example("torch_function_approximation", 2, {"--points", "1"});
  CHECK(few.exit_code == 1);
  CHECK_THAT(few.output, Contains("--points has to be one for each rank at least"));
}
