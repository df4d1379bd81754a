// Element types and operations of ddl.h: sizes and names.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"
#include "ddl/ddl.h"

namespace ddl::runtime {

/// Bytes of one element; 0 for a type that does not exist.
constexpr std::size_t element_size(ddl_dtype dtype) {
  switch (dtype) {
    case DDL_INT32:
    case DDL_FLOAT32: return 4;
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
    case DDL_INT32: return "int32";
    case DDL_INT64: return "int64";
    case DDL_FLOAT32: return "float32";
    case DDL_FLOAT64: return "float64";
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
    default: return nullptr;
  }
}

constexpr const char* op_name(ddl_op op) {
  const char* name = op_name_or_null(op);
  return name == nullptr ? "unknown operation" : name;
}

}  // namespace ddl::runtime
