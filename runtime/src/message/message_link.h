// One connection of a pair of ranks: frames out and in, on a non-blocking socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "runtime/src/common/member.h"
#include "runtime/src/message/frame.h"
#include "runtime/src/message/message.h"

namespace ddl::runtime {

class MessageLink;

/// Who takes what arrives on a link. An error ends the link.
class FrameReceiver {
 public:
  virtual Status on_frame(MessageLink& link, const MessageFrame& frame,
                          std::span<const std::byte> payload) = 0;
  /// Where the bytes of a data frame go; as many as its length says.
  virtual Result<std::span<std::byte>> place_of(MessageLink& link, const MessageFrame& frame) = 0;
  /// They have arrived.
  virtual void on_data(MessageLink& link, const MessageFrame& frame) = 0;
  /// The whole buffer of a granted message has been written to the socket.
  virtual void on_sent(const MessagePtr& message) = 0;

 protected:
  ~FrameReceiver() = default;
};

/// Frames may be posted before there is a socket.
class MessageLink {
 public:
  /// A sender may have this number of bytes of eager messages, and of their frames, that have not found their receiver.
  static constexpr std::uint64_t kEagerCredit = std::uint64_t{1} << 20;

  MessageLink(int rank, bool is_own) : rank_(rank), is_own_(is_own) {}
  MessageLink(const MessageLink&) = delete;
  MessageLink& operator=(const MessageLink&) = delete;

  int rank() const { return rank_; }  ///< the other side's, in the job
  /// This rank has made the connection, and sends its messages over it.
  bool is_own() const { return is_own_; }
  bool is_connected() const { return static_cast<bool>(socket_); }
  int fd() const { return socket_.get(); }
  void connect(UniqueFd socket) { socket_ = std::move(socket); }
  void close() { socket_.reset(); }

  /// A frame, and its payload, which is copied.
  void post(const MessageFrame& frame, std::span<const std::byte> payload = {});
  /// The data of a granted message, in parts, each when nothing else is to be sent.
  void post_data(std::uint64_t number, MessagePtr message);
  /// Some granted message has not been sent to its end.
  bool has_data() const { return !data_.empty(); }
  bool has_output() const { return sent_ < output_.size() || amid_ || !data_.empty(); }
  /// Sends as much as possible without waiting.
  Status send(FrameReceiver& receiver);
  /// Receives as much as possible without waiting, up to a limit that gives others their turn. kClosed: the end.
  Status receive(FrameReceiver& receiver);

  // Of this rank's own connection.
  std::uint64_t credit = kEagerCredit;
  std::uint64_t last_number = 0;
  bool has_messages = false;                      ///< some have been posted
  std::map<std::uint64_t, MessagePtr> announced;  ///< by number, until they are granted, taken or refused
  // Of one that the other rank has made.
  std::uint64_t consumed = 0;                   ///< of eager messages, not given back yet
  std::map<std::uint64_t, MessagePtr> granted;  ///< receives, by number
  bool reads_memory = false;                    ///< of the sender's process, as far as is known
  pid_t pid = 0;                                ///< of that process, as this one sees it
  // Of both.
  Member peer;
  bool is_open = false;     ///< kOpen has arrived
  bool has_left = false;    ///< a farewell has arrived
  bool is_watched = false;  ///< for output
  bool is_shut = false;     ///< nothing can be sent any more

 private:
  struct Data {
    std::uint64_t number = 0;
    MessagePtr message;
    std::uint64_t offset = 0;
  };
  Status take_input(FrameReceiver& receiver);

  int rank_;
  bool is_own_;
  UniqueFd socket_;
  std::vector<std::byte> output_;  ///< frames and payloads
  std::size_t sent_ = 0;           ///< of output_
  std::deque<Data> data_;
  bool amid_ = false;          ///< a data frame has been sent in part
  MessageFrame data_frame_;    ///< that one, ...
  std::size_t data_sent_ = 0;  ///< ... and how much of it and what follows

  std::vector<std::byte> input_;
  std::size_t begin_ = 0, end_ = 0;  ///< what of input_ has not been taken
  MessageFrame arriving_;            ///< a data frame ...
  std::span<std::byte> to_;          ///< ... and where the rest of it goes
};

}  // namespace ddl::runtime
