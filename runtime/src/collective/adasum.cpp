// Compiled as the kernels are (CMakeLists.txt), but for the baseline alone: its loops are limited by memory.
#include "runtime/src/collective/adasum.h"

#include <string>

#include "base/error.h"

namespace ddl::runtime {
namespace {

/// sqrt(DBL_MIN). The product of two squares above it is a normal number.
constexpr double kLeastSquare = 0x1p-511;

template <class T>
AdasumDots dots_of(const T* a, const T* b, std::size_t count) {
  // Sums that do not depend on each other are added as vectors.
  constexpr std::size_t kLanes = 8;
  double aa[kLanes] = {}, bb[kLanes] = {}, ab[kLanes] = {};
  const std::size_t whole = count / kLanes * kLanes;
  for (std::size_t first = 0; first < whole; first += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double x = a[first + lane], y = b[first + lane];
      aa[lane] += x * x;
      bb[lane] += y * y;
      ab[lane] += x * y;
    }
  }
  AdasumDots dots;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    dots.aa += aa[lane];
    dots.bb += bb[lane];
    dots.ab += ab[lane];
  }
  for (std::size_t e = whole; e < count; ++e) {
    const double x = a[e], y = b[e];
    dots.aa += x * x;
    dots.bb += y * y;
    dots.ab += x * y;
  }
  return dots;
}

double factor_of(double square, double dot) {
  return square < kLeastSquare ? 1.0 : 1.0 - dot / (2.0 * square);
}

template <class T>
void combine(const AdasumDots& dots, T* __restrict a, const T* __restrict b, std::size_t count) {
  const double of_a = factor_of(dots.aa, dots.ab), of_b = factor_of(dots.bb, dots.ab);
  for (std::size_t e = 0; e < count; ++e) a[e] = static_cast<T>(of_a * a[e] + of_b * b[e]);
}

template <class T>
const T* elements(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}
template <class T>
T* elements(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}

}  // namespace

AdasumDots adasum_dots(ddl_dtype dtype, const std::byte* a, const std::byte* b, std::size_t count) {
  if (dtype == DDL_FLOAT32) return dots_of(elements<float>(a), elements<float>(b), count);
  DDL_CHECK(dtype == DDL_FLOAT64, std::to_string(dtype));
  return dots_of(elements<double>(a), elements<double>(b), count);
}

void adasum_combine(ddl_dtype dtype, const AdasumDots& dots, std::byte* a, const std::byte* b,
                    std::size_t count) {
  if (dtype == DDL_FLOAT32) return combine(dots, elements<float>(a), elements<float>(b), count);
  DDL_CHECK(dtype == DDL_FLOAT64, std::to_string(dtype));
  combine(dots, elements<double>(a), elements<double>(b), count);
}

std::vector<std::pair<int, int>> adasum_pairs(int ranks, int distance) {
  std::vector<std::pair<int, int>> pairs;
  for (int left = 0; left + distance < ranks; left += 2 * distance) pairs.emplace_back(left, left + distance);
  return pairs;
}

}  // namespace ddl::runtime
