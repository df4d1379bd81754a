// The table of one instruction set: the loop for each type and operation.
#pragma once

#include <cstdint>

#include "ddl/ddl.h"
#include "runtime/src/collective/kernel/kernels.h"
#include "runtime/src/collective/kernel/loops.h"

namespace ddl::runtime {
namespace {

/// Op on elements of a type that is handled as T, which has the same size.
template <class Op, class T>
constexpr void fill_same(Kernels& table, int type, ddl_op op) {
  table.reduce[type][op] = reduce_same<Op, T>;
  table.partials[type][op] = reduce_same<Op, T>;
  table.add_input[type][op] = add_same<Op, T>;
}

template <class Op, std::size_t kSize>
constexpr void fill_bytes(Kernels& table, int type, ddl_op op) {
  table.reduce[type][op] = reduce_bytes<Op, kSize>;
  table.partials[type][op] = reduce_bytes<Op, kSize>;
  table.add_input[type][op] = add_bytes<Op, kSize>;
}

template <class T, class Unsigned>
constexpr void fill_integer(Kernels& table, int type) {
  fill_same<Sum, Unsigned>(table, type, DDL_SUM);
  fill_same<Product, Unsigned>(table, type, DDL_PRODUCT);
  fill_same<Min, T>(table, type, DDL_MIN);
  fill_same<Max, T>(table, type, DDL_MAX);
  fill_bytes<BitAnd, sizeof(T)>(table, type, DDL_BIT_AND);
  fill_bytes<BitOr, sizeof(T)>(table, type, DDL_BIT_OR);
  fill_bytes<BitXor, sizeof(T)>(table, type, DDL_BIT_XOR);
  fill_same<LogicalAnd, Unsigned>(table, type, DDL_LOGICAL_AND);
  fill_same<LogicalOr, Unsigned>(table, type, DDL_LOGICAL_OR);
  fill_same<LogicalXor, Unsigned>(table, type, DDL_LOGICAL_XOR);
  if constexpr (sizeof(T) == 8) {
    table.partials[type][DDL_AVERAGE] = reduce_same<Sum, Unsigned>;
    table.add_input[type][DDL_AVERAGE] = add_same<Sum, Unsigned>;
  } else {
    table.partials[type][DDL_AVERAGE] = sum_up<T>;
    table.add_input[type][DDL_AVERAGE] = add_to_sums<T>;
  }
  table.scale[type] = scale_integers<T>;
  table.finish[type] = scale_integers<T>;
  table.average[type] = average_integers<T>;
}

template <class T>
constexpr void fill_float(Kernels& table, int type) {
  fill_same<Sum, T>(table, type, DDL_SUM);
  fill_same<Product, T>(table, type, DDL_PRODUCT);
  fill_same<Min, T>(table, type, DDL_MIN);
  fill_same<Max, T>(table, type, DDL_MAX);
  table.partials[type][DDL_AVERAGE] = reduce_same<Sum, T>;
  table.add_input[type][DDL_AVERAGE] = add_same<Sum, T>;
  table.scale[type] = scale_floats<T>;
  table.finish[type] = scale_floats<T>;
  table.average[type] = average_floats<T>;
}

template <class Set, class Op, class T>
constexpr void fill_narrow_op(Kernels& table, int type, ddl_op op) {
  table.reduce[type][op] = reduce_narrow<Set, Op, T>;
  table.partials[type][op] = narrow_partials<Set, Op, T>;
  table.add_input[type][op] = add_narrow<Set, Op, T>;
}

template <class Set, class T>
constexpr void fill_narrow(Kernels& table, int type) {
  fill_narrow_op<Set, Sum, T>(table, type, DDL_SUM);
  fill_narrow_op<Set, Product, T>(table, type, DDL_PRODUCT);
  fill_narrow_op<Set, Min, T>(table, type, DDL_MIN);
  fill_narrow_op<Set, Max, T>(table, type, DDL_MAX);
  table.partials[type][DDL_AVERAGE] = narrow_partials<Set, Sum, T>;
  table.add_input[type][DDL_AVERAGE] = add_narrow<Set, Sum, T>;
  table.scale[type] = scale_narrow<Set, T>;
  table.finish[type] = finish_narrow<Set, T>;
  table.average[type] = average_narrow<Set, T>;
}

constexpr void fill_bool(Kernels& table) {
  constexpr int type = index_of(DDL_BOOL);
  fill_same<LogicalAnd, std::uint8_t>(table, type, DDL_MIN);
  fill_same<LogicalAnd, std::uint8_t>(table, type, DDL_BIT_AND);
  fill_same<LogicalAnd, std::uint8_t>(table, type, DDL_LOGICAL_AND);
  fill_same<LogicalOr, std::uint8_t>(table, type, DDL_MAX);
  fill_same<LogicalOr, std::uint8_t>(table, type, DDL_BIT_OR);
  fill_same<LogicalOr, std::uint8_t>(table, type, DDL_LOGICAL_OR);
  fill_same<LogicalXor, std::uint8_t>(table, type, DDL_BIT_XOR);
  fill_same<LogicalXor, std::uint8_t>(table, type, DDL_LOGICAL_XOR);
}

template <class Set>
constexpr Kernels make_kernels() {
  Kernels table{};
  fill_integer<std::uint8_t, std::uint8_t>(table, index_of(DDL_UINT8));
  fill_integer<std::int8_t, std::uint8_t>(table, index_of(DDL_INT8));
  fill_integer<std::uint16_t, std::uint16_t>(table, index_of(DDL_UINT16));
  fill_integer<std::int16_t, std::uint16_t>(table, index_of(DDL_INT16));
  fill_integer<std::uint32_t, std::uint32_t>(table, index_of(DDL_UINT32));
  fill_integer<std::int32_t, std::uint32_t>(table, index_of(DDL_INT32));
  fill_integer<std::uint64_t, std::uint64_t>(table, index_of(DDL_UINT64));
  fill_integer<std::int64_t, std::uint64_t>(table, index_of(DDL_INT64));
  fill_narrow<Set, Float16>(table, index_of(DDL_FLOAT16));
  fill_narrow<Set, Bfloat16>(table, index_of(DDL_BFLOAT16));
  fill_narrow<OneLane, Float8E4m3fn>(table, index_of(DDL_FLOAT8_E4M3FN));
  fill_narrow<OneLane, Float8E5m2>(table, index_of(DDL_FLOAT8_E5M2));
  fill_narrow<OneLane, Float8E4m3fnuz>(table, index_of(DDL_FLOAT8_E4M3FNUZ));
  fill_narrow<OneLane, Float8E5m2fnuz>(table, index_of(DDL_FLOAT8_E5M2FNUZ));
  fill_float<float>(table, index_of(DDL_FLOAT32));
  fill_float<double>(table, index_of(DDL_FLOAT64));
  fill_bool(table);
  table.stream = stream<Set>;
  return table;
}

}  // namespace
}  // namespace ddl::runtime
