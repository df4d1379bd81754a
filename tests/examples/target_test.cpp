// The function to be learnt, and the division of its interval among ranks.
#include "examples/function_approximation/target.h"

#include <cmath>
#include <stdexcept>

#include "support/catch.h"

using namespace fit;

TEST_CASE("the target has the values of its formula") {
  const Eigen::RowVectorXd y = target(Eigen::RowVector4d(0.0, 0.125, -0.125, 0.25));
  CHECK(y[0] == 0.0);
  CHECK(y[1] == Approx(std::sqrt(0.5) + 1.0));
  CHECK(y[2] == Approx(-std::sqrt(0.5) - 1.0));
  CHECK(y[3] == Approx(1.0));
}

TEST_CASE("a grid is even, symmetric, and reaches both ends") {
  for (const int count : {2, 3, 16, 61, 401}) {
    const Eigen::RowVectorXd x = even_grid(count);
    REQUIRE(x.size() == count);
    CHECK(x[0] == kLeft);
    CHECK(x[count - 1] == kRight);
    CHECK(x == -x.reverse());
    for (int i = 1; i < count; ++i) CHECK(x[i] - x[i - 1] == Approx(2.0 / (count - 1)));
  }
}

TEST_CASE("the parts of any number of ranks cover the grid, each point once") {
  for (const int points : {8, 9, 16, 61, 64}) {
    const Eigen::RowVectorXd grid = even_grid(points);
    for (int size = 1; size <= 8; ++size) {
      INFO(points << " points, " << size << " ranks");
      Eigen::Index next = 0;
      double border = kLeft;
      for (int rank = 0; rank < size; ++rank) {
        const Part part = part_of_rank(points, rank, size);
        REQUIRE(part.x.size() == part.y.size());
        REQUIRE(next + part.x.size() <= points);
        CHECK(part.x == grid.segment(next, part.x.size()));  // the same bits
        CHECK(part.y == target(part.x));
        CHECK((part.x.size() == points / size || part.x.size() == points / size + 1));
        CHECK(part.begin == border);
        CHECK(part.begin <= part.x.minCoeff());
        CHECK(part.x.maxCoeff() <= part.end);
        next += part.x.size();
        border = part.end;
      }
      CHECK(next == points);
      CHECK(border == kRight);
    }
  }
}

TEST_CASE("too few points are refused") {
  CHECK_THROWS_AS(part_of_rank(3, 0, 4), std::invalid_argument);
  CHECK_THROWS_AS(part_of_rank(1, 0, 1), std::invalid_argument);
  CHECK_NOTHROW(part_of_rank(4, 3, 4));
}
