#include "runtime/support/plain_reduction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "ddl/float8.hpp"
#include "ddl/half.hpp"

namespace ddl::test {
namespace {

using runtime::Reduction;

template <class T>
T cut(T element, double factor) {
  if (factor == 1.0) return element;
  // Has every value of every integer type, so that the ends of the type need no care.
  const long double wide = std::trunc(static_cast<double>(element) * factor);
  if (wide >= static_cast<long double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (wide <= static_cast<long double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(wide);
}

template <class T>
T plain_integer(const Reduction& reduction, std::vector<T> elements) {
  for (T& element : elements) element = cut(element, reduction.prescale);
  using Sum = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  std::uint64_t sum = 0, product = 1;
  int truths = 0;
  T minimum = elements[0], maximum = elements[0], all = elements[0], any = 0, parity = 0;
  for (const T element : elements) {
    sum += static_cast<std::uint64_t>(element);
    product *= static_cast<std::uint64_t>(element);
    truths += element != 0 ? 1 : 0;
    minimum = std::min(minimum, element);
    maximum = std::max(maximum, element);
    all = static_cast<T>(all & element);
    any = static_cast<T>(any | element);
    parity = static_cast<T>(parity ^ element);
  }
  const int ranks = static_cast<int>(elements.size());
  const auto result = [&]() -> T {
    switch (reduction.op) {
      case DDL_SUM: return static_cast<T>(sum);
      case DDL_AVERAGE: return static_cast<T>(static_cast<Sum>(sum) / static_cast<Sum>(ranks));
      case DDL_MIN: return minimum;
      case DDL_MAX: return maximum;
      case DDL_PRODUCT: return static_cast<T>(product);
      case DDL_BIT_AND: return all;
      case DDL_BIT_OR: return any;
      case DDL_BIT_XOR: return parity;
      case DDL_LOGICAL_AND: return truths == ranks ? 1 : 0;
      case DDL_LOGICAL_OR: return truths > 0 ? 1 : 0;
      case DDL_LOGICAL_XOR: return truths % 2 == 1 ? 1 : 0;
      default: throw std::invalid_argument("op");
    }
  };
  return cut(result(), reduction.postscale);
}

/// Value is the type in which T is combined. NaNs are normalised last: intermediate NaNs do not matter.
template <class T, class Value>
T plain_float(const Reduction& reduction, const std::vector<T>& elements) {
  const auto scaled = [](Value value, double factor) {
    return factor == 1.0 ? value : value * static_cast<Value>(factor);
  };
  Value result = scaled(static_cast<Value>(elements[0]), reduction.prescale);
  for (std::size_t i = 1; i < elements.size(); ++i) {
    const Value element = scaled(static_cast<Value>(elements[i]), reduction.prescale);
    const bool has_nan = std::isnan(result) || std::isnan(element);
    if (reduction.op == DDL_SUM || reduction.op == DDL_AVERAGE) {
      result += element;
    } else if (reduction.op == DDL_PRODUCT) {
      result *= element;
    } else if (has_nan) {
      result = std::numeric_limits<Value>::quiet_NaN();
    } else if (reduction.op == DDL_MIN ? element <= result : element >= result) {
      result = element;
    }
  }
  if (reduction.op == DDL_AVERAGE) result /= static_cast<Value>(elements.size());
  result = scaled(result, reduction.postscale);
  return static_cast<T>(std::isnan(result) ? std::numeric_limits<Value>::quiet_NaN() : result);
}

std::uint8_t plain_bool(Reduction reduction, std::vector<std::uint8_t> elements) {
  for (std::uint8_t& element : elements) element = element != 0 ? 1 : 0;
  reduction.dtype = DDL_UINT8;
  return plain_integer<std::uint8_t>(reduction, elements);
}

template <class T, class Plain>
std::vector<std::byte> for_each_element(const std::vector<std::vector<std::byte>>& inputs, std::size_t count,
                                        Plain plain) {
  std::vector<std::byte> out(count * sizeof(T));
  std::vector<T> elements(inputs.size());
  for (std::size_t e = 0; e < count; ++e) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      std::memcpy(&elements[i], inputs[i].data() + e * sizeof(T), sizeof(T));
    const T result = plain(elements);
    std::memcpy(out.data() + e * sizeof(T), &result, sizeof(T));
  }
  return out;
}

}  // namespace

std::vector<std::byte> plain_reduction(const Reduction& reduction,
                                       const std::vector<std::vector<std::byte>>& inputs, std::size_t count) {
  const auto integers = [&]<class T>(T) {
    return for_each_element<T>(inputs, count,
                               [&](const auto& all) { return plain_integer<T>(reduction, all); });
  };
  const auto floats = [&]<class T, class Value>(T, Value) {
    return for_each_element<T>(inputs, count,
                               [&](const auto& all) { return plain_float<T, Value>(reduction, all); });
  };
  switch (reduction.dtype) {
    case DDL_UINT8: return integers(std::uint8_t{});
    case DDL_INT8: return integers(std::int8_t{});
    case DDL_UINT16: return integers(std::uint16_t{});
    case DDL_INT16: return integers(std::int16_t{});
    case DDL_UINT32: return integers(std::uint32_t{});
    case DDL_INT32: return integers(std::int32_t{});
    case DDL_UINT64: return integers(std::uint64_t{});
    case DDL_INT64: return integers(std::int64_t{});
    case DDL_FLOAT16: return floats(float16{}, 0.0f);
    case DDL_BFLOAT16: return floats(bfloat16{}, 0.0f);
    case DDL_FLOAT8_E4M3FN: return floats(float8_e4m3fn{}, 0.0f);
    case DDL_FLOAT8_E5M2: return floats(float8_e5m2{}, 0.0f);
    case DDL_FLOAT8_E4M3FNUZ: return floats(float8_e4m3fnuz{}, 0.0f);
    case DDL_FLOAT8_E5M2FNUZ: return floats(float8_e5m2fnuz{}, 0.0f);
    case DDL_FLOAT32: return floats(0.0f, 0.0f);
    case DDL_FLOAT64: return floats(0.0, 0.0);
    case DDL_BOOL:
      return for_each_element<std::uint8_t>(inputs, count,
                                            [&](const auto& all) { return plain_bool(reduction, all); });
    default: throw std::invalid_argument("dtype");
  }
}

}  // namespace ddl::test
