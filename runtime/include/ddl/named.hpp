// The calls that submit named tensors. Part of ddl.hpp.
#ifndef DDL_NAMED_HPP
#define DDL_NAMED_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddl/call.hpp"
#include "ddl/ddl.h"
#include "ddl/error.hpp"
#include "ddl/future.hpp"
#include "ddl/process_set.hpp"

namespace ddl::detail {

/// The container of an entry of a range of (name, container) pairs.
template <class Range>
using ContainerIn = decltype(((*std::begin(std::declval<Range&>())).second));

/// Methods of Context for named tensors; each is described in ddl.h under the same name. A process set is given in
/// place of the options, as in ordered calls. May be called from any thread.
///
/// A call submits the tensor and returns; Future::get() returns the result or throws. Until then the program does
/// not change the elements that the call reads, and does not use those that it writes. They must outlive the Future, so
/// a container is a named object or a view, also if the call only reads it.
template <class Derived>
class NamedCalls {
 public:
  /// In place: data[0..count) becomes the reduction over all ranks.
  template <class T>
  Future<void> allreduce_async(const std::string& name, T* data, std::size_t count, Op op = Op::sum,
                               const AsyncOptions& options = {}) {
    static_assert(Written<T>::value);
    return allreduce_async(name, static_cast<const T*>(data), data, count, op, options);
  }
  template <class T>
  Future<void> allreduce_async(const std::string& name, const T* send, T* recv, std::size_t count,
                               Op op = Op::sum, const AsyncOptions& options = {}) {
    const ddl_async_options c = to_c(options);
    Future<void> future;
    check(ddl_allreduce_async(context(), name.c_str(), send, recv, count, dtype_of<T>(),
                              static_cast<ddl_op>(op), &c, future.handle_.out()));
    return future;
  }
  template <class Container, class = SizeOf<Container>>
  Future<void> allreduce_async(const std::string& name, Container&& values, Op op = Op::sum,
                               const AsyncOptions& options = {}) {
    return allreduce_async(name, data_to_write<Container>(values), count_of(values), op, options);
  }

  /// Submits several tensors, all or none, each in place. tensors: a range of pairs of a name and a container, or a
  /// reference to one; all containers have one type of elements. They are a group if options name one. Returns a
  /// Future for each, in the same order.
  template <class Range, class = decltype((*std::begin(std::declval<Range&>())).first),
            class = SizeOf<ContainerIn<Range>>>
  std::vector<Future<void>> allreduce_async(Range&& tensors, Op op = Op::sum,
                                            const AsyncOptions& options = {}) {
    using Container = ContainerIn<Range>;
    if constexpr (!std::is_reference_v<Range>) {
      static_assert(!std::is_const_v<std::remove_pointer_t<DataOf<ContainerIn<const Range>>>>,
                    "the results would vanish with this temporary range: give it a name");
    }
    std::vector<std::string> names;
    std::vector<ddl_tensor> all;
    for (auto&& tensor : tensors) {
      auto* const data = data_to_write<std::conditional_t<std::is_lvalue_reference_v<Container>, Container,
                                                          std::remove_reference_t<Container>>>(tensor.second);
      names.emplace_back(tensor.first);
      all.push_back({nullptr, data, data, count_of(tensor.second)});
    }
    for (std::size_t i = 0; i < all.size(); ++i) all[i].name = names[i].c_str();
    std::vector<Future<void>> futures(all.size());
    std::vector<ddl_handle*> handles(all.size());
    if (all.empty()) return futures;
    const ddl_async_options c = to_c(options, all.size());
    check(ddl_grouped_allreduce_async(context(), all.data(), all.size(), dtype_of<ElementOf<Container>>(),
                                      static_cast<ddl_op>(op), &c, handles.data()));
    for (std::size_t i = 0; i < all.size(); ++i) *futures[i].handle_.out() = handles[i];
    return futures;
  }

  template <class T>
  Future<void> broadcast_async(const std::string& name, T* data, std::size_t count, int root,
                               const AsyncOptions& options = {}) {
    static_assert(Written<T>::value);
    const ddl_async_options c = to_c(options);
    Future<void> future;
    check(ddl_broadcast_async(context(), name.c_str(), data, count, dtype_of<T>(), root, &c,
                              future.handle_.out()));
    return future;
  }
  template <class Container, class = SizeOf<Container>>
  Future<void> broadcast_async(const std::string& name, Container&& values, int root,
                               const AsyncOptions& options = {}) {
    return broadcast_async(name, data_to_write<Container>(values), count_of(values), root, options);
  }

  /// recv holds as many times count elements as there are ranks, in rank order.
  template <class T>
  Future<void> allgather_async(const std::string& name, const T* send, T* recv, std::size_t count,
                               const AsyncOptions& options = {}) {
    const ddl_async_options c = to_c(options);
    Future<void> future;
    check(ddl_allgather_async(context(), name.c_str(), send, recv, count, dtype_of<T>(), &c,
                              future.handle_.out()));
    return future;
  }

  /// count: this rank's; it may differ between ranks.
  template <class T>
  Future<ReceivedBuffer<T>> allgatherv_async(const std::string& name, const T* send, std::size_t count,
                                             const AsyncOptions& options = {}) {
    const ddl_async_options c = to_c(options);
    auto future = future_of<ReceivedBuffer<T>>(context(), ranks_of(context(), options.process_set));
    Pending<ReceivedBuffer<T>>& pending = *future.pending_;
    check(ddl_allgatherv_async(context(), name.c_str(), send, count, &pending.memory, pending.counts.data(),
                               dtype_of<T>(), &c, future.handle_.out()));
    return future;
  }
  template <class Container, class = SizeOf<const Container>>
  auto allgatherv_async(const std::string& name, Container&& part, const AsyncOptions& options = {}) {
    return allgatherv_async(name, ReadLater<Container>::data(part), count_of(part), options);
  }

  /// send_counts: an entry per rank; send holds their sum.
  template <class T>
  Future<ReceivedBuffer<T>> alltoallv_async(const std::string& name, const T* send,
                                            const std::uint64_t* send_counts,
                                            const AsyncOptions& options = {}) {
    const ddl_async_options c = to_c(options);
    auto future = future_of<ReceivedBuffer<T>>(context(), ranks_of(context(), options.process_set));
    Pending<ReceivedBuffer<T>>& pending = *future.pending_;
    check(ddl_alltoallv_async(context(), name.c_str(), send, send_counts, &pending.memory,
                              pending.counts.data(), dtype_of<T>(), &c, future.handle_.out()));
    return future;
  }
  template <class Container, class = SizeOf<const Container>>
  auto alltoallv_async(const std::string& name, Container&& send,
                       const std::vector<std::uint64_t>& send_counts, const AsyncOptions& options = {}) {
    const auto* const data = ReadLater<Container>::data(send);
    require(send_counts.size() == ranks_of(context(), options.process_set),
            "alltoallv_async: send_counts does not have an entry per rank");
    require(count_of(send) == sum_of(send_counts),
            "alltoallv_async: send does not hold the sum of send_counts");
    return alltoallv_async(name, data, send_counts.data(), options);
  }

  /// counts: an entry per rank; send holds their sum, recv this rank's. counts is copied.
  template <class T>
  Future<void> reduce_scatter_async(const std::string& name, const T* send, T* recv,
                                    const std::uint64_t* counts, Op op = Op::sum,
                                    const AsyncOptions& options = {}) {
    const ddl_async_options c = to_c(options);
    Future<void> future;
    check(ddl_reduce_scatter_async(context(), name.c_str(), send, recv, counts, dtype_of<T>(),
                                   static_cast<ddl_op>(op), &c, future.handle_.out()));
    return future;
  }
  /// The result is this rank's part.
  template <class Container, class = SizeOf<const Container>>
  auto reduce_scatter_async(const std::string& name, Container&& send,
                            const std::vector<std::uint64_t>& counts, Op op = Op::sum,
                            const AsyncOptions& options = {}) {
    const auto* const data = ReadLater<Container>::data(send);
    using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
    require(count_of(send) == sum_of(counts), "reduce_scatter_async: send does not hold the sum of counts");
    auto future = future_of<std::vector<T>>(
        Returned<T>::of(own_count("reduce_scatter_async: counts does not have an entry per rank", counts,
                                  context(), options.process_set)));
    T* const recv = future.pending_->values.data();
    future.handle_ = reduce_scatter_async(name, data, recv, counts.data(), op, options).handle_;
    return future;
  }

  /// This rank has no more data. Returns when all ranks of the set have joined: the highest of those that joined last.
  int join() { return join(DDL_WORLD); }
  int join(const ProcessSet& set) { return join(set.id()); }
  int join(std::uint64_t process_set) {
    std::int32_t last = -1;
    check(ddl_join(context(), process_set, &last));
    return last;
  }

  /// A training step has ended. Does not block.
  void step() { step(DDL_WORLD); }
  void step(const ProcessSet& set) { step(set.id()); }
  void step(std::uint64_t process_set) { check(ddl_step(context(), process_set)); }

 private:
  friend Derived;
  NamedCalls() = default;
  ddl_context* context() const { return static_cast<const Derived&>(*this).get(); }

  template <class Result, class... Arguments>
  static Future<Result> future_of(Arguments&&... arguments) {
    return Future<Result>(std::make_unique<Pending<Result>>(std::forward<Arguments>(arguments)...));
  }
};

}  // namespace ddl::detail

#endif  // DDL_NAMED_HPP
