// What is trained: named tensors and their gradients, in memory of the program or of libddl's shared heap.
#ifndef DDL_TRAINING_PARAMETERS_HPP
#define DDL_TRAINING_PARAMETERS_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ddl/ddl.hpp"
#include "ddl/training/agreement.hpp"
#include "ddl/training/tensors.hpp"

namespace ddl::training {

/// A tensor that is trained. Its elements lie one behind the other.
struct Parameter {
  std::string name;          ///< the same on all ranks, and of no other parameter
  void* data = nullptr;      ///< the elements
  void* gradient = nullptr;  ///< as many elements of the same type; null: libddl gives the memory
  std::size_t count = 0;
  ddl_dtype dtype = DDL_FLOAT32;

  std::size_t bytes() const { return count * ddl_dtype_size(dtype); }
};

template <class T>
Parameter parameter(std::string name, T* data, std::size_t count, T* gradient = nullptr) {
  return {std::move(name), data, gradient, count, ddl::detail::dtype_of<T>()};
}

/// The parameters, for a checkpoint: all ranks have them alike.
inline std::vector<TensorView> views_of(const std::vector<Parameter>& parameters) {
  std::vector<TensorView> views;
  for (const Parameter& one : parameters) views.push_back({one.name, one.dtype, {one.count}, one.data});
  return views;
}

namespace detail {

/// Reads a piece of a tensor of the program. Throws if the source has the tensor with another number of elements, which
/// is of another model.
template <class Source>
void load_piece(Source& source, const Shard& piece, void* memory) {
  const std::uint64_t there = source.count(piece.name), here = piece.shape[0];
  if (there != here)
    throw Error(DDL_ERROR_INVALID_ARGUMENT, "\"" + piece.name + "\" has " + std::to_string(there) +
                                                " elements in the checkpoint and " + std::to_string(here) +
                                                " in the program");
  source.read(piece.name, piece.begin, piece.end, piece.dtype, memory);
}

}  // namespace detail

/// Reads the parameters from a source, such as a Checkpoint: it has count(name) and read(name, begin, end, dtype, memory).
template <class Source>
void load_parameters(Source& source, const std::vector<Parameter>& parameters) {
  for (const Parameter& one : parameters)
    detail::load_piece(source, {one.name, one.dtype, {one.count}, 0, one.count, one.data}, one.data);
}

namespace detail {

/// Of one rank: the name that it has twice, or a type that has no gradients.
inline std::string problem_of(const std::vector<Parameter>& parameters) {
  std::set<std::string> names;
  for (const Parameter& one : parameters) {
    if (!names.insert(one.name).second) return "two parameters are called \"" + one.name + "\"";
    if (one.dtype != DDL_FLOAT32 && one.dtype != DDL_FLOAT64 && one.dtype != DDL_FLOAT16 &&
        one.dtype != DDL_BFLOAT16)
      return "parameter \"" + one.name + "\" is not of float, double, float16 or bfloat16";
    if (one.data == nullptr && one.count > 0) return "parameter \"" + one.name + "\" has no data";
  }
  return {};
}

inline std::string described(const Parameter& one) {
  return "\"" + one.name + "\" of " + std::to_string(one.count) + " elements of " +
         std::to_string(8 * ddl_dtype_size(one.dtype)) + " bits (type " + std::to_string(one.dtype) + ")";
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace detail

/// Throws, on all ranks, if their parameters differ in number, name, order, type or size, and names the first that
/// differs. Collective: it costs a broadcast of the names, once.
inline void check_alike(Context& context, const std::vector<Parameter>& parameters,
                        const CallOptions& options = {}) {
  throw_on_all(context, detail::problem_of(parameters), DDL_ERROR_INVALID_ARGUMENT, options);
  std::string own;
  for (const Parameter& one : parameters) own += detail::described(one) + '\n';
  const std::string first = broadcast_bytes(context, own, 0, options);
  std::string problem;
  if (own != first) {
    const std::vector<std::string> here = detail::lines_of(own), there = detail::lines_of(first);
    std::size_t i = 0;
    while (i < here.size() && i < there.size() && here[i] == there[i]) ++i;
    problem = "parameter " + std::to_string(i) + " differs: rank " + std::to_string(context.rank()) +
              " has " + (i < here.size() ? here[i] : "none") + ", and the first rank " +
              (i < there.size() ? there[i] : "none");
  }
  throw_on_all(context, problem, DDL_ERROR_MISMATCH, options);
}

/// Gives all ranks the elements that root has. Collective; the parameters have to be alike.
inline void broadcast_parameters(Context& context, const std::vector<Parameter>& parameters, int root = 0,
                                 const AsyncOptions& options = {}) {
  const ddl_async_options c = ddl::detail::to_c(options);
  std::vector<ddl::detail::Handle> handles;
  for (const Parameter& one : parameters) {
    ddl::detail::Handle handle;
    ddl::detail::check(ddl_broadcast_async(context.get(), ("parameter." + one.name).c_str(), one.data,
                                           one.count, one.dtype, root, &c, handle.out()));
    handles.push_back(std::move(handle));
  }
  for (ddl::detail::Handle& handle : handles) handle.wait();
}

}  // namespace ddl::training

#endif  // DDL_TRAINING_PARAMETERS_HPP
