// Which ranks are on which host, and how calls are cut for them.
#include "runtime/src/bootstrap/host_layout.h"

#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/call_agreement.h"
#include "runtime/src/wire/control_links.h"
#include "runtime/src/wire/tcp_endpoint.h"
#include "support/catch.h"

using namespace ddl::runtime;

TEST_CASE("hosts are in the order of their lowest ranks, whatever the launcher's order") {
  const auto layout = HostLayout::of({{5, 3}, {4, 1, 2}, {}, {0}}, 2, 6);
  REQUIRE(layout);
  CHECK(layout->hosts == std::vector<std::vector<int>>{{0}, {1, 2, 4}, {3, 5}});
  CHECK(layout->own == 1);
  CHECK(layout->local() == std::vector<int>{1, 2, 4});
  CHECK(layout->local_rank(2) == 1);
  CHECK(layout->lane_count() == 1);
  CHECK(layout->cross_rank(0) == 1);
  CHECK(layout->cross_size(0) == 3);
  CHECK(layout->cross_rank(1) == 0);
  CHECK(layout->cross_size(1) == 2);
  CHECK(layout->cross_rank(2) == 0);
  CHECK(layout->cross_size(2) == 1);
}

TEST_CASE("groups that do not hold every rank once are refused") {
  const std::vector<std::vector<int>> wrong[] = {
      {}, {{0, 1}}, {{0, 1}, {1, 2}}, {{0, 1}, {2, 3}}, {{-1, 0}, {1, 2}}};
  for (const auto& groups : wrong) {
    CAPTURE(groups);
    CHECK_FALSE(HostLayout::of(groups, 0, 3));
  }
  CHECK_FALSE(HostLayout::of({{0, 1}, {2}}, 3, 3));
  CHECK(HostLayout::of({{0, 1}, {2}}, 2, 3));
}

TEST_CASE("slices cover every element of every chunk once, in order") {
  const std::uint64_t total = GENERATE(0, 1, 2, 7, 64, 65, 1000);
  const std::uint64_t per_chunk = GENERATE(1, 3, 64);
  const int lanes = GENERATE(1, 2, 3, 5);
  const Chunking chunking{total, per_chunk, lanes};
  std::uint64_t next = 0;
  for (std::uint64_t chunk = 0; chunk < chunking.chunks(); ++chunk) {
    const ElementRange range = chunking.chunk(chunk);
    CHECK(range.first == next);
    CHECK(range.count >= 1);
    CHECK(range.count <= per_chunk);
    std::uint64_t in_chunk = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      CHECK(chunking.slice(chunk, lane).first == in_chunk);
      in_chunk += chunking.slice(chunk, lane).count;
    }
    CHECK(in_chunk == range.count);
    next += range.count;
  }
  CHECK(next == total);
}

TEST_CASE("a slot holds input, result and agreement apart") {
  for (const std::size_t staging : {std::size_t{64}, std::size_t{4096}}) {
    for (const int ranks : {2, 300}) {
      const SlotAreas areas = SlotAreas::of(staging, ranks, ranks / 2);
      CHECK(areas.area_bytes >= static_cast<std::size_t>(ranks * ranks / 2) * sizeof(double));
      CHECK(areas.area_bytes >= staging);
      CHECK(areas.area_bytes >= static_cast<std::size_t>(ranks) * kLineBytes);
      CHECK(areas.slot_bytes() % kLineBytes == 0);
      CHECK(SlotAreas::in_slot(areas.slot_bytes()).area_bytes == areas.area_bytes);
      std::byte* const slot = nullptr;
      CHECK(areas.result(slot) - areas.input(slot) == static_cast<std::ptrdiff_t>(areas.area_bytes));
      CHECK(areas.agreement(slot) - areas.result(slot) == static_cast<std::ptrdiff_t>(areas.area_bytes));
      CHECK(static_cast<std::size_t>(areas.agreement(slot) - slot) + sizeof(CallAgreement) <=
            areas.slot_bytes());
    }
  }
}

TEST_CASE("control frames are parsed back, and anything else is refused") {
  ControlFrame frame;
  frame.kind = ControlFrame::Kind::kAbort;
  frame.notice = AbortNotice::of(AbortReason::kLost, {3, "node4", 99}, "No route to host");
  const auto bytes = std::as_bytes(std::span(&frame, 1));
  const auto parsed = ControlFrame::parse(bytes);
  REQUIRE(parsed);
  Call call;
  call.kind = CallKind::kBarrier;
  call.number = 7;
  CHECK(parsed->notice.describe(call, true).status == DDL_ERROR_PEER_LOST);
  CHECK(parsed->notice.describe(call, true).message ==
        "rank 3 on node4 (pid 99) cannot be reached any more during barrier #7: No route to host");

  frame.notice = AbortNotice::of(AbortReason::kAborted, {3, "node4", 99}, "the loss is not a number", 42);
  REQUIRE(ControlFrame::parse(bytes));
  CHECK(ControlFrame::parse(bytes)->notice.describe(call, false).status == DDL_ERROR_ABORTED);
  CHECK(ControlFrame::parse(bytes)->notice.describe(call, false).message ==
        "rank 3 on node4 (pid 99) aborted the job with code 42 before barrier #7: the loss is not a number");

  CHECK_FALSE(ControlFrame::parse(bytes.first(bytes.size() - 1)));
  CHECK_FALSE(ControlFrame::parse({}));
  frame.notice.reason = static_cast<AbortReason>(0);
  CHECK_FALSE(ControlFrame::parse(bytes));
  frame.notice.reason = static_cast<AbortReason>(9);
  CHECK_FALSE(ControlFrame::parse(bytes));
  // A farewell needs no reason.
  frame.kind = ControlFrame::Kind::kFarewell;
  CHECK(ControlFrame::parse(bytes));
  frame.kind = ControlFrame::Kind::kWanted;
  CHECK(ControlFrame::parse(bytes));
  for (const auto kind : {ControlFrame::Kind::kAskTime, ControlFrame::Kind::kTime}) {
    frame.kind = kind;
    CHECK(ControlFrame::parse(bytes));
  }
  frame.kind = static_cast<ControlFrame::Kind>(6);
  CHECK_FALSE(ControlFrame::parse(bytes));
  frame.kind = ControlFrame::Kind::kFarewell;
  frame.magic ^= 1;
  CHECK_FALSE(ControlFrame::parse(bytes));
}

TEST_CASE("a text without a terminator is read no further than its field") {
  ControlFrame frame;
  frame.notice.host.text.fill('h');
  frame.notice.text.text.fill('t');
  CHECK(frame.notice.host.str() == std::string(64, 'h'));
  CHECK(frame.notice.text.str() == std::string(432, 't'));
  CHECK(HostField::of(std::string(100, 'x')).str() == std::string(63, 'x'));
}

TEST_CASE("a rank of another version or another byte order is detected") {
  LinkHello hello;
  hello.rank = 3;
  hello.host = HostField::of("node4");
  CHECK(LinkHello::parse(hello.to_introduction())->rank == 3);
  hello.version = 9;
  CHECK(LinkHello::parse(hello.to_introduction()).error().message() ==
        "rank 3 on node4 uses another version of libddl");
  hello.byte_order = 0x04030201;
  CHECK(LinkHello::parse(hello.to_introduction()).error().message() ==
        "the other host has another byte order");
  LinkHello mismatched;
  mismatched.purpose = static_cast<LinkPurpose>(4);
  CHECK_FALSE(LinkHello::parse(mismatched.to_introduction()));
}
