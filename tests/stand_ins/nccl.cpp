// The stand-in for libnccl.so.2 and librccl.so.1, over the stand-in for the vendor's runtime that it is linked with. What
// ranks put on their streams meets in a server (stand_ins/collective_server.h). A broken rule ends the program; what would
// hang on GPUs hangs here, until the communicator is aborted.
//
// Environment
//   DDL_STAND_IN_NCCL_VERSION   what ncclGetVersion() says; 22809 if it is not set
//   DDL_STAND_IN_NCCL_ERROR     "init": joining fails; "call": after the tenth call every communicator has an error
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "stand_ins/collective_server.h"
#include "stand_ins/gpu.h"
#include "stand_ins/private_entries.h"

namespace {

using namespace ddl::
    stand_ins;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

// ncclResult_t
constexpr int kOk = 0, kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6,
              kInProgress = 7;

struct Id {
  char internal[128];
};
/// The beginning of ncclConfig_t.
struct Config {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};

/// A call of this rank: what it sends, and where the result goes.
struct Operation {
  Message message;
  const void* send = nullptr;
  std::size_t send_bytes = 0;
  void* recv = nullptr;
  std::size_t recv_bytes = 0;
};

struct Comm {
  int rank = 0, size = 0, gpu = -1;
  std::atomic<int> fd{-1};
  std::atomic<int> state{kInProgress};  ///< of joining; later the error of the communicator
  std::atomic<bool> is_aborted{false};
  std::thread joins;
  std::atomic<int> under_way{0};  ///< groups on streams
  std::mutex mutex;
  std::condition_variable changed;  ///< one of the above
  std::uint64_t calls = 0;
  // Work that NCCL does in the background: the calls are put on the stream when the program has asked so often.
  int questions_left = 0;
  std::function<void()> put;
  /// The ranks of this process that have the same communicator. NCCL connects with them when it first needs to, which
  /// lasts until they make the same call.
  std::vector<Comm*>* peers = nullptr;
  std::atomic<std::uint64_t> launched{0};  ///< groups
  bool connects = false;                   ///< in the group that is being launched
  std::set<Message::Kind> connected;       ///< kinds of calls
};

/// Changes what others wait for.
template <class Change>
void change(Comm& comm, Change how) {
  {
    const std::lock_guard lock(comm.mutex);
    how();
  }
  comm.changed.notify_all();
}
template <class Condition>
void wait_until(Comm& comm, Condition is_true) {
  std::unique_lock lock(comm.mutex);
  comm.changed.wait(lock, is_true);
}

/// Never freed, so that use after its end is noticed.
Comm* make_comm() {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::list<Comm>;
  const std::lock_guard lock(mutex);
  return &all.emplace_back();
}

bool has_error(const char* where) {
  const char* const set = std::getenv("DDL_STAND_IN_NCCL_ERROR");
  return set != nullptr && std::strcmp(set, where) == 0;
}

std::vector<Comm*>& peers_of(std::uint64_t communicator) {
  static auto& all = *new std::map<std::uint64_t, std::vector<Comm*>>;
  return all[communicator];
}
std::mutex& peers_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

/// Whether NCCL still waits for ranks with which it has to connect.
bool is_connecting(Comm& comm) {
  if (!comm.connects) return false;
  const std::lock_guard lock(peers_mutex());
  if (comm.peers->size() < static_cast<std::size_t>(comm.size)) return false;  // there are other processes
  for (const Comm* peer : *comm.peers) {
    if (peer->launched < comm.launched) return true;
  }
  comm.connects = false;
  return false;
}

/// Collectives occupy a GPU until the other ranks' parts have come.
std::mutex& occupied(int gpu) {
  static std::mutex* const all = new std::mutex[64];
  return all[gpu];
}

/// Of this thread, between ncclGroupStart() and ncclGroupEnd().
thread_local int group_depth = 0;
thread_local std::vector<Operation> group;
thread_local Comm* group_comm = nullptr;
thread_local void* group_stream = nullptr;

/// On a stream's thread.
void carry_out(Comm& comm, const std::vector<Operation>& operations) {
  const std::lock_guard lock(occupied(comm.gpu));
  const int fd = comm.fd;
  bool is_whole = !comm.is_aborted;
  for (const Operation& operation : operations) {
    if (!is_whole) break;
    Message message = operation.message;
    message.bytes = operation.send_bytes;
    const void* const data =
        operation.send_bytes == 0 ? nullptr : ddl_stand_in_reach(operation.send, operation.send_bytes);
    is_whole = send_message(fd, message, data);
  }
  for (std::size_t left = operations.size(); is_whole && left > 0; --left) {
    Message answer;
    std::vector<std::byte> payload;
    is_whole = receive_message(fd, answer, payload);
    if (!is_whole || payload.empty()) continue;
    const Operation& operation = operations.at(answer.number - operations.front().message.number);
    if (payload.size() != operation.recv_bytes) broken_rule("a result of another size");
    std::memcpy(ddl_stand_in_reach(operation.recv, payload.size()), payload.data(), payload.size());
  }
  // A rank that has gone is noticed by nobody, as between the GPUs of a host.
  if (!is_whole) wait_until(comm, [&] { return comm.is_aborted.load(); });
  change(comm, [&] { --comm.under_way; });
}

/// What every call on a communicator demands.
int check(const Comm* comm) {
  if (comm == nullptr) return kInvalidArgument;
  if (comm->is_aborted) broken_rule("a communicator is used after its abort");
  if (comm->state == kInProgress || comm->questions_left > 0)
    broken_rule("a communicator is used before the last call had succeeded");
  if (ddl_stand_in_current_gpu() != comm->gpu) broken_rule("the communicator's GPU is not current");
  return comm->state;
}

int end_group() {
  Comm* const comm = std::exchange(group_comm, nullptr);
  if (comm == nullptr) return kOk;
  std::vector<Operation> operations = std::exchange(group, {});
  for (Operation& operation : operations) operation.message.number = ++comm->calls;
  // Messages are not for all ranks, which need not launch anything then.
  const Message::Kind kind = operations.front().message.kind;
  if (kind != Message::Kind::kSend && kind != Message::Kind::kRecv) {
    ++comm->launched;
    comm->connects = comm->connected.insert(kind).second;
  }
  if (has_error("call") && comm->calls > 10) {
    comm->state = kRemoteError;
    return kOk;
  }
  comm->put = [comm, stream = group_stream, operations = std::move(operations)] {
    struct Work {
      Comm* comm;
      std::vector<Operation> operations;
    };
    ++comm->under_way;
    ddl_stand_in_put(
        stream, comm->gpu,
        [](void* given) {
          const std::unique_ptr<Work> work(static_cast<Work*>(given));
          carry_out(*work->comm, work->operations);
        },
        new Work{comm, operations});
  };
  thread_local std::minstd_rand random(std::random_device{}());
  comm->questions_left = static_cast<int>(random() % 3) + (comm->connects ? 1 : 0);
  if (comm->questions_left > 0) return kInProgress;
  std::exchange(comm->put, nullptr)();
  return kOk;
}

int add(Comm* comm, void* stream, const Operation& operation) {
  if (const int state = check(comm); state != kOk) return state;
  if (size_of_type(operation.message.type) == 0 || operation.message.root < 0 ||
      operation.message.root >= comm->size)
    return kInvalidArgument;
  for (const auto& [memory, bytes] :
       {std::pair<const void*, std::size_t>{operation.send, operation.send_bytes},
        {operation.recv, operation.recv_bytes}}) {
    if (bytes > 0 && ddl_stand_in_gpu_of(memory) != comm->gpu)
      broken_rule("a buffer is not in the memory of the communicator's GPU");
  }
  if (group_depth == 0) broken_rule("libddl puts every call into a group");
  if (group_comm != nullptr && (group_comm != comm || group_stream != stream))
    broken_rule("a group of several communicators or streams");
  group_comm = comm;
  group_stream = stream;
  group.push_back(operation);
  return kOk;
}

int library_version() { return static_cast<int>(number_in("DDL_STAND_IN_NCCL_VERSION", 22809)); }

/// The type in which the ranks' elements are combined: of 8-bit floats, those that the GPU has. -1: none.
int type_combined(int type) {
  if (type < 10) return type;
  const int formats = library_version() < 22400 ? 0 : ddl_stand_in_float8();
  return formats == 0 ? -1 : formats == 1 ? type : type + 2;
}

Message message_of(Message::Kind kind, std::size_t count, int type, int op, int root) {
  Message message;
  message.kind = kind;
  message.count = count;
  message.type = type;
  message.op = op;
  message.root = root;
  return message;
}

void leave(Comm& comm) {
  if (comm.joins.joinable()) comm.joins.join();
  wait_until(comm, [&] { return comm.under_way == 0; });
  if (comm.fd >= 0) ::close(comm.fd);
  comm.fd = -1;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = library_version();
  return kOk;
}
const char* ncclGetErrorString(int result) {
  switch (result) {
    case kOk: return "no error";
    case kSystemError: return "unhandled system error";
    case kInvalidArgument: return "invalid argument";
    case kInvalidUsage: return "invalid usage";
    case kRemoteError: return "remote process exited or there was a network error";
    default: return "unknown result code";
  }
}
const char* ncclGetLastError(Comm*) { return ""; }

int ncclGetUniqueId(Id* id) {
  const ServerAddress address = start_server();
  static_assert(sizeof address <= sizeof(Id));
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &address, sizeof address);
  return kOk;
}

int ncclCommInitRankConfig(Comm** made, int size, Id id, int rank, Config* config) {
  if (config->size < 24 || config->magic != 0xcafebeef || config->version < 21400) return kInvalidArgument;
  if (config->blocking != 0) broken_rule("a blocking communicator cannot be given up");
  if (rank < 0 || rank >= size) return kInvalidArgument;
  if (ddl_stand_in_current_gpu() < 0) broken_rule("a communicator is made without a GPU");
  if (has_error("init")) return kSystemError;
  Comm* const comm = make_comm();
  comm->rank = rank;
  comm->size = size;
  comm->gpu = ddl_stand_in_current_gpu();
  ServerAddress address;
  std::memcpy(static_cast<void*>(&address), &id, sizeof address);
  {
    const std::lock_guard lock(peers_mutex());
    comm->peers = &peers_of(address.communicator);
    comm->peers->push_back(comm);
  }
  comm->joins = std::thread([comm, address] {
    unsigned char uuid[16];
    ddl_stand_in_uuid(comm->gpu, uuid);
    Message hello = message_of(Message::Kind::kHello, static_cast<std::size_t>(comm->size), 0, 0, comm->rank);
    hello.bytes = sizeof uuid;
    std::vector<std::byte> nothing;
    const int fd = connect_to(address);
    change(*comm, [&] { comm->fd = fd; });
    const bool joined = fd >= 0 && send_message(fd, hello, uuid) && receive_message(fd, hello, nothing);
    change(*comm, [&] { comm->state = joined ? kOk : kSystemError; });
  });
  *made = comm;
  return kInProgress;
}

int ncclCommGetAsyncError(Comm* comm, int* error) {
  if (comm == nullptr) return kInvalidArgument;
  if (comm->is_aborted) broken_rule("a communicator is asked after its abort");
  if (comm->questions_left == 1 && is_connecting(*comm)) {
    *error = kInProgress;
    return kOk;
  }
  if (comm->questions_left > 0 && --comm->questions_left == 0) std::exchange(comm->put, nullptr)();
  *error = comm->questions_left > 0 ? kInProgress : comm->state.load();
  return kOk;
}
int ncclCommAbort(Comm* comm) {
  if (comm == nullptr) return kOk;
  if (comm->is_aborted) broken_rule("a communicator is aborted twice");
  change(*comm, [&] { comm->is_aborted = true; });
  wait_until(*comm, [&] { return comm->state != kInProgress || comm->fd >= 0; });
  (void)::shutdown(comm->fd, SHUT_RDWR);
  leave(*comm);
  return kOk;
}
int ncclCommFinalize(Comm* comm) {
  if (const int state = check(comm); state != kOk) return state;
  comm->questions_left = 1;
  comm->put = [comm] { wait_until(*comm, [&] { return comm->under_way == 0; }); };
  return kInProgress;
}
int ncclCommDestroy(Comm* comm) {
  if (const int state = check(comm); state != kOk) return state;
  comm->is_aborted = true;
  leave(*comm);
  return kOk;
}

int ncclGroupStart() {
  ++group_depth;
  return kOk;
}
int ncclGroupEnd() {
  if (group_depth == 0) return kInvalidUsage;
  return --group_depth > 0 ? kOk : end_group();
}

int ncclAllReduce(const void* send, void* recv, std::size_t count, int type, int op, Comm* comm,
                  void* stream) {
  const std::size_t bytes = count * size_of_type(type);
  return add(
      comm, stream,
      {message_of(Message::Kind::kAllReduce, count, type_combined(type), op, 0), send, bytes, recv, bytes});
}
int ncclReduce(const void* send, void* recv, std::size_t count, int type, int op, int root, Comm* comm,
               void* stream) {
  const std::size_t bytes = count * size_of_type(type);
  const std::size_t received = comm != nullptr && root == comm->rank ? bytes : 0;
  return add(comm, stream,
             {message_of(Message::Kind::kReduce, count, type_combined(type), op, root), send, bytes, recv,
              received});
}
int ncclBroadcast(const void* send, void* recv, std::size_t count, int type, int root, Comm* comm,
                  void* stream) {
  const std::size_t bytes = count * size_of_type(type);
  const std::size_t sent = comm != nullptr && root == comm->rank ? bytes : 0;
  return add(comm, stream,
             {message_of(Message::Kind::kBroadcast, count, type, 0, root), send, sent, recv, bytes});
}
int ncclReduceScatter(const void* send, void* recv, std::size_t count, int type, int op, Comm* comm,
                      void* stream) {
  const std::size_t bytes = count * size_of_type(type),
                    ranks = comm == nullptr ? 1 : static_cast<std::size_t>(comm->size);
  return add(comm, stream,
             {message_of(Message::Kind::kReduceScatter, count, type_combined(type), op, 0), send,
              bytes * ranks, recv, bytes});
}
int ncclAllGather(const void* send, void* recv, std::size_t count, int type, Comm* comm, void* stream) {
  const std::size_t bytes = count * size_of_type(type),
                    ranks = comm == nullptr ? 1 : static_cast<std::size_t>(comm->size);
  return add(comm, stream,
             {message_of(Message::Kind::kAllGather, count, type, 0, 0), send, bytes, recv, bytes * ranks});
}
int ncclSend(const void* send, std::size_t count, int type, int peer, Comm* comm, void* stream) {
  return add(
      comm, stream,
      {message_of(Message::Kind::kSend, count, type, 0, peer), send, count * size_of_type(type), nullptr, 0});
}
int ncclRecv(void* recv, std::size_t count, int type, int peer, Comm* comm, void* stream) {
  return add(
      comm, stream,
      {message_of(Message::Kind::kRecv, count, type, 0, peer), nullptr, 0, recv, count * size_of_type(type)});
}

}  // extern "C"
