#include "net/pmi_line.h"

#include "support/catch.h"

using namespace ddl::net;

namespace {

using Groups = std::vector<std::vector<int>>;

}  // namespace

TEST_CASE("a line of PMI-1 is a command and words, in their order") {
  const PmiLine put{"put", {{"kvsname", "kvs_1"}, {"key", "a"}, {"value", "b=c"}}};
  CHECK(put.text() == "cmd=put kvsname=kvs_1 key=a value=b=c\n");
  const auto read = PmiLine::parse("cmd=put kvsname=kvs_1 key=a value=b=c");
  REQUIRE(read);
  CHECK(*read == put);
  CHECK((*read)["value"] == "b=c");
  CHECK((*read)["unheard"].empty());
  CHECK(PmiLine::parse("mcmd=spawn")->command == "spawn");
  CHECK((*PmiLine::parse("cmd=get_result rc=-1 msg=key not found"))["msg"] == "key not found");
  CHECK((*PmiLine::parse(" cmd=a  b= "))["b"].empty());
}

TEST_CASE("text that is not a line of PMI-1 is refused") {
  for (const char* text : {"", " ", "init", "cmd=", "=put", "key=a cmd=put", "cmd", "cmd=a =b"}) {
    CAPTURE(text);
    CHECK_FALSE(PmiLine::parse(text));
  }
}

TEST_CASE("lines are complete, however their bytes arrive") {
  PmiLineReader reader;
  reader.append("cmd=in");
  CHECK_FALSE(reader.next().value());
  reader.append("it\ncmd=get_maxes\nc");
  CHECK(reader.next().value() == "cmd=init");
  CHECK(reader.next().value() == "cmd=get_maxes");
  CHECK_FALSE(reader.next().value());
  reader.append(std::string(70'000, 'x'));
  CHECK_FALSE(reader.next());
}

TEST_CASE("a process mapping is written in blocks") {
  CHECK(process_mapping({{0}}) == "(vector,(0,1,1))");
  CHECK(process_mapping({{0, 1}, {2, 3}, {4, 5}}) == "(vector,(0,3,2))");
  CHECK(process_mapping({{0, 1, 2}, {3}}) == "(vector,(0,1,3),(1,1,1))");
  CHECK(process_mapping({{0, 2}, {1, 3}}) == "(vector,(0,2,1),(0,2,1))");
}

TEST_CASE("a process mapping is read block by block, and anything else is refused") {
  CHECK(parse_process_mapping("(vector,(0,1,4))", 4).value() == Groups{{0, 1, 2, 3}});
  CHECK(parse_process_mapping("(vector,(0,3,2))", 6).value() == Groups{{0, 1}, {2, 3}, {4, 5}});
  CHECK(parse_process_mapping("(vector,(0,1,3),(1,1,1))", 4).value() == Groups{{0, 1, 2}, {3}});
  CHECK(parse_process_mapping("(vector,(0,2,1))", 5).value() == Groups{{0, 2, 4}, {1, 3}});
  CHECK(parse_process_mapping("(vector,(0,4,8))", 3).value() == Groups{{0, 1, 2}});
  for (const char* text :
       {"", "(vector)", "(vector,(0,1))", "(vector,(0,0,1))", "(vector,(0,1,1)", "vector,(0,1,1)",
        "(vector,(-1,1,1))", "(vector,(0,1,1)x)", "(vector,(0,1,99999999999))"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_process_mapping(text, 2));
  }
}

TEST_CASE("a process mapping that was written is read as the same ranks of each node") {
  const Groups jobs[] = {
      {{0}},           {{0, 1, 2}, {3}}, {{0, 1}, {2, 3}, {4, 5}}, {{0, 2}, {1, 3}}, {{0, 3, 5}, {1, 4}, {2}},
      {{2}, {0, 1, 3}}};
  for (const Groups& node_ranks : jobs) {
    int num_ranks = 0;
    for (const auto& ranks : node_ranks) num_ranks += static_cast<int>(ranks.size());
    const std::string text = process_mapping(node_ranks);
    CAPTURE(text);
    CHECK(parse_process_mapping(text, num_ranks).value() == node_ranks);
  }
}
