// The names of the numbers that ddl.h has for element types, operations and statuses, for those who read records of
// calls without libddl. Programs are compiled with the numbers, so they do not change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ddl::contract {

struct DtypeName {
  std::uint32_t dtype;  ///< a ddl_dtype
  const char* name;
};
inline constexpr std::array kDtypeNames = {DtypeName{0x100, "int8"},
                                           DtypeName{0x110, "int16"},
                                           DtypeName{0x120, "int32"},
                                           DtypeName{0x130, "int64"},
                                           DtypeName{0x200, "uint8"},
                                           DtypeName{0x210, "uint16"},
                                           DtypeName{0x220, "uint32"},
                                           DtypeName{0x230, "uint64"},
                                           DtypeName{0x300, "float8_e4m3fn"},
                                           DtypeName{0x301, "float8_e5m2"},
                                           DtypeName{0x302, "float8_e4m3fnuz"},
                                           DtypeName{0x303, "float8_e5m2fnuz"},
                                           DtypeName{0x310, "float16"},
                                           DtypeName{0x311, "bfloat16"},
                                           DtypeName{0x320, "float32"},
                                           DtypeName{0x330, "float64"},
                                           DtypeName{0x400, "bool"}};

/// Index: a ddl_op.
inline constexpr std::array kOpNames = {"sum",         "average",     "min",         "max",
                                        "product",     "bitwise and", "bitwise or",  "bitwise xor",
                                        "logical and", "logical or",  "logical xor", "adasum"};

/// Index: a ddl_status.
inline constexpr std::array kStatusNames = {"ok",          "invalid argument", "mismatch", "busy",
                                            "timeout",     "peer lost",        "aborted",  "bootstrap",
                                            "unsupported", "system",           "internal", "interrupted"};

/// Static storage; nullptr for a type that does not exist.
constexpr const char* dtype_name_or_null(std::uint32_t dtype) {
  for (const DtypeName& known : kDtypeNames) {
    if (known.dtype == dtype) return known.name;
  }
  return nullptr;
}

/// The name with this index; nullptr if there is none.
template <std::size_t kCount>
constexpr const char* name_or_null(const std::array<const char*, kCount>& names, std::size_t index) {
  return index < kCount ? names[index] : nullptr;
}

}  // namespace ddl::contract
