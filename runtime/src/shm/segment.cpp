#include "runtime/src/shm/segment.h"

#include <algorithm>
#include <new>
#include <string>

#include "runtime/src/shm/flag_protocol.h"
#include "timeline/event_ring.h"

namespace ddl::runtime {
namespace {

constexpr std::uint64_t kMagic = 0x6464'6c73'6567'0001;  // "ddlseg", 1
constexpr std::uint32_t kLayoutVersion = 9;
constexpr std::size_t kPageBytes = 4096;
/// The heap is aligned to the largest page size that Linux supports.
constexpr std::size_t kMaxPageBytes = std::size_t{64} << 10;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

std::size_t Segment::slots_offset() const {
  // On a new page, so that flags and data never share one.
  return round_up(group_lines_offset() + members_ * 2 * sizeof(GroupLine), kPageBytes);
}

std::size_t Segment::heap_offset() const {
  return round_up(slots_offset() + members_ * 2 * slot_bytes_, heap_bytes_ == 0 ? kPageBytes : kMaxPageBytes);
}

std::size_t Segment::pairs_offset() const { return heap_offset() + members_ * heap_bytes_; }

Segment Segment::plain(std::byte* base, int members, std::size_t slot_bytes) {
  SegmentConfig config;
  config.slot_bytes = slot_bytes;
  return {base, members, config};
}

std::size_t Segment::pair_bytes() const { return plain(nullptr, 2, pair_slot_bytes_).heap_offset(); }

std::size_t Segment::duplicate_offset() const {
  const auto count = static_cast<std::size_t>(members_);
  return pairs_offset() + (has_pairs() ? count * (count - 1) / 2 * pair_bytes() : 0);
}

std::size_t Segment::duplicate_bytes() const {
  return has_duplicate_ ? plain(nullptr, members_, slot_bytes_).heap_offset() : 0;
}

std::size_t Segment::rings_offset() const {
  return round_up(duplicate_offset() + duplicate_bytes(), kPageBytes);
}

std::size_t Segment::ring_bytes() const {
  return event_capacity_ == 0 ? 0 : round_up(contract::EventRing::bytes_for(event_capacity_), kPageBytes);
}

Segment Segment::duplicate() const {
  DDL_CHECK(has_duplicate_, "there is no second segment");
  // Zeroed memory is a valid initial state, as for pairs.
  return plain(base_ + duplicate_offset(), members_, slot_bytes_);
}

Segment Segment::pair(int a, int b) const {
  const auto [low, high] = std::minmax(a, b);
  DDL_CHECK(has_pairs() && low >= 0 && low < high && high < members_,
            std::to_string(a) + " and " + std::to_string(b));
  // Zeroed memory is a valid initial state: no member has left, and no sequence after 0 has been reached.
  static_assert(encode_sequence(0) == 0);
  const auto number =
      static_cast<std::size_t>(high) * static_cast<std::size_t>(high - 1) / 2 + static_cast<std::size_t>(low);
  return plain(base_ + pairs_offset() + number * pair_bytes(), 2, pair_slot_bytes_);
}

std::size_t Segment::bytes_for(int members, const SegmentConfig& config) {
  const Segment shape(nullptr, members, config);
  return shape.rings_offset() + members * shape.ring_bytes();
}

Segment Segment::create(std::span<std::byte> memory, int members, const SegmentConfig& config) {
  DDL_CHECK(members >= 1 && members <= kMaxMembers && config.slot_bytes % kLineBytes == 0 &&
                config.heap_bytes % kPageBytes == 0 && config.pair_slot_bytes % kLineBytes == 0 &&
                memory.size() == bytes_for(members, config),
            std::to_string(members) + " members, slots of " + std::to_string(config.slot_bytes));
  const Segment segment(memory.data(), members, config);
  new (memory.data()) SegmentHeader{kMagic,
                                    kLayoutVersion,
                                    static_cast<std::uint32_t>(members),
                                    config.slot_bytes,
                                    config.heap_bytes,
                                    config.pair_slot_bytes,
                                    config.first_sequence,
                                    config.has_duplicate ? 1u : 0u,
                                    config.event_capacity};
  new (&segment.abort_line()) AbortLine{};
  for (int i = 0; i < members; ++i) {
    new (&segment.presence(i)) PresenceLine{Presence::kJoined, {}, 0};
    new (&segment.timeout_record(i)) TimeoutRecord{};
    new (&segment.notice_record(i)) NoticeRecord{};
    new (&segment.pairs_record(i)) PairsRecord{};
    new (&segment.doorbell(i)) DoorbellLine{};
    for (GroupLine* line : {&segment.gathered(i), &segment.released(i)})
      new (line) GroupLine{encode_sequence(config.first_sequence)};
    for (const unsigned parity : {0u, 1u}) {
      // As if every member had published the sequences up to the first: nothing after it has been reached.
      new (&segment.flag(i, parity)) FlagLine{encode_sequence(config.first_sequence), {}, 0, {}};
      new (&segment.call(i, parity)) CallLine{};
    }
    if (config.event_capacity != 0) {
      timeline::make_ring(segment.ring(i), config.event_capacity,
                          std::min(config.event_capacity, contract::EventRing::kUsuallyKept));
    }
  }
  return segment;
}

Result<Segment> Segment::open(std::span<std::byte> memory) {
  if (memory.size() < sizeof(SegmentHeader))
    return fail(ErrorCode::kProtocol, "the shared segment is too small");
  const auto& header = *reinterpret_cast<const SegmentHeader*>(memory.data());
  if (header.magic != kMagic || header.layout_version != kLayoutVersion) {
    return fail(ErrorCode::kProtocol, "the shared segment was laid out by another version of libddl");
  }
  SegmentConfig config;
  config.slot_bytes = header.slot_bytes;
  config.heap_bytes = header.heap_bytes;
  config.pair_slot_bytes = header.pair_slot_bytes;
  config.has_duplicate = header.has_duplicate != 0;
  config.event_capacity = header.event_capacity;
  if (header.members < 1 || header.members > kMaxMembers || header.slot_bytes == 0 ||
      header.slot_bytes % kLineBytes != 0 || header.slot_bytes > memory.size() ||
      header.heap_bytes % kPageBytes != 0 || header.heap_bytes > memory.size() ||
      header.pair_slot_bytes % kLineBytes != 0 || header.pair_slot_bytes > memory.size() ||
      header.has_duplicate > 1 || header.event_capacity > contract::EventRing::kMaxCapacity ||
      memory.size() != bytes_for(static_cast<int>(header.members), config)) {
    return fail(ErrorCode::kProtocol, "the shared segment's size does not fit its header");
  }
  const Segment segment(memory.data(), static_cast<int>(header.members), config);
  for (int i = 0; i < segment.size(); ++i) {
    const std::uint32_t behind = segment.presence(i).behind_leader;
    if (behind > static_cast<std::uint32_t>(i) ||
        segment.presence(i - static_cast<int>(behind)).behind_leader != 0) {
      return fail(ErrorCode::kProtocol, "the shared segment has groups without leaders");
    }
  }
  return segment;
}

void Segment::set_leaders(std::span<const int> leader_of) const {
  DDL_CHECK(leader_of.size() == static_cast<std::size_t>(members_), std::to_string(leader_of.size()));
  for (int i = 0; i < members_; ++i) {
    const int leader = leader_of[i];
    DDL_CHECK(leader >= 0 && leader <= i, std::to_string(leader));
    presence(i).behind_leader = static_cast<std::uint32_t>(i - leader);
  }
}

std::vector<int> Segment::leaders() const {
  std::vector<int> leader_of;
  for (int i = 0; i < members_; ++i) leader_of.push_back(i - static_cast<int>(presence(i).behind_leader));
  return leader_of;
}

}  // namespace ddl::runtime
