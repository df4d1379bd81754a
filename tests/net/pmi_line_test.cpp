#include "net/pmi_line.h"

#include "support/catch.h"

using namespace ddl::net;

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
