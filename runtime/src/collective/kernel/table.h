// The table of one instruction set: which loop serves which type and operation.
#pragma once

#include <cstdint>

#include "ddl/ddl.h"
#include "runtime/src/collective/kernel/kernels.h"
#include "runtime/src/collective/kernel/loops.h"

namespace ddl::runtime {
namespace {

/// Op on elements of T, done as in a type of the same size.
template <class Op, class T>
constexpr void fill_same(Kernels& table, ddl_dtype dtype, ddl_op op) {
  table.reduce[dtype][op] = reduce_same<Op, T>;
  table.partials[dtype][op] = reduce_same<Op, T>;
  table.add_input[dtype][op] = add_same<Op, T>;
}

template <class Op, std::size_t kSize>
constexpr void fill_bytes(Kernels& table, ddl_dtype dtype, ddl_op op) {
  table.reduce[dtype][op] = reduce_bytes<Op, kSize>;
  table.partials[dtype][op] = reduce_bytes<Op, kSize>;
  table.add_input[dtype][op] = add_bytes<Op, kSize>;
}

template <class T, class Unsigned>
constexpr void fill_integer(Kernels& table, ddl_dtype dtype) {
  fill_same<Sum, Unsigned>(table, dtype, DDL_SUM);
  fill_same<Product, Unsigned>(table, dtype, DDL_PRODUCT);
  fill_same<Min, T>(table, dtype, DDL_MIN);
  fill_same<Max, T>(table, dtype, DDL_MAX);
  fill_bytes<BitAnd, sizeof(T)>(table, dtype, DDL_BIT_AND);
  fill_bytes<BitOr, sizeof(T)>(table, dtype, DDL_BIT_OR);
  fill_bytes<BitXor, sizeof(T)>(table, dtype, DDL_BIT_XOR);
  fill_same<LogicalAnd, Unsigned>(table, dtype, DDL_LOGICAL_AND);
  fill_same<LogicalOr, Unsigned>(table, dtype, DDL_LOGICAL_OR);
  fill_same<LogicalXor, Unsigned>(table, dtype, DDL_LOGICAL_XOR);
  if constexpr (sizeof(T) == 8) {
    table.partials[dtype][DDL_AVERAGE] = reduce_same<Sum, Unsigned>;
    table.add_input[dtype][DDL_AVERAGE] = add_same<Sum, Unsigned>;
  } else {
    table.partials[dtype][DDL_AVERAGE] = sum_up<T>;
    table.add_input[dtype][DDL_AVERAGE] = add_to_sums<T>;
  }
  table.scale[dtype] = scale_integers<T>;
  table.finish[dtype] = scale_integers<T>;
  table.average[dtype] = average_integers<T>;
}

template <class T>
constexpr void fill_float(Kernels& table, ddl_dtype dtype) {
  fill_same<Sum, T>(table, dtype, DDL_SUM);
  fill_same<Product, T>(table, dtype, DDL_PRODUCT);
  fill_same<Min, T>(table, dtype, DDL_MIN);
  fill_same<Max, T>(table, dtype, DDL_MAX);
  table.partials[dtype][DDL_AVERAGE] = reduce_same<Sum, T>;
  table.add_input[dtype][DDL_AVERAGE] = add_same<Sum, T>;
  table.scale[dtype] = scale_floats<T>;
  table.finish[dtype] = scale_floats<T>;
  table.average[dtype] = average_floats<T>;
}

template <class Set, class Op, class T>
constexpr void fill_half_op(Kernels& table, ddl_dtype dtype, ddl_op op) {
  table.reduce[dtype][op] = reduce_half<Set, Op, T>;
  table.partials[dtype][op] = half_partials<Set, Op, T>;
  table.add_input[dtype][op] = add_half<Set, Op, T>;
}

template <class Set, class T>
constexpr void fill_half(Kernels& table, ddl_dtype dtype) {
  fill_half_op<Set, Sum, T>(table, dtype, DDL_SUM);
  fill_half_op<Set, Product, T>(table, dtype, DDL_PRODUCT);
  fill_half_op<Set, Min, T>(table, dtype, DDL_MIN);
  fill_half_op<Set, Max, T>(table, dtype, DDL_MAX);
  table.partials[dtype][DDL_AVERAGE] = half_partials<Set, Sum, T>;
  table.add_input[dtype][DDL_AVERAGE] = add_half<Set, Sum, T>;
  table.scale[dtype] = scale_half<Set, T>;
  table.finish[dtype] = finish_half<Set, T>;
  table.average[dtype] = average_half<Set, T>;
}

constexpr void fill_bool(Kernels& table) {
  fill_same<LogicalAnd, std::uint8_t>(table, DDL_BOOL, DDL_MIN);
  fill_same<LogicalAnd, std::uint8_t>(table, DDL_BOOL, DDL_BIT_AND);
  fill_same<LogicalAnd, std::uint8_t>(table, DDL_BOOL, DDL_LOGICAL_AND);
  fill_same<LogicalOr, std::uint8_t>(table, DDL_BOOL, DDL_MAX);
  fill_same<LogicalOr, std::uint8_t>(table, DDL_BOOL, DDL_BIT_OR);
  fill_same<LogicalOr, std::uint8_t>(table, DDL_BOOL, DDL_LOGICAL_OR);
  fill_same<LogicalXor, std::uint8_t>(table, DDL_BOOL, DDL_BIT_XOR);
  fill_same<LogicalXor, std::uint8_t>(table, DDL_BOOL, DDL_LOGICAL_XOR);
}

template <class Set>
constexpr Kernels make_kernels() {
  Kernels table{};
  fill_integer<std::uint8_t, std::uint8_t>(table, DDL_UINT8);
  fill_integer<std::int8_t, std::uint8_t>(table, DDL_INT8);
  fill_integer<std::uint16_t, std::uint16_t>(table, DDL_UINT16);
  fill_integer<std::int16_t, std::uint16_t>(table, DDL_INT16);
  fill_integer<std::uint32_t, std::uint32_t>(table, DDL_UINT32);
  fill_integer<std::int32_t, std::uint32_t>(table, DDL_INT32);
  fill_integer<std::uint64_t, std::uint64_t>(table, DDL_UINT64);
  fill_integer<std::int64_t, std::uint64_t>(table, DDL_INT64);
  fill_half<Set, Float16>(table, DDL_FLOAT16);
  fill_half<Set, Bfloat16>(table, DDL_BFLOAT16);
  fill_float<float>(table, DDL_FLOAT32);
  fill_float<double>(table, DDL_FLOAT64);
  fill_bool(table);
  return table;
}

}  // namespace
}  // namespace ddl::runtime
