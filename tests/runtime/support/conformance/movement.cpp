#include <numeric>

#include "runtime/support/conformance/fenced.h"
#include "runtime/support/conformance/trial.h"
#include "runtime/support/conformance/types.h"

namespace ddl::conformance {
namespace {

/// The elements that each rank sends to each other.
template <class T>
class Parts {
 public:
  Parts(const Communicator& comm, const Trial& trial) : comm_(comm), trial_(trial) {}

  std::uint64_t count(int from, int to) const {
    switch (trial_.collective) {
      case Collective::kAllgatherv: return trial_.counts[static_cast<std::size_t>(from)];
      case Collective::kAlltoallv: return trial_.counts[static_cast<std::size_t>(from * comm_.size + to)];
      default: return trial_.count;
    }
  }
  std::vector<T> values(int from, int to) const {
    int author = from;  // In an allgather every rank sends the same part to all.
    if (trial_.collective == Collective::kScatter) author = to;
    if (trial_.collective == Collective::kAlltoall || trial_.collective == Collective::kAlltoallv) {
      author = from * comm_.size + to;
    }
    return input_of<T>(author, count(from, to), trial_.seed);
  }
  std::vector<T> sent_by(int rank) const {
    switch (trial_.collective) {
      case Collective::kAllgather:
      case Collective::kAllgatherv:
      case Collective::kGather: return values(rank, rank);
      case Collective::kScatter:
        if (rank != trial_.root) return {};
        break;
      default: break;
    }
    std::vector<T> all;
    for (int to = 0; to < comm_.size; ++to) append(all, values(rank, to));
    return all;
  }
  std::vector<T> received_by(int rank) const {
    if (trial_.collective == Collective::kScatter) return values(trial_.root, rank);
    if (trial_.collective == Collective::kGather && rank != trial_.root) return {};
    std::vector<T> all;
    for (int from = 0; from < comm_.size; ++from) append(all, values(from, rank));
    return all;
  }

 private:
  static void append(std::vector<T>& all, const std::vector<T>& part) {
    all.insert(all.end(), part.begin(), part.end());
  }

  const Communicator& comm_;
  const Trial& trial_;
};

/// alltoallv's own arguments are taken from the trial; the numbers of what has come are checked here too.
template <class T>
ddl_status call(const Communicator& comm, const Trial& trial, const Parts<T>& parts, const T* send, T* recv,
                std::uint64_t capacity) {
  const ddl_call_options options = comm.options();
  switch (trial.collective) {
    case Collective::kAllgather:
      return ddl_allgather(comm.context, send, recv, trial.count, trial.dtype, &options);
    case Collective::kAllgatherv:
      return ddl_allgatherv(comm.context, send, recv, trial.counts.data(), trial.dtype, &options);
    case Collective::kGather:
      return ddl_gather(comm.context, send, recv, trial.count, trial.dtype, trial.root, &options);
    case Collective::kScatter:
      return ddl_scatter(comm.context, send, recv, trial.count, trial.dtype, trial.root, &options);
    case Collective::kAlltoall:
      return ddl_alltoall(comm.context, send, recv, trial.count, trial.dtype, &options);
    case Collective::kAlltoallv: {
      std::vector<std::uint64_t> came(static_cast<std::size_t>(comm.size), 99);
      const ddl_status status = ddl_alltoallv(comm.context, send, trial.counts.data() + comm.rank * comm.size,
                                              recv, capacity, came.data(), trial.dtype, &options);
      if (status != DDL_OK) return status;
      for (int from = 0; from < comm.size; ++from) {
        expect(came[static_cast<std::size_t>(from)] == parts.count(from, comm.rank),
               describe(comm, trial) + ": a number of received elements is wrong");
      }
      return status;
    }
    default: return DDL_ERROR_INTERNAL;
  }
}

template <class T>
void check_broadcast_of(const Communicator& comm, const Trial& trial) {
  const ddl_call_options options = comm.options();
  const std::string what = describe(comm, trial);
  Fenced<T> buffer(input_of<T>(comm.rank, trial.count, trial.seed), trial.shift, heap_of(comm, trial));
  expect_ok(ddl_broadcast(comm.context, buffer.data(), trial.count, trial.dtype, trial.root, &options), what);
  expect_bits(buffer, input_of<T>(trial.root, trial.count, trial.seed), what);
}

template <class T>
void check_in_place(const Communicator& comm, const Trial& trial, const Parts<T>& parts,
                    const std::vector<T>& sent, const std::vector<T>& wanted) {
  const std::string what = describe(comm, trial) + ", in place";
  // Where this rank's part lies in the buffer that holds all.
  std::uint64_t offset = 0;
  for (int from = 0; from < comm.rank; ++from) offset += parts.count(from, from);
  switch (trial.collective) {
    case Collective::kAlltoall: {
      Fenced<T> both(sent, trial.shift, heap_of(comm, trial));
      expect_ok(call(comm, trial, parts, both.data(), both.data(), 0), what);
      return expect_bits(both, wanted, what);
    }
    case Collective::kScatter: {
      Fenced<T> both(sent, trial.shift, heap_of(comm, trial));
      expect_ok(call(comm, trial, parts, both.data(), both.data() + offset, 0), what);
      return expect_bits(both, sent, what);
    }
    default: {
      Fenced<T> both(wanted.size(), trial.shift, heap_of(comm, trial));
      both.put(offset, sent);
      expect_ok(call(comm, trial, parts, both.data() + offset, both.data(), 0), what);
      return expect_bits(both, wanted, what);
    }
  }
}

template <class T>
void check_movement_of(const Communicator& comm, const Trial& trial) {
  if (trial.collective == Collective::kBroadcast) return check_broadcast_of<T>(comm, trial);
  const std::string what = describe(comm, trial);
  const Parts<T> parts(comm, trial);
  const std::vector<T> sent = parts.sent_by(comm.rank), wanted = parts.received_by(comm.rank);
  const bool is_root = comm.rank == trial.root;
  const bool gathers = trial.collective == Collective::kGather,
             scatters = trial.collective == Collective::kScatter;
  // Elsewhere than on root one of the two buffers is not used, and in place means nothing.
  const bool has_both = is_root || !(gathers || scatters);
  const bool apart_only = trial.collective == Collective::kAlltoallv;
  if (trial.buffers != Buffers::kInPlace || apart_only) {
    Fenced<T> send(sent, trial.shift, heap_of(comm, trial)),
        recv(wanted.size(), trial.shift, heap_of(comm, trial));
    const T* source = scatters && !is_root ? nullptr : send.data();
    T* target = gathers && !is_root ? nullptr : recv.data();
    expect_ok(call(comm, trial, parts, source, target, wanted.size()), what);
    expect_bits(recv, wanted, what);
    expect_bits(send, sent, what + ": changed its input");
  }
  if (trial.buffers == Buffers::kApart || apart_only) return;
  if (has_both) return check_in_place(comm, trial, parts, sent, wanted);
  // The part of a rank that is not root, while root works in place; the buffer that it does not need may be anything.
  Fenced<T> send(sent, trial.shift, heap_of(comm, trial)),
      recv(wanted.size(), trial.shift, heap_of(comm, trial));
  expect_ok(call(comm, trial, parts, send.data(), recv.data(), 0), what + ", in place on root");
  expect_bits(recv, wanted, what + ", in place on root");
}

}  // namespace

void check_movement(const Communicator& comm, const Trial& trial) {
  with_type(trial.dtype, [&]<class T>() { check_movement_of<T>(comm, trial); });
}

}  // namespace ddl::conformance
