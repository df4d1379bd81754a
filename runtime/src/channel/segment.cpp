#include "runtime/src/channel/segment.h"

#include <new>
#include <string>

#include "runtime/src/channel/flag_word.h"

namespace ddl::runtime {
namespace {

constexpr std::uint64_t kMagic = 0x6464'6c73'6567'0001;  // "ddlseg", 1
constexpr std::uint32_t kLayoutVersion = 5;
constexpr std::size_t kPageBytes = 4096;
/// The heap begins on the largest page that there may be.
constexpr std::size_t kLargestPageBytes = std::size_t{64} << 10;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

std::size_t Segment::slots_offset() const {
  // On a page of its own, so that flags and data never share one.
  return round_up(meetings_offset() + static_cast<std::size_t>(members_) * 2 * sizeof(MeetingLine),
                  kPageBytes);
}

std::size_t Segment::heap_offset() const {
  return round_up(slots_offset() + static_cast<std::size_t>(members_) * 2 * slot_bytes_,
                  heap_bytes_ == 0 ? kPageBytes : kLargestPageBytes);
}

std::size_t Segment::bytes_for(int members, const SegmentWish& wish) {
  const Segment shape(nullptr, members, wish.slot_bytes, wish.heap_bytes);
  return shape.heap_offset() + static_cast<std::size_t>(members) * wish.heap_bytes;
}

Segment Segment::create(std::span<std::byte> memory, int members, const SegmentWish& wish) {
  DDL_CHECK(members >= 1 && members <= kMaxMembers && wish.slot_bytes % kLineBytes == 0 &&
                wish.heap_bytes % kPageBytes == 0 && memory.size() == bytes_for(members, wish),
            std::to_string(members) + " members, slots of " + std::to_string(wish.slot_bytes));
  const Segment segment(memory.data(), members, wish.slot_bytes, wish.heap_bytes);
  new (memory.data()) SegmentHeader{kMagic,          kLayoutVersion,  static_cast<std::uint32_t>(members),
                                    wish.slot_bytes, wish.heap_bytes, wish.first_sequence};
  new (&segment.abort_line()) AbortLine{};
  for (int i = 0; i < members; ++i) {
    new (&segment.presence(i)) PresenceLine{Presence::kJoined, static_cast<std::uint32_t>(i)};
    new (&segment.timeout_record(i)) TimeoutRecord{};
    new (&segment.told_record(i)) ToldRecord{};
    for (MeetingLine* line : {&segment.gathered(i), &segment.released(i)})
      new (line) MeetingLine{encode_sequence(wish.first_sequence)};
    for (const unsigned parity : {0u, 1u}) {
      // As if every member had published the sequences up to the first: nothing after it has been reached.
      new (&segment.flag(i, parity)) FlagLine{encode_sequence(wish.first_sequence), 0, 0, {}};
      new (&segment.call(i, parity)) CallLine{};
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
  if (header.members < 1 || header.members > kMaxMembers || header.slot_bytes == 0 ||
      header.slot_bytes % kLineBytes != 0 || header.slot_bytes > memory.size() ||
      header.heap_bytes % kPageBytes != 0 || header.heap_bytes > memory.size() ||
      memory.size() != bytes_for(static_cast<int>(header.members), {header.slot_bytes, header.heap_bytes})) {
    return fail(ErrorCode::kProtocol, "the shared segment's size does not fit its header");
  }
  const Segment segment(memory.data(), static_cast<int>(header.members), header.slot_bytes,
                        header.heap_bytes);
  for (std::uint32_t i = 0; i < header.members; ++i) {
    const std::uint32_t leader = segment.presence(static_cast<int>(i)).leader;
    if (leader >= header.members || segment.presence(static_cast<int>(leader)).leader != leader) {
      return fail(ErrorCode::kProtocol, "the shared segment has groups without leaders");
    }
  }
  return segment;
}

void Segment::set_leaders(std::span<const int> leader_of) const {
  DDL_CHECK(leader_of.size() == static_cast<std::size_t>(members_), std::to_string(leader_of.size()));
  for (int i = 0; i < members_; ++i)
    presence(i).leader = static_cast<std::uint32_t>(leader_of[static_cast<std::size_t>(i)]);
}

std::vector<int> Segment::leaders() const {
  std::vector<int> leader_of;
  for (int i = 0; i < members_; ++i) leader_of.push_back(static_cast<int>(presence(i).leader));
  return leader_of;
}

}  // namespace ddl::runtime
