// What the ranks agree on about named tensors, without ranks: what they expect of the next step, the rounds, and the
// bytes of an announcement.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/src/named/agreement.h"
#include "support/catch.h"

using namespace ddl::runtime;
using Catch::Matchers::Contains;

namespace {

using Names = std::vector<std::string>;

AgreedTensorPtr tensor(const std::string& name, std::uint64_t count = 10, bool follows_completion = false) {
  TensorTerms terms;
  terms.call.count = count;
  return std::make_shared<const AgreedTensor>(AgreedTensor{name, terms, follows_completion});
}

AgreedTensorPtr tensor_of_group(const std::string& name) {
  TensorTerms terms;
  terms.call.count = 10;
  terms.group = "group";
  terms.group_size = 2;
  return std::make_shared<const AgreedTensor>(AgreedTensor{name, terms, false});
}

Names names_of(const Batch* batch) {
  Names names;
  for (std::size_t i = 0; batch != nullptr && i < batch->tensors.size(); ++i)
    names.push_back(batch->tensors[i]->name);
  return names;
}

/// A step that a program executes tensor by tensor.
void execute(Prediction& prediction, const Names& names) {
  for (const std::string& name : names) prediction.executed({tensor(name)});
}

Announcement announce(const std::string& name, std::uint64_t count = 10) {
  Announcement announced;
  announced.name = name;
  announced.terms.call.count = count;
  return announced;
}

Announcement announce_in_group(const std::string& name, std::uint32_t group_size) {
  Announcement announced = announce(name);
  announced.terms.group = "layer";
  announced.terms.group_size = group_size;
  return announced;
}

Frame frame_of(std::vector<Announcement> announcements, bool has_joined = false, std::uint64_t steps = 0) {
  Frame frame;
  frame.announcements = std::move(announcements);
  frame.has_joined = has_joined;
  frame.steps = steps;
  frame.fusion_bytes = 1 << 20;
  return frame;
}

Agreement agreement_of(int ranks) {
  std::vector<std::string> labels;
  for (int rank = 0; rank < ranks; ++rank)
    labels.push_back("rank " + std::to_string(rank) + " on host" + std::to_string(rank));
  return {labels, {}};
}

/// Takes what has been agreed, in order.
std::vector<Names> take_agreed(Agreement& agreement) {
  std::vector<Names> all;
  for (; agreement.agreed() != nullptr; agreement.executed()) all.push_back(names_of(agreement.agreed()));
  return all;
}

}  // namespace

TEST_CASE("a sequence of tensors is cut into batches by bytes, terms and waits") {
  const auto names = [](const std::vector<AgreedTensorPtr>& tensors, std::uint64_t bytes) {
    std::vector<Names> all;
    for (const Batch& batch : batches_of(tensors, bytes)) all.push_back(names_of(&batch));
    return all;
  };
  CHECK(names({}, 100).empty());
  CHECK(names({tensor("a"), tensor("b"), tensor("c")}, 80) == std::vector<Names>{{"a", "b"}, {"c"}});
  CHECK(names({tensor("a"), tensor("b"), tensor("c")}, 79) == std::vector<Names>{{"a"}, {"b"}, {"c"}});
  // One that is larger than a batch has its own.
  CHECK(names({tensor("a"), tensor("large", 100), tensor("b")}, 80) ==
        std::vector<Names>{{"a"}, {"large"}, {"b"}});
  // The program may have waited for the first before it submitted the second.
  CHECK(names({tensor("a"), tensor("b", 10, true), tensor("c")}, 1000) ==
        std::vector<Names>{{"a"}, {"b", "c"}});
  AgreedTensor other = *tensor("other");
  other.terms.call.dtype = DDL_FLOAT64;
  CHECK(names({tensor("a"), std::make_shared<const AgreedTensor>(other), tensor("b")}, 1000) ==
        std::vector<Names>{{"a"}, {"other"}, {"b"}});
}

TEST_CASE("a step's order is learned when a name comes again") {
  Prediction prediction({});
  CHECK(prediction.next() == nullptr);
  execute(prediction, {"a", "b", "c"});
  CHECK(prediction.next() == nullptr);
  CHECK_FALSE(prediction.expects("a", tensor("a")->terms));
  const std::uint64_t version = prediction.version();
  execute(prediction, {"a"});
  CHECK(prediction.version() != version);
  CHECK(names_of(prediction.next()) == Names{"b", "c"});
  CHECK(prediction.expects("a", tensor("a")->terms));
  CHECK(prediction.expects("b", tensor("b")->terms));
  CHECK_FALSE(prediction.expects("b", tensor("b", 11)->terms));
  CHECK_FALSE(prediction.expects("d", tensor("d")->terms));
  // The last tensor of the step ends it.
  prediction.executed({tensor("b"), tensor("c")});
  CHECK(names_of(prediction.next()) == Names{"a", "b", "c"});
}

TEST_CASE("a program may say that a step has ended") {
  Prediction prediction({});
  execute(prediction, {"a", "b"});
  prediction.end_step();
  CHECK(names_of(prediction.next()) == Names{"a", "b"});
  // What it left out is expected again.
  execute(prediction, {"a"});
  prediction.end_step();
  CHECK(names_of(prediction.next()) == Names{"a", "b"});
  prediction.end_step();
  CHECK(names_of(prediction.next()) == Names{"a", "b"});
}

TEST_CASE("a batch that was executed in part is expected without that part") {
  Prediction prediction({});
  execute(prediction, {"a", "b", "c"});
  prediction.end_step();
  execute(prediction, {"b"});
  CHECK(names_of(prediction.next()) == Names{"a", "c"});
  execute(prediction, {"c", "a"});
  CHECK(names_of(prediction.next()) == Names{"a", "b", "c"});
}

TEST_CASE("an exception between two steps does not change what is expected, and a step that settles does") {
  Prediction prediction({});
  execute(prediction, {"a", "b"});
  prediction.end_step();
  execute(prediction, {"a", "b"});
  // An evaluation.
  execute(prediction, {"score"});
  prediction.end_step();
  CHECK(names_of(prediction.next()) == Names{"a", "b"});
  execute(prediction, {"a", "b"});
  CHECK(names_of(prediction.next()) == Names{"a", "b"});

  // From here on there is another tensor.
  execute(prediction, {"a", "x", "b"});
  CHECK(names_of(prediction.next()) == Names{"a", "b"});
  execute(prediction, {"a", "x", "b"});
  CHECK(names_of(prediction.next()) == Names{"a", "x", "b"});
  // And from here on one less.
  execute(prediction, {"a", "x"});
  prediction.end_step();
  CHECK(names_of(prediction.next()) == Names{"a", "x", "b"});
  execute(prediction, {"a", "x"});
  prediction.end_step();
  CHECK(names_of(prediction.next()) == Names{"a", "x"});
}

TEST_CASE("tensors of groups are not expected") {
  Prediction prediction({});
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    prediction.executed({tensor("a")});
    prediction.executed({tensor_of_group("first"), tensor_of_group("second")});
    prediction.executed({tensor("b")});
    if (step == 0) prediction.end_step();
    CHECK(names_of(prediction.next()) == Names{"a", "b"});
    CHECK_FALSE(prediction.expects("first", tensor_of_group("first")->terms));
  }
  Prediction of_groups({});
  for (int step = 0; step < 3; ++step)
    of_groups.executed({tensor_of_group("first"), tensor_of_group("second")});
  CHECK(of_groups.next() == nullptr);
}

TEST_CASE("a long step is cut into batches, and a short one is not") {
  Prediction::Limits limits;
  limits.fusion_bytes = 80;
  Prediction prediction(limits);
  execute(prediction, {"a", "b", "c"});
  prediction.end_step();
  CHECK(names_of(prediction.next()) == Names{"a", "b"});
  execute(prediction, {"a", "b"});
  CHECK(names_of(prediction.next()) == Names{"c"});

  // 16 batches of a mebibyte.
  Prediction in_batches({});
  for (int i = 0; i < 64; ++i) in_batches.executed({tensor(std::to_string(i), 65536)});
  in_batches.end_step();
  CHECK(names_of(in_batches.next()) == Names{"0", "1", "2", "3"});
}

TEST_CASE("a step with more tensors than are remembered keeps its beginning") {
  Prediction::Limits limits;
  limits.names = 3;
  Prediction prediction(limits);
  const Names step{"a", "b", "c", "d", "e"};
  execute(prediction, step);
  for (int i = 0; i < 6; ++i) {
    CAPTURE(i);
    execute(prediction, {"a"});
    CHECK(names_of(prediction.next()) == Names{"b", "c"});
    execute(prediction, {"b", "c", "d", "e"});
    CHECK(prediction.expects("a", tensor("a")->terms));
    CHECK_FALSE(prediction.expects("d", tensor("d")->terms));
  }
}

TEST_CASE("a program that begins to wait within a batch has two batches in the end") {
  Prediction prediction({});
  execute(prediction, {"a", "b"});
  prediction.end_step();
  CHECK(names_of(prediction.next()) == Names{"a", "b"});
  for (int step = 0; step < 2; ++step) {
    prediction.executed({tensor("a")});
    prediction.executed({tensor("b", 10, true)});
  }
  CHECK(names_of(prediction.next()) == Names{"a"});
  prediction.executed({tensor("a")});
  CHECK(names_of(prediction.next()) == Names{"b"});
}

TEST_CASE("a tensor is ready when every rank has announced it") {
  Agreement agreement = agreement_of(3);
  CHECK_FALSE(agreement.add_round({frame_of({}), frame_of({}), frame_of({})}).has_news);
  CHECK(agreement.add_round({frame_of({announce("a")}), frame_of({}), frame_of({announce("a")})}).has_news);
  CHECK(agreement.agreed() == nullptr);
  CHECK(agreement.add_round({frame_of({}), frame_of({announce("a")}), frame_of({})}).has_news);
  REQUIRE(agreement.agreed() != nullptr);
  CHECK(agreement.agreed()->has_data.empty());
  CHECK(take_agreed(agreement) == std::vector<Names>{{"a"}});
}

TEST_CASE(
    "ready tensors are executed in the order of their first announcement, as far as they fit together") {
  Agreement agreement = agreement_of(2);
  Announcement of_doubles = announce("c");
  of_doubles.terms.call.dtype = DDL_FLOAT64;
  agreement.add_round({frame_of({announce("b"), announce("a")}), frame_of({of_doubles})});
  agreement.add_round({frame_of({of_doubles, announce("d", 1 << 18), announce("e")}),
                       frame_of({announce("d", 1 << 18), announce("e"), announce("a"), announce("b")})});
  // "e" does not fit behind "d", which fills a batch.
  CHECK(take_agreed(agreement) == std::vector<Names>{{"b", "a"}, {"c"}, {"d"}, {"e"}});
}

TEST_CASE("a tensor that differs fails alone, and the message names two ranks") {
  Agreement agreement = agreement_of(3);
  agreement.add_round({frame_of({announce("a"), announce("b")}), frame_of({announce("a"), announce("b")}),
                       frame_of({announce("a", 11), announce("b")})});
  REQUIRE(agreement.agreed() != nullptr);
  REQUIRE(agreement.agreed()->failure);
  CHECK(*agreement.agreed()->failure ==
        "the ranks gave different tensors the name \"a\": rank 0 on host0 called allreduce(sum, float32, 10 "
        "elements), rank 2 on host2 called allreduce(sum, float32, 11 elements)");
  agreement.executed();
  REQUIRE(agreement.agreed() != nullptr);
  CHECK_FALSE(agreement.agreed()->failure);
  CHECK(take_agreed(agreement) == std::vector<Names>{{"b"}});
  // What failed is not expected.
  agreement.add_round({frame_of({}, false, 1), frame_of({}, false, 1), frame_of({}, false, 1)});
  CHECK(names_of(agreement.predicted()) == Names{"b"});
}

TEST_CASE("tensors of a group wait for each other, and fail together") {
  Agreement agreement = agreement_of(2);
  const Frame first = frame_of({announce_in_group("a", 2)});
  agreement.add_round({first, first});
  CHECK(agreement.agreed() == nullptr);
  agreement.add_round({frame_of({announce_in_group("b", 2)}), frame_of({})});
  CHECK(agreement.agreed() == nullptr);
  agreement.add_round({frame_of({}), frame_of({announce_in_group("b", 2)})});
  CHECK(take_agreed(agreement) == std::vector<Names>{{"a", "b"}});

  Announcement another = announce_in_group("b", 2);
  another.terms.call.op = DDL_MAX;
  agreement.add_round({frame_of({announce_in_group("a", 2), announce_in_group("b", 2), announce("c")}),
                       frame_of({announce_in_group("a", 2), another, announce("c")})});
  REQUIRE(agreement.agreed() != nullptr);
  REQUIRE(agreement.agreed()->failure);
  CHECK_THAT(*agreement.agreed()->failure,
             Contains("its group \"layer\" fails: the ranks gave different tensors the name \"b\""));
  agreement.executed();
  REQUIRE(agreement.agreed()->failure);
  agreement.executed();
  REQUIRE(agreement.agreed() != nullptr);
  CHECK_FALSE(agreement.agreed()->failure);
}

TEST_CASE("ready tensors of a higher priority go first, also before those of earlier rounds") {
  Agreement agreement = agreement_of(1);
  constexpr std::uint64_t kLarge = (std::uint64_t{1} << 20) / sizeof(float) - 1;
  Announcement urgent = announce("urgent", kLarge), late = announce("late", kLarge);
  urgent.terms.priority = 2;
  late.terms.priority = -1;
  agreement.add_round({frame_of({late, announce("a")})});
  agreement.add_round({frame_of({announce("b"), urgent})});
  CHECK(take_agreed(agreement) == std::vector<Names>{{"urgent"}, {"a"}, {"b"}, {"late"}});
}

TEST_CASE("of a step of more tensors than are remembered, the first are expected, step after step") {
  Prediction prediction({std::uint64_t{1} << 20, 2});
  execute(prediction, {"a", "b", "c", "a"});
  for (int step = 0; step < 3; ++step) {
    REQUIRE(names_of(prediction.next()) == Names{"b"});
    execute(prediction, {"b"});
    CHECK(prediction.next() == nullptr);
    CHECK_FALSE(prediction.expects("c", tensor("c")->terms));
    execute(prediction, {"c"});
    // The step ends when a name comes again.
    CHECK(prediction.next() == nullptr);
    execute(prediction, {"a"});
  }
}

TEST_CASE("a large tensor is cut into parts, and one of a higher priority goes between them") {
  using Range = std::pair<std::uint64_t, std::uint64_t>;
  Agreement agreement = agreement_of(1);
  const auto take = [&] {
    std::vector<Range> parts;
    for (; agreement.agreed() != nullptr; agreement.executed())
      parts.emplace_back(agreement.agreed()->first, agreement.agreed()->count);
    return parts;
  };
  // A frame's limit is 1 MiB; a line of a cache has 16 elements.
  constexpr std::uint64_t kLimit = (1 << 20) / sizeof(float);
  const Announcement large = announce("large", 5 * kLimit / 2);
  constexpr std::uint64_t kPiece = 5 * kLimit / 6 / 16 * 16 + 16;
  const std::vector<Range> all{{0, kPiece}, {kPiece, kPiece}, {2 * kPiece, 5 * kLimit / 2 - 2 * kPiece}};
  agreement.add_round({frame_of({large, announce("whole", kLimit)})});
  REQUIRE(agreement.agreed() != nullptr);
  CHECK_FALSE(agreement.agreed()->is_last());
  agreement.executed();
  Announcement urgent = announce("urgent");
  urgent.terms.priority = 1;
  agreement.add_round({frame_of({urgent})});
  CHECK(names_of(agreement.agreed()) == Names{"urgent"});
  CHECK(agreement.agreed()->is_last());
  agreement.executed();
  CHECK(take() == std::vector<Range>{all[1], all[2], {0, 0}});

  // It is expected as a whole, and once it has begun, the rest is agreed on.
  agreement.add_round({frame_of({}, false, 1)});
  REQUIRE(names_of(agreement.predicted()) == Names{"urgent"});
  agreement.executed();
  REQUIRE(names_of(agreement.predicted()) == Names{"large"});
  CHECK(agreement.predicted()->count == kPiece);
  agreement.executed();
  CHECK(agreement.predicted() == nullptr);
  CHECK(take() == std::vector<Range>{all[1], all[2]});
  CHECK(names_of(agreement.predicted()) == Names{"whole"});
}

TEST_CASE("ranks that have joined give no data, and when all have, the last one is known") {
  Agreement agreement = agreement_of(3);
  auto round = agreement.add_round({frame_of({announce("a")}), frame_of({}, true), frame_of({})});
  CHECK(round.has_news);
  CHECK_FALSE(round.last_joined);
  CHECK(agreement.has_joined(1));
  agreement.add_round({frame_of({}), frame_of({}, true), frame_of({announce("a"), announce("b")})});
  REQUIRE(agreement.agreed() != nullptr);
  CHECK(agreement.agreed()->has_data == std::vector<std::uint8_t>{1, 0, 1});
  agreement.executed();
  // It has been seen, but it is not expected: not all gave data.
  CHECK(agreement.predicted() == nullptr);

  round = agreement.add_round({frame_of({}, true), frame_of({}, true), frame_of({}, true)});
  REQUIRE(round.last_joined);
  CHECK(*round.last_joined == 2);
  // "b", which rank 2 alone has submitted, is ready now.
  REQUIRE(agreement.agreed() != nullptr);
  CHECK(agreement.agreed()->has_data == std::vector<std::uint8_t>{0, 0, 1});
  CHECK(take_agreed(agreement) == std::vector<Names>{{"b"}});
  for (int rank = 0; rank < 3; ++rank) CHECK_FALSE(agreement.has_joined(rank));
  // Nobody has joined any more.
  agreement.add_round({frame_of({announce("c")}), frame_of({announce("c")}), frame_of({})});
  CHECK(agreement.agreed() == nullptr);
}

TEST_CASE("tensors with the data of different ranks are not combined") {
  Agreement agreement = agreement_of(2);
  agreement.add_round({frame_of({announce("a"), announce("b")}), frame_of({announce("a")}, true)});
  CHECK(take_agreed(agreement) == std::vector<Names>{{"a"}, {"b"}});
}

TEST_CASE("a broadcast from a rank that has joined fails, and so do elements for it") {
  Agreement agreement = agreement_of(2);
  Announcement from = announce("from"), to = announce("to", 0);
  from.terms.call.kind = CallKind::kBroadcast;
  from.terms.call.root = 1;
  to.terms.call.kind = CallKind::kAlltoallv;
  to.send_counts = {3, 1};
  agreement.add_round({frame_of({from, to}), frame_of({}, true)});
  REQUIRE(agreement.agreed() != nullptr);
  CHECK_THAT(*agreement.agreed()->failure, Contains("its root, rank 1 on host1, has joined and has no data"));
  agreement.executed();
  CHECK_THAT(*agreement.agreed()->failure,
             Contains("rank 0 on host0 sends 1 element to rank 1 on host1, which has joined"));
}

TEST_CASE(
    "what has been agreed on goes before what is expected, and a rank that has joined expects nothing") {
  Agreement agreement = agreement_of(1);
  agreement.add_round({frame_of({announce("a"), announce("b")})});
  take_agreed(agreement);
  agreement.add_round({frame_of({}, false, 1)});
  CHECK(names_of(agreement.predicted()) == Names{"a", "b"});
  // A rank that announces a tensor does not keep it from being executed as it was expected.
  Agreement pair = agreement_of(2);
  const Frame both = frame_of({announce("a"), announce("b")}), end = frame_of({}, false, 1);
  pair.add_round({both, both});
  take_agreed(pair);
  pair.add_round({end, end});
  pair.add_round({frame_of({announce("a")}, false, 1), end});
  REQUIRE(names_of(pair.predicted()) == Names{"a", "b"});
  pair.executed();
  CHECK(names_of(pair.predicted()) == Names{"a", "b"});
  pair.add_round({both, both});
  CHECK(pair.agreed() != nullptr);
  CHECK(pair.predicted() == nullptr);
  take_agreed(pair);
  pair.add_round({frame_of({}, true, 1), end});
  CHECK(pair.predicted() == nullptr);
}

TEST_CASE("if the name of a group comes again, whole groups go, and nothing waits for ever") {
  Agreement agreement = agreement_of(1);
  agreement.add_round(
      {frame_of({announce_in_group("c", 2), announce_in_group("a", 2), announce_in_group("b", 2)})});
  CHECK(take_agreed(agreement) == std::vector<Names>{{"c", "a"}});
  agreement.add_round({frame_of({announce_in_group("d", 2)})});
  CHECK(take_agreed(agreement) == std::vector<Names>{{"b", "d"}});
}

TEST_CASE("a step whose names never come again ends, so that memory does") {
  constexpr std::size_t kNames = 4;
  Prediction prediction({std::uint64_t{1} << 20, kNames});
  std::size_t steps = 0;
  for (int i = 0; i < 100; ++i) {
    execute(prediction, {"loss." + std::to_string(i)});
    steps += prediction.is_between_steps() ? 1 : 0;
  }
  CHECK(steps == 100 / (2 * kNames));
}

TEST_CASE("an expected batch of a higher priority may overtake the next one") {
  const auto with_priority = [](const std::string& name, std::int32_t priority) {
    TensorTerms terms;
    terms.call.count = 10;
    terms.priority = priority;
    return std::make_shared<const AgreedTensor>(AgreedTensor{name, terms, true});
  };
  const std::vector<AgreedTensorPtr> step{with_priority("low", 0), with_priority("high", 7),
                                          with_priority("same", 0)};
  Prediction prediction({});
  for (const AgreedTensorPtr& one : step) prediction.executed({one});
  prediction.end_step();
  REQUIRE(names_of(prediction.next()) == Names{"low"});
  CHECK(names_of(prediction.overtaking("high", step[1]->terms)) == Names{"high"});
  CHECK(prediction.overtaking("low", step[0]->terms) == nullptr);
  CHECK(prediction.overtaking("same", step[2]->terms) == nullptr);
  CHECK(prediction.overtaking("other", step[1]->terms) == nullptr);
  prediction.executed({step[0]});
  CHECK(prediction.overtaking("high", step[1]->terms) == nullptr);
}

TEST_CASE("small tensors of different priorities that become ready together go together") {
  Agreement agreement = agreement_of(1);
  Announcement first = announce("first"), second = announce("second");
  first.terms.priority = 2;
  second.terms.priority = 1;
  agreement.add_round({frame_of({second, first})});
  CHECK(take_agreed(agreement) == std::vector<Names>{{"first", "second"}});
}

TEST_CASE("terms that differ have texts that differ") {
  TensorTerms one, other;
  one.call.count = other.call.count = 6;
  one.call.prescale = 1.0 / 3;
  other.call.prescale = 1.0 / 3 + 1e-12;
  CHECK(one.describe() != other.describe());
}
