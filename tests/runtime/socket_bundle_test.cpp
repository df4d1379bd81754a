// Several sockets to one partner: fragments of slices over any socket with space, and the handling of frames that do
// not match.
#include "runtime/src/wire/socket_bundle.h"

#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/deadline.h"
#include "net/tcp.h"
#include "support/catch.h"

using namespace ddl;
using namespace ddl::runtime;

namespace {

using Bytes = std::vector<std::byte>;

/// SocketPairs of connected sockets that do not block.
struct SocketPairs {
  std::vector<UniqueFd> near, far;

  explicit SocketPairs(std::size_t count, int type = SOCK_STREAM) {
    for (std::size_t i = 0; i < count; ++i) {
      int ends[2];
      REQUIRE(::socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
      near.emplace_back(ends[0]);
      far.emplace_back(ends[1]);
    }
  }
};

/// The same over TCP.
struct TcpPairs {
  std::vector<UniqueFd> near, far;

  explicit TcpPairs(std::size_t count) {
    const auto listener = net::listen_tcp(*net::SocketAddress::parse("127.0.0.1:0"), 16);
    REQUIRE(listener);
    for (std::size_t i = 0; i < count; ++i) {
      near.push_back(*net::begin_connect(*net::local_address(listener->get())));
      pollfd entry{listener->get(), POLLIN, 0};
      REQUIRE(::poll(&entry, 1, 10'000) == 1);
      far.push_back(*net::accept_tcp(listener->get()));
    }
  }
};

Bytes pattern(std::size_t size, unsigned salt = 1) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 7 + i / 251 + salt) & 0xFF);
  return bytes;
}

SliceFrame slice_of(std::uint32_t chunk, std::uint32_t turn = 0, std::uint64_t call = 1) {
  SliceFrame frame;
  frame.call = call;
  frame.chunk = chunk;
  frame.turn = turn;
  return frame;
}

SliceFrame fragment_of(SliceFrame slice, std::size_t bytes, std::size_t first, std::size_t fragment) {
  slice.bytes = static_cast<std::uint32_t>(bytes);
  slice.first = static_cast<std::uint32_t>(first);
  slice.fragment = static_cast<std::uint32_t>(fragment);
  return slice;
}

void write_all_to(const UniqueFd& socket, const void* data, std::size_t size) {
  REQUIRE(::send(socket.get(), data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size));
}

/// A fragment as the partner would send it.
void write_fragment(const UniqueFd& socket, const SliceFrame& frame, const Bytes& slice) {
  write_all_to(socket, &frame, sizeof frame);
  write_all_to(socket, slice.data() + frame.first, frame.fragment);
}

/// Moves both until done() or neither can; true if done.
template <class Done>
bool drive(SocketBundle& a, SocketBundle& b, Done done) {
  const Deadline deadline = Deadline::after_seconds(30);
  while (!done()) {
    if (a.move() || b.move()) continue;
    std::vector<pollfd> entries;
    a.append_entries(entries);
    b.append_entries(entries);
    if (::poll(entries.data(), entries.size(), deadline.poll_milliseconds()) <= 0) return done();
  }
  return true;
}

/// Reads fragments from sockets as a partner would, and stores them.
class Reader {
 public:
  Reader(std::size_t sockets, std::size_t slice_bytes)
      : buffers_(sockets), slice(slice_bytes), seen(slice_bytes) {}

  /// Reads what has arrived; true if there was anything.
  bool read(std::size_t index, const UniqueFd& socket) {
    Bytes block(std::size_t{1} << 20);
    const ssize_t got = ::recv(socket.get(), block.data(), block.size(), 0);
    if (got <= 0) return false;
    Bytes& buffer = buffers_[index];
    buffer.insert(buffer.end(), block.begin(), block.begin() + got);
    SliceFrame frame;
    while (buffer.size() >= sizeof frame) {
      std::memcpy(&frame, buffer.data(), sizeof frame);
      REQUIRE(frame.magic == SliceFrame::kMagic);
      REQUIRE(frame.bytes == slice.size());
      const std::size_t total = sizeof frame + frame.fragment;
      if (buffer.size() < total) break;
      REQUIRE(frame.first + std::size_t{frame.fragment} <= slice.size());
      const auto at = seen.begin() + frame.first;
      REQUIRE(std::find(at, at + frame.fragment, true) == at + frame.fragment);
      std::fill(at, at + frame.fragment, true);
      std::memcpy(slice.data() + frame.first, buffer.data() + sizeof frame, frame.fragment);
      complete += frame.fragment;
      buffer.erase(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(total));
    }
    return true;
  }

 private:
  std::vector<Bytes> buffers_;

 public:
  Bytes slice;
  std::vector<bool> seen;
  std::size_t complete = 0;  ///< bytes of fragments that have arrived completely
};

}  // namespace

TEST_CASE("fragments are equal except for the last, and none exceeds the limit") {
  for (const std::size_t bytes :
       {std::size_t{1}, kFragmentBytes - 1, kFragmentBytes, kFragmentBytes + 1, 2 * kFragmentBytes,
        2 * kFragmentBytes + 1, 7 * kFragmentBytes + 12345, std::size_t{100} << 20}) {
    CAPTURE(bytes);
    const std::size_t fragment = fragment_bytes_of(bytes);
    CHECK(fragment <= std::max(kFragmentBytes, std::size_t{1}));
    CHECK((bytes + fragment - 1) / fragment == (bytes + kFragmentBytes - 1) / kFragmentBytes);
    if (bytes <= kFragmentBytes) CHECK(fragment == bytes);
  }
}

TEST_CASE("slices arrive over any number of sockets, and both ways at once") {
  const std::size_t sockets = GENERATE(1, 2, 3, 4, 8);
  const bool over_tcp = GENERATE(false, true);
  CAPTURE(sockets, over_tcp);
  const auto run = [&](auto pairs) {
    SocketBundle a(std::move(pairs.near)), b(std::move(pairs.far));
    const std::vector<std::size_t> sizes{1,
                                         64,
                                         kFragmentBytes,
                                         kFragmentBytes + 1,
                                         3 * kFragmentBytes + 5,
                                         40 * kFragmentBytes,
                                         17,
                                         9 * kFragmentBytes};
    std::vector<Bytes> sent, to_b, to_a;
    Pending pending = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sent.push_back(pattern(sizes[i], static_cast<unsigned>(i)));
      to_b.emplace_back(sizes[i]);
      to_a.emplace_back(sizes[i]);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const SliceFrame frame = slice_of(static_cast<std::uint32_t>(i));
      a.post_slice_send(frame, sent[i], pending);
      b.post_slice_send(frame, sent[i], pending);
      // One awaits them in another order.
      a.post_slice(frame, to_a[i], pending);
      const std::size_t other = sizes.size() - 1 - i;
      b.post_slice(slice_of(static_cast<std::uint32_t>(other)), to_b[other], pending);
    }
    REQUIRE(drive(a, b, [&] { return pending == 0; }));
    CHECK(to_b == sent);
    CHECK(to_a == sent);
    CHECK_FALSE(a.sends_any());
    CHECK_FALSE(a.receives_any());
    CHECK_FALSE(b.receives_any());
    CHECK(a.broken_why() == nullptr);
  };
  if (over_tcp) {
    run(TcpPairs(sockets));
  } else {
    run(SocketPairs(sockets));
  }
}

TEST_CASE(
    "a slice of no more than a fragment goes over the first socket, in one message, with one frame before "
    "it") {
  const std::size_t sockets = GENERATE(1, 4);
  const std::size_t bytes = GENERATE(std::size_t{4}, std::size_t{4096}, kFragmentBytes);
  CAPTURE(sockets, bytes);
  // Sockets that keep what one system call sent together.
  SocketPairs pairs(sockets, SOCK_SEQPACKET);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes sent = pattern(bytes);
  Pending pending = 0;
  bundle.post_slice_send(slice_of(3), sent, pending);
  CHECK(bundle.move());
  CHECK(pending == 0);
  Bytes message(bytes + 1000);
  const ssize_t got = ::recv(pairs.far[0].get(), message.data(), message.size(), 0);
  REQUIRE(got == static_cast<ssize_t>(32 + bytes));
  SliceFrame frame;
  std::memcpy(&frame, message.data(), sizeof frame);
  CHECK(frame == fragment_of(slice_of(3), bytes, 0, bytes));
  CHECK(std::equal(sent.begin(), sent.end(), message.begin() + sizeof frame));
  for (std::size_t i = 0; i < sockets; ++i) {
    CHECK(::recv(pairs.far[i].get(), message.data(), message.size(), 0) == -1);
  }
}

TEST_CASE("several short slices go in one message") {
  SocketPairs pairs(2, SOCK_SEQPACKET);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes sent = pattern(100);
  Pending pending = 0;
  for (std::uint32_t chunk = 0; chunk < 3; ++chunk) bundle.post_slice_send(slice_of(chunk), sent, pending);
  CHECK(bundle.move());
  CHECK(pending == 0);
  Bytes message(1000);
  CHECK(::recv(pairs.far[0].get(), message.data(), message.size(), 0) == 3 * (32 + 100));
}

TEST_CASE("with one socket a slice is not cut") {
  SocketPairs pairs(1);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes sent = pattern(20 * kFragmentBytes);
  Pending pending = 0;
  bundle.post_slice_send(slice_of(0), sent, pending);
  bundle.move();
  SliceFrame frame;
  REQUIRE(::recv(pairs.far[0].get(), &frame, sizeof frame, 0) == sizeof frame);
  CHECK(frame == fragment_of(slice_of(0), sent.size(), 0, sent.size()));
}

TEST_CASE("fragments bypass a stalled socket, which delays only its own") {
  const std::size_t sockets = GENERATE(2, 4);
  const std::size_t stalled = GENERATE_COPY(range(std::size_t{0}, sockets));
  CAPTURE(sockets, stalled);
  SocketPairs pairs(sockets);
  // Less than a fragment.
  const int small = 4096;
  REQUIRE(::setsockopt(pairs.near[stalled].get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes sent = pattern(50 * kFragmentBytes);
  Reader reader(sockets, sent.size());
  Pending pending = 0;
  bundle.post_slice_send(slice_of(0), sent, pending);
  for (;;) {
    bool moved = bundle.move();
    for (std::size_t i = 0; i < sockets; ++i) {
      if (i != stalled) moved = reader.read(i, pairs.far[i]) || moved;
    }
    if (!moved) break;
  }
  CHECK(reader.complete == sent.size() - kFragmentBytes);
  CHECK(pending == 1);
  // Its buffer has room again.
  // NOLINTNEXTLINE(bugprone-infinite-loop): move() changes pending
  while (pending > 0) REQUIRE((reader.read(stalled, pairs.far[stalled]) || bundle.move()));
  while (reader.read(stalled, pairs.far[stalled])) {
  }
  CHECK(reader.complete == sent.size());
  CHECK(reader.slice == sent);
}

TEST_CASE(
    "a TCP connection whose receiver does not read delays few bytes, although the kernel would buffer more") {
  TcpPairs pairs(2);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes sent = pattern(256 * kFragmentBytes);
  Reader reader(2, sent.size());
  Pending pending = 0;
  bundle.post_slice_send(slice_of(0), sent, pending);
  const Deadline deadline = Deadline::after_seconds(30);
  // The other socket has taken at most a fragment, the receiver's window and the sender's unsent buffer.
  constexpr std::size_t kMaxHeldUp = std::size_t{2} << 20;
  while (reader.complete + kMaxHeldUp < sent.size() && !deadline.has_passed()) {
    const bool moved = bundle.move();
    if (reader.read(1, pairs.far[1]) || moved) continue;
    std::vector<pollfd> entries{{pairs.far[1].get(), POLLIN, 0}};
    bundle.append_entries(entries);
    (void)::poll(entries.data(), entries.size(), deadline.poll_milliseconds());
  }
  CHECK(reader.complete + kMaxHeldUp >= sent.size());
  int held_up = 0;
  CHECK(::ioctl(pairs.far[0].get(), FIONREAD, &held_up) == 0);
  CHECK(held_up > 0);
}

TEST_CASE("a later slice arrives while a fragment of an earlier one is missing") {
  SocketPairs pairs(2);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes first = pattern(2 * kFragmentBytes, 1), second = pattern(2 * kFragmentBytes, 2),
              small = pattern(10, 3);
  Bytes to_first(first.size()), to_second(second.size()), to_small(small.size());
  Pending pending_first = 0, pending_second = 0, pending_small = 0;
  bundle.post_slice(slice_of(0), to_first, pending_first);
  bundle.post_slice(slice_of(1), to_second, pending_second);
  bundle.post_slice(slice_of(2), to_small, pending_small);
  // Socket 1 has brought half of the second fragment of the first slice.
  const SliceFrame half = fragment_of(slice_of(0), first.size(), kFragmentBytes, kFragmentBytes);
  write_all_to(pairs.far[1], &half, sizeof half);
  write_all_to(pairs.far[1], first.data() + kFragmentBytes, kFragmentBytes / 2);
  CHECK(bundle.move());
  const auto arrives = [&](const SliceFrame& frame, const Bytes& slice) {
    write_fragment(pairs.far[0], frame, slice);
    CHECK(bundle.move());
  };
  // And socket 0 everything else, the last fragment first.
  arrives(fragment_of(slice_of(1), second.size(), kFragmentBytes, kFragmentBytes), second);
  arrives(fragment_of(slice_of(1), second.size(), 0, kFragmentBytes), second);
  CHECK(pending_second == 0);
  CHECK(to_second == second);
  arrives(fragment_of(slice_of(2), small.size(), 0, small.size()), small);
  CHECK(pending_small == 0);
  CHECK(to_small == small);
  arrives(fragment_of(slice_of(0), first.size(), 0, kFragmentBytes), first);
  CHECK(pending_first == 1);
  write_all_to(pairs.far[1], first.data() + kFragmentBytes + kFragmentBytes / 2, kFragmentBytes / 2);
  CHECK(bundle.move());
  CHECK(pending_first == 0);
  CHECK(to_first == first);
  CHECK_FALSE(bundle.is_out_of_step());
}

TEST_CASE("a frame that arrives byte by byte is the same") {
  SocketPairs pairs(2);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes sent = pattern(2 * kFragmentBytes);
  Bytes to(sent.size());
  Pending pending = 0;
  bundle.post_slice(slice_of(0), to, pending);
  for (const std::size_t index : {1, 0}) {
    const SliceFrame frame = fragment_of(slice_of(0), sent.size(), index * kFragmentBytes, kFragmentBytes);
    for (std::size_t i = 0; i < sizeof frame; ++i) {
      write_all_to(pairs.far[index], reinterpret_cast<const std::byte*>(&frame) + i, 1);
      CHECK(bundle.move());
    }
    write_all_to(pairs.far[index], sent.data() + frame.first, frame.fragment);
    CHECK(bundle.move());
  }
  CHECK(pending == 0);
  CHECK(to == sent);
}

TEST_CASE("a fragment of a slice that is not awaited stays in its socket") {
  SocketPairs pairs(2);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes sent = pattern(2 * kFragmentBytes);
  Bytes to_now(sent.size()), to_later(sent.size());
  Pending now = 0, later = 0;
  bundle.post_slice(slice_of(0), to_now, now);
  write_fragment(pairs.far[1], fragment_of(slice_of(7), sent.size(), 0, kFragmentBytes), sent);
  CHECK(bundle.move());
  CHECK_FALSE(bundle.move());
  std::vector<pollfd> entries;
  bundle.append_entries(entries);
  CHECK(entries.size() == 1);  // the data behind it are not read
  for (const std::size_t first : {std::size_t{0}, kFragmentBytes}) {
    write_fragment(pairs.far[0], fragment_of(slice_of(0), sent.size(), first, kFragmentBytes), sent);
    CHECK(bundle.move());
  }
  CHECK(now == 0);
  bundle.post_slice(slice_of(7), to_later, later);
  CHECK(bundle.move());
  write_fragment(pairs.far[0], fragment_of(slice_of(7), sent.size(), kFragmentBytes, kFragmentBytes), sent);
  CHECK(bundle.move());
  CHECK(later == 0);
  CHECK(to_later == sent);
}

TEST_CASE("a slice that arrives early does not block the data behind it") {
  const std::size_t size = GENERATE(std::size_t{100}, 2 * kFragmentBytes);
  CAPTURE(size);
  SocketPairs pairs(2);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes first = pattern(size, 1), early = pattern(size, 2);
  Bytes to_first(size), to_early(size);
  Pending pending = 0, pending_early = 0;
  bundle.begin_chunk(1, 0, size);
  bundle.begin_chunk(1, 1, size);
  bundle.post_slice(slice_of(0), to_first, pending);
  const std::size_t half = size / 2;
  // Of a chunk that has been begun: it is taken out of the socket.
  write_fragment(pairs.far[0], fragment_of(slice_of(1, 1), size, 0, half), early);
  SECTION("and is complete when it is awaited") {
    write_fragment(pairs.far[0], fragment_of(slice_of(1, 1), size, half, size - half), early);
    while (bundle.move()) {
    }
    write_fragment(pairs.far[0], fragment_of(slice_of(0), size, 0, size), first);
    while (bundle.move()) {
    }
    CHECK(pending == 0);
    bundle.post_slice(slice_of(1, 1), to_early, pending_early);
    CHECK(pending_early == 0);
  }
  SECTION("and is awaited while it is under way") {
    const SliceFrame rest = fragment_of(slice_of(1, 1), size, half, size - half);
    write_all_to(pairs.far[0], &rest, sizeof rest);
    write_all_to(pairs.far[0], early.data() + half, 10);
    while (bundle.move()) {
    }
    bundle.post_slice(slice_of(1, 1), to_early, pending_early);
    CHECK(pending_early == 1);
    write_all_to(pairs.far[0], early.data() + half + 10, size - half - 10);
    while (bundle.move()) {
    }
    write_fragment(pairs.far[0], fragment_of(slice_of(0), size, 0, size), first);
    while (bundle.move()) {
    }
    CHECK(pending_early == 0);
  }
  SECTION("and is awaited when a part of it has arrived") {
    while (bundle.move()) {
    }
    bundle.post_slice(slice_of(1, 1), to_early, pending_early);
    write_fragment(pairs.far[0], fragment_of(slice_of(1, 1), size, half, size - half), early);
    while (bundle.move()) {
    }
    write_fragment(pairs.far[0], fragment_of(slice_of(0), size, 0, size), first);
    while (bundle.move()) {
    }
    CHECK(pending_early == 0);
  }
  CHECK(pending == 0);
  CHECK(to_first == first);
  CHECK(to_early == early);
  CHECK_FALSE(bundle.is_out_of_step());
  CHECK_FALSE(bundle.receives_any());
  bundle.begin_chunk(2, 0, size);
  CHECK_FALSE(bundle.is_out_of_step());
}

TEST_CASE(
    "a slice that arrives early has at most the allowed length, and is awaited with the length that it has") {
  SocketPairs pairs(1);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes early = pattern(100);
  Bytes to(200);
  Pending pending = 0;
  bundle.begin_chunk(1, 0, 100);
  bundle.post_slice(slice_of(0), std::span(to).first(50), pending);
  SECTION("too long") {
    const SliceFrame frame = fragment_of(slice_of(0, 1), 101, 0, 101);
    write_all_to(pairs.far[0], &frame, sizeof frame);
    CHECK(bundle.move());
  }
  SECTION("awaited with another length") {
    write_fragment(pairs.far[0], fragment_of(slice_of(0, 1), 100, 0, 100), early);
    while (bundle.move()) {
    }
    CHECK_FALSE(bundle.is_out_of_step());
    bundle.post_slice(slice_of(0, 1), std::span(to).first(99), pending);
  }
  SECTION("never awaited") {
    write_fragment(pairs.far[0], fragment_of(slice_of(0, 1), 100, 0, 100), early);
    write_fragment(pairs.far[0], fragment_of(slice_of(0), 50, 0, 50), early);
    while (bundle.move()) {
    }
    CHECK(pending == 0);
    CHECK_FALSE(bundle.is_out_of_step());
    bundle.begin_chunk(2, 0, 100);
  }
  CHECK(bundle.is_out_of_step());
}

TEST_CASE("the ordered stream is read correctly, also if it overtakes the last fragment of a call") {
  SocketPairs pairs(2);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes sent = pattern(2 * kFragmentBytes);
  Bytes to(sent.size());
  Pending pending = 0;
  bundle.post_slice(slice_of(0), to, pending);
  write_fragment(pairs.far[0], fragment_of(slice_of(0), sent.size(), 0, kFragmentBytes), sent);
  Bytes message = pattern(100);
  std::memcpy(message.data(), &kOrderedMagic, sizeof kOrderedMagic);
  const std::size_t there = GENERATE(1, 3, 4, 31, 32, 33, 100);
  CAPTURE(there);
  write_all_to(pairs.far[0], message.data(), there);
  while (bundle.move()) {
  }
  CHECK(pending == 1);
  write_fragment(pairs.far[1], fragment_of(slice_of(0), sent.size(), kFragmentBytes, kFragmentBytes), sent);
  while (bundle.move()) {
  }
  CHECK(pending == 0);
  CHECK(to == sent);
  CHECK_FALSE(bundle.is_out_of_step());

  // In two parts, of which the first may end within what has been read.
  const std::size_t part = GENERATE(2, 32, 60);
  Bytes front(part), rest(message.size() - part);
  bundle.post_receive(front, pending);
  bundle.post_receive(rest, pending);
  while (bundle.move()) {
  }
  if (there < message.size()) write_all_to(pairs.far[0], message.data() + there, message.size() - there);
  while (bundle.move()) {
  }
  CHECK(pending == 0);
  front.insert(front.end(), rest.begin(), rest.end());
  CHECK(front == message);
}

TEST_CASE("a frame that matches nothing that is awaited is out of step, on any socket") {
  const std::size_t size = 4 * kFragmentBytes;
  const Bytes sent = pattern(size);
  const std::size_t socket = GENERATE(0, 1);
  SliceFrame frame = fragment_of(slice_of(0), size, kFragmentBytes, kFragmentBytes);
  std::size_t bytes_before = 0;
  SECTION("no frame at all") { frame.magic = 0x20544547; }
  SECTION("of another call") { frame.call = 2; }
  SECTION("of a longer slice") { frame.bytes += 4; }
  SECTION("of a shorter slice") { frame.bytes -= 4; }
  SECTION("an empty fragment") { frame.fragment = 0; }
  SECTION("a fragment that ends behind its slice") {
    frame.first = static_cast<std::uint32_t>(size - kFragmentBytes + 1);
  }
  SECTION("a fragment that begins behind its slice") {
    frame.first = static_cast<std::uint32_t>(size);
    frame.fragment = 1;
  }
  SECTION("a fragment so long that its end wraps around") { frame.fragment = 0xFFFFFFFFu - frame.first + 2; }
  SECTION("a fragment that lies over another") { bytes_before = kFragmentBytes; }
  SECTION("a fragment for the second time") {
    bytes_before = kFragmentBytes;
    frame.first = 0;
  }
  SECTION("the complete slice, of which a part has arrived") {
    bytes_before = kFragmentBytes;
    frame.first = 0;
    frame.fragment = static_cast<std::uint32_t>(size);
  }
  SocketPairs pairs(2);
  SocketBundle bundle(std::move(pairs.near));
  Bytes to(size);
  Pending pending = 0;
  bundle.post_slice(slice_of(0), to, pending);
  bundle.post_slice(slice_of(1), to, pending);
  if (bytes_before > 0) {
    if (frame.first != 0) frame.first -= 1;
    write_fragment(pairs.far[0], fragment_of(slice_of(0), size, 0, bytes_before), sent);
    while (bundle.move()) {
    }
  }
  CHECK_FALSE(bundle.is_out_of_step());
  write_all_to(pairs.far[socket], &frame, sizeof frame);
  while (bundle.move()) {
  }
  CHECK(bundle.is_out_of_step());
  CHECK(pending == 2);
}

TEST_CASE("a slice that has arrived completely does not arrive again") {
  SocketPairs pairs(2);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes sent = pattern(2 * kFragmentBytes);
  Bytes to(sent.size());
  Pending pending = 0;
  bundle.post_slice(slice_of(0), to, pending);
  bundle.post_slice(slice_of(1), to, pending);
  const SliceFrame whole = fragment_of(slice_of(0), sent.size(), 0, sent.size());
  write_all_to(pairs.far[0], &whole, sizeof whole);
  write_all_to(pairs.far[0], sent.data(), 1000);
  while (bundle.move()) {
  }
  CHECK_FALSE(bundle.is_out_of_step());
  write_all_to(pairs.far[1], &whole, sizeof whole);
  while (bundle.move()) {
  }
  CHECK(bundle.is_out_of_step());
}

TEST_CASE("closed sockets of a partner are an error only if more data are needed from them") {
  SocketPairs pairs(2);
  SocketBundle bundle(std::move(pairs.near));
  const Bytes sent = pattern(2 * kFragmentBytes);
  Bytes to(sent.size());
  Pending pending = 0;
  bundle.post_slice(slice_of(0), to, pending);
  SECTION("one is empty, the other still has everything") {
    pairs.far[1].reset();
    while (bundle.move()) {
    }
    CHECK(bundle.broken_why() == nullptr);
    for (const std::size_t first : {std::size_t{0}, kFragmentBytes}) {
      write_fragment(pairs.far[0], fragment_of(slice_of(0), sent.size(), first, kFragmentBytes), sent);
      while (bundle.move()) {
      }
    }
    CHECK(pending == 0);
    CHECK(to == sent);
    pairs.far[0].reset();
    while (bundle.move()) {
    }
    CHECK(bundle.broken_why() == nullptr);
  }
  SECTION("the first is empty, and nothing short is awaited") {
    pairs.far[0].reset();
    while (bundle.move()) {
    }
    CHECK(bundle.broken_why() == nullptr);
    Bytes small(10);
    bundle.post_slice(slice_of(1), small, pending);
    REQUIRE(bundle.broken_why() != nullptr);
    CHECK(*bundle.broken_why() == "the connection was closed");
  }
  SECTION("one ends within a fragment") {
    const SliceFrame frame = fragment_of(slice_of(0), sent.size(), 0, kFragmentBytes);
    write_all_to(pairs.far[1], &frame, sizeof frame);
    pairs.far[1].reset();
    while (bundle.move()) {
    }
    REQUIRE(bundle.broken_why() != nullptr);
    CHECK(*bundle.broken_why() == "the connection was closed");
  }
  SECTION("one ends within a frame") {
    const SliceFrame frame = fragment_of(slice_of(0), sent.size(), 0, kFragmentBytes);
    write_all_to(pairs.far[1], &frame, sizeof frame - 1);
    pairs.far[1].reset();
    while (bundle.move()) {
    }
    CHECK(bundle.broken_why() != nullptr);
  }
  SECTION("both end") {
    pairs.far[0].reset();
    pairs.far[1].reset();
    while (bundle.move()) {
    }
    CHECK(bundle.broken_why() != nullptr);
  }
  SECTION("there is still something to send") {
    pairs.far[1].reset();
    while (bundle.move()) {
    }
    CHECK(bundle.broken_why() == nullptr);
    const Bytes large = pattern(100 * kFragmentBytes);
    bundle.post_slice_send(slice_of(0), large, pending);
    while (bundle.move()) {
    }
    CHECK(bundle.broken_why() != nullptr);
  }
}
