// libddl for C++17: a header-only wrapper over ddl.h. Nothing of the C++ ABI crosses the library's boundary.
#ifndef DDL_DDL_HPP
#define DDL_DDL_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddl/call.hpp"
#include "ddl/ddl.h"
#include "ddl/error.hpp"
#include "ddl/float8.hpp"
#include "ddl/future.hpp"
#include "ddl/half.hpp"
#include "ddl/message.hpp"
#include "ddl/named.hpp"
#include "ddl/process_set.hpp"
#include "ddl/range.hpp"
#include "ddl/shared_buffer.hpp"

namespace ddl {

/// The result of Context::alltoallv(): all ranks' parts one after the other, and how many elements came from each.
template <class T>
struct Received {
  std::vector<T> values;
  std::vector<std::uint64_t> counts;
};

/// One membership in the job. Movable, not copyable; leaves the job when it is destroyed. Methods are named as in
/// ddl.h and described there; ranks, roots and sizes are those of the call's process set. A container is anything
/// contiguous with data() and size(): std::vector, std::array, std::span, SharedBuffer, Eigen's dense types. A
/// container that a call only reads may be const; one that it writes is a named object or a view. Threads: as in
/// ddl.h, one collective at a time in each process set. A rank that gives up calls abort(), or exits (std::exit,
/// std::abort) before its Context is destroyed: the other ranks are then notified of its death, and its exit code is
/// the job's. A Context that is destroyed by an exception leaves in order, and a rank that waits for it may then fail
/// and exit first.
///
/// The methods for named tensors, such as allreduce_async(), are in named.hpp.
class Context : public detail::NamedCalls<Context> {
 public:
  /// Joins the job; collective. timeout_seconds: deadline of every collective that names none, 0 = none.
  explicit Context(double timeout_seconds = 0.0) {
    ddl_init_options options = DDL_INIT_OPTIONS_INIT;
    options.timeout_seconds = timeout_seconds;
    detail::check(ddl_init(&options, &context_));
  }
  /// Joins an elastic job, for the first time or again; see ddl_elastic_join(). elastic.hpp has a loop around it.
  explicit Context(const ddl_elastic_join_options& options) {
    detail::check(ddl_elastic_join(&options, &context_));
  }
  ~Context() { ddl_finalize(context_); }
  Context(Context&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  Context& operator=(Context&& other) noexcept {
    std::swap(context_, other.context_);
    return *this;
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Ends the job with this exit code, and this process; text gives the reason to people. From any thread. Throws if
  /// it cannot.
  [[noreturn]] void abort(int code, const std::string& text) {
    const ddl_status status = ddl_abort(context_, code, text.c_str());
    throw Error(status, ddl_last_error());
  }

  /// Marks this moment, or an interval until the result is destroyed, in the timeline. name: anything from which a
  /// std::string can be made.
  void mark(const std::string& name) { detail::check(ddl_mark(context_, name.c_str())); }
  [[nodiscard]] Range range(const std::string& name) { return Range(context_, name.c_str()); }

  /// Collective: all ranks record a timeline, which rank 0 writes to its path when it is stopped. max_bytes: of the
  /// file; 0: 128 MiB.
  void start_timeline(const std::string& path, std::uint64_t max_bytes = 0) {
    detail::check(ddl_timeline_start(context_, path.c_str(), max_bytes));
  }
  void stop_timeline() { detail::check(ddl_timeline_stop(context_)); }

  /// Of an elastic job; see ddl.h.
  int elastic_generation() const { return ddl_elastic_generation(context_); }
  int elastic_check() {
    std::int32_t change = DDL_ELASTIC_STAYS;
    detail::check(ddl_elastic_check(context_, &change));
    return change;
  }
  void elastic_finished() { detail::check(ddl_elastic_finished(context_)); }

  int rank() const { return ddl_rank(context_); }
  int size() const { return ddl_size(context_); }
  int local_rank() const { return ddl_local_rank(context_); }
  int local_size() const { return ddl_local_size(context_); }
  int cross_rank() const { return ddl_cross_rank(context_); }
  int cross_size() const { return ddl_cross_size(context_); }
  const char* bootstrap_name() const { return ddl_bootstrap_name(context_); }
  const char* backend_name() const { return ddl_backend_name(context_); }
  [[deprecated("call backend_name()")]] const char* cpu_operations() const { return backend_name(); }

  /// In place: data[0..count) becomes the reduction over all ranks.
  template <class T>
  void allreduce(T* data, std::size_t count, Op op = Op::sum, const CallOptions& options = {}) {
    static_assert(detail::Written<T>::value);
    allreduce(static_cast<const T*>(data), data, count, op, options);
  }
  template <class T>
  void allreduce(const T* send, T* recv, std::size_t count, Op op = Op::sum,
                 const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(
        ddl_allreduce(context_, send, recv, count, detail::dtype_of<T>(), static_cast<ddl_op>(op), &c));
  }
  template <class Container, class = detail::SizeOf<Container>>
  void allreduce(Container&& values, Op op = Op::sum, const CallOptions& options = {}) {
    allreduce(detail::data_to_write<Container>(values), detail::count_of(values), op, options);
  }

  template <class T>
  void broadcast(T* data, std::size_t count, int root, const CallOptions& options = {}) {
    static_assert(detail::Written<T>::value);
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_broadcast(context_, data, count, detail::dtype_of<T>(), root, &c));
  }
  template <class Container, class = detail::SizeOf<Container>>
  void broadcast(Container&& values, int root, const CallOptions& options = {}) {
    broadcast(detail::data_to_write<Container>(values), detail::count_of(values), root, options);
  }

  /// To a rank that calls recv() from this one.
  template <class T>
  void send(const T* data, std::size_t count, int to, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_send(context_, data, count, detail::dtype_of<T>(), to, &c));
  }
  template <class Container, class = detail::SizeOf<const Container>>
  void send(const Container& values, int to, const CallOptions& options = {}) {
    send(detail::data_to_read(values), detail::count_of(values), to, options);
  }
  template <class T>
  void recv(T* data, std::size_t count, int from, const CallOptions& options = {}) {
    static_assert(detail::Written<T>::value);
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_recv(context_, data, count, detail::dtype_of<T>(), from, &c));
  }
  template <class Container, class = detail::SizeOf<Container>>
  void recv(Container&& values, int from, const CallOptions& options = {}) {
    recv(detail::data_to_write<Container>(values), detail::count_of(values), from, options);
  }

  /// Sends without waiting for the receiver; see "Messages" in ddl.h. The values must not be changed, nor destroyed, until
  /// the message is complete.
  template <class T>
  Message send_async(const T* data, std::size_t count, int to, int tag, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    Message message(to);
    detail::check(
        ddl_send_async(context_, data, count, detail::dtype_of<T>(), to, tag, &c, message.handle_.out()));
    return message;
  }
  template <class Container, class = detail::SizeOf<const Container>>
  Message send_async(const Container& values, int to, int tag, const CallOptions& options = {}) {
    return send_async(detail::data_to_read(values), detail::count_of(values), to, tag, options);
  }
  /// from: a rank or any_rank; tag: or any_tag.
  template <class T>
  Message recv_async(T* data, std::size_t count, int from, int tag, const CallOptions& options = {}) {
    static_assert(detail::Written<T>::value);
    const ddl_call_options c = detail::to_c(options);
    Message message(from);
    detail::check(ddl_recv_async(context_, data, count, detail::dtype_of<T>(), from, tag, &c,
                                 message.other_.get(), message.handle_.out()));
    return message;
  }
  template <class Container, class = detail::SizeOf<Container>>
  Message recv_async(Container&& values, int from, int tag, const CallOptions& options = {}) {
    return recv_async(detail::data_to_write<Container>(values), detail::count_of(values), from, tag, options);
  }

  /// In place on root: data[0..count) becomes the reduction there and is unchanged elsewhere.
  template <class T>
  void reduce(T* data, std::size_t count, int root, Op op = Op::sum, const CallOptions& options = {}) {
    static_assert(detail::Written<T>::value);
    reduce(static_cast<const T*>(data), data, count, root, op, options);
  }
  /// recv is used on root alone and may be null elsewhere.
  template <class T>
  void reduce(const T* send, T* recv, std::size_t count, int root, Op op = Op::sum,
              const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(
        ddl_reduce(context_, send, recv, count, detail::dtype_of<T>(), static_cast<ddl_op>(op), root, &c));
  }
  template <class Container, class = detail::SizeOf<Container>>
  void reduce(Container&& values, int root, Op op = Op::sum, const CallOptions& options = {}) {
    reduce(detail::data_to_write<Container>(values), detail::count_of(values), root, op, options);
  }

  /// counts: an entry per rank; send holds their sum, recv this rank's.
  template <class T>
  void reduce_scatter(const T* send, T* recv, const std::uint64_t* counts, Op op = Op::sum,
                      const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(
        ddl_reduce_scatter(context_, send, recv, counts, detail::dtype_of<T>(), static_cast<ddl_op>(op), &c));
  }
  /// Returns this rank's part.
  template <class Container, class T = detail::ElementOf<const Container>,
            class = detail::SizeOf<const Container>>
  std::vector<T> reduce_scatter(const Container& send, const std::vector<std::uint64_t>& counts,
                                Op op = Op::sum, const CallOptions& options = {}) {
    detail::require(detail::count_of(send) == detail::sum_of(counts),
                    "reduce_scatter: send does not hold the sum of counts");
    std::vector<T> recv = detail::Returned<T>::of(
        own_count("reduce_scatter: counts does not have an entry per rank", counts, options));
    reduce_scatter(detail::data_to_read(send), recv.data(), counts.data(), op, options);
    return recv;
  }

  /// In place: data[0..count) becomes the combination over the ranks up to this one.
  template <class T>
  void scan(T* data, std::size_t count, Op op = Op::sum, const CallOptions& options = {}) {
    static_assert(detail::Written<T>::value);
    scan(static_cast<const T*>(data), data, count, op, options);
  }
  template <class T>
  void scan(const T* send, T* recv, std::size_t count, Op op = Op::sum, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_scan(context_, send, recv, count, detail::dtype_of<T>(), static_cast<ddl_op>(op), &c));
  }
  template <class Container, class = detail::SizeOf<Container>>
  void scan(Container&& values, Op op = Op::sum, const CallOptions& options = {}) {
    scan(detail::data_to_write<Container>(values), detail::count_of(values), op, options);
  }

  /// recv holds as many times count elements as there are ranks, in rank order.
  template <class T>
  void allgather(const T* send, T* recv, std::size_t count, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_allgather(context_, send, recv, count, detail::dtype_of<T>(), &c));
  }
  /// Returns all ranks' parts, which are equally long.
  template <class Container, class T = detail::ElementOf<const Container>,
            class = detail::SizeOf<const Container>>
  std::vector<T> allgather(const Container& part, const CallOptions& options = {}) {
    std::vector<T> all = detail::Returned<T>::of(detail::count_of(part) * ranks_of(options));
    allgather(detail::data_to_read(part), all.data(), detail::count_of(part), options);
    return all;
  }

  /// counts: an entry per rank; recv holds their sum, send this rank's.
  template <class T>
  void allgatherv(const T* send, T* recv, const std::uint64_t* counts, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_allgatherv(context_, send, recv, counts, detail::dtype_of<T>(), &c));
  }
  /// Returns all ranks' parts. A rank that does not know the others' counts gathers them first.
  template <class Container, class T = detail::ElementOf<const Container>,
            class = detail::SizeOf<const Container>>
  std::vector<T> allgatherv(const Container& part, const std::vector<std::uint64_t>& counts,
                            const CallOptions& options = {}) {
    detail::require(detail::count_of(part) ==
                        own_count("allgatherv: counts does not have an entry per rank", counts, options),
                    "allgatherv: the part does not hold this rank's count");
    std::vector<T> all = detail::Returned<T>::of(static_cast<std::size_t>(detail::sum_of(counts)));
    allgatherv(detail::data_to_read(part), all.data(), counts.data(), options);
    return all;
  }

  /// recv holds as many times count elements as there are ranks; it is used on root alone and may be null elsewhere.
  template <class T>
  void gather(const T* send, T* recv, std::size_t count, int root, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_gather(context_, send, recv, count, detail::dtype_of<T>(), root, &c));
  }
  /// Returns all ranks' parts, which are equally long, on root and nothing elsewhere.
  template <class Container, class T = detail::ElementOf<const Container>,
            class = detail::SizeOf<const Container>>
  std::vector<T> gather(const Container& part, int root, const CallOptions& options = {}) {
    std::vector<T> all =
        detail::Returned<T>::of(rank_of(options) == root ? detail::count_of(part) * ranks_of(options) : 0);
    gather(detail::data_to_read(part), all.data(), detail::count_of(part), root, options);
    return all;
  }

  /// send holds as many times count elements as there are ranks; it is used on root alone and may be null elsewhere.
  template <class T>
  void scatter(const T* send, T* recv, std::size_t count, int root, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_scatter(context_, send, recv, count, detail::dtype_of<T>(), root, &c));
  }
  /// Returns this rank's count elements of all, which is used on root alone.
  template <class Container, class T = detail::ElementOf<const Container>,
            class = detail::SizeOf<const Container>>
  std::vector<T> scatter(const Container& all, std::size_t count, int root, const CallOptions& options = {}) {
    detail::require(rank_of(options) != root || detail::count_of(all) == count * ranks_of(options),
                    "scatter: root's container does not hold count elements for each rank");
    std::vector<T> part = detail::Returned<T>::of(count);
    scatter(detail::data_to_read(all), part.data(), count, root, options);
    return part;
  }

  /// In place: the r-th count elements of data go to rank r and are replaced by what comes from it.
  template <class T>
  void alltoall(T* data, std::size_t count, const CallOptions& options = {}) {
    static_assert(detail::Written<T>::value);
    alltoall(static_cast<const T*>(data), data, count, options);
  }
  template <class T>
  void alltoall(const T* send, T* recv, std::size_t count, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_alltoall(context_, send, recv, count, detail::dtype_of<T>(), &c));
  }
  /// In place, an equal share of values for each rank.
  template <class Container, class = detail::SizeOf<Container>>
  void alltoall(Container&& values, const CallOptions& options = {}) {
    const auto size = detail::count_of(values);
    const std::size_t ranks = ranks_of(options);
    detail::require(ranks != 0 && size % ranks == 0,
                    "alltoall: the elements cannot be shared out equally to the ranks");
    alltoall(detail::data_to_write<Container>(values), size / ranks, options);
  }

  /// Both arrays have an entry per rank; recv has room for recv_capacity elements.
  template <class T>
  void alltoallv(const T* send, const std::uint64_t* send_counts, T* recv, std::uint64_t recv_capacity,
                 std::uint64_t* recv_counts, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_alltoallv(context_, send, send_counts, recv, recv_capacity, recv_counts,
                                detail::dtype_of<T>(), &c));
  }
  /// Allocates the result. To know its size it first exchanges the counts, by an alltoall that is a call of its own.
  template <class Container, class T = detail::ElementOf<const Container>,
            class = detail::SizeOf<const Container>>
  Received<T> alltoallv(const Container& send, const std::vector<std::uint64_t>& send_counts,
                        const CallOptions& options = {}) {
    detail::require(send_counts.size() == ranks_of(options),
                    "alltoallv: send_counts does not have an entry per rank");
    detail::require(detail::count_of(send) == detail::sum_of(send_counts),
                    "alltoallv: send does not hold the sum of send_counts");
    Received<T> received{detail::Returned<T>::of(0), {}};
    received.counts.resize(send_counts.size());
    alltoall(send_counts.data(), received.counts.data(), 1, options);
    received.values.resize(static_cast<std::size_t>(detail::sum_of(received.counts)));
    alltoallv(detail::data_to_read(send), send_counts.data(), received.values.data(), received.values.size(),
              received.counts.data(), options);
    return received;
  }

  // The calls above that return a vector, for an argument that only converts to one, such as {} on a rank that gives
  // nothing (scatter<float>({}, count, root)).
  template <class T>
  std::vector<T> reduce_scatter(const std::vector<T>& values, const std::vector<std::uint64_t>& counts,
                                Op op = Op::sum, const CallOptions& options = {}) {
    return reduce_scatter<std::vector<T>, T>(values, counts, op, options);
  }
  template <class T>
  std::vector<T> allgather(const std::vector<T>& values, const CallOptions& options = {}) {
    return allgather<std::vector<T>, T>(values, options);
  }
  template <class T>
  std::vector<T> allgatherv(const std::vector<T>& values, const std::vector<std::uint64_t>& counts,
                            const CallOptions& options = {}) {
    return allgatherv<std::vector<T>, T>(values, counts, options);
  }
  template <class T>
  std::vector<T> gather(const std::vector<T>& values, int root, const CallOptions& options = {}) {
    return gather<std::vector<T>, T>(values, root, options);
  }
  template <class T>
  std::vector<T> scatter(const std::vector<T>& values, std::size_t count, int root,
                         const CallOptions& options = {}) {
    return scatter<std::vector<T>, T>(values, count, root, options);
  }
  template <class T>
  Received<T> alltoallv(const std::vector<T>& values, const std::vector<std::uint64_t>& send_counts,
                        const CallOptions& options = {}) {
    return alltoallv<std::vector<T>, T>(values, send_counts, options);
  }

  void barrier(const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_barrier(context_, &c));
  }

  /// Memory for buffers of large calls. Not collective.
  template <class T>
  SharedBuffer<T> alloc(std::size_t count) {
    return SharedBuffer<T>(context_, count);
  }

  /// A set of these ranks of the job, in this order. Collective over the whole job; the same list everywhere.
  ProcessSet process_set(const std::vector<std::int32_t>& ranks) {
    std::uint64_t id = DDL_NO_PROCESS_SET;
    detail::check(
        ddl_process_set_create(context_, ranks.data(), static_cast<std::int32_t>(ranks.size()), &id));
    return {context_, id};
  }
  /// The same, collective over these ranks alone, which find each other through the store, and wait this long for each
  /// other (0: DDL_START_TIMEOUT_SECONDS). name: the same on all, and of no other set that a member is in.
  ProcessSet process_set(const std::vector<std::int32_t>& ranks, const std::string& name, Store& store,
                         double timeout_seconds = 0.0) {
    std::uint64_t id = DDL_NO_PROCESS_SET;
    detail::StoreFunctions functions(store, timeout_seconds);
    const ddl_status status =
        ddl_process_set_create_by_members(context_, ranks.data(), static_cast<std::int32_t>(ranks.size()),
                                          name.c_str(), functions.functions(), &id);
    if (status != DDL_OK) functions.rethrow();
    detail::check(status);
    return {context_, id};
  }
  /// Sets of the ranks of parent (default: of the job) that give the same color, ordered by key; a negative color:
  /// none. Collective over parent.
  ProcessSet split(int color, int key = 0) { return split(color, key, DDL_WORLD); }
  ProcessSet split(int color, int key, const ProcessSet& parent) { return split(color, key, parent.id()); }
  ProcessSet split(int color, int key, std::uint64_t parent) {
    std::uint64_t id = DDL_NO_PROCESS_SET;
    detail::check(ddl_process_set_split(context_, parent, color, key, &id));
    return {context_, id};
  }

  /// For calls of ddl.h that this wrapper does not have; stays owned by the Context.
  ddl_context* get() const { return context_; }

 private:
  std::size_t ranks_of(const CallOptions& options) const {
    return detail::ranks_of(context_, options.process_set);
  }
  int rank_of(const CallOptions& options) const {
    return ddl_process_set_rank(context_, options.process_set);
  }
  std::size_t own_count(const char* sentence, const std::vector<std::uint64_t>& counts,
                        const CallOptions& options) const {
    return detail::own_count(sentence, counts, context_, options.process_set);
  }

  ddl_context* context_ = nullptr;
};

}  // namespace ddl

#endif  // DDL_DDL_HPP
