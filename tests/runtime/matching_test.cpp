// Which message goes into which receive.
#include "runtime/src/message/matching.h"

#include <memory>

#include "runtime/src/message/frame.h"
#include "support/catch.h"

using namespace ddl::runtime;

namespace {

MessagePtr receive(int from, int tag, std::uint32_t set = 1) {
  auto message = std::make_shared<Message>();
  message->peer = from;
  message->tag = tag;
  message->set = set;
  return message;
}

Arrival arrival(int from, int tag, std::uint64_t number = 0, std::uint32_t set = 1) {
  Arrival one;
  one.from = from;
  one.tag = tag;
  one.number = number;
  one.set = set;
  return one;
}

}  // namespace

TEST_CASE("a message takes the receive that was posted first among those that it fits") {
  Matching matching;
  const auto other_tag = receive(3, 8), any = receive(DDL_ANY_RANK, DDL_ANY_TAG), exact = receive(3, 7);
  for (const MessagePtr& one : {other_tag, any, exact}) CHECK_FALSE(matching.post(one));
  CHECK(matching.take(arrival(3, 7)) == any);
  CHECK(matching.take(arrival(3, 7)) == exact);
  CHECK(matching.take(arrival(3, 7)) == nullptr);
  CHECK(matching.take(arrival(4, 8)) == nullptr);
  CHECK(matching.take(arrival(3, 8)) == other_tag);
}

TEST_CASE("a receive takes the message that has arrived first among those that fit it") {
  Matching matching;
  matching.keep(arrival(2, 5, 1));
  matching.keep(arrival(3, 5, 2));
  matching.keep(arrival(2, 6, 3));
  matching.keep(arrival(2, 5, 4));
  CHECK(matching.post(receive(2, 6))->number == 3);
  CHECK(matching.post(receive(DDL_ANY_RANK, 5))->number == 1);
  CHECK(matching.post(receive(2, DDL_ANY_TAG))->number == 4);
  CHECK_FALSE(matching.post(receive(2, 5)));
  CHECK(matching.post(receive(3, 5))->number == 2);
}

TEST_CASE("process sets do not see each other's messages") {
  Matching matching;
  matching.keep(arrival(2, 5, 1, 7));
  const auto other = receive(DDL_ANY_RANK, DDL_ANY_TAG, 8);
  CHECK_FALSE(matching.post(other));
  CHECK(matching.take(arrival(2, 5, 0, 7)) == nullptr);
  CHECK(matching.post(receive(DDL_ANY_RANK, DDL_ANY_TAG, 7))->number == 1);
  CHECK(matching.take(arrival(2, 5, 0, 8)) == other);
}

TEST_CASE("a receive that was taken back is not found any more") {
  Matching matching;
  const auto first = receive(2, 5), second = receive(2, 5);
  CHECK_FALSE(matching.post(first));
  CHECK_FALSE(matching.post(second));
  CHECK(matching.waiting_for(2) == first);
  CHECK(matching.waiting_for(3) == nullptr);
  matching.remove(first);
  CHECK(matching.waiting_for(2) == second);
  CHECK(matching.clear().size() == 1);
  CHECK(matching.waiting_for(2) == nullptr);
}

TEST_CASE("a frame for messages whose lengths contradict each other is none") {
  const auto parsed = [](const MessageFrame& frame) {
    return MessageFrame::parse(std::as_bytes(std::span(&frame, 1))).has_value();
  };
  MessageFrame frame;
  CHECK(parsed(frame));
  frame.kind = MessageFrame::Kind::kEager;
  frame.bytes = frame.length = 10;
  CHECK(parsed(frame));
  frame.length = 11;
  CHECK_FALSE(parsed(frame));
  frame.bytes = frame.length = MessageFrame::kMaxEager + 1;
  CHECK_FALSE(parsed(frame));
  frame.kind = MessageFrame::Kind::kData;
  frame.bytes = frame.length = 100;
  CHECK(parsed(frame));
  frame.offset = 1;
  CHECK_FALSE(parsed(frame));
  frame.offset = ~std::uint64_t{0};
  CHECK_FALSE(parsed(frame));
  frame = {};
  frame.length = 1;
  CHECK_FALSE(parsed(frame));
  frame = {};
  frame.kind = static_cast<MessageFrame::Kind>(11);
  CHECK_FALSE(parsed(frame));
  frame = {};
  frame.magic = 1;
  CHECK_FALSE(parsed(frame));
}
