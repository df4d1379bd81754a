#include "runtime/src/wire/slice_queue.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "base/error.h"

namespace ddl::runtime {

SendQueue::Fragment SendQueue::Posted::fragment_at(std::size_t at, std::uint64_t number) const {
  Fragment fragment;
  fragment.of = number;
  fragment.data = bytes.data() + at;
  fragment.data_left = std::min(fragment_bytes, bytes.size() - at);
  if (is_ordered) return fragment;
  fragment.frame = frame;
  fragment.frame.bytes = static_cast<std::uint32_t>(bytes.size());
  fragment.frame.first = static_cast<std::uint32_t>(at);
  fragment.frame.fragment = static_cast<std::uint32_t>(fragment.data_left);
  fragment.frame_left = sizeof fragment.frame;
  return fragment;
}

void SendQueue::post_slice(const SliceFrame& frame, std::span<const std::byte> bytes, bool is_cut,
                           Pending& pending) {
  DDL_CHECK(!bytes.empty() && bytes.size() <= std::numeric_limits<std::uint32_t>::max(),
            std::to_string(bytes.size()) + " bytes");
  post({frame, false, bytes, is_cut ? fragment_bytes_of(bytes.size()) : bytes.size(), 0, bytes.size(),
        &pending});
}

void SendQueue::post_ordered(std::span<const std::byte> bytes, Pending& pending) {
  if (bytes.empty()) return;
  post({{}, true, bytes, bytes.size(), 0, bytes.size(), &pending});
}

void SendQueue::post(const Posted& posted) {
  // Usually all has been sent by now. The vector keeps its capacity.
  constexpr std::size_t kMaxSent = 64;
  if (is_empty() || first_ >= kMaxSent) {
    posted_.erase(posted_.begin(), posted_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_number_ += first_;
    first_ = 0;
  }
  ++*posted.pending;
  posted_.push_back(posted);
}

std::size_t SendQueue::peek(bool by_first_socket, std::span<Fragment> fragments,
                            std::size_t max_bytes) const {
  std::size_t count = 0, bytes = 0;
  for (std::size_t i = first_; i < posted_.size(); ++i) {
    const Posted& posted = posted_[i];
    if (!posted.may_go(by_first_socket)) continue;
    for (std::size_t at = posted.taken; at < posted.bytes.size(); at += posted.fragment_bytes) {
      if (count == fragments.size()) return count;
      const Fragment fragment = posted.fragment_at(at, first_number_ + i);
      if (count > 0 && bytes + fragment.data_left > max_bytes) return count;
      bytes += fragment.data_left;
      fragments[count++] = fragment;
    }
  }
  return count;
}

bool SendQueue::has_for(bool by_first_socket) const {
  return std::any_of(posted_.begin() + static_cast<std::ptrdiff_t>(first_), posted_.end(),
                     [by_first_socket](const Posted& posted) {
                       return posted.may_go(by_first_socket) && posted.taken < posted.bytes.size();
                     });
}

void SendQueue::take(const Fragment& fragment) {
  posted_[fragment.of - first_number_].taken += fragment.data_left;
}

void SendQueue::note_sent(Fragment& fragment, std::size_t bytes) {
  const std::size_t of_frame = std::min(bytes, fragment.frame_left);
  const std::size_t of_data = bytes - of_frame;
  fragment.frame_left -= of_frame;
  fragment.data += of_data;
  fragment.data_left -= of_data;
  Posted& posted = posted_[fragment.of - first_number_];
  posted.unsent -= of_data;
  if (of_data == 0 || posted.unsent > 0) return;
  --*posted.pending;
  while (first_ < posted_.size() && posted_[first_].unsent == 0) ++first_;
}

bool AwaitedSlices::begin_chunk(std::uint64_t call, std::uint32_t chunk, std::size_t longest) {
  if (call != call_ && !slices_.empty()) return false;
  call_ = call;
  last_begun_ = chunk;
  longest_ = longest;
  return true;
}

bool AwaitedSlices::has_begun(std::uint32_t chunk) const {
  // Indices wrap around.
  return longest_ > 0 && static_cast<std::int32_t>(last_begun_ - chunk) >= 0;
}

AwaitedSlices::Iterator AwaitedSlices::find(std::uint32_t chunk, std::uint32_t turn) {
  return std::find_if(slices_.begin(), slices_.end(),
                      [&](const Slice& slice) { return slice.chunk == chunk && slice.turn == turn; });
}

AwaitedSlices::Slice& AwaitedSlices::add(std::uint32_t chunk, std::uint32_t turn, std::size_t size) {
  Slice& slice = slices_.emplace_back();
  slice.number = ++numbers_;
  slice.chunk = chunk;
  slice.turn = turn;
  slice.size = slice.unclaimed = slice.missing = size;
  return slice;
}

void AwaitedSlices::count_unclaimed(const Slice& slice, std::ptrdiff_t bytes) {
  unclaimed_ += static_cast<std::size_t>(bytes);
  if (slice.size > kFragmentBytes) unclaimed_cut_ += static_cast<std::size_t>(bytes);
}

bool AwaitedSlices::await(const SliceFrame& frame, std::span<std::byte> bytes, Pending& pending) {
  DDL_CHECK(!bytes.empty() && (slices_.empty() || call_ == frame.call),
            "chunk " + std::to_string(frame.chunk));
  call_ = frame.call;
  Iterator found = find(frame.chunk, frame.turn);
  const bool has_come = found != slices_.end();
  if (has_come && found->size != bytes.size()) return false;
  Slice& slice = has_come ? *found : add(frame.chunk, frame.turn, bytes.size());
  DDL_CHECK(slice.to.empty(), "chunk " + std::to_string(frame.chunk) + " is awaited twice");
  slice.to = bytes;
  slice.pending = &pending;
  ++pending;
  ++awaited_;
  count_unclaimed(slice, static_cast<std::ptrdiff_t>(slice.unclaimed));
  if (has_come) end_if_complete(found);
  return true;
}

AwaitedSlices::Claim AwaitedSlices::claim(const SliceFrame& head) {
  const bool is_possible = head.magic == SliceFrame::kMagic && head.fragment > 0 && head.first < head.bytes &&
                           head.fragment <= head.bytes - head.first && head.call == call_;
  if (!is_possible) return {};
  Iterator found = find(head.chunk, head.turn);
  if (found == slices_.end()) {
    if (!has_begun(head.chunk)) return {Fit::kLater, 0, {}};
    if (head.bytes > longest_) return {};
    add(head.chunk, head.turn, head.bytes).aside.resize(head.bytes);
    found = std::prev(slices_.end());
  }
  Slice& slice = *found;
  const std::uint32_t end = head.first + head.fragment;
  const bool overlaps = std::any_of(slice.claimed.begin(), slice.claimed.end(), [&](const auto& other) {
    return head.first < other.second && other.first < end;
  });
  if (head.bytes != slice.size || head.fragment > slice.unclaimed || overlaps) return {};
  // A slice that arrives in one fragment needs no list.
  if (head.fragment < head.bytes) slice.claimed.emplace_back(head.first, end);
  slice.unclaimed -= head.fragment;
  if (!slice.to.empty()) count_unclaimed(slice, -static_cast<std::ptrdiff_t>(head.fragment));
  const std::span<std::byte> all = slice.aside.empty() ? slice.to : std::span<std::byte>(slice.aside);
  return {Fit::kHere, slice.number, all.subspan(head.first, head.fragment)};
}

void AwaitedSlices::note_arrived(std::uint64_t number, std::size_t bytes) {
  const Iterator found = std::find_if(slices_.begin(), slices_.end(),
                                      [number](const Slice& slice) { return slice.number == number; });
  DDL_CHECK(found != slices_.end() && bytes <= found->missing, "slice " + std::to_string(number));
  found->missing -= bytes;
  end_if_complete(found);
}

void AwaitedSlices::end_if_complete(Iterator found) {
  Slice& slice = *found;
  if (slice.missing > 0 || slice.to.empty()) return;
  if (!slice.aside.empty()) std::memcpy(slice.to.data(), slice.aside.data(), slice.size);
  --*slice.pending;
  --awaited_;
  slices_.erase(found);
}

}  // namespace ddl::runtime
