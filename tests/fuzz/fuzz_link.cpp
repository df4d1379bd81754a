// Messages of ranks of other hosts, with arbitrary bytes. The first byte selects a control frame, an introduction, an
// endpoint, or the frames of slices. Reading an accepted message must stay within its fields, and the bytes after the
// frame of a slice must have their own place in the memory of the awaited slices.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/src/wire/control_links.h"
#include "runtime/src/wire/slice_queue.h"
#include "runtime/src/wire/tcp_endpoint.h"

using namespace ddl::runtime;

namespace {

/// Two slices are awaited, of which one comes in fragments, and more chunks have been begun; each fragment that is
/// accepted arrives at once.
void claim_frames(std::span<const std::byte> bytes) {
  struct Awaited {
    std::vector<std::byte> memory;
    std::vector<bool> is_claimed;
    Pending pending = 0;
  };
  std::vector<Awaited> all(2);
  AwaitedSlices awaited;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].memory.resize(i == 0 ? 2 * kFragmentBytes + 100 : 100);
    all[i].is_claimed.resize(all[i].memory.size());
    SliceFrame frame;
    frame.call = 1;
    frame.chunk = static_cast<std::uint32_t>(i);
    awaited.await(frame, all[i].memory, all[i].pending);
  }
  constexpr std::size_t kMaxBytes = 3 * kFragmentBytes;
  (void)awaited.begin_chunk(1, 3, kMaxBytes);
  for (; bytes.size() >= sizeof(SliceFrame); bytes = bytes.subspan(sizeof(SliceFrame))) {
    SliceFrame head;
    std::memcpy(&head, bytes.data(), sizeof head);
    const AwaitedSlices::Claim claim = awaited.claim(head);
    if (claim.fit != AwaitedSlices::Fit::kHere) continue;
    // A slice that has arrived completely is finished: a second one is early, for a call that does not come.
    const bool is_over = head.chunk <= 1 && all[head.chunk].pending == 0;
    if (head.chunk > 1 || head.turn > 0 || is_over) {
      // Stored until its call.
      if (head.bytes > kMaxBytes || claim.to.size() != head.fragment) std::abort();
      std::memset(claim.to.data(), 1, claim.to.size());
      awaited.note_arrived(claim.slice, claim.to.size());
      continue;
    }
    Awaited& slice = all.at(head.chunk);
    if (claim.to.data() != slice.memory.data() + head.first || claim.to.size() != head.fragment) std::abort();
    for (std::size_t i = head.first; i < head.first + claim.to.size(); ++i) {
      if (slice.is_claimed.at(i)) std::abort();
      slice.is_claimed[i] = true;
    }
    awaited.note_arrived(claim.slice, claim.to.size());
    const bool is_whole =
        std::find(slice.is_claimed.begin(), slice.is_claimed.end(), false) == slice.is_claimed.end();
    if (is_whole != (slice.pending == 0)) std::abort();
  }
  const bool all_there = all[0].pending == 0 && all[1].pending == 0;
  if (awaited.is_empty() != all_there || awaited.has_unclaimed() == all_there) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data + 1, size - 1));
  if (data[0] % 4 == 0) {
    const auto frame = ControlFrame::parse(bytes);
    if (!frame) return 0;
    Call call;
    call.kind = CallKind::kBarrier;
    const Failure failure = frame->notice.describe(call, true);
    if (frame->kind == ControlFrame::Kind::kAbort && failure.status == DDL_OK) std::abort();
    if (failure.message.size() > 1000) std::abort();
  } else if (data[0] % 4 == 1) {
    ddl::net::Introduction introduction{};
    std::memcpy(introduction.data(), bytes.data(), std::min(bytes.size(), introduction.size()));
    const auto hello = LinkHello::parse(introduction);
    if (hello && hello->member().host.size() > 64) std::abort();
  } else if (data[0] % 4 == 3) {
    claim_frames(bytes);
  } else {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto endpoint = TcpEndpoint::parse(text);
    if (!endpoint || endpoint->addresses.empty()) return 0;
    const auto again = TcpEndpoint::parse(endpoint->to_text());
    if (!again || again->to_text() != endpoint->to_text()) std::abort();
  }
  return 0;
}
