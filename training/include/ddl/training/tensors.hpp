// Tensors in the memory of a program, as they are written to files.
#ifndef DDL_TRAINING_TENSORS_HPP
#define DDL_TRAINING_TENSORS_HPP

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ddl/call.hpp"

namespace ddl::training {

/// A tensor of the program that is to be written: row by row, in CPU memory, which outlives the call.
struct TensorView {
  std::string name;  ///< UTF-8
  ddl_dtype dtype = DDL_FLOAT32;
  std::vector<std::uint64_t> shape;  ///< {}: one element
  const void* data = nullptr;
};
template <class T>
TensorView tensor_view(std::string name, const T* data, std::vector<std::uint64_t> shape) {
  return {std::move(name), ddl::detail::dtype_of<T>(), std::move(shape), data};
}

/// A rank's piece of a tensor: elements [begin, end) of the whole one, counted row by row. In CPU memory, which outlives
/// the call.
struct Shard {
  std::string name;  ///< UTF-8
  ddl_dtype dtype = DDL_FLOAT32;
  std::vector<std::uint64_t> shape;  ///< of the whole tensor
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  const void* data = nullptr;  ///< of element begin
};
template <class T>
Shard shard(std::string name, const T* data, std::vector<std::uint64_t> shape, std::uint64_t begin,
            std::uint64_t end) {
  return {std::move(name), ddl::detail::dtype_of<T>(), std::move(shape), begin, end, data};
}

}  // namespace ddl::training

#endif  // DDL_TRAINING_TENSORS_HPP
