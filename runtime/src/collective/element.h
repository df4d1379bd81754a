// Element types and operations of ddl.h: sizes, names, and what goes with what.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"
#include "ddl/ddl.h"

namespace ddl::runtime {

/// Bytes of one element; 0 for a type that does not exist.
constexpr std::size_t element_size(ddl_dtype dtype) {
  switch (dtype) {
    case DDL_UINT8:
    case DDL_INT8:
    case DDL_BOOL: return 1;
    case DDL_UINT16:
    case DDL_INT16:
    case DDL_FLOAT16:
    case DDL_BFLOAT16: return 2;
    case DDL_UINT32:
    case DDL_INT32:
    case DDL_FLOAT32: return 4;
    case DDL_UINT64:
    case DDL_INT64:
    case DDL_FLOAT64: return 8;
    default: return 0;
  }
}

/// The same for a type that has been checked: never 0.
inline std::size_t known_element_size(ddl_dtype dtype) {
  const std::size_t size = element_size(dtype);
  DDL_CHECK(size != 0, std::to_string(dtype));
  return size;
}

constexpr const char* dtype_name(ddl_dtype dtype) {
  switch (dtype) {
    case DDL_UINT8: return "uint8";
    case DDL_INT8: return "int8";
    case DDL_UINT16: return "uint16";
    case DDL_INT16: return "int16";
    case DDL_UINT32: return "uint32";
    case DDL_INT32: return "int32";
    case DDL_UINT64: return "uint64";
    case DDL_INT64: return "int64";
    case DDL_FLOAT16: return "float16";
    case DDL_BFLOAT16: return "bfloat16";
    case DDL_FLOAT32: return "float32";
    case DDL_FLOAT64: return "float64";
    case DDL_BOOL: return "bool";
    default: return "unknown type";
  }
}

/// nullptr for an operation that does not exist.
constexpr const char* op_name_or_null(ddl_op op) {
  switch (op) {
    case DDL_SUM: return "sum";
    case DDL_AVERAGE: return "average";
    case DDL_MIN: return "min";
    case DDL_MAX: return "max";
    case DDL_PRODUCT: return "product";
    case DDL_BIT_AND: return "bitwise and";
    case DDL_BIT_OR: return "bitwise or";
    case DDL_BIT_XOR: return "bitwise xor";
    case DDL_LOGICAL_AND: return "logical and";
    case DDL_LOGICAL_OR: return "logical or";
    case DDL_LOGICAL_XOR: return "logical xor";
    default: return nullptr;
  }
}

constexpr const char* op_name(ddl_op op) {
  const char* name = op_name_or_null(op);
  return name == nullptr ? "unknown operation" : name;
}

constexpr bool is_floating(ddl_dtype dtype) {
  return dtype == DDL_FLOAT16 || dtype == DDL_BFLOAT16 || dtype == DDL_FLOAT32 || dtype == DDL_FLOAT64;
}

/// Whether elements of this type can be combined so; both exist.
constexpr bool op_applies(ddl_op op, ddl_dtype dtype) {
  switch (op) {
    case DDL_SUM:
    case DDL_AVERAGE:
    case DDL_PRODUCT: return dtype != DDL_BOOL;
    case DDL_MIN:
    case DDL_MAX: return true;
    default: return !is_floating(dtype);
  }
}

/// The type in which what some ranks' elements have come to is kept until all ranks' are in: wide enough that only the
/// last step rounds, or cuts an average of integers.
constexpr ddl_dtype partial_dtype(ddl_dtype dtype, ddl_op op) {
  switch (dtype) {
    case DDL_FLOAT16:
    case DDL_BFLOAT16: return DDL_FLOAT32;
    case DDL_INT8:
    case DDL_INT16:
    case DDL_INT32: return op == DDL_AVERAGE ? DDL_INT64 : dtype;
    case DDL_UINT8:
    case DDL_UINT16:
    case DDL_UINT32: return op == DDL_AVERAGE ? DDL_UINT64 : dtype;
    default: return dtype;
  }
}

}  // namespace ddl::runtime
