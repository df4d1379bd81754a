#include "stand_ins/collective_server.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "ddl/float8.hpp"
#include "ddl/half.hpp"
#include "runtime/support/reference.h"
#include "stand_ins/gpu.h"

namespace ddl::stand_ins {
namespace {

constexpr std::uint64_t kMagic = 0x5354414E442D494E;

/// The address by which other hosts reach this one, if it has one.
std::uint32_t own_ip() {
  std::uint32_t ip = htonl(INADDR_LOOPBACK);
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return ip;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0) continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof address);
    ip = address.sin_addr.s_addr;
    break;
  }
  ::freeifaddrs(all);
  return ip;
}

bool transfer(int fd, void* data, std::size_t bytes, bool sends) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t done = sends ? ::send(fd, at, bytes, MSG_NOSIGNAL) : ::recv(fd, at, bytes, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    bytes -= static_cast<std::size_t>(done);
  }
  return true;
}

void send_at_once(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// The combination of the ranks' inputs, in their order, rounded once at the end, with one NaN, as libddl promises it for memory of the
/// host. Real libraries promise less.
template <class T>
std::vector<std::byte> combined(const std::vector<const std::byte*>& inputs, std::size_t count, ddl_op op) {
  std::vector<std::byte> result(count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    conformance::Wide<T> value{};
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      T element;
      std::memcpy(&element, inputs[rank] + i * sizeof(T), sizeof(T));
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): of int8 the number is meant
      const auto wide = static_cast<conformance::Wide<T>>(element);
      value = rank == 0 ? wide : conformance::combine<T>(op, value, wide);
    }
    if constexpr (!conformance::kIsInteger<T>) {
      if (value != value) value = std::numeric_limits<conformance::Wide<T>>::quiet_NaN();
    }
    const T element = conformance::narrowed<T>(value);
    std::memcpy(result.data() + i * sizeof(T), &element, sizeof(T));
  }
  return result;
}

std::vector<std::byte> combined(int type, int op, const std::vector<const std::byte*>& inputs,
                                std::size_t count) {
  constexpr ddl_op kOps[] = {DDL_SUM, DDL_PRODUCT, DDL_MAX, DDL_MIN};
  if (op < 0 || op > 3) broken_rule("a reduction that libddl does not use");
  const ddl_op meant = kOps[op];
  switch (type) {
    case 0: return combined<std::int8_t>(inputs, count, meant);
    case 1: return combined<std::uint8_t>(inputs, count, meant);
    case 2: return combined<std::int32_t>(inputs, count, meant);
    case 3: return combined<std::uint32_t>(inputs, count, meant);
    case 4: return combined<std::int64_t>(inputs, count, meant);
    case 5: return combined<std::uint64_t>(inputs, count, meant);
    case 6: return combined<float16>(inputs, count, meant);
    case 7: return combined<float>(inputs, count, meant);
    case 8: return combined<double>(inputs, count, meant);
    case 9: return combined<bfloat16>(inputs, count, meant);
    case 10: return combined<float8_e4m3fn>(inputs, count, meant);
    case 11: return combined<float8_e5m2>(inputs, count, meant);
    // The numbers that the stand-in gives to FNUZ.
    case 12: return combined<float8_e4m3fnuz>(inputs, count, meant);
    case 13: return combined<float8_e5m2fnuz>(inputs, count, meant);
    default: broken_rule("a type that NCCL does not have");
  }
}

struct Arrived {
  Message message;
  std::vector<std::byte> payload;
};

/// The connection of a rank, and a thread that writes to it, so that nobody waits for a rank that does not read.
class Rank {
 public:
  explicit Rank(int fd) : fd_(fd), writer_([this] { write(); }) {}
  ~Rank() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    ::shutdown(fd_, SHUT_RDWR);
    writer_.join();
    ::close(fd_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  int fd() const { return fd_; }
  void answer(const Message& message, std::vector<std::byte> payload) {
    {
      const std::lock_guard lock(mutex_);
      answers_.push_back({message, std::move(payload)});
      answers_.back().message.bytes = answers_.back().payload.size();
    }
    changed_.notify_all();
  }

  std::deque<Arrived> collectives;              ///< that wait for other ranks
  std::map<int, std::deque<Arrived>> sends;     ///< by receiver
  std::map<int, std::deque<Arrived>> receives;  ///< by sender

 private:
  void write() {
    for (;;) {
      Arrived next;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ends_ || !answers_.empty(); });
        if (answers_.empty()) return;
        next = std::move(answers_.front());
        answers_.pop_front();
      }
      if (!send_message(fd_, next.message, next.payload.data())) return;
    }
  }

  int fd_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Arrived> answers_;
  bool ends_ = false;
  std::thread writer_;
};

/// One communicator.
class Server {
 public:
  explicit Server(int listener) : listener_(listener) {}

  void run() {
    while (ranks_.size() < size_) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      Arrived hello;
      if (fd < 0 || !receive_message(fd, hello.message, hello.payload)) continue;
      send_at_once(fd);
      size_ = hello.message.count;
      const std::string gpu(reinterpret_cast<const char*>(hello.payload.data()), hello.payload.size());
      if (!gpus_.emplace(gpu, true).second) broken_rule("two ranks of a communicator share a GPU");
      if (ranks_.count(hello.message.root) == 1) broken_rule("two ranks of a communicator have one number");
      ranks_[hello.message.root] = std::make_unique<Rank>(fd);
    }
    ::close(listener_);
    for (auto& [number, rank] : ranks_) rank->answer(Message{}, {});
    // The ranks' calls, as they come, until all have gone.
    for (std::size_t gone = 0; gone < size_;) {
      std::vector<pollfd> ready;
      std::vector<int> numbers;
      for (auto& [number, rank] : ranks_) {
        if (has_gone_[number]) continue;
        ready.push_back({rank->fd(), POLLIN, 0});
        numbers.push_back(number);
      }
      if (::poll(ready.data(), ready.size(), -1) < 0) continue;
      for (std::size_t i = 0; i < ready.size(); ++i) {
        if (ready[i].revents == 0) continue;
        Arrived call;
        if (receive_message(ready[i].fd, call.message, call.payload)) {
          take(numbers[i], std::move(call));
        } else {
          has_gone_[numbers[i]] = true;
          ++gone;
        }
      }
    }
  }

 private:
  void take(int number, Arrived call) {
    Rank& rank = *ranks_.at(number);
    const int other = call.message.root;
    if (call.message.kind == Message::Kind::kSend) {
      rank.sends[other].push_back(std::move(call));
      meet(number, other);
    } else if (call.message.kind == Message::Kind::kRecv) {
      rank.receives[other].push_back(std::move(call));
      meet(other, number);
    } else {
      rank.collectives.push_back(std::move(call));
      carry_out();
    }
  }

  void meet(int from, int to) {
    auto& sends = ranks_.at(from)->sends[to];
    auto& receives = ranks_.at(to)->receives[from];
    if (sends.empty() || receives.empty()) return;
    const Message &send = sends.front().message, &receive = receives.front().message;
    if (send.count != receive.count || send.type != receive.type) return;
    ranks_.at(to)->answer(receive, std::move(sends.front().payload));
    ranks_.at(from)->answer(send, {});
    sends.pop_front();
    receives.pop_front();
  }

  void carry_out() {
    std::vector<const Arrived*> calls;
    for (const auto& [number, rank] : ranks_) {
      if (rank->collectives.empty()) return;
      calls.push_back(&rank->collectives.front());
    }
    const Message& first = calls.front()->message;
    for (const Arrived* call : calls) {
      const Message& message = call->message;
      if (message.kind != first.kind || message.type != first.type || message.op != first.op ||
          message.root != first.root || message.count != first.count)
        return;
    }
    const std::size_t block = first.count * size_of_type(first.type);
    std::vector<const std::byte*> inputs;
    for (const Arrived* call : calls) inputs.push_back(call->payload.data());
    std::vector<std::byte> all;
    switch (first.kind) {
      case Message::Kind::kAllReduce:
      case Message::Kind::kReduce: all = combined(first.type, first.op, inputs, first.count); break;
      case Message::Kind::kReduceScatter:
        all = combined(first.type, first.op, inputs, first.count * calls.size());
        break;
      case Message::Kind::kBroadcast: all = calls[static_cast<std::size_t>(first.root)]->payload; break;
      default:
        for (const Arrived* call : calls) all.insert(all.end(), call->payload.begin(), call->payload.end());
    }
    std::vector<std::pair<int, Message>> answers;
    for (const auto& [number, rank] : ranks_) answers.emplace_back(number, rank->collectives.front().message);
    for (const auto& [number, message] : answers) {
      Rank& rank = *ranks_.at(number);
      rank.collectives.pop_front();
      std::vector<std::byte> own = all;
      if (message.kind == Message::Kind::kReduceScatter) {
        const auto begin =
            all.begin() + static_cast<std::ptrdiff_t>(block * static_cast<std::size_t>(number));
        own.assign(begin, begin + static_cast<std::ptrdiff_t>(block));
      }
      if (message.kind == Message::Kind::kReduce && number != message.root) own.clear();
      rank.answer(message, std::move(own));
    }
  }

  int listener_;
  std::size_t size_ = 1;
  std::map<std::string, bool> gpus_;
  std::map<int, std::unique_ptr<Rank>> ranks_;
  std::map<int, bool> has_gone_;
};

}  // namespace

std::size_t size_of_type(int type) {
  constexpr std::size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 1, 1};
  return type < 0 || type > 13 ? 0 : kSizes[type];
}

ServerAddress start_server() {
  ServerAddress address;
  address.magic = kMagic;
  address.ip = own_ip();
  std::random_device random;
  address.communicator = std::uint64_t{random()} << 32 | random();
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = address.ip;
  socklen_t length = sizeof own;
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0 || ::listen(fd, 64) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) != 0)
    broken_rule("no address for a communicator");
  address.port = own.sin_port;
  std::thread([fd] { Server(fd).run(); }).detach();
  return address;
}

int connect_to(const ServerAddress& address) {
  if (address.magic != kMagic) broken_rule("a communicator's id that ncclGetUniqueId() did not make");
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = address.ip;
  to.sin_port = address.port;
  send_at_once(fd);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return fd;
  ::close(fd);
  return -1;
}

bool send_message(int fd, const Message& message, const void* payload) {
  std::vector<std::byte> whole(sizeof message + message.bytes);
  std::memcpy(whole.data(), &message, sizeof message);
  if (message.bytes > 0) std::memcpy(whole.data() + sizeof message, payload, message.bytes);
  return transfer(fd, whole.data(), whole.size(), true);
}

bool receive_message(int fd, Message& message, std::vector<std::byte>& payload) {
  if (!transfer(fd, &message, sizeof message, false)) return false;
  payload.resize(message.bytes);
  return transfer(fd, payload.data(), payload.size(), false);
}

}  // namespace ddl::stand_ins
