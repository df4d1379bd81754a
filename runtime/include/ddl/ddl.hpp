// libddl for C++17: a header-only wrapper over ddl.h. Nothing of the C++ ABI crosses the library's boundary.
#ifndef DDL_DDL_HPP
#define DDL_DDL_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddl/ddl.h"
#include "ddl/half.hpp"

namespace ddl {

/// The one exception type: what() is the library's sentence, status() its code.
class Error : public std::runtime_error {
 public:
  Error(ddl_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  ddl_status status() const noexcept { return status_; }

 private:
  ddl_status status_;
};

enum class Op : ddl_op {
  sum = DDL_SUM,
  average = DDL_AVERAGE,
  min = DDL_MIN,
  max = DDL_MAX,
  product = DDL_PRODUCT,
  bit_and = DDL_BIT_AND,
  bit_or = DDL_BIT_OR,
  bit_xor = DDL_BIT_XOR,
  logical_and = DDL_LOGICAL_AND,
  logical_or = DDL_LOGICAL_OR,
  logical_xor = DDL_LOGICAL_XOR
};

/// How one collective is to run; see ddl_call_options.
struct CallOptions {
  std::uint64_t process_set = DDL_WORLD;
  double timeout_seconds = 0.0;
  void* stream = nullptr;
  double prescale = 1.0;
  double postscale = 1.0;
};

namespace detail {

inline void check(ddl_status status) {
  if (status != DDL_OK) throw Error(status, ddl_last_error());
}

template <class T>
constexpr ddl_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) {
    return DDL_FLOAT32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DDL_FLOAT64;
  } else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, ddl_float16>) {
    return DDL_FLOAT16;
  } else if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, ddl_bfloat16>) {
    return DDL_BFLOAT16;
  } else if constexpr (std::is_same_v<T, bool>) {
    static_assert(sizeof(bool) == 1, "libddl's bool is a byte");
    return DDL_BOOL;
  } else {
    static_assert(
        std::is_integral_v<T> && sizeof(T) <= 8,
        "libddl reduces float, double, ddl::float16, ddl::bfloat16, integers of 8 to 64 bits and bool");
    constexpr ddl_dtype kSigned[] = {DDL_INT8, DDL_INT16, DDL_INT32, DDL_INT64};
    constexpr ddl_dtype kUnsigned[] = {DDL_UINT8, DDL_UINT16, DDL_UINT32, DDL_UINT64};
    constexpr int kIndex = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[kIndex] : kUnsigned[kIndex];
  }
}

inline ddl_call_options to_c(const CallOptions& options) {
  ddl_call_options c = DDL_CALL_OPTIONS_INIT;
  c.process_set = options.process_set;
  c.timeout_seconds = options.timeout_seconds;
  c.stream = options.stream;
  c.prescale = options.prescale;
  c.postscale = options.postscale;
  return c;
}

/// Of containers whose size is part of a call: refused like the library's own arguments, before anything is called.
inline void require(bool condition, const char* sentence) {
  if (!condition) throw Error(DDL_ERROR_INVALID_ARGUMENT, sentence);
}

inline std::uint64_t sum_of(const std::vector<std::uint64_t>& counts) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum += count;
  return sum;
}

}  // namespace detail

/// A process set of the job, made by Context::process_set() or Context::split(). Movable, not copyable; its destructor
/// leaves the set, and must run before the Context's does. On ranks that are not members there is an object all the same,
/// whose is_member() is false.
///
/// It stands for options that name it: context.allreduce(values, ddl::Op::sum, set).
class ProcessSet {
 public:
  ProcessSet() = default;
  ~ProcessSet() { free(); }
  ProcessSet(ProcessSet&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), id_(std::exchange(other.id_, DDL_NO_PROCESS_SET)) {}
  ProcessSet& operator=(ProcessSet&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(id_, other.id_);
    return *this;
  }
  ProcessSet(const ProcessSet&) = delete;
  ProcessSet& operator=(const ProcessSet&) = delete;

  /// For CallOptions::process_set; DDL_NO_PROCESS_SET if this rank is not a member.
  std::uint64_t id() const noexcept { return id_; }
  bool is_member() const noexcept { return id_ != DDL_NO_PROCESS_SET; }
  /// This rank's rank in the set and the number of its ranks; -1 if this rank is not a member.
  int rank() const { return is_member() ? ddl_process_set_rank(context_, id_) : -1; }
  int size() const { return is_member() ? ddl_process_set_size(context_, id_) : -1; }
  /// The job's ranks of the set's ranks; empty if this rank is not a member.
  std::vector<std::int32_t> ranks() const {
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(is_member() ? size() : 0));
    if (is_member()) detail::check(ddl_process_set_ranks(context_, id_, ranks.data()));
    return ranks;
  }
  /// Leaves the set before the destructor does.
  void free() noexcept {
    if (context_ != nullptr) (void)ddl_process_set_free(context_, id_);
    context_ = nullptr;
    id_ = DDL_NO_PROCESS_SET;
  }

  CallOptions options() const {
    CallOptions options;
    options.process_set = id_;
    return options;
  }
  operator CallOptions() const {
    return options();
  }  // NOLINT(google-explicit-constructor): that is what it is for

 private:
  friend class Context;
  ProcessSet(ddl_context* context, std::uint64_t id) : context_(context), id_(id) {}

  ddl_context* context_ = nullptr;
  std::uint64_t id_ = DDL_NO_PROCESS_SET;
};

/// count elements in memory that all ranks of the host can reach, made by Context::alloc(); zero at first. Movable, not
/// copyable; must end before the Context does. Reduced and moved like any container, and faster where it is large.
template <class T>
class SharedBuffer {
  static_assert(std::is_trivially_copyable_v<T>, "shared memory holds plain values");

 public:
  SharedBuffer() = default;
  ~SharedBuffer() { (void)ddl_free(context_, data_); }
  SharedBuffer(SharedBuffer&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  SharedBuffer& operator=(SharedBuffer&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t at) { return data_[at]; }
  const T& operator[](std::size_t at) const { return data_[at]; }

 private:
  friend class Context;
  SharedBuffer(ddl_context* context, std::size_t count) : context_(context), size_(count) {
    detail::require(count <= SIZE_MAX / sizeof(T), "alloc: so many elements do not fit into memory");
    void* memory = nullptr;
    detail::check(ddl_alloc(context, count * sizeof(T), &memory));
    data_ = static_cast<T*>(memory);
  }

  ddl_context* context_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// What Context::alltoallv() brings: all ranks' parts one after the other, and how many elements came from each.
template <class T>
struct Received {
  std::vector<T> values;
  std::vector<std::uint64_t> counts;
};

/// One membership in the job. Movable, not copyable; leaves the job when it is destroyed.
/// Methods are named as in ddl.h and described there; ranks, roots and sizes are those of the call's process set.
/// Threads: as in ddl.h, one collective at a time in each process set.
/// A rank that gives up should exit (std::exit, std::abort) before its Context is destroyed: the others are told of its
/// death, and its exit code is the job's. A Context that an exception destroys leaves in order, and who waits for it may
/// then fail and exit first.
class Context {
 public:
  /// Joins the job; collective. timeout_seconds: deadline of every collective that names none, 0 = none.
  explicit Context(double timeout_seconds = 0.0) {
    ddl_init_options options = DDL_INIT_OPTIONS_INIT;
    options.timeout_seconds = timeout_seconds;
    detail::check(ddl_init(&options, &context_));
  }
  ~Context() { ddl_finalize(context_); }
  Context(Context&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  Context& operator=(Context&& other) noexcept {
    std::swap(context_, other.context_);
    return *this;
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int rank() const { return ddl_rank(context_); }
  int size() const { return ddl_size(context_); }
  int local_rank() const { return ddl_local_rank(context_); }
  int local_size() const { return ddl_local_size(context_); }
  int cross_rank() const { return ddl_cross_rank(context_); }
  int cross_size() const { return ddl_cross_size(context_); }
  const char* bootstrap_name() const { return ddl_bootstrap_name(context_); }

  /// In place: data[0..count) becomes the reduction over all ranks.
  template <class T>
  void allreduce(T* data, std::size_t count, Op op = Op::sum, const CallOptions& options = {}) {
    allreduce(static_cast<const T*>(data), data, count, op, options);
  }
  template <class T>
  void allreduce(const T* send, T* recv, std::size_t count, Op op = Op::sum,
                 const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(
        ddl_allreduce(context_, send, recv, count, detail::dtype_of<T>(), static_cast<ddl_op>(op), &c));
  }
  /// In place over anything contiguous that has data() and size(): std::vector, std::array, Eigen's dense types.
  template <class Container, class = decltype(std::declval<Container&>().data())>
  void allreduce(Container& values, Op op = Op::sum, const CallOptions& options = {}) {
    allreduce(values.data(), static_cast<std::size_t>(values.size()), op, options);
  }

  template <class T>
  void broadcast(T* data, std::size_t count, int root, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_broadcast(context_, data, count, detail::dtype_of<T>(), root, &c));
  }
  template <class Container, class = decltype(std::declval<Container&>().data())>
  void broadcast(Container& values, int root, const CallOptions& options = {}) {
    broadcast(values.data(), static_cast<std::size_t>(values.size()), root, options);
  }

  /// To a rank that calls recv() from this one.
  template <class T>
  void send(const T* data, std::size_t count, int to, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_send(context_, data, count, detail::dtype_of<T>(), to, &c));
  }
  template <class Container, class = decltype(std::declval<const Container&>().data())>
  void send(const Container& values, int to, const CallOptions& options = {}) {
    send(values.data(), static_cast<std::size_t>(values.size()), to, options);
  }
  template <class T>
  void recv(T* data, std::size_t count, int from, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_recv(context_, data, count, detail::dtype_of<T>(), from, &c));
  }
  template <class Container, class = decltype(std::declval<Container&>().data())>
  void recv(Container& values, int from, const CallOptions& options = {}) {
    recv(values.data(), static_cast<std::size_t>(values.size()), from, options);
  }

  /// In place on root: data[0..count) becomes the reduction there and stays as it is elsewhere.
  template <class T>
  void reduce(T* data, std::size_t count, int root, Op op = Op::sum, const CallOptions& options = {}) {
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
  template <class Container, class = decltype(std::declval<Container&>().data())>
  void reduce(Container& values, int root, Op op = Op::sum, const CallOptions& options = {}) {
    reduce(values.data(), static_cast<std::size_t>(values.size()), root, op, options);
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
  template <class T>
  std::vector<T> reduce_scatter(const std::vector<T>& send, const std::vector<std::uint64_t>& counts,
                                Op op = Op::sum, const CallOptions& options = {}) {
    detail::require(send.size() == detail::sum_of(counts),
                    "reduce_scatter: send does not hold the sum of counts");
    std::vector<T> recv(own_count("reduce_scatter: counts does not have an entry per rank", counts, options));
    reduce_scatter(send.data(), recv.data(), counts.data(), op, options);
    return recv;
  }

  /// In place: data[0..count) becomes the combination over the ranks up to this one.
  template <class T>
  void scan(T* data, std::size_t count, Op op = Op::sum, const CallOptions& options = {}) {
    scan(static_cast<const T*>(data), data, count, op, options);
  }
  template <class T>
  void scan(const T* send, T* recv, std::size_t count, Op op = Op::sum, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_scan(context_, send, recv, count, detail::dtype_of<T>(), static_cast<ddl_op>(op), &c));
  }
  template <class Container, class = decltype(std::declval<Container&>().data())>
  void scan(Container& values, Op op = Op::sum, const CallOptions& options = {}) {
    scan(values.data(), static_cast<std::size_t>(values.size()), op, options);
  }

  /// recv holds as many times count elements as there are ranks, in rank order.
  template <class T>
  void allgather(const T* send, T* recv, std::size_t count, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_allgather(context_, send, recv, count, detail::dtype_of<T>(), &c));
  }
  /// Returns all ranks' parts, which are equally long.
  template <class T>
  std::vector<T> allgather(const std::vector<T>& part, const CallOptions& options = {}) {
    std::vector<T> all(part.size() * ranks_of(options));
    allgather(part.data(), all.data(), part.size(), options);
    return all;
  }

  /// counts: an entry per rank; recv holds their sum, send this rank's.
  template <class T>
  void allgatherv(const T* send, T* recv, const std::uint64_t* counts, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_allgatherv(context_, send, recv, counts, detail::dtype_of<T>(), &c));
  }
  /// Returns all ranks' parts. A rank that does not know the others' counts gathers them first.
  template <class T>
  std::vector<T> allgatherv(const std::vector<T>& part, const std::vector<std::uint64_t>& counts,
                            const CallOptions& options = {}) {
    detail::require(
        part.size() == own_count("allgatherv: counts does not have an entry per rank", counts, options),
        "allgatherv: the part does not hold this rank's count");
    std::vector<T> all(static_cast<std::size_t>(detail::sum_of(counts)));
    allgatherv(part.data(), all.data(), counts.data(), options);
    return all;
  }

  /// recv holds as many times count elements as there are ranks; it is used on root alone and may be null elsewhere.
  template <class T>
  void gather(const T* send, T* recv, std::size_t count, int root, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_gather(context_, send, recv, count, detail::dtype_of<T>(), root, &c));
  }
  /// Returns all ranks' parts, which are equally long, on root and nothing elsewhere.
  template <class T>
  std::vector<T> gather(const std::vector<T>& part, int root, const CallOptions& options = {}) {
    std::vector<T> all(rank_of(options) == root ? part.size() * ranks_of(options) : 0);
    gather(part.data(), all.data(), part.size(), root, options);
    return all;
  }

  /// send holds as many times count elements as there are ranks; it is used on root alone and may be null elsewhere.
  template <class T>
  void scatter(const T* send, T* recv, std::size_t count, int root, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_scatter(context_, send, recv, count, detail::dtype_of<T>(), root, &c));
  }
  /// Returns this rank's count elements of all, which only root has to hold.
  template <class T>
  std::vector<T> scatter(const std::vector<T>& all, std::size_t count, int root,
                         const CallOptions& options = {}) {
    detail::require(rank_of(options) != root || all.size() == count * ranks_of(options),
                    "scatter: what root holds is not count elements for each rank");
    std::vector<T> part(count);
    scatter(all.data(), part.data(), count, root, options);
    return part;
  }

  /// In place: the r-th count elements of data go to rank r and are replaced by what comes from it.
  template <class T>
  void alltoall(T* data, std::size_t count, const CallOptions& options = {}) {
    alltoall(static_cast<const T*>(data), data, count, options);
  }
  template <class T>
  void alltoall(const T* send, T* recv, std::size_t count, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_alltoall(context_, send, recv, count, detail::dtype_of<T>(), &c));
  }
  /// In place, an equal share of values for each rank.
  template <class Container, class = decltype(std::declval<Container&>().data())>
  void alltoall(Container& values, const CallOptions& options = {}) {
    const auto size = static_cast<std::size_t>(values.size());
    const std::size_t ranks = ranks_of(options);
    detail::require(ranks != 0 && size % ranks == 0,
                    "alltoall: the elements cannot be shared out equally to the ranks");
    alltoall(values.data(), size / ranks, options);
  }

  /// Both arrays have an entry per rank; recv has room for recv_capacity elements.
  template <class T>
  void alltoallv(const T* send, const std::uint64_t* send_counts, T* recv, std::uint64_t recv_capacity,
                 std::uint64_t* recv_counts, const CallOptions& options = {}) {
    const ddl_call_options c = detail::to_c(options);
    detail::check(ddl_alltoallv(context_, send, send_counts, recv, recv_capacity, recv_counts,
                                detail::dtype_of<T>(), &c));
  }
  /// Makes room for what comes; to know how much that is, it exchanges the counts before (an alltoall, which is a call of
  /// its own).
  template <class T>
  Received<T> alltoallv(const std::vector<T>& send, const std::vector<std::uint64_t>& send_counts,
                        const CallOptions& options = {}) {
    detail::require(send_counts.size() == ranks_of(options),
                    "alltoallv: send_counts does not have an entry per rank");
    detail::require(send.size() == detail::sum_of(send_counts),
                    "alltoallv: send does not hold the sum of send_counts");
    Received<T> received;
    received.counts.resize(send_counts.size());
    alltoall(send_counts.data(), received.counts.data(), 1, options);
    received.values.resize(static_cast<std::size_t>(detail::sum_of(received.counts)));
    alltoallv(send.data(), send_counts.data(), received.values.data(), received.values.size(),
              received.counts.data(), options);
    return received;
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
  /// Sets of the ranks of parent (default: of the job) that give the same color, ordered by key; a negative color: none.
  /// Collective over parent.
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
    const std::int32_t size = ddl_process_set_size(context_, options.process_set);
    return size < 0 ? 0 : static_cast<std::size_t>(size);
  }
  int rank_of(const CallOptions& options) const {
    return ddl_process_set_rank(context_, options.process_set);
  }
  std::size_t own_count(const char* sentence, const std::vector<std::uint64_t>& counts,
                        const CallOptions& options) const {
    const int rank = rank_of(options);
    detail::require(rank >= 0, "this rank is not a member of the process set");
    detail::require(counts.size() == ranks_of(options), sentence);
    return static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]);
  }

  ddl_context* context_ = nullptr;
};

}  // namespace ddl

#endif  // DDL_DDL_HPP
