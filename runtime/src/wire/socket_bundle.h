// The data sockets of one rank to one partner on another host.
//
// A slice that is longer than a fragment goes in fragments, each over the next socket with space in its buffer: a slow
// socket delays only the fragment that it has taken. Shorter slices go over the first socket alone, where the receiver
// expects them. The first socket is also an ordered stream: bytes without a frame arrive on it in the order in which
// they were posted, for a receiver that knows what comes next.
//
// On each socket, fragments are in the order in which their slices were posted.
#pragma once

#include <poll.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "runtime/src/wire/slice_queue.h"

namespace ddl::runtime {

class SocketBundle {
 public:
  /// Non-blocking sockets in the same order on both sides, at least one.
  explicit SocketBundle(std::vector<UniqueFd> sockets);
  SocketBundle(SocketBundle&&) = default;

  /// These functions are described in lane.h.
  void post_send(std::span<const std::byte> bytes, Pending& pending) { sends_.post_ordered(bytes, pending); }
  void post_receive(std::span<std::byte> bytes, Pending& pending);
  void post_slice_send(const SliceFrame& frame, std::span<const std::byte> bytes, Pending& pending) {
    sends_.post_slice(frame, bytes, sockets_.size() > 1, pending);
  }
  void post_slice(const SliceFrame& frame, std::span<std::byte> bytes, Pending& pending);
  void begin_chunk(std::uint64_t call, std::uint32_t chunk, std::size_t longest);

  /// Sends and receives as much as possible without waiting; true if any bytes moved.
  bool move();

  bool sends_any() const { return !sends_.is_empty(); }
  bool receives_any() const { return !ordered_.empty() || !awaited_.is_empty(); }
  /// The reason why the remaining operations cannot complete; null as long as they can.
  const std::string* broken_why() const;
  /// The partner has sent a frame that matches nothing that this rank awaits.
  bool is_out_of_step() const { return is_out_of_step_; }

  /// The descriptors and events that poll() is to wait for.
  void append_entries(std::vector<pollfd>& entries) const;
  void append_fds(std::vector<int>& fds) const;

 private:
  enum class State {
    kOpen,
    kEnded,   ///< the partner has closed it: it may have sent all that is needed, over this socket or others
    kBroken,  ///< data under way are lost
  };
  struct Socket {
    UniqueFd fd;
    State state = State::kOpen;
    std::string why;
    std::optional<SendQueue::Fragment> sending;  ///< a fragment that has been sent in part
    SliceFrame head;                             ///< the frame that is arriving, or has arrived and ...
    std::size_t head_bytes = 0;                  ///< ... so much of it; whole: its chunk has not been begun
    std::uint64_t slice = 0;                     ///< the fragment that is arriving, ...
    std::span<std::byte> to;                     ///< ... and where the rest of it goes

    bool has_complete_head() const { return head_bytes == sizeof head; }
    bool is_amid() const { return !to.empty() || sending || (head_bytes > 0 && !has_complete_head()); }
  };
  struct Ordered {
    std::span<std::byte> to;
    Pending* pending = nullptr;
  };

  bool is_first(const Socket& socket) const { return &socket == &sockets_.front(); }
  bool wants_frame(const Socket& socket) const;
  bool wants_bytes(const Socket& socket) const;
  bool has_to_send(const Socket& socket) const {
    return socket.sending.has_value() || sends_.has_for(is_first(socket));
  }
  bool move_sends();
  /// One system call; true if it sent anything. is_full: it sent less than there was.
  bool send_some(Socket& socket, bool& is_full);
  bool move_receives(Socket& socket);
  bool receive_ordered(Socket& socket);
  bool receive_fragment(Socket& socket);
  bool receive_frame(Socket& socket);
  /// Begins to receive the fragment whose frame has arrived, unless its chunk has not been begun.
  void match_frame(Socket& socket);
  void match_waiting_frames();
  /// The bytes that a receiving system call returned; 0 after an error or the end, which it records in socket.
  static std::size_t note_received(Socket& socket, ssize_t got);

  std::vector<Socket> sockets_;
  std::size_t turn_ = 0;  ///< index of the socket that may take the next fragment first
  SendQueue sends_;
  std::deque<Ordered> ordered_;
  AwaitedSlices awaited_;
  bool is_out_of_step_ = false;
};

}  // namespace ddl::runtime
