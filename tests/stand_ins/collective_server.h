// Where the ranks of a stand-in communicator meet: a server in the process that made the communicator's id. Each rank
// sends it the inputs of its calls, and gets the results. Calls that do not fit together are never answered, as they hang
// on GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddl::stand_ins {

/// What a communicator's id says.
struct ServerAddress {
  std::uint64_t magic = 0;
  std::uint32_t ip = 0;  ///< in the network's order
  std::uint16_t port = 0;
  std::uint64_t communicator = 0;  ///< a port may be that of an earlier one
};

/// Plain data, in front of the input or of the result.
struct Message {
  enum class Kind : std::uint32_t {
    kHello,
    kAllReduce,
    kReduce,
    kBroadcast,
    kReduceScatter,
    kAllGather,
    kSend,
    kRecv
  };
  Kind kind = Kind::kHello;
  std::int32_t type = 0;
  std::int32_t op = 0;
  std::int32_t root = 0;     ///< the other rank of a send or receive; of a hello, the rank
  std::uint64_t count = 0;   ///< elements, as NCCL counts them; of a hello, the number of ranks
  std::uint64_t number = 0;  ///< of the call on its rank
  std::uint64_t bytes = 0;   ///< that follow
};

/// Begins to listen, in a thread that serves one communicator until all of its ranks have gone.
ServerAddress start_server();

/// A connection to a server. Throws nothing: -1 if there is none.
int connect_to(const ServerAddress& address);
/// False: the connection has ended.
bool send_message(int fd, const Message& message, const void* payload);
bool receive_message(int fd, Message& message, std::vector<std::byte>& payload);

/// Bytes of an element of NCCL's type; 0 for a type that is unknown.
std::size_t size_of_type(int type);

}  // namespace ddl::stand_ins
