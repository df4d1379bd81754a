// Element types by their numbers, and the operations that each has.
#pragma once

#include <stdexcept>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/support/reference.h"

namespace ddl::conformance {

/// These are tried with everything; the others, which use the same code, with less.
constexpr ddl_dtype kUsualTypes[] = {DDL_INT32, DDL_INT64, DDL_FLOAT32, DDL_FLOAT64};
constexpr ddl_dtype kOtherTypes[] = {
    DDL_UINT8,          DDL_INT8,     DDL_UINT16, DDL_INT16,         DDL_UINT32,      DDL_UINT64,
    DDL_FLOAT16,        DDL_BFLOAT16, DDL_BOOL,   DDL_FLOAT8_E4M3FN, DDL_FLOAT8_E5M2, DDL_FLOAT8_E4M3FNUZ,
    DDL_FLOAT8_E5M2FNUZ};
/// In the order of the numbers that version 0.1 had for them, from 0.
constexpr ddl_dtype kTypesOfVersion01[] = {DDL_INT32,   DDL_INT64,    DDL_FLOAT32, DDL_FLOAT64, DDL_UINT8,
                                           DDL_INT8,    DDL_UINT16,   DDL_INT16,   DDL_UINT32,  DDL_UINT64,
                                           DDL_FLOAT16, DDL_BFLOAT16, DDL_BOOL};
constexpr ddl_op kArithmetic[] = {DDL_SUM, DDL_AVERAGE, DDL_MIN, DDL_MAX, DDL_PRODUCT};

constexpr bool is_float(ddl_dtype dtype) {
  return (dtype >= DDL_FLOAT8_E4M3FN && dtype <= DDL_FLOAT8_E5M2FNUZ) || dtype == DDL_FLOAT16 ||
         dtype == DDL_BFLOAT16 || dtype == DDL_FLOAT32 || dtype == DDL_FLOAT64;
}

/// The operations that a type has beside kArithmetic; of bool, all.
inline std::vector<ddl_op> further_ops_of(ddl_dtype dtype) {
  if (is_float(dtype)) return {};
  std::vector<ddl_op> ops = {DDL_BIT_AND,     DDL_BIT_OR,     DDL_BIT_XOR,
                             DDL_LOGICAL_AND, DDL_LOGICAL_OR, DDL_LOGICAL_XOR};
  if (dtype == DDL_BOOL) ops.insert(ops.end(), {DDL_MIN, DDL_MAX});
  return ops;
}

/// Calls call.operator()<T>() for the type of that number.
template <class Call>
void with_type(ddl_dtype dtype, Call call) {
  switch (dtype) {
    case DDL_INT32: return call.template operator()<std::int32_t>();
    case DDL_INT64: return call.template operator()<std::int64_t>();
    case DDL_FLOAT32: return call.template operator()<float>();
    case DDL_FLOAT64: return call.template operator()<double>();
    case DDL_UINT8: return call.template operator()<std::uint8_t>();
    case DDL_INT8: return call.template operator()<std::int8_t>();
    case DDL_UINT16: return call.template operator()<std::uint16_t>();
    case DDL_INT16: return call.template operator()<std::int16_t>();
    case DDL_UINT32: return call.template operator()<std::uint32_t>();
    case DDL_UINT64: return call.template operator()<std::uint64_t>();
    case DDL_FLOAT16: return call.template operator()<float16>();
    case DDL_BFLOAT16: return call.template operator()<bfloat16>();
    case DDL_FLOAT8_E4M3FN: return call.template operator()<float8_e4m3fn>();
    case DDL_FLOAT8_E5M2: return call.template operator()<float8_e5m2>();
    case DDL_FLOAT8_E4M3FNUZ: return call.template operator()<float8_e4m3fnuz>();
    case DDL_FLOAT8_E5M2FNUZ: return call.template operator()<float8_e5m2fnuz>();
    case DDL_BOOL: return call.template operator()<Flag>();
    default: throw std::runtime_error("no such element type");
  }
}

}  // namespace ddl::conformance
